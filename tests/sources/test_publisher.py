"""Foreign publishers: a violation becomes an error that names its rule."""

from collections.abc import Callable, Mapping
from threading import Thread, get_ident
from typing import Any, cast

import pytest

import reactive_aio as r
from reactive_aio.errors import NotAnElement, RuleViolation
from reactive_aio.spec import Publisher, Subscriber
from reactive_aio.testing import PublisherProbe, SubscriberProbe


class Foreign:
    """A foreign publisher, made of a function that drives the subscriber."""

    def __init__(self, act: Callable[[Any], None]) -> None:
        self.act = act
        self.cancelled = 0
        self.requested = 0

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        self.act(subscriber)

    def request(self, n: int, /) -> None:
        self.requested += n

    def cancel(self) -> None:
        self.cancelled += 1


class Wrapped:
    """A foreign publisher that conforms."""

    def __init__(self, inner: Publisher[Any]) -> None:
        self.inner = inner

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        self.inner.subscribe(subscriber)


def endless() -> Publisher[int]:
    return r.from_publisher(Wrapped(r.generate(lambda n: (n, n + 1), 0)))


OF_LENGTH: Mapping[str, Callable[[int], Publisher[Any]]] = {
    "from_publisher": lambda n: r.from_publisher(Wrapped(r.range(n))),
    "from_publisher: over a boundary": lambda n: r.from_publisher(Wrapped(r.range(n).boundary(2))),
}
FAILING: Mapping[str, Callable[[], Publisher[Any]]] = {
    "from_publisher": lambda: r.from_publisher(Wrapped(r.range(3).map(lambda x: 1 // (1 - x)))),
}
INFINITE: Mapping[str, Callable[[], Publisher[Any]]] = {"from_publisher": endless}


def probe_of(act: Callable[[Any], None], demand: int = 5) -> tuple[SubscriberProbe[Any], Foreign]:
    foreign = Foreign(act)
    return SubscriberProbe[Any](demand).subscribed_to(r.from_publisher(foreign)), foreign


class TestDoor:
    async def test_a_flow_is_returned_unchanged(self) -> None:
        flow = r.range(3)
        assert r.from_publisher(flow) is flow

    @pytest.mark.parametrize("wrong", [None, 5, "abc", [1]])
    def test_something_without_subscribe_is_refused(self, wrong: Any) -> None:
        with pytest.raises(TypeError, match=r"from_publisher: .* not a publisher"):
            r.from_publisher(wrong)

    async def test_demand_and_cancellation_are_passed_through(self) -> None:
        foreign = PublisherProbe[int]()
        probe = SubscriberProbe[int]().subscribed_to(r.from_publisher(foreign))
        assert foreign.requests == []
        probe.request(3)
        foreign.emit(1, 2)
        assert (foreign.requested, probe.signals) == (3, [1, 2])
        probe.cancel()
        assert foreign.cancel_count == 1

    async def test_unbounded_demand_is_requested_in_windows(self) -> None:
        foreign = PublisherProbe[int]()
        flow = r.from_publisher(foreign)
        probe = SubscriberProbe[int](2**63).subscribed_to(flow)
        assert foreign.requested == flow.bound().total == 256
        foreign.emit(*range(256))
        assert len(await probe.wait_for_signals(256)) == 256
        assert foreign.requested > 256

    async def test_the_end_follows_the_elements(self) -> None:
        foreign = PublisherProbe[int]()
        probe = SubscriberProbe[int](3).subscribed_to(r.from_publisher(foreign))
        foreign.emit(1)
        foreign.fail(OSError("no"))
        assert probe.elements == [1]
        assert isinstance(probe.error, OSError)


def too_early(s: Any) -> None:
    s.on_next(1)


def completed_too_early(s: Any) -> None:
    s.on_complete()


def twice(s: Any) -> None:
    s.on_subscribe(PublisherProbe[Any]())
    s.on_subscribe(PublisherProbe[Any]())


def no_subscription(s: Any) -> None:
    s.on_subscribe(object())


class Rude:
    def request(self, n: int, /) -> None:
        raise OSError("request")

    def cancel(self) -> None:
        """Succeeds."""


def rude(s: Any) -> None:
    s.on_subscribe(Rude())


def no_exception(s: Any) -> None:
    s.on_subscribe(PublisherProbe[Any]())
    s.on_error("no")


class TestMisbehaviour:
    @pytest.mark.parametrize(
        ("act", "rule"),
        [
            (too_early, "1.9"),
            (completed_too_early, "1.9"),
            (twice, "2.12"),
            (no_subscription, "1.9"),
            (rude, "3.16"),
            (no_exception, "2.13"),
        ],
    )
    async def test_a_violated_rule_fails_the_flow_by_its_name(
        self, act: Callable[[Any], None], rule: str
    ) -> None:
        probe, _ = probe_of(act)
        assert isinstance(probe.error, RuleViolation)
        assert (probe.error.rule, probe.elements) == (rule, [])

    async def test_more_than_was_requested_rule_1_1(self) -> None:
        foreign = PublisherProbe[int]()
        probe = SubscriberProbe[int](2).subscribed_to(r.from_publisher(foreign))
        foreign.emit(1, 2, 3, 4)
        assert probe.elements == [1, 2]
        assert cast("Any", probe.error).rule == "1.1"
        assert foreign.cancel_count == 1

    async def test_a_second_subscription_is_cancelled_and_so_is_the_first_rule_2_5(self) -> None:
        foreign, second = PublisherProbe[int](), PublisherProbe[int]()
        SubscriberProbe[int](2).subscribed_to(r.from_publisher(foreign))
        foreign.subscriber.on_subscribe(second)
        assert (foreign.cancel_count, second.cancel_count) == (1, 1)

    async def test_signals_after_the_terminal_one_are_ignored_rule_1_7(self) -> None:
        foreign = PublisherProbe[int]()
        probe = SubscriberProbe[int](5).subscribed_to(r.from_publisher(foreign))
        foreign.emit(1)
        foreign.complete()
        foreign.emit(2)
        foreign.fail(OSError())
        foreign.complete()
        assert probe.signals == [1, "|"]

    @pytest.mark.parametrize("signal", ["on_next", "on_error", "on_subscribe"])
    async def test_none_is_raised_to_the_publisher_and_fails_the_flow_rule_2_13(
        self, signal: str
    ) -> None:
        foreign = PublisherProbe[Any]()
        probe = SubscriberProbe[Any](5).subscribed_to(r.from_publisher(foreign))
        with pytest.raises(NotAnElement):
            getattr(foreign.subscriber, signal)(None)
        assert isinstance(probe.error, NotAnElement)
        assert foreign.cancel_count == 1

    async def test_a_subscribe_that_raises_fails_the_flow(self) -> None:
        def refuse(_: Any) -> None:
            raise OSError("no")

        probe, _ = probe_of(refuse)
        assert isinstance(probe.error, OSError)

    async def test_a_coroutine_function_is_refused_as_subscribe_rule_1_9(self) -> None:
        class Wrong:
            async def subscribe(self, _: Any, /) -> None:
                """Never runs."""

        probe = SubscriberProbe[Any](1).subscribed_to(r.from_publisher(cast("Any", Wrong())))
        assert "plain" in str(probe.error)

    async def test_a_cancel_that_raises_is_reported_rule_3_15(
        self, expects_loop_errors: list[dict[str, Any]]
    ) -> None:
        class Stubborn(PublisherProbe[int]):
            def cancel(self) -> None:
                raise OSError("never")

        probe = SubscriberProbe[int](1).subscribed_to(r.from_publisher(Stubborn()))
        probe.cancel()
        assert "3.15" in expects_loop_errors[0]["message"]

    async def test_the_failure_of_one_subscription_does_not_affect_another(self) -> None:
        foreign = PublisherProbe[int]()
        flow = r.from_publisher(foreign)
        good = SubscriberProbe[int](5).subscribed_to(flow)
        bad = SubscriberProbe[int]().subscribed_to(flow)
        foreign.subscribers[1].on_next(1)
        foreign.subscribers[0].on_next(1)
        assert (good.signals, cast("Any", bad.error).rule) == ([1], "1.1")


class TestThreads:
    async def test_signals_of_another_thread_are_moved_to_the_loop(self) -> None:
        here, seen = get_ident(), set[int]()

        def from_thread(subscriber: Any) -> None:
            def work() -> None:
                subscriber.on_subscribe(Quiet())
                for x in range(3):
                    subscriber.on_next(x)
                subscriber.on_complete()

            thread = Thread(target=work)
            thread.start()
            thread.join()

        class Quiet:
            def request(self, n: int, /) -> None:
                """Sends by itself."""

            def cancel(self) -> None:
                """Has ended."""

        flow = r.from_publisher(Foreign(from_thread))
        noted = flow.do_on_next(lambda _: seen.add(get_ident()))
        probe = SubscriberProbe[int](3).subscribed_to(noted)
        assert await probe.end() == [0, 1, 2, "|"]
        assert seen == {here}


class TestReading:
    """`to_flow`, with which operators accept any kind of source."""

    @pytest.mark.parametrize("wrong", ["abc", b"abc", 5, None, print])
    def test_something_that_is_not_a_source_is_refused_with_a_remedy(self, wrong: Any) -> None:
        from reactive_aio.coerce import to_flow

        with pytest.raises(TypeError, match=r"merge: .* cannot be read as a flow[;,] "):
            to_flow(wrong, name="merge")

    def test_a_coroutine_is_refused_with_a_remedy(self) -> None:
        from reactive_aio.coerce import to_flow

        async def work() -> int:
            return 1

        coroutine = work()
        with pytest.raises(TypeError, match="from_awaitable"):
            to_flow(cast("Any", coroutine))
        coroutine.close()

    async def test_every_source_is_read(self) -> None:
        from reactive_aio.coerce import to_flow

        flow = r.range(3)
        assert to_flow(flow) is flow
        for source in ([0, 1, 2], range(3), Wrapped(flow), flow.boundary(1).stream()):
            assert await to_flow(cast("Any", source)).to_list() == [0, 1, 2]
