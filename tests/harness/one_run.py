"""A test with many parameters that runs as one test.

pytest collects each combination of parameters in each process, makes its fixtures, and looks for
what it left behind. For a quick test, that takes many times as long as the test itself.
"""

import asyncio
import gc
import inspect
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import wraps
from itertools import product
from typing import Any, cast

import pytest

from tests.harness.leftover_checks import TURNS_TO_END, other_tasks

__all__ = ("in_one_run",)

Test = Callable[..., Any]
Row = Mapping[str, Any]


def in_one_run(test: Test) -> Test:
    """Run all combinations of the marks `parametrize` of *test* as one test, one after another.

    A failure says in which combination it happened. Each combination begins with empty lists of
    errors, and must leave no task. Use it where the combinations share no other fixture.
    """
    marks: list[pytest.Mark] = getattr(test, "pytestmark", [])
    tables = [table(mark) for mark in marks if mark.name == "parametrize"]
    rows = [{name: value for part in parts for name, value in part.items()}
            for parts in product(*tables)]  # fmt: skip
    assert rows, "nothing is to be run: put it above the marks `parametrize`"

    def run(*instance: Any, **fixtures: Any) -> None:
        for row in rows:
            with named(row, fixtures):
                test(*instance, **fixtures, **row)
        gc.collect()

    async def run_on_loop(*instance: Any, **fixtures: Any) -> None:
        for row in rows:
            with named(row, fixtures):
                await test(*instance, **fixtures, **row)
                await no_task_is_left()
        gc.collect()

    result = wraps(test)(run_on_loop if inspect.iscoroutinefunction(test) else run)
    signature = inspect.signature(test)
    kept = [each for each in signature.parameters.values() if each.name not in rows[0]]
    changed = cast("Any", result)
    changed.__signature__ = signature.replace(parameters=kept)
    changed.pytestmark = [mark for mark in marks if mark.name != "parametrize"]
    return result


def table(mark: pytest.Mark) -> list[Row]:
    """The rows of a mark `parametrize`."""
    names, rows = mark.args
    if isinstance(names, str):
        names = [name.strip() for name in names.split(",")]
    return [dict(zip(names, values_of(row, len(names)), strict=True)) for row in rows]


def values_of(row: Any, count: int) -> Any:
    return row if count > 1 else (row,)


@contextmanager
def named(row: Row, fixtures: Row) -> Generator[None]:
    """Begin with empty lists of errors, and add the combination to what is raised."""
    for fixture in fixtures.values():
        if isinstance(fixture, list):
            cast("list[object]", fixture).clear()
    try:
        yield
    except BaseException as error:
        error.add_note(f"in the combination {row}")
        raise


async def no_task_is_left() -> None:
    for _ in range(TURNS_TO_END):
        if not other_tasks():
            return
        await asyncio.sleep(0)
    assert not (tasks := other_tasks()), f"tasks are left: {tasks}"
