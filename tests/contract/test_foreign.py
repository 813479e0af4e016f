"""Strangers at the door: whatever a foreign publisher does becomes an error, no more."""

import asyncio
import threading
from typing import Any

import pytest

from reactive_aio import never
from reactive_aio.errors import Interrupted, RuleViolation
from reactive_aio.stage import Downstream, FlowSubscription, from_push
from reactive_aio.testing import PublisherProbe, SubscriberProbe
from tests.contract.subscribers import BOTH, UNBOUNDED, Acting, foreign, tasks, turns


def watched(request: int = 5) -> tuple[PublisherProbe[Any], SubscriberProbe[Any]]:
    publisher = PublisherProbe[Any]()
    subscriber = SubscriberProbe[Any](request)
    foreign(publisher).boundary(4).subscribe(subscriber)
    return publisher, subscriber


async def test_a_foreign_publisher_receives_requests_and_is_received() -> None:
    publisher, subscriber = watched()
    await turns()
    assert 0 < publisher.requested <= 256
    publisher.emit(1, 2)
    publisher.complete()
    assert await subscriber.end() == [1, 2, "|"]
    assert publisher.cancel_count == 0


async def test_more_than_was_requested_is_a_violation() -> None:
    """1.1."""
    publisher, subscriber = watched(1)
    await turns()
    publisher.emit(*range(publisher.requested + 1))
    subscriber.request(UNBOUNDED)
    await subscriber.end()
    assert isinstance(subscriber.error, RuleViolation)
    assert subscriber.error.rule == "1.1"
    assert publisher.cancel_count == 1


@pytest.mark.parametrize("late", ["emit", "complete", "fail"])
async def test_signals_after_the_end_change_nothing(late: str) -> None:
    """1.7."""
    publisher, subscriber = watched()
    await turns()
    publisher.emit(1)
    publisher.complete()
    await subscriber.end()
    arguments = {"emit": (2,), "complete": (), "fail": (ValueError(),)}[late]
    getattr(publisher, late)(*arguments)
    await turns()
    assert subscriber.signals == [1, "|"]


@pytest.mark.parametrize("signal", ["on_next", "on_error", "on_subscribe"])
async def test_none_in_a_signal_raises_in_its_sender_and_fails_the_flow(signal: str) -> None:
    """2.13."""
    publisher, subscriber = watched()
    await turns()
    with pytest.raises(TypeError, match=r"None"):
        getattr(publisher.subscriber, signal)(None)
    await subscriber.end()
    assert isinstance(subscriber.error, TypeError)


async def test_a_second_subscription_is_cancelled() -> None:
    """2.5."""
    publisher, subscriber = watched()
    await turns()
    cancelled: list[int] = []

    class Second:
        def request(self, n: int, /) -> None: ...
        def cancel(self) -> None:
            cancelled.append(1)

    publisher.subscriber.on_subscribe(Second())
    assert cancelled == [1]
    subscriber.cancel()


async def test_a_publisher_that_raises_in_subscribe_has_failed() -> None:
    """1.9."""

    class Refusing:
        def subscribe(self, subscriber: Any, /) -> None:
            raise OSError("not today")

    subscriber = SubscriberProbe[Any](5).subscribed_to(foreign(Refusing()))
    await subscriber.end()
    assert isinstance(subscriber.error, OSError)


@pytest.mark.parametrize("call", ["subscribe", "request"])
def test_a_publisher_that_stops_the_program_stops_it(call: str) -> None:
    """2.13, 3.16: the subscriber is told, and the error goes on."""

    class Stopping:
        def subscribe(self, subscriber: Any, /) -> None:
            if call == "subscribe":
                raise SystemExit(3)
            subscriber.on_subscribe(self)

        def request(self, n: int, /) -> None:
            raise SystemExit(3)

        def cancel(self) -> None: ...

    subscriber = SubscriberProbe[Any](1)

    async def main() -> None:
        foreign(Stopping()).merge_with(never()).subscribe(subscriber)
        await subscriber.end()

    with pytest.raises(SystemExit):
        asyncio.run(main())
    assert isinstance(subscriber.error, Interrupted)


