"""What a signal has returned is awaited to its end, even if its subscription was cancelled."""

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio.spec import Publisher, Subscription
from tests.harness.one_run import in_one_run

pytestmark = pytest.mark.virtual_time


async def steps() -> AsyncIterator[int]:
    yield 1
    await asyncio.sleep(0)
    yield 2


def emitting(processor: Any) -> Any:
    async def emit() -> None:
        processor.try_emit(1)
        processor.try_emit(2)
        processor.complete()

    emitting.task = asyncio.ensure_future(emit())  # type: ignore[attr-defined]
    return processor


PUBLISHERS: dict[str, Callable[[], Publisher[int]]] = {
    "range": lambda: r.range(5),
    "map": lambda: r.range(5).map(abs),
    "flat_map": lambda: r.range(5).flat_map(lambda x: [x, x]),
    "boundary": lambda: r.range(5).boundary(2),
    "from_aiter": lambda: r.from_aiter(steps),
    "map_async": lambda: r.range(5).map_async(lambda x: asyncio.sleep(0, x)),
    "do_on_request": lambda: r.range(5).do_on_request(lambda _: None),
    "interval": lambda: r.interval(1).take(3),
    "share": lambda: r.range(5).share(),
    "empty": r.empty,
    "error": lambda: r.error(ValueError()),
    "fails": lambda: r.range(5).map(lambda x: 1 // (1 - x)),
    "UnicastProcessor": lambda: emitting(r.UnicastProcessor[int](8)),
    "MulticastProcessor": lambda: emitting(r.MulticastProcessor[int](8)),
}


class Subscriber:
    """Its signal *which* does *act*, and returns a coroutine."""

    def __init__(self, which: str, act: Callable[[Subscription], object], demand: int) -> None:
        self.which = which
        self.act = act
        self.demand = demand
        self.begun = self.ended = 0
        self.subscription: Any = None

    def _returned(self, signal: str) -> "Awaitable[None] | None":
        if signal != self.which:
            return None
        self.act(self.subscription)
        return self.wait()

    async def wait(self) -> None:
        self.begun += 1
        await asyncio.sleep(0.1)
        self.ended += 1

    def on_subscribe(self, subscription: Subscription) -> Any:
        self.subscription = subscription
        subscription.request(self.demand)
        return self._returned("on_subscribe")

    def on_next(self, element: Any) -> Any:
        return self._returned("on_next")

    def on_error(self, error: BaseException) -> Any:
        return self._returned("on_error")

    def on_complete(self) -> Any:
        return self._returned("on_complete")


def cancel_on_a_thread(subscription: Subscription) -> None:
    thread = threading.Thread(target=subscription.cancel)
    thread.start()
    thread.join()


ACTS: dict[str, Callable[[Subscription], object]] = {
    "nothing": lambda _: None,
    "cancel": lambda subscription: subscription.cancel(),
    "cancel in a thread": cancel_on_a_thread,
    "cancel soon": lambda subscription: asyncio.get_running_loop().call_soon(subscription.cancel),
    "request(0)": lambda subscription: subscription.request(0),
}


@in_one_run
@pytest.mark.parametrize("make", PUBLISHERS.values(), ids=PUBLISHERS)
@pytest.mark.parametrize("which", ["on_subscribe", "on_next", "on_error", "on_complete"])
@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
@pytest.mark.parametrize("demand", [1, 2**63 - 1])
async def test_it_is_awaited(
    make: Callable[[], Publisher[int]],
    which: str,
    act: Callable[[Subscription], object],
    demand: int,
) -> None:
    subscriber = Subscriber(which, act, demand)
    make().subscribe(subscriber)
    await asyncio.sleep(10)
    subscriber.subscription.cancel()
    await asyncio.sleep(1)
    assert subscriber.begun == subscriber.ended
    gc.collect(0)  # Python warns of a coroutine that was never awaited
