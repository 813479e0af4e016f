"""Every operator and source that combines or queues follows the rules in every legal order.

Each is subscribed to in several ways. ``--thorough`` tries all orders of the budget, other runs a
part of them; ``SCHEDULES=20`` tries twenty times as many.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import aclosing, suppress
from typing import Any

import pytest

from reactive_aio.testing.schedules import Schedule, explore
from tests.harness.effort import scaled
from tests.schedules.checks import UNLIMITED, AsyncCheckedSubscriber, CheckedSubscriber, Expected
from tests.schedules.parts import PARTS, Part

Way = Callable[[Schedule, Any, Expected], Coroutine[Any, Any, None]]


async def all_at_once(schedule: Schedule, flow: Any, expected: Expected) -> None:
    subscriber = CheckedSubscriber(UNLIMITED)
    flow.subscribe(subscriber)
    await subscriber.end()
    await schedule.wait_until_idle()
    expected.check(subscriber)


async def one_by_one(schedule: Schedule, flow: Any, expected: Expected) -> None:
    subscriber = AsyncCheckedSubscriber(1, again=1)
    flow.subscribe(subscriber)
    await subscriber.end()
    await schedule.wait_until_idle()
    expected.check(subscriber)


async def requested_by_threads(schedule: Schedule, flow: Any, expected: Expected) -> None:
    subscriber = CheckedSubscriber()
    flow.subscribe(subscriber)
    schedule.thread(lambda: subscriber.request(1), "request(1)")
    schedule.thread(lambda: subscriber.request(UNLIMITED), "request(UNLIMITED)")
    await subscriber.end()
    await schedule.wait_until_idle()
    expected.check(subscriber)


async def cancelled_by_a_thread(schedule: Schedule, flow: Any, expected: Expected) -> None:
    subscriber = CheckedSubscriber(UNLIMITED)
    flow.subscribe(subscriber)
    schedule.thread(subscriber.cancel, "cancel()")
    await schedule.wait_until_idle()
    subscriber.must_be_silent = True
    await asyncio.sleep(10)
    remove_expected_errors(schedule, expected)
    expected.check(subscriber)


def remove_expected_errors(schedule: Schedule, expected: Expected) -> None:
    """A failure after the cancellation is reported to the loop, as it has no subscriber."""
    fails = expected.fails
    if fails is not None:
        schedule.errors[:] = [
            each for each in schedule.errors if not isinstance(each.get("exception"), fails)
        ]


async def cancelled_by_a_task(schedule: Schedule, flow: Any, expected: Expected) -> None:
    subscriber = AsyncCheckedSubscriber(2, again=1)

    async def cancel() -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        subscriber.cancel()

    task = asyncio.ensure_future(cancel())
    flow.subscribe(subscriber)
    await task
    await asyncio.sleep(10)
    remove_expected_errors(schedule, expected)
    expected.check(subscriber)


async def iterated(_: Schedule, flow: Any, expected: Expected) -> None:
    elements: list[Any] = []
    try:
        async for element in flow:
            elements.append(element)  # noqa: PERF401 - what came before an error counts
    except Exception as error:
        if not isinstance(error, expected.fails or ()):
            raise
    expected.check_all(elements)


async def iterated_and_cancelled(_: Schedule, flow: Any, expected: Expected) -> None:
    with suppress(*(() if expected.fails is None else (expected.fails,))):  # of the cleanup
        async with aclosing(flow.stream()) as elements:
            async for element in elements:
                expected.check_some([element])
                break


WAYS: dict[str, Way] = {
    way.__name__: way
    for way in (
        all_at_once,
        one_by_one,
        requested_by_threads,
        cancelled_by_a_thread,
        cancelled_by_a_task,
        iterated,
        iterated_and_cancelled,
    )
}


def scenario(part: Part, way: Way) -> Callable[[Schedule], Coroutine[Any, Any, None]]:
    make, expected = part

    async def explored(schedule: Schedule) -> None:
        await way(schedule, make(schedule), expected)

    return explored


PAIRS = [
    # Each part in one or two of the ways; in all of them with ``--thorough``.
    pytest.param(part, way, marks=[pytest.mark.thorough] if (i + j) % 5 else [])
    for i, part in enumerate(PARTS)
    for j, way in enumerate(WAYS)
]


@pytest.mark.parametrize(("part", "way"), PAIRS)
def test_a_part_follows_the_rules_in_every_order(part: str, way: str) -> None:
    explore(
        scenario(PARTS[part], WAYS[way]),
        package="reactive_aio",
        max_orders=scaled(80),
        random_orders=scaled(20),
    )
