"""What a `Coordinator` does for each operator that is derived from it, by the package or by a user.

How the operators of the package use it is in `tests.operators`.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.stage import Coordinator, InnerSubscriber, Timer, from_push
from reactive_aio.testing import PublisherProbe, SubscriberProbe, VirtualTimeLoop

Made = Callable[[Any], Coordinator[Any]]


def flow_of(made: Made) -> Flow[Any]:
    return from_push(made, name="made")


def test_a_decision_is_a_plain_function() -> None:
    with pytest.raises(TypeError, match=r"Wrong\.on_start is a coroutine function, and what it ov"):

        class Wrong(Coordinator[int]):  # pyright: ignore[reportUnusedClass]
            async def on_start(self) -> None:  # type: ignore[override]  # the mistake
                await asyncio.sleep(1)


async def test_a_decision_of_a_timer_is_a_plain_function() -> None:
    class Late(Coordinator[int]):
        def on_start(self) -> None:
            decision: Any = self.later
            Timer(self, decision).start(1)

        async def later(self) -> None:
            """No decision, and as such it may be a coroutine function."""

    subscriber = SubscriberProbe[int](1).subscribed_to(flow_of(Late))
    await subscriber.end()
    assert isinstance(subscriber.error, TypeError)
    assert "Timer: decision must be a plain function" in str(subscriber.error)


async def test_it_stops_once_and_a_source_that_has_ended_receives_no_request() -> None:
    """Its subscriber may cancel while it gives back what it holds."""
    stopped: list[bool] = []

    class Holding(Coordinator[int]):
        def on_start(self) -> None:
            self.subscribe_to(source, request=1)

        def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
            inner.request(1)
            self.complete()

        def on_stop(self) -> None:
            stopped.append(self.is_closed)

    source, subscriber = PublisherProbe[int](), SubscriberProbe[int](1)
    flow_of(Holding).do_on_discard(lambda _: subscriber.cancel()).subscribe(subscriber)
    source.emit(1)
    source.complete()
    assert stopped == [True]
    assert source.requests == [1]


async def test_what_it_emits_when_it_stops_is_given_back() -> None:
    """There may be demand: its end has not reached downstream."""

    class Flushing(Coordinator[int]):
        def on_start(self) -> None:
            self.complete()

        def on_stop(self) -> None:
            self.emit([1])

    given_back: list[int] = []
    assert await flow_of(Flushing).do_on_discard(given_back.append).to_list() == []
    assert given_back == [1]


async def test_a_source_after_one_that_has_ended_everything_is_left_alone() -> None:
    """Its subscription would never be cancelled."""

    class Leaving:
        def subscribe(self, _: Any, /) -> None:
            subscriber.cancel()

    class Three(Coordinator[int]):
        def on_start(self) -> None:
            self.subscribe_to(first)

        def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
            self.subscribe_to(Leaving())
            self.subscribe_to(last)

    first, last = PublisherProbe[int](), PublisherProbe[int]()
    subscriber = SubscriberProbe[int](1).subscribed_to(flow_of(Three))
    first.complete()
    assert last.subscribers == []


async def test_a_source_that_drops_what_waits_is_requested_from_without_a_word() -> None:
    """An operator that overrides only what it must is asked for more when that was processed."""

    class Plain(Coordinator[int]):
        def on_start(self) -> None:
            self.inner = self.subscribe_to(r.interval(0.25))

        def on_demand(self) -> None:
            self.request_missing(self.inner)

        def on_elements(self, inner: InnerSubscriber[Any]) -> None:
            self.emit(inner.take(self.demand.outstanding))

    with_virtual_time = asyncio.Runner(loop_factory=VirtualTimeLoop)
    flow = from_push(Plain, name="plain", upstreams=(r.interval(0.25),), window=64, holds=64)

    def run() -> list[int]:
        with with_virtual_time as runner:
            return runner.run(asyncio.wait_for(flow.take(5).to_list(), 60))

    assert await asyncio.to_thread(run) == [0, 1, 2, 3, 4]


async def test_an_error_that_was_delivered_with_what_came_before_is_reported_nowhere_else() -> None:
    """`end_with` finds it before its own signal is handled."""

    class Passing(Coordinator[int]):
        def on_start(self) -> None:
            self.inner = self.subscribe_to(source)

        def on_demand(self) -> None:
            self.pass_on()

        def on_elements(self, inner: InnerSubscriber[Any]) -> None:
            self.pass_on()

        def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
            self.pass_on()
            self.fail(error)

        def pass_on(self) -> None:
            self.emit(self.inner.take(self.demand.outstanding))
            self.request_missing(self.inner)
            self.end_with(self.inner)

    source: Flow[int] = r.range(3).map(lambda x: 1 // (2 - x))
    received: list[int] = []
    with pytest.raises(ZeroDivisionError):
        await from_push(Passing, name="passing", window=8, holds=8).for_each(received.append)
    assert received == [0, 1]


async def test_whether_what_waits_is_dropped_is_asked_again_when_the_source_is_known() -> None:
    """Before, one element at a time is requested, so that nothing newer replaces another."""
    source = PublisherProbe[int]()
    flow = r.from_publisher(source).on_error_resume(r.empty()).retry(1)
    SubscriberProbe[int](5).subscribed_to(flow)
    assert source.requests == [1, 4]