@pytest.mark.parametrize("wrong", ["request", "cancel"])
async def test_a_foreign_subscription_that_raises_is_a_violation(
    wrong: str, expects_loop_errors: list[Any]
) -> None:
    """3.15, 3.16."""

    class Raising:
        def subscribe(self, subscriber: Any, /) -> None:
            subscriber.on_subscribe(self)

        def request(self, n: int, /) -> None:
            if wrong == "request":
                raise ValueError("request")

        def cancel(self) -> None:
            if wrong == "cancel":
                raise ValueError("cancel")

    subscriber = SubscriberProbe[Any](5).subscribed_to(foreign(Raising()))
    await turns()
    if wrong == "request":
        await subscriber.end()
        assert isinstance(subscriber.error, RuleViolation)
        assert subscriber.error.rule == "3.16"
    else:
        subscriber.cancel()
        assert [str(each["exception"]) for each in expects_loop_errors] == ["cancel"]


@pytest.mark.parametrize("kind", BOTH)
async def test_a_source_that_raises_in_request_is_cancelled_and_has_failed(
    kind: type[Acting],
) -> None:
    """3.16: of `stage.from_push`; the subscriber's request returns normally."""
    cancelled: list[bool] = []

    class Raising(FlowSubscription):
        def request(self, n: int, /) -> None:
            raise ValueError(f"request({n})")

        def cancel(self) -> None:
            cancelled.append(True)

    subscriber = kind()

    def opened(_: Downstream[int]) -> Raising:
        return Raising()

    from_push(opened, name="raising").subscribe(subscriber)
    await turns()
    subscriber.request(1)
    await turns()
    assert isinstance(subscriber.error, ValueError)
    assert cancelled == [True]
    assert tasks() == set()


@pytest.mark.parametrize(
    "error", [asyncio.CancelledError(), KeyboardInterrupt(), StopIteration(), "text"]
)
async def test_any_value_in_on_error_arrives_as_an_exception(error: Any) -> None:
    """1.4: it means nothing to the loops it passes through, nor to the task of the consumer."""
    publisher, subscriber = watched()
    await turns()
    publisher.emit(1)
    publisher.fail(error)
    one, last = await subscriber.end()
    assert one == 1
    assert last is error or isinstance(last, (RuleViolation, Interrupted))
    assert not isinstance(last, (asyncio.CancelledError, KeyboardInterrupt))
    assert tasks() == set()


async def test_signals_from_another_thread_arrive_on_the_loop_in_their_order() -> None:
    """1.3."""
    here = threading.get_ident()
    where: set[int] = set()

    class Threaded:
        def subscribe(self, subscriber: Any, /) -> None:
            threading.Thread(target=self.run, args=(subscriber,)).start()

        def run(self, subscriber: Any) -> None:
            subscriber.on_subscribe(self)
            assert asked.acquire(timeout=10)
            for number in range(100):
                subscriber.on_next(number)
            subscriber.on_complete()

        def request(self, n: int, /) -> None:
            asked.release()

        def cancel(self) -> None: ...

    asked = threading.Semaphore(0)
    subscriber = Acting(UNBOUNDED, on_next=lambda self: where.add(threading.get_ident()))
    foreign(Threaded()).subscribe(subscriber)
    assert await asyncio.wait_for(subscriber.end(), 10) == [*range(100), "|"]
    assert where == {here}


async def test_a_publisher_may_complete_inside_subscribe() -> None:
    class Immediate:
        def subscribe(self, subscriber: Any, /) -> None:
            subscriber.on_subscribe(self)
            subscriber.on_complete()

        def request(self, n: int, /) -> None: ...
        def cancel(self) -> None: ...

    for chain in (foreign(Immediate()), foreign(Immediate()).boundary(2)):
        subscriber = SubscriberProbe[Any](5).subscribed_to(chain)
        assert await subscriber.end() == ["|"]


async def test_a_publisher_may_cancel_its_subscriber_s_flow_inside_subscribe() -> None:
    """Re-entrancy: downstream leaves from inside the upstream's subscribe()."""
    cancelled: list[str] = []

    class Leaving:
        def subscribe(self, subscriber: Any, /) -> None:
            probe.cancel()
            subscriber.on_subscribe(self)

        def request(self, n: int, /) -> None:
            cancelled.append("requested")

        def cancel(self) -> None:
            cancelled.append("cancelled")

    probe = SubscriberProbe[Any]()
    foreign(Leaving()).boundary(2).subscribe(probe)
    probe.request(1)
    await turns()
    assert cancelled == ["cancelled"]
    assert probe.signals == []
