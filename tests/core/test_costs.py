"""What the hot paths must not make: no task, future, handle or coroutine for each element."""

import asyncio
import sys
from collections import Counter
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import pytest

from reactive_aio import Flow, range as numbers
from reactive_aio._core import loop as loop_module
from reactive_aio.testing import AsyncSubscriberProbe, SubscriberProbe

MANY = 20_000


async def double(number: int) -> int:
    return 2 * number


class Made:
    """Counts what a loop is asked to make."""

    def __init__(self, loop: asyncio.AbstractEventLoop, patch: pytest.MonkeyPatch) -> None:
        self.counts: Counter[str] = Counter()
        for name in ("create_future", "call_soon", "call_later", "call_soon_threadsafe"):
            self._count(loop, name, patch)
        task = loop_module._FlowTask

        def counted(*args: Any, **options: Any) -> asyncio.Task[Any]:
            self.counts["task"] += 1
            return task(*args, **options)

        patch.setattr(loop_module, "_FlowTask", counted)

    def _count(self, loop: asyncio.AbstractEventLoop, name: str, patch: pytest.MonkeyPatch) -> None:
        original: Callable[..., Any] = getattr(loop, name)

        def counted(*args: Any, **options: Any) -> Any:
            self.counts[name] += 1
            return original(*args, **options)

        patch.setattr(loop, name, counted)


@pytest.fixture
async def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    return Made(asyncio.get_running_loop(), monkeypatch)


async def ended(flow: Flow[Any], probe: SubscriberProbe[Any]) -> None:
    await probe.subscribed_to(flow).end()
    assert len(probe.elements) == MANY


async def test_a_fused_chain_creates_no_asyncio_objects(made: Made) -> None:
    await ended(numbers(MANY).map(str).filter(bool), SubscriberProbe(2**63 - 1))
    assert made.counts["task"] == 0
    assert sum(made.counts.values()) < MANY / 100  # a turn of the loop every 2 ms


async def test_stop_and_wait_creates_no_asyncio_objects(made: Made) -> None:
    await ended(numbers(MANY).map(str), SubscriberProbe(1, again=1))
    assert made.counts["task"] == 0
    assert sum(made.counts.values()) < MANY / 100


async def test_a_boundary_creates_asyncio_objects_per_chunk_only(made: Made) -> None:
    await ended(numbers(MANY).boundary(256).map(str), SubscriberProbe(2**63 - 1))
    assert made.counts["task"] == 0
    assert sum(made.counts.values()) < 4 * MANY / 192


@pytest.mark.parametrize("probe", [SubscriberProbe, AsyncSubscriberProbe])
async def test_an_awaiting_island_uses_one_task(
    probe: Callable[[int], SubscriberProbe[Any]], made: Made
) -> None:
    flow = numbers(MANY).map_async(double)
    subscriber = probe(2**63 - 1)
    flow.subscribe(subscriber)
    await subscriber.wait_for_signals(100)
    assert made.counts["task"] - isinstance(subscriber, AsyncSubscriberProbe) <= 1
    assert made.counts["create_future"] < 50
    subscriber.cancel()


async def test_async_for_creates_no_task_and_one_coroutine_per_step(made: Made) -> None:
    begun: Counter[CodeType] = Counter()

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            begun[frame.f_code] += 1

    elements: list[str] = []
    sys.setprofile(profile)
    try:
        async for element in numbers(MANY).map(str):
            elements.append(element)  # noqa: PERF401 - the very statement under test
    finally:
        sys.setprofile(None)
    assert len(elements) == MANY
    assert made.counts["task"] == 0
    busy = [code.co_qualname for code, calls in begun.items() if calls >= MANY]
    assert len(busy) <= 2  # the loop, and from 3.12 on the __anext__ that steps it
