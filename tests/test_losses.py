"""Losses are counted: elements that were dropped, and errors without a receiver."""

import asyncio
import gc
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow, Losses, MulticastProcessor
from reactive_aio._core.losses import DropCounter
from reactive_aio.testing import PublisherProbe, SubscriberProbe

pytestmark = pytest.mark.virtual_time


async def soon(x: int) -> int:
    await asyncio.sleep(0)
    return x


@contextmanager
def loses(elements: dict[str, int], *, errors: int = 0) -> Generator[None]:
    before = r.losses()
    yield
    assert r.losses() - before == Losses(elements, errors)


THINNED: dict[str, tuple[Callable[[Flow[int]], Flow[int]], dict[str, int]]] = {
    "debounce": (lambda flow: flow.debounce(1), {"debounce": 2}),
    "throttle_first": (lambda flow: flow.throttle_first(1), {"throttle_first": 2}),
    "throttle_latest": (lambda flow: flow.throttle_latest(1), {"throttle_latest": 1}),
    "sample": (lambda flow: flow.sample(1), {"sample": 3}),
    "on_backpressure_drop": (
        lambda flow: flow.on_backpressure_drop(),
        {"on_backpressure_drop: drop_newest": 2},
    ),
    "on_backpressure_latest": (
        lambda flow: flow.on_backpressure_latest(),
        {"on_backpressure_latest: latest": 1},
    ),
    "on_backpressure_buffer": (
        lambda flow: flow.on_backpressure_buffer(1, overflow="drop_oldest"),
        {"on_backpressure_buffer: drop_oldest": 1},
    ),
    "group_by": (
        lambda flow: flow.group_by(lambda x: x, max_groups=1, on_full="drop").map(lambda g: g.key),
        {"group_by": 2},
    ),
}


@pytest.mark.parametrize("name", THINNED)
async def test_elements_that_an_operator_drops_are_counted(name: str) -> None:
    thin, lost = THINNED[name]
    source = PublisherProbe[int]()
    with loses(lost):
        probe = SubscriberProbe[int](1).subscribed_to(thin(r.from_publisher(source)))
        await asyncio.sleep(0)
        source.emit(1, 2, 3)
        source.complete()
        await asyncio.sleep(10)
        probe.request(10)
        await asyncio.sleep(10)
        probe.cancel()


async def failing(x: int) -> int:
    await asyncio.sleep(0)
    if x % 2:
        raise ValueError(x)
    return x


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_elements_whose_work_failed_and_was_left_out_are_counted(concurrency: int) -> None:
    left: list[int] = []

    def leave(x: int, _error: Exception) -> None:
        left.append(x)

    with loses({"map_async: failed": 3, "for_each: failed": 2}):
        flow = r.range(6).map_async(failing, concurrency=concurrency, on_error="skip")
        assert await flow.to_list() == [0, 2, 4]
        done = await r.range(4).for_each(failing, concurrency=concurrency, on_error=leave)
        assert (done, left) == (2, [1, 3])


async def test_a_failure_that_fails_the_flow_is_not_counted() -> None:
    def fail(x: int, _error: Exception) -> None:
        raise KeyError(x)

    with loses({}):
        with pytest.raises(ValueError, match="1"):
            await r.range(3).map_async(failing, timeout=5).to_list()
        with pytest.raises(KeyError):
            await r.range(3).for_each(failing, on_error=fail)


async def test_what_a_slow_subscriber_of_a_shared_flow_misses_is_counted() -> None:
    with loses({"share: drop_oldest": 2}):
        shared = r.range(4).map_async(soon).share(capacity=1, overflow="drop_oldest")
        slow = SubscriberProbe[int](1).subscribed_to(shared)
        assert await shared.to_list() == [0, 1, 2, 3]
        slow.request(9)
        assert await slow.end() == [0, 3, "|"]


