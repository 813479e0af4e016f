"""Every part that combines or queues keeps the laws, in whatever order things happen.

Each is subscribed to in several ways. ``--thorough`` tries all orders of the budget, other runs a
part of them; ``SCHEDULES=20`` tries twenty times as many.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from typing import Any

import pytest

from reactive_aio.testing.schedules import Schedule, explore
from tests.harness.effort import scaled
from tests.schedules.laws import ALL, AsyncWitness, Law, Witness
from tests.schedules.parts import PARTS, Part

Way = Callable[[Schedule, Any, Law], Coroutine[Any, Any, None]]


async def all_at_once(schedule: Schedule, flow: Any, law: Law) -> None:
    witness = Witness(ALL)
    flow.subscribe(witness)
    await witness.end()
    await schedule.wait_until_idle()
    law.judge(witness)


async def one_by_one(schedule: Schedule, flow: Any, law: Law) -> None:
    witness = AsyncWitness(1, again=1)
    flow.subscribe(witness)
    await witness.end()
    await schedule.wait_until_idle()
    law.judge(witness)


async def requested_by_threads(schedule: Schedule, flow: Any, law: Law) -> None:
    witness = Witness()
    flow.subscribe(witness)
    schedule.thread(lambda: witness.request(1), "request(1)")
    schedule.thread(lambda: witness.request(ALL), "request(ALL)")
    await witness.end()
    await schedule.wait_until_idle()
    law.judge(witness)


async def cancelled_by_a_thread(schedule: Schedule, flow: Any, law: Law) -> None:
    witness = Witness(ALL)
    flow.subscribe(witness)
    schedule.thread(witness.cancel, "cancel()")
    await schedule.wait_until_idle()
    witness.silent = True
    await asyncio.sleep(10)
    take_out(schedule, law)
    law.judge(witness)


def take_out(schedule: Schedule, law: Law) -> None:
    """A failure that comes after the cancellation is told to the loop, as nobody else is there."""
    fails = law.fails
    if fails is not None:
        schedule.errors[:] = [
            each for each in schedule.errors if not isinstance(each.get("exception"), fails)
        ]


async def cancelled_by_a_task(schedule: Schedule, flow: Any, law: Law) -> None:
    witness = AsyncWitness(2, again=1)

    async def cancel() -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        witness.cancel()

    task = asyncio.ensure_future(cancel())
    flow.subscribe(witness)
    await task
    await asyncio.sleep(10)
    take_out(schedule, law)
    law.judge(witness)


async def iterated(_: Schedule, flow: Any, law: Law) -> None:
    elements: list[Any] = []
    try:
        async for element in flow:
            elements.append(element)  # noqa: PERF401 - what came before an error counts
    except Exception as error:
        if not isinstance(error, law.fails or ()):
            raise
    law.whole(elements)


async def left(_: Schedule, flow: Any, law: Law) -> None:
    async with aclosing(flow.stream()) as elements:
        async for element in elements:
            law.begun([element])
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
        left,
    )
}


def scenario(part: Part, way: Way) -> Callable[[Schedule], Coroutine[Any, Any, None]]:
    make, law = part

    async def explored(schedule: Schedule) -> None:
        await way(schedule, make(schedule), law)

    return explored


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("part", PARTS)
def test_a_part_keeps_the_laws_in_every_order(part: str, way: str) -> None:
    explore(
        scenario(PARTS[part], WAYS[way]),
        package="reactive_aio",
        max_orders=scaled(80),
        random_orders=scaled(20),
    )
