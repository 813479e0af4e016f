"""Reports about a flow: its bound, its islands, its trail."""

import asyncio
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow, just, merge, range as numbers
from reactive_aio._operators.introspection import Bound
from reactive_aio.testing import SubscriberProbe
from tests.cases import Needs


async def double(number: int) -> int:
    return 2 * number


def test_a_fused_flow_holds_nothing() -> None:
    bound = numbers(9).map(str).filter(bool).bound()
    assert bound == Bound(())
    assert (bound.total, bound.unbounded, str(bound)) == (0, (), "holds no element")


def test_the_bound_is_the_sum_of_the_parts() -> None:
    flow = merge(numbers(3), just(5).boundary(2)).buffer(3).boundary(4)
    bound = flow.bound()
    sizes = [size for _, size in bound.parts]
    assert [name for name, _ in bound.parts] == [
        "boundary(2)",
        "merge(2 sources)",
        "buffer(3)",
        "boundary(4)",
    ]
    assert bound.total == sum(size for size in sizes if size is not None)
    assert str(bound).startswith(f"holds at most {bound.total} elements (boundary(2) 2, ")


def test_unbounded_parts_are_named() -> None:
    bound = numbers(9).distinct(max_keys=None).boundary(4).bound()
    assert bound.total is None
    assert [name.partition("(")[0] for name in bound.unbounded] == ["distinct"]
    assert str(bound).startswith("unbounded: distinct(")


def test_explain_shows_islands_and_the_queues_between_them() -> None:
    flow = numbers(3).map(str).boundary(8).filter(bool)
    assert flow.explain().splitlines() == [
        "island (one loop, pulled): range(0, 3) → map(str)",
        "║ boundary(8), holds at most 8 elements",
        "island (one loop, pushed): filter(bool)",
        "holds at most 8 elements (boundary(8) 8)",
    ]


def test_explain_draws_several_upstreams_side_by_side() -> None:
    lines = merge(numbers(3), just(5).boundary(2)).explain().splitlines()
    assert lines[:3] == [
        "├ island (one loop, pulled): range(0, 3)",
        "├ island (one loop, pulled): just(5)",
        "│ ║ boundary(2), holds at most 2 elements",
    ]


def test_explain_shows_where_a_task_is_needed() -> None:
    assert (
        "island (one task): range(0, 3) → map_async(double)"
        in numbers(3).map_async(double).explain()
    )


@pytest.mark.parametrize(
    ("flow", "text"),
    [
        (numbers(3).map(str), "x = mapper_1(x)"),
        (numbers(3).map_async(double), "x = await mapper_1(x)"),
    ],
)
def test_explain_prints_the_loop_that_runs(flow: Flow[Any], text: str) -> None:
    shown = [line.removeprefix("    ") for line in flow.explain(code=True).splitlines()]
    loop = flow.chain.compiled_loop("task" if flow.chain.awaits else "sync", "call").text
    assert text in loop
    assert set(loop.splitlines()) <= set(shown)


async def test_an_error_names_its_flow_once() -> None:
    flow = numbers(3).boundary(2).map(lambda n: 1 // n).boundary(4).map(str)
    probe = SubscriberProbe[str](9).subscribed_to(flow)
    await probe.end()
    assert isinstance(probe.error, ZeroDivisionError)
    [note] = probe.error.__notes__
    assert note.startswith(
        "in the flow: range(0, 3) → boundary(2) → >>map(<lambda>)<< → boundary(4) → map(str)\n"
        f'    with the element 0\n    File "{__file__}", line '
    )


async def test_a_subscriber_that_raises_is_reported_with_the_whole_trail(
    expects_loop_errors: list[dict[str, Any]],
) -> None:
    """Rule 2.13."""

    class Raising(SubscriberProbe[str]):
        def on_next(self, element: str, /) -> None:
            raise KeyError(element)

    numbers(3).map(str).boundary(2).filter(bool).subscribe(Raising(1))
    while not expects_loop_errors:  # noqa: ASYNC110 - one turn at a time
        await asyncio.sleep(0)
    assert expects_loop_errors[0]["flow"] == "range(0, 3) → map(str) → boundary(2) → filter(bool)"


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Backpressure": {
        "know how many elements a flow can hold, and where": "bound explain",
    },
    "Run a service": {
        "see what the flows of a running program do": "stats name",
    },
}


async def example_bound() -> None:
    batches = r.range(100).boundary(32).buffer(10)
    print(batches.bound())


async def example_explain() -> None:
    async def save(n: int) -> int:
        await asyncio.sleep(0)
        return n

    print(r.range(100).filter(bool).boundary(32).map_async(save).explain())


async def example_stats() -> None:
    async def save(n: int) -> int:
        await asyncio.sleep(0.5)
        return n

    saved = r.range(100).boundary(8).map_async(save).name("orders")
    async with saved.running():
        await asyncio.sleep(1.2)
        [orders] = saved.stats().subscriptions
        print(orders.delivered, "delivered,", orders.held, "held")
        for part in orders.parts:
            print(part.name, "holds", part.held)
