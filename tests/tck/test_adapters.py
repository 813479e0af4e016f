"""What adapters translate, what they leave unchanged, and which rules they keep by themselves."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from importlib import import_module
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio.spec import Publisher
from reactive_aio.tck import RULES, Candidate, Outcome, Timeouts, check
from reactive_aio.tck.adapters import (
    KEPT_BY_ADAPTER,
    from_aioreactive,
    from_aiostream,
    from_anyio_stream,
    from_async_iterable,
    from_reactivex,
    from_rsocket,
    operator,
    sink,
)
from reactive_aio.tck.rules import LIBRARY_RULES
from reactive_aio.testing import AsyncSubscriberProbe, PublisherProbe, SubscriberProbe
from tests.harness.leftover_checks import Context

aioreactive: Any = import_module("aioreactive")
reactivex: Any = import_module("reactivex")
stream: Any = import_module("aiostream.stream")
Generated: Any = import_module("rsocket.streams.stream_from_generator").StreamFromGenerator
Scheduler: Any = import_module("reactivex.scheduler.eventloop").AsyncIOScheduler


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


class Watched:
    """An asynchronous iterable that counts its elements and its closings."""

    def __init__(self, n: int, error: Exception | None = None) -> None:
        self.n = n
        self.error = error
        self.sent = 0
        self.closed = 0

    async def __aiter__(self) -> AsyncIterator[int]:
        try:
            while self.sent < self.n:
                self.sent += 1
                yield self.sent
            if self.error:
                raise self.error
        finally:
            self.closed += 1


class TestAsyncIterables:
    async def test_each_requested_element_is_one_anext(self) -> None:
        watched = Watched(5)
        probe = SubscriberProbe[int]().subscribed_to(from_async_iterable(lambda: watched)())
        await turns()
        assert watched.sent == 0
        probe.request(2)
        await turns()
        assert probe.signals == [1, 2]
        assert watched.sent == 2
        probe.cancel()
        await turns()

    async def test_the_end_is_found_by_the_next_request(self) -> None:
        probe = SubscriberProbe[int](2).subscribed_to(from_async_iterable(Watched)(2))
        await turns()
        assert probe.signals == [1, 2]
        probe.request(1)
        assert await probe.end() == [1, 2, "|"]

    async def test_an_exception_becomes_on_error(self) -> None:
        error = OSError("no more")
        probe = SubscriberProbe[int](9).subscribed_to(from_async_iterable(Watched)(1, error))
        assert await probe.end() == [1, error]

    async def test_a_cancellation_closes_it_between_pulls(self) -> None:
        watched = Watched(5)
        probe = SubscriberProbe[int](1).subscribed_to(from_async_iterable(lambda: watched)())
        await turns()
        probe.cancel()
        await turns()
        assert (probe.signals, watched.closed) == ([1], 1)

    async def test_a_cancellation_reaches_a_pull_that_waits(self) -> None:
        ended: list[str] = []

        async def never() -> AsyncIterator[int]:
            try:
                await asyncio.Event().wait()
                yield 1
            finally:
                ended.append("closed")

        probe = SubscriberProbe[int](1).subscribed_to(from_async_iterable(never)())
        await turns()
        probe.cancel()
        await turns()
        assert (probe.signals, ended) == ([], ["closed"])

    @pytest.mark.parametrize("before", [0, 1])
    async def test_an_invalid_request_is_answered_even_while_a_pull_waits(
        self, before: int
    ) -> None:
        async def never() -> AsyncIterator[int]:
            await asyncio.Event().wait()
            yield 1

        probe = SubscriberProbe[int](before).subscribed_to(from_async_iterable(never)())
        await turns()
        probe.request(0)
        await probe.end()
        assert isinstance(probe.error, ValueError)
        assert "3.9" in str(probe.error)

    async def test_a_request_may_come_from_another_thread(self) -> None:
        probe = SubscriberProbe[int]().subscribed_to(from_async_iterable(Watched)(1))
        await asyncio.to_thread(probe.request, 2)
        assert await probe.end() == [1, "|"]

    async def test_a_signal_is_awaited_before_the_next_pull(self) -> None:
        probe = AsyncSubscriberProbe[int](9, turns=3)
        from_async_iterable(Watched)(3).subscribe(probe)
        assert await probe.end() == [1, 2, 3, "|"]
        assert probe.overlaps == 0

    async def test_a_subscriber_that_raises_ends_it_and_is_reported(
        self, expects_loop_errors: list[Context]
    ) -> None:
        class Raising(SubscriberProbe[int]):
            def on_next(self, element: int, /) -> None:
                raise KeyError(element)

        watched = Watched(5)
        probe = Raising(9).subscribed_to(from_async_iterable(lambda: watched)())
        await turns()
        assert (probe.signals, watched.sent, watched.closed) == ([], 1, 1)
        (context,) = expects_loop_errors
        assert isinstance(context["exception"], KeyError)

    async def test_none_is_passed_on_unchanged(self) -> None:
        async def nothing() -> AsyncIterator[None]:
            yield None

        probe = SubscriberProbe[None](1).subscribed_to(from_async_iterable(nothing)())
        assert await probe.wait_for_signals(1) == [None]
        probe.cancel()
        await turns()


class TestAnyioStreams:
    async def send(self, stream: Any, n: int, events: list[str]) -> None:
        try:
            for i in range(n):
                await stream.send(i)
                events.append(f"sent {i}")
        finally:
            events.append("ended")

    async def test_sent_elements_come_as_they_are_requested(self) -> None:
        events: list[str] = []
        probe = SubscriberProbe[int](2).subscribed_to(from_anyio_stream(self.send)(3, events))
        await turns()
        assert probe.signals == [0, 1]
        assert events == ["sent 0", "sent 1"]
        probe.request(2)
        assert await probe.end() == [0, 1, 2, "|"]

    async def test_the_buffer_lets_the_sender_run_ahead(self) -> None:
        events: list[str] = []
        publisher = from_anyio_stream(self.send, max_buffer_size=2)(9, events)
        probe = SubscriberProbe[int](1).subscribed_to(publisher)
        await turns()
        assert (probe.signals, len(events)) == ([0], 3)
        probe.cancel()
        await turns()
        assert events[-1] == "ended"

    async def test_an_error_of_the_sender_comes_in_an_exception_group(self) -> None:
        async def fail(stream: Any) -> None:
            await stream.send(1)
            raise OSError("no more")

        probe = SubscriberProbe[int](9).subscribed_to(from_anyio_stream(fail)())
        await probe.end()
        assert repr(probe.error).startswith("ExceptionGroup(")
        assert "OSError('no more')" in repr(probe.error)

    def test_without_anyio_the_error_names_the_missing_package(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "anyio", None)
        with pytest.raises(ModuleNotFoundError, match="from_anyio_stream needs the package anyio"):
            from_anyio_stream(self.send)


class TestAiostream:
    async def test_a_stream_is_pulled_and_closed(self) -> None:
        watched = Watched(5)
        publisher = from_aiostream(lambda: stream.map(stream.iterate(watched), str))()
        probe = SubscriberProbe[str](2).subscribed_to(publisher)
        await turns()
        assert (probe.signals, watched.sent) == (["1", "2"], 2)
        probe.cancel()
        await turns()
        assert watched.closed == 1


class TestReactivex:
    async def test_it_sends_without_demand(self) -> None:
        probe = SubscriberProbe[int]()
        from_reactivex(reactivex.range)(3).subscribe(probe)
        assert probe.signals == [0, 1, 2, "|"]

    async def test_a_cancellation_is_passed_on(self) -> None:
        def on_loop() -> Any:
            return Scheduler(asyncio.get_running_loop())

        probe = SubscriberProbe[int]()
        from_reactivex(reactivex.range, scheduler=on_loop)(1000).subscribe(probe)
        await probe.wait_for_signals(3)
        probe.cancel()
        before = list(probe.signals)
        await turns()
        assert probe.signals == before

    async def test_a_cancellation_inside_on_subscribe_prevents_the_start(self) -> None:
        started: list[Any] = []

        def start(observer: Any, _scheduler: Any) -> None:
            started.append(observer)

        source = reactivex.create(start)

        class Cancelling(SubscriberProbe[int]):
            def on_subscribe(self, subscription: Any, /) -> None:
                subscription.cancel()

        from_reactivex(lambda: source)().subscribe(Cancelling())
        assert started == []


class TestAioreactive:
    async def test_it_sends_without_demand(self) -> None:
        probe = SubscriberProbe[int]()
        from_aioreactive(aioreactive.from_iterable)(range(3)).subscribe(probe)
        assert await probe.end() == [0, 1, 2, "|"]

    async def test_awaitables_of_signals_are_awaited(self) -> None:
        probe = AsyncSubscriberProbe[int](turns=3)
        from_aioreactive(aioreactive.from_iterable)(range(3)).subscribe(probe)
        assert await probe.end() == [0, 1, 2, "|"]
        assert probe.overlaps == 0

    async def test_a_cancellation_is_passed_on(self) -> None:
        async def slow() -> AsyncIterator[int]:
            for i in range(100):
                await turns(5)
                yield i

        probe = SubscriberProbe[int]()
        from_aioreactive(aioreactive.from_async_iterable)(slow()).subscribe(probe)
        await probe.wait_for_signals(2)
        probe.cancel()
        await turns()
        assert len(probe.signals) == 2


class TestRsocket:
    def numbers(self, n: int) -> Any:
        def flagged() -> Generator[tuple[int, bool]]:
            for i in range(n):
                yield i, i == n - 1

        return Generated(flagged)

    async def test_the_last_element_and_the_completion_become_two_signals(self) -> None:
        probe = SubscriberProbe[int](2).subscribed_to(from_rsocket(self.numbers)(3))
        await turns(60)
        assert probe.signals == [0, 1]
        probe.request(1)
        assert await probe.end() == [0, 1, 2, "|"]
        await turns()

    async def test_the_subscription_is_its_own(self) -> None:
        made = self.numbers(1)
        probe = SubscriberProbe[int](1).subscribed_to(from_rsocket(lambda: made)())
        assert probe.subscription is made
        await probe.end()
        await turns()


class TestSinks:
    async def test_the_inner_subscriber_receives_the_signals(self) -> None:
        got: list[int] = []

        async def consume(publisher: Publisher[int]) -> None:
            got.extend(await r.from_publisher(publisher).to_list())

        subscriber = await sink(consume)
        source = PublisherProbe[int]()
        source.subscribe(subscriber)
        await turns()
        source.emit(1, 2)
        source.complete()
        await turns()
        assert got == [1, 2]

    async def test_a_consumer_that_never_subscribes_is_an_error(self) -> None:
        async def idle(_publisher: Publisher[int]) -> None:
            raise KeyError("why")

        with pytest.raises(RuntimeError, match="without a subscription") as caught:
            await sink(idle)
        assert isinstance(caught.value.__cause__, KeyError)


class TestOperators:
    async def test_signals_enter_upstream_and_leave_downstream(self) -> None:
        processor = operator(lambda up: r.from_publisher(up).map(lambda x: x * 2))
        source = PublisherProbe[int]()
        source.subscribe(processor)
        probe = SubscriberProbe[int](2).subscribed_to(processor)
        await turns()
        source.emit(1, 2)
        source.complete()
        assert await probe.end() == [2, 4, "|"]

    async def test_signals_before_the_inner_subscriber_wait(self) -> None:
        processor = operator(lambda up: r.from_publisher(up).boundary(2))
        source = PublisherProbe[int]()
        source.subscribe(processor)
        source.fail(OSError("no"))
        probe = SubscriberProbe[int](2).subscribed_to(processor)
        await probe.end()
        assert isinstance(probe.error, OSError)

    async def test_the_operator_may_subscribe_late_with_async_signals(self) -> None:
        events: list[str] = []

        class Late(SubscriberProbe[int]):
            """Subscribes upstream when something is requested, with ``async def`` methods."""

            def __init__(self, upstream: Publisher[int]) -> None:
                super().__init__()
                self.upstream = upstream

            def subscribe(self, subscriber: Any, /) -> None:
                subscriber.on_subscribe(self)

            def request(self, n: int) -> None:
                self.upstream.subscribe(self)

            async def on_subscribe(self, subscription: Any, /) -> None:  # type: ignore[override]
                subscription.request(2)
                await turns(3)
                events.append("subscribed")

            def on_next(self, element: int, /) -> None:
                events.append(f"next {element}")

            def on_complete(self) -> None:
                events.append("complete")

        processor = operator(Late)
        r.just(1, 2).subscribe(processor)
        await turns()
        assert events == []
        SubscriberProbe[int](1).subscribed_to(processor)
        await turns()
        assert events == ["subscribed", "next 1", "next 2", "complete"]

    async def test_a_second_subscriber_is_refused_by_on_error(self) -> None:
        processor = operator(lambda up: up)
        SubscriberProbe[int]().subscribed_to(processor)
        second = SubscriberProbe[int]().subscribed_to(processor)
        assert isinstance(second.error, RuntimeError)

    async def test_none_is_refused_before_there_is_an_inner_subscriber(self) -> None:
        with pytest.raises(TypeError, match=r"2\.13"):
            operator(lambda up: up).on_next(None)


PUBLISHERS: dict[str, Callable[[Any], Callable[..., Publisher[Any]]]] = {
    "from_async_iterable": from_async_iterable,
    "from_aiostream": from_aiostream,
    "from_reactivex": from_reactivex,
    "from_aioreactive": from_aioreactive,
    "from_rsocket": from_rsocket,
}


@pytest.mark.parametrize("name", PUBLISHERS)
class TestWrongUse:
    async def test_an_argument_that_is_not_a_factory(self, name: str) -> None:
        with pytest.raises(TypeError, match=f"{name}: give a factory"):
            PUBLISHERS[name](1)

    async def test_a_factory_of_another_type(self, name: str) -> None:
        with pytest.raises(TypeError, match=f"{name}: the factory must return an? "):
            PUBLISHERS[name](lambda: 1)()


def test_each_adapter_declares_the_rules_that_it_keeps() -> None:
    assert KEPT_BY_ADAPTER.keys() == {*PUBLISHERS, "from_anyio_stream", "sink", "operator"}
    assert frozenset().union(*KEPT_BY_ADAPTER.values()) <= {*RULES, *LIBRARY_RULES}


async def upto(n: int) -> AsyncIterator[int]:
    for i in range(n):
        yield i


async def send(stream: Any, n: int) -> None:
    for i in range(n):
        await stream.send(i)


Factory = Callable[[int], Publisher[Any] | Awaitable[Publisher[Any]]]
CONFORMING: dict[str, Factory] = {
    "from_async_iterable": from_async_iterable(upto),
    "from_anyio_stream": from_anyio_stream(send),
    "from_aiostream": from_aiostream(lambda n: stream.iterate(range(n))),
}


@pytest.mark.parametrize("publisher", CONFORMING.values(), ids=CONFORMING)
def test_an_adapter_that_pulls_keeps_the_rules_that_it_declares(publisher: Factory) -> None:
    report = check(
        Candidate(publisher=publisher),
        rules=KEPT_BY_ADAPTER["from_async_iterable"],
        timeouts=Timeouts(),
    )
    assert not report.having(Outcome.FAIL), str(report)
    assert report.having(Outcome.PASS)


def test_a_publisher_without_demand_is_judged_by_all_other_rules() -> None:
    candidate = Candidate(
        publisher=from_reactivex(reactivex.range), knows_demand=False, awaits_signals=False
    )
    report = check(candidate, rules=["1.1", "1.5", "3.7"])
    assert {verdict.broken for verdict in report.having(Outcome.FAIL)} == {"1.1"}
    assert {verdict.rule for verdict in report.having(Outcome.PASS)} == {"1.5", "3.7"}


def test_without_that_declaration_every_law_fails_on_demand() -> None:
    candidate = Candidate(publisher=from_reactivex(reactivex.range), awaits_signals=False)
    report = check(candidate, rules=["3.7"])
    assert {verdict.broken for verdict in report.having(Outcome.FAIL)} == {"1.1"}
