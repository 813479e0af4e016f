"""An idle loop is resumed directly, by a request or with an element, with all of its guards."""

import asyncio
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import pytest

from reactive_aio import Flow, MulticastProcessor, UnicastProcessor, from_iterable
from reactive_aio._core.loop import LoopHandle
from reactive_aio.stage import Downstream, FlowSubscription, from_push
from reactive_aio.testing import SubscriberProbe
from tests.contract.subscribers import UNBOUNDED, Acting
from tests.processors.test_fan_out import counted_calls

if TYPE_CHECKING:
    from collections.abc import Callable

variable: ContextVar[str] = ContextVar("variable", default="outside")


class Hand(FlowSubscription):
    """A source that pushes one element whenever the test says so."""

    def __init__(self) -> None:
        self.requests: list[int] = []
        self.processed_count = 0
        self.cancelled = 0
        self.downstream: Any = None

    def open(self, downstream: Downstream[int]) -> FlowSubscription:
        self.downstream = downstream
        return self

    def flow(self) -> Flow[int]:
        return from_push(self.open, name="hand", holds=0)

    def push(self, element: int) -> bool:
        done = self.downstream.try_push(element)
        if done is None:
            self.downstream.push([element])
        return bool(done)

    def request(self, n: int, /) -> None:
        self.requests.append(n)

    def processed(self) -> None:
        self.processed_count += 1

    def cancel(self) -> None:
        self.cancelled += 1


