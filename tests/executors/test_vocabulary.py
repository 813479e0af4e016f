"""A pipeline gives the same result in a worker of Spark as on one loop, whatever its operators."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import given, strategies as st

import reactive_aio as rx
from reactive_aio import Flow
from tests.cases import identities
from tests.executors.worker import Worker, new_worker, numbers

Form = Callable[[Flow[Any]], Flow[Any]]


async def _next_number(n: int) -> int:
    await asyncio.sleep(0)
    return n + 1


def _numbers_of(n: int) -> Flow[int]:
    return rx.range(n % 3)


def _add(total: int, n: int) -> int:
    return total + n


FORMS: Final[dict[str, Form]] = {
    **identities(),
    "filter: odd": lambda up: up.filter(lambda n: n % 2),
    "map: next": lambda up: up.map(lambda n: n + 1),
    "map_async: next": lambda up: up.map_async(_next_number, concurrency=4),
    "flat_map: several": lambda up: up.flat_map(lambda n: [n] * (n % 3)),
    "concat_map: several": lambda up: up.concat_map(_numbers_of),
    "buffer: sums": lambda up: up.buffer(3).map(sum),
    "scan: sums": lambda up: up.scan(_add, seed=0),
    "take: some": lambda up: up.take(11),
    "take_last: some": lambda up: up.take_last(5),
    "skip: some": lambda up: up.skip(5),
    "window: sums": lambda up: up.window(4).concat_map(lambda window: window.scan(_add, seed=0)),
    "concat_with: more": lambda up: up.concat_with(rx.range(3)),
    "distinct: remainders": lambda up: up.map(lambda n: n % 5).distinct(),
}
"""The operators in a form that passes elements on, and some that do not."""
COUNT: Final = 30


def on_one_loop(form: Form, count: int) -> list[Any]:
    async def collect() -> list[Any]:
        return await form(rx.range(count)).to_list()

    return asyncio.run(collect())


def of_rows(form: Form) -> Form:
    """The same pipeline of numbers, for rows."""

    def pipeline(rows: Flow[tuple[int]]) -> Flow[tuple[int]]:
        return form(rows.map(lambda row: row[0])).map(lambda n: (n,))

    return pipeline


@pytest.mark.parametrize("key", FORMS)
def test_each_operator_works_in_a_worker(key: str, worker: Worker) -> None:
    form = FORMS[key]
    assert worker.numbers(of_rows(form), COUNT, most=7) == on_one_loop(form, COUNT)


def test_groups_work_in_a_worker(worker: Worker) -> None:
    def sums(up: Flow[int]) -> Flow[int]:
        groups = up.group_by(lambda n: n % 3)
        return groups.flat_map(lambda group: group.scan(_add, seed=0), concurrency=3)

    # Groups take turns in any order.
    assert sorted(worker.numbers(of_rows(sums), COUNT)) == sorted(on_one_loop(sums, COUNT))


@given(
    keys=st.lists(st.sampled_from(sorted(FORMS)), min_size=1, max_size=4),
    count=st.integers(0, 60),
    size=st.integers(1, 20),
    most=st.integers(1, 20),
)
def test_random_pipelines_do_the_same_in_a_worker(
    keys: list[str], count: int, size: int, most: int
) -> None:
    def form(up: Flow[int]) -> Flow[int]:
        for key in keys:
            up = FORMS[key](up)
        return up

    with new_worker() as worker:
        rows = worker.rows(of_rows(form), numbers(count, size), most=most)
    assert [n for (n,) in rows] == on_one_loop(form, count)
