"""What a `Coordinator` does for each operator that is derived from it, by the package or by a user.

How the operators of the package use it is in `tests.operators`.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from reactive_aio import Flow
from reactive_aio.stage import Coordinator, InnerSubscriber, Timer, from_push
from reactive_aio.testing import PublisherProbe, SubscriberProbe

Made = Callable[[Any], Coordinator[Any]]


def flow_of(made: Made) -> Flow[Any]:
    return from_push(made, name="made")


def test_a_decision_is_a_plain_function() -> None:
    with pytest.raises(TypeError, match=r"Wrong\.on_start is a coroutine function, and what it ov"):

        class Wrong(Coordinator[int]):  # pyright: ignore[reportUnusedClass]
            async def on_start(self) -> None:  # type: ignore[override]
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