async def test_ticks_without_a_request_are_counted() -> None:
    with loses({"interval": 3}):
        probe = SubscriberProbe[int](1).subscribed_to(r.interval(1))
        await asyncio.sleep(5.5)
        probe.cancel()
    with loses({"interval": 4}):
        probe = SubscriberProbe[int](1).subscribed_to(r.interval(1, overflow="drop_newest"))
        await asyncio.sleep(5.5)
        probe.cancel()


async def test_a_processor_counts_under_its_name() -> None:
    orders = MulticastProcessor[int](name="orders")
    with loses({"orders: no_subscriber": 1}):
        orders.try_emit(1)


async def test_filtered_and_discarded_elements_are_not_counted() -> None:
    async def numbers() -> AsyncIterator[int]:
        for x in range(10):
            yield x

    with loses({}):
        async for x in r.from_aiter(numbers).filter(lambda x: x % 2 == 0).boundary(4):
            if x == 4:
                break


async def test_errors_without_a_receiver_are_counted(
    expects_loop_errors: list[dict[str, Any]],
) -> None:
    def fail() -> None:
        raise ValueError("of a callback")

    with loses({}, errors=1):
        async for _ in r.range(3).do_on_cancel(fail):
            break
        await asyncio.sleep(0)
    assert len(expects_loop_errors) == 1
    expects_loop_errors.clear()


SHARED: dict[str, Callable[[Flow[int]], Flow[int]]] = {
    "share": lambda flow: flow.share(grace=9),
    "replay": lambda flow: flow.replay(1),
    "cache": lambda flow: flow.cache(),
}


@pytest.mark.parametrize("name", SHARED)
async def test_a_failure_of_a_shared_flow_without_subscribers_is_reported(
    name: str, expects_loop_errors: list[dict[str, Any]]
) -> None:
    source = PublisherProbe[int]()
    shared = SHARED[name](r.from_publisher(source))
    probe = SubscriberProbe[int](5).subscribed_to(shared)
    await asyncio.sleep(0)
    source.emit(1)
    await asyncio.sleep(0)
    probe.cancel()
    with loses({}, errors=1):
        source.fail(OSError("no connection"))
        await asyncio.sleep(0)
    [context] = expects_loop_errors
    assert context["message"] == "a shared flow failed while it had no subscriber"
    assert isinstance(context["exception"], OSError)
    expects_loop_errors.clear()


def test_a_shared_flow_does_not_fail_at_the_end_of_the_program() -> None:
    async def leave() -> None:
        await r.range(9).map_async(soon).cache().first()

    with loses({}):
        asyncio.run(leave())


async def test_errors_that_the_consumer_receives_are_not_counted() -> None:
    with loses({}), pytest.raises(ZeroDivisionError):
        await r.just(0).map(lambda x: 1 // x).first()


def test_all_threads_are_counted_exactly() -> None:
    def run() -> None:
        async def drop() -> None:
            lossy = MulticastProcessor[int](name="lossy")
            for x in range(1_000):
                lossy.try_emit(x)

        asyncio.run(drop())

    with loses({"lossy: no_subscriber": 4_000}):
        threads = [threading.Thread(target=run) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()


def test_a_difference_shows_only_what_was_lost_in_between() -> None:
    earlier = Losses({"a": 1, "b": 2}, 1)
    assert Losses({"a": 1, "b": 5, "c": 1}, 4) - earlier == Losses({"b": 3, "c": 1}, 3)


def test_a_finalizer_may_report_while_losses_are_counted() -> None:
    """A collection may start anywhere, so the lock is re-entrant."""
    from reactive_aio._core import losses

    with loses({"outer": 1}, errors=1), losses._lock:
        losses.count_dropped("outer")
        losses.count_dropped_error()
    gc.collect()


def test_a_counter_that_is_freed_while_losses_are_counted_counts_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counters = [DropCounter("a queue")]
    counters[0].add("full", 3)

    class Freeing(Counter[tuple[str, str]]):
        def copy(self) -> "Freeing":
            copied = Freeing(self)
            counters.clear()  # as a garbage collection does that begins here
            return copied

    monkeypatch.setattr("reactive_aio._core.losses._elements", Freeing())
    assert r.losses().elements["a queue: full"] == 3