class AfterEntering:
    """Runs an action once, as another thread could, when an entered loop has paused."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.action: Callable[[], object] | None = None
        enter = LoopHandle.enter

        def interrupted(handle: LoopHandle, *args: Any) -> Any:
            result = enter(handle, *args)
            if self.action is not None:
                action, self.action = self.action, None
                action()
            return result

        monkeypatch.setattr(LoopHandle, "enter", interrupted)


async def test_demand_that_arrives_while_a_resumed_loop_pauses_is_met(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """3.8: another thread only adds to the demand, since the loop is not idle yet."""
    subscriber = SubscriberProbe[int](1).subscribed_to(from_iterable(range(10)))
    after = AfterEntering(monkeypatch)
    after.action = lambda: subscriber.request(3)
    subscriber.request(1)
    assert subscriber.elements == [0, 1, 2, 3, 4]


async def test_demand_that_arrives_while_an_element_is_processed_is_requested(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """3.8."""
    hand = Hand()
    subscriber = SubscriberProbe[int](2).subscribed_to(hand.flow())
    after = AfterEntering(monkeypatch)
    after.action = lambda: subscriber.request(3)
    hand.push(1)
    assert sum(hand.requests) == 5


async def test_what_a_filter_drops_is_requested_again() -> None:
    hand = Hand()
    subscriber = SubscriberProbe[int](3).subscribed_to(hand.flow().filter(lambda x: x > 1))
    assert hand.push(2), "it is processed, and nothing is missing"
    assert sum(hand.requests) == 3
    assert not hand.push(1), "its place was requested again"
    assert sum(hand.requests) == 4
    hand.push(3)
    hand.push(4)
    assert subscriber.elements == [2, 3, 4]


async def test_the_source_learns_whether_its_element_was_processed() -> None:
    hand = Hand()
    seen: list[bool] = []
    push_inside: list[int] = [2]

    def on_next(_: Acting) -> None:
        if push_inside:
            seen.append(hand.push(push_inside.pop()))

    subscriber = Acting(UNBOUNDED, on_next=on_next)
    hand.flow().subscribe(subscriber)
    seen.append(hand.push(1))
    assert seen == [False, True], "the second one waited for the end of the first signal (1.3)"
    assert subscriber.elements == [1, 2]


async def test_elements_that_were_emitted_inside_of_a_signal_keep_their_order() -> None:
    """1.3, 3.3."""
    hub = UnicastProcessor[int]()
    subscriber = Acting(UNBOUNDED)

    def emit_more(_: Acting) -> None:
        last = subscriber.elements[-1]
        if last < 4:
            hub.try_emit(last * 2)
            hub.try_emit(last * 2 + 1)

    subscriber.acts["on_next"] = emit_more
    hub.subscribe(subscriber)
    hub.try_emit(1)
    assert subscriber.elements == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("kind", [UnicastProcessor, MulticastProcessor])
async def test_a_signal_that_returns_an_awaitable_holds_the_next_element_back(kind: Any) -> None:
    """1.3."""
    gate = asyncio.Event()
    hub = kind()
    subscriber = Acting(UNBOUNDED)
    hub.subscribe(subscriber)
    hub.try_emit(1)
    subscriber.acts["on_next"] = lambda _: gate.wait()
    hub.try_emit(2)
    subscriber.acts["on_next"] = None
    hub.try_emit(3)
    assert subscriber.elements == [1, 2]
    assert hub.stats().held == 1, "the one that waits: the other is being processed"
    gate.set()
    await subscriber.wait_for_signals(3)
    assert subscriber.elements == [1, 2, 3]
    assert hub.stats().held == 0
    hub.complete()
    await subscriber.end()


@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_a_subscriber_that_raises_is_cancelled(expects_loop_errors: list[Any]) -> None:
    """2.13."""
    hub = UnicastProcessor[int]()
    subscriber = Acting(UNBOUNDED)
    hub.subscribe(subscriber)
    hub.try_emit(1)

    def fail(_: Acting) -> None:
        raise ValueError("of the subscriber")

    subscriber.acts["on_next"] = fail
    hub.try_emit(2)
    assert not hub.try_emit(3)
    assert [str(each["exception"]) for each in expects_loop_errors] == ["of the subscriber"]
    assert subscriber.signals == [1, 2]


async def test_a_stage_that_fails_ends_the_flow() -> None:
    hub = UnicastProcessor[int]()
    subscriber = SubscriberProbe[int](UNBOUNDED).subscribed_to(hub.map(lambda x: 1 // x))
    hub.try_emit(1)
    hub.try_emit(0)
    await subscriber.end()
    assert isinstance(subscriber.error, ZeroDivisionError)
    assert not hub.try_emit(1)


async def test_a_stage_that_stops_completes_the_flow() -> None:
    hub = UnicastProcessor[int]()
    subscriber = SubscriberProbe[int](UNBOUNDED).subscribed_to(hub.take(2))
    assert [bool(hub.try_emit(x)) for x in range(3)] == [True, True, False]
    await subscriber.end()
    assert subscriber.signals == [0, 1, "|"]


async def test_a_cancellation_inside_of_the_signal_is_the_last_one() -> None:
    """3.5, 3.13."""
    hand = Hand()
    subscriber = Acting(UNBOUNDED)
    hand.flow().subscribe(subscriber)
    hand.push(1)
    subscriber.acts["on_next"] = Acting.cancel
    hand.push(2)
    assert hand.cancelled == 1
    hand.push(3)
    assert subscriber.signals == [1, 2]


async def test_each_element_is_received_in_the_subscriber_s_context() -> None:
    seen: list[str] = []
    hub = UnicastProcessor[int]()
    token = variable.set("inside")
    hub.subscribe(Acting(UNBOUNDED, on_next=lambda _: seen.append(variable.get())))
    variable.reset(token)
    hub.try_emit(1)
    hub.try_emit(2)
    assert seen == ["inside", "inside"]
    assert variable.get() == "outside"


async def test_a_producer_learns_that_there_is_room_again() -> None:
    """The credit of a bounded hub is renewed, though no element waits."""
    hub = UnicastProcessor[int](4)
    subscriber = SubscriberProbe[int](UNBOUNDED).subscribed_to(hub)
    assert all(hub.try_emit(x) for x in range(100))
    assert len(subscriber.elements) == 100
    assert hub.stats().highest <= 1


async def test_an_element_that_is_emitted_alone_costs_few_calls() -> None:
    hub, total = UnicastProcessor[int](), 0

    class Adding(SubscriberProbe[int]):
        def on_next(self, element: int, /) -> None:
            nonlocal total
            total += element

    Adding(UNBOUNDED).subscribed_to(hub)
    hub.try_emit(0)
    with counted_calls() as count:
        for x in range(1000):
            hub.try_emit(x)
    assert total == sum(range(1000))
    # try_emit, is_running of the loop, try_push, resume, enter, the loop, on_next.
    assert count[0] < 1000 * 7 * 1.1
