"""Both processors: producers, publishers upstream, the end, statistics."""

import asyncio
import gc
import traceback
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import count
from threading import Thread
from typing import Any, cast, get_args

import pytest

import reactive_aio as r
from reactive_aio import (
    Emission,
    Flow,
    LatestProcessor,
    MulticastProcessor,
    Processor,
    ReplayProcessor,
    UnicastProcessor,
)
from reactive_aio._core import time_slice
from reactive_aio._core.queues.bounded_queue import OverflowPolicy
from reactive_aio.errors import NoRunningLoop, NotAnElement, Overflow, WrongLoop
from reactive_aio.spec import Publisher
from reactive_aio.testing import AsyncSubscriberProbe, PublisherProbe, SubscriberProbe
from tests.harness.one_run import in_one_run

Hot = UnicastProcessor[int] | MulticastProcessor[int]
Kind = Callable[..., Hot]
KINDS: list[Kind] = [UnicastProcessor[int], MulticastProcessor[int]]
BOTH = pytest.mark.parametrize("kind", KINDS, ids=["unicast", "multicast"])


def fed(kind: Kind, source: Flow[int], capacity: int = 3) -> Publisher[int]:
    processor = kind(capacity)
    source.subscribe(processor)
    return processor


def replay_of_two(capacity: int) -> ReplayProcessor[int]:
    return ReplayProcessor[int](2, capacity=capacity)


def keeping_all(_: int) -> ReplayProcessor[int]:
    return ReplayProcessor[int](10**4, capacity=10**4)


def numbers() -> Flow[int]:
    return r.generate(lambda n: (n, n + 1), 0)


OF_LENGTH: Mapping[str, Callable[[int], Publisher[Any]]] = {
    "UnicastProcessor": lambda n: fed(UnicastProcessor[int], r.range(n)),
    "UnicastProcessor: over a boundary": lambda n: fed(
        UnicastProcessor[int], r.range(n).boundary(2)
    ),
    "MulticastProcessor": lambda n: r.defer(lambda: fed(MulticastProcessor[int], r.range(n))),
    "ReplayProcessor": lambda n: r.defer(lambda: fed(replay_of_two, r.range(n))),
    "ReplayProcessor: after the end": lambda n: fed(keeping_all, r.range(n)),
}
FAILING: Mapping[str, Callable[[], Publisher[Any]]] = {
    "UnicastProcessor": lambda: fed(UnicastProcessor[int], r.error(OSError("no"))),
    "MulticastProcessor": lambda: fed(MulticastProcessor[int], r.error(OSError("no"))),
    "ReplayProcessor": lambda: fed(replay_of_two, r.error(OSError("no"))),
    "LatestProcessor": lambda: fed(LatestProcessor[int], r.error(OSError("no"))),
}
INFINITE: Mapping[str, Callable[[], Publisher[Any]]] = {
    "UnicastProcessor": lambda: fed(UnicastProcessor[int], numbers()),
    "MulticastProcessor": lambda: fed(MulticastProcessor[int], numbers()),
    "ReplayProcessor": lambda: fed(replay_of_two, numbers()),
}


@BOTH
class TestProducing:
    async def test_it_is_a_processor_and_a_flow(self, kind: Kind) -> None:
        hot = kind()
        assert isinstance(hot, Processor)
        probe = SubscriberProbe[str](5).subscribed_to(hot.map(str).filter(bool))
        hot.try_emit(1)
        assert probe.signals == ["1"]

    async def test_an_element_with_demand_arrives_in_the_call(self, kind: Kind) -> None:
        hot = kind()
        probe = SubscriberProbe[int](1).subscribed_to(hot)
        assert [hot.try_emit(x) for x in (1, 2)] == [Emission.ACCEPTED] * 2
        assert probe.signals == [1]
        probe.request(1)
        assert probe.signals == [1, 2]

    async def test_a_full_processor_refuses_and_emit_waits(self, kind: Kind) -> None:
        hot = kind(1)
        probe = SubscriberProbe[int]().subscribed_to(hot)
        assert hot.try_emit(0)
        assert hot.try_emit(1) is Emission.REFUSED
        task = asyncio.ensure_future(hot.emit(1))
        await asyncio.sleep(0)
        assert not task.done()
        probe.request(2)
        assert await task
        assert probe.signals == [0, 1]
        assert hot.stats().refused == 1

    async def test_a_subscriber_that_emits_is_not_nested_rule_3_3(self, kind: Kind) -> None:
        hot = kind()
        log: list[str] = []

        def echo(x: int) -> None:
            log.append(f"begin {x}")
            if x < 3:
                hot.try_emit(x + 1)
            log.append(f"end {x}")

        SubscriberProbe[int](9).subscribed_to(hot.do_on_next(echo))
        hot.try_emit(1)
        assert log == ["begin 1", "end 1", "begin 2", "end 2", "begin 3", "end 3"]

    async def test_a_slow_subscriber_never_has_more_than_the_capacity(self, kind: Kind) -> None:
        hot = kind(3)
        probe = AsyncSubscriberProbe[int](2**63).subscribed_to(hot)
        for _ in range(3):
            await asyncio.sleep(0)
        assert [hot.try_emit(x) for x in range(9)].count(Emission.ACCEPTED) == 3
        hot.complete()
        assert await probe.end() == [0, 1, 2, "|"]
        assert hot.stats().highest == 3

    @pytest.mark.parametrize("initial", [2**63 - 1, 1])
    async def test_a_producer_that_never_waits_yields_to_the_loop(
        self, kind: Kind, initial: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seconds = count()
        monkeypatch.setattr(time_slice, "_clock", lambda: next(seconds))  # each slice is over
        hot = kind()
        probe = SubscriberProbe[int](initial)
        probe.subscribed_to(hot.do_on_next(lambda _: probe.request(1)))
        turns = 0

        async def turn() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        turning = asyncio.ensure_future(turn())
        for x in range(1000):
            await hot.emit(x)
        turning.cancel()
        assert len(probe.signals) == 1000
        assert turns >= 10

    @pytest.mark.parametrize("overflow", ["wait", "fail"])
    async def test_emit_waits_while_a_coroutine_processes_elements(
        self, kind: Kind, overflow: str
    ) -> None:
        hot = kind(2, overflow=overflow)
        probe = AsyncSubscriberProbe[int](2**63 - 1).subscribed_to(hot)
        await hot.wait_for_subscribers()
        outcomes = [await hot.emit(x) for x in range(9)]
        hot.complete()
        assert await probe.end() == [*range(9), "|"]
        assert outcomes == [Emission.ACCEPTED] * 9

    async def test_producers_that_wait_are_served_first(self, kind: Kind) -> None:
        hot = kind(1)
        probe = SubscriberProbe[int]().subscribed_to(hot)
        await hot.emit(0)
        waiting = asyncio.ensure_future(hot.emit(1))
        await asyncio.sleep(0)
        probe.request(9)
        await hot.emit(2)
        await waiting
        assert probe.signals == [0, 1, 2]

    async def test_a_producer_whose_room_is_taken_by_another_one_waits_on(self, kind: Kind) -> None:
        hot = kind(1)
        probe = SubscriberProbe[int]().subscribed_to(hot)
        await hot.emit(0)
        waiting = asyncio.ensure_future(hot.emit(2))
        await asyncio.sleep(0)
        probe.request(1)  # wakes the producer, which runs in the next turn
        assert hot.try_emit(1) is Emission.ACCEPTED
        await asyncio.sleep(0)
        assert not waiting.done()
        probe.request(9)
        assert await waiting is Emission.ACCEPTED
        assert probe.signals == [0, 1, 2]

    async def test_none_is_refused_in_the_call_rule_2_13(self, kind: Kind) -> None:
        hot = kind()
        for refuse in (hot.try_emit, hot.emit_threadsafe, hot.fail, hot.on_next):
            with pytest.raises(NotAnElement):
                cast("Any", refuse)(None)

    @pytest.mark.parametrize("name", ["capacity", "overflow"])
    def test_bad_arguments_are_refused_at_once(self, kind: Kind, name: str) -> None:
        with pytest.raises(ValueError, match=f"Processor: {name} must be"):
            kind(**{name: 0})

    def test_its_name_is_a_text(self, kind: Kind) -> None:
        with pytest.raises(TypeError, match="Processor: name must be a str, not 3"):
            kind(**{"name": 3})

    def test_it_may_be_made_without_a_loop_but_not_used(self, kind: Kind) -> None:
        with pytest.raises(NoRunningLoop):
            kind().emit_threadsafe(1)


async def emitted_by_a_thread(hot: Hot, count: int) -> list[str]:
    """The outcomes of as many emissions of a thread, for which the loop waits."""
    outcomes: list[str] = []
    thread = Thread(
        target=lambda: outcomes.extend(hot.emit_threadsafe(x).name for x in range(count))
    )
    thread.start()
    thread.join()  # on the loop's thread, so that it collects nothing meanwhile
    return outcomes


@BOTH
class TestThreads:
    async def test_elements_of_a_thread_arrive_in_order(self, kind: Kind) -> None:
        hot = kind(4)
        probe = SubscriberProbe[int](2**63).subscribed_to(hot)

        def work() -> None:
            for x in range(100):
                while not hot.emit_threadsafe(x):
                    pass
            hot.complete()

        thread = Thread(target=work)
        thread.start()
        assert await probe.end() == [*range(100), "|"]
        thread.join()

    async def test_what_a_thread_has_emitted_before_is_delivered_first(self, kind: Kind) -> None:
        hot, foreign = kind(4), PublisherProbe[int]()
        foreign.subscribe(hot)
        probe = SubscriberProbe[int](9).subscribed_to(hot)
        hot.emit_threadsafe(0)
        hot.try_emit(1)
        hot.emit_threadsafe(2)
        foreign.emit(3)
        hot.emit_threadsafe(4)
        await hot.emit(5)
        assert probe.signals == [*range(6)]

    async def test_it_may_not_emit_as_the_loop_does(self, kind: Kind) -> None:
        hot = kind(4)
        probe = SubscriberProbe[int](9).subscribed_to(hot)
        with pytest.raises(WrongLoop, match="try_emit"):
            await asyncio.to_thread(hot.try_emit, 1)
        assert probe.signals == []

    async def test_an_emission_inside_on_next_follows_those_of_threads(self, kind: Kind) -> None:
        hot = kind(4)
        probe = SubscriberProbe[int](9).subscribed_to(
            hot.do_on_next(lambda x: x == 1 and hot.try_emit(4))
        )
        for x in (1, 2, 3):
            hot.emit_threadsafe(x)
        await asyncio.sleep(0)
        assert probe.signals == [1, 2, 3, 4]

    async def test_one_too_many_for_the_loop_fails_every_subscriber(self, kind: Kind) -> None:
        """None of them is slow, and each would miss the element."""
        hot = kind(2, overflow="fail")
        probes = [SubscriberProbe[int](9).subscribed_to(hot)]
        if kind is not KINDS[0]:
            probes.append(SubscriberProbe[int](9).subscribed_to(hot))
        outcomes = await emitted_by_a_thread(hot, 4)
        assert outcomes == ["ACCEPTED", "ACCEPTED", "OVERFLOWED", "ENDED"]
        for probe in probes:
            *elements, error = await probe.end()
            assert elements == [0, 1]
            assert isinstance(error, Overflow)
            assert "threads emit faster than the loop collects" in str(error)

    @pytest.mark.parametrize("overflow", get_args(OverflowPolicy))
    async def test_what_a_thread_was_told_to_be_accepted_is_counted(
        self, kind: Kind, overflow: OverflowPolicy
    ) -> None:
        hot = kind(2, overflow=overflow)
        probe = SubscriberProbe[int](2**63 - 1).subscribed_to(hot)
        before = r.losses()
        outcomes = Counter(await emitted_by_a_thread(hot, 9))
        hot.complete()
        await probe.end()
        stats = hot.stats()
        assert stats.accepted == outcomes["ACCEPTED"]
        assert stats.refused == outcomes["REFUSED"]
        lost = (r.losses() - before).elements
        name = type(hot).__name__
        assert stats.dropped.get(overflow, 0) == lost.get(f"{name}: {overflow}", 0)
        assert sum(stats.dropped.values()) + stats.refused == sum(lost.values())

    async def test_accepted_elements_are_delivered_before_the_end(self, kind: Kind) -> None:
        hot = kind(2)
        probe = SubscriberProbe[int]().subscribed_to(hot)
        hot.try_emit(0)
        hot.try_emit(1)
        hot.emit_threadsafe(2)
        hot.complete()
        assert hot.emit_threadsafe(3) is Emission.ENDED
        probe.request(9)
        assert probe.signals == [0, 1, 2, "|"]


@BOTH
class TestEnd:
    @pytest.mark.parametrize("error", [None, OSError("no")])
    async def test_a_late_subscriber_gets_the_terminal_signal(
        self, kind: Kind, error: Exception | None
    ) -> None:
        hot = kind()
        if error is None:
            hot.complete()
        else:
            hot.fail(error)
        probe = SubscriberProbe[int]().subscribed_to(hot)
        assert probe.signals == [error or "|"]

    async def test_the_first_end_counts_rule_1_7(self, kind: Kind) -> None:
        hot = kind()
        probe = SubscriberProbe[int]().subscribed_to(hot)
        hot.complete()
        hot.fail(OSError())
        assert probe.signals == ["|"]

    async def test_a_cancelled_subscriber_is_forgotten_rule_3_13(self, kind: Kind) -> None:
        hot = kind()
        probe = SubscriberProbe[int](1).subscribed_to(hot)
        probe.cancel()
        forgotten = weakref.ref(probe)
        del probe
        gc.collect(0)
        assert forgotten() is None
        assert hot.stats().subscribers == 0

    async def test_a_waiting_emit_returns_when_the_processor_ends(self, kind: Kind) -> None:
        hot = kind(1)
        SubscriberProbe[int]().subscribed_to(hot)
        hot.try_emit(0)
        task = asyncio.ensure_future(hot.emit(1))
        await asyncio.sleep(0)
        hot.complete()
        assert await task is Emission.ENDED

    async def test_waiting_for_subscribers_stops_at_the_end(self, kind: Kind) -> None:
        hot = kind()
        task = asyncio.ensure_future(hot.wait_for_subscribers())
        await asyncio.sleep(0)
        assert not task.done()
        SubscriberProbe[int]().subscribed_to(hot)
        await task
        other = asyncio.ensure_future(hot.wait_for_subscribers(99))
        await asyncio.sleep(0)
        hot.complete()
        await other
        await hot.wait_for_subscribers(99)


@BOTH
class TestUpstream:
    @in_one_run
    @pytest.mark.parametrize("capacity", range(1, 9))
    async def test_a_publisher_that_sends_chunks_receives_more_demand(
        self, kind: Kind, capacity: int
    ) -> None:
        probe = SubscriberProbe[int](2**63)
        probe.subscribed_to(fed(kind, r.range(40).boundary(2), capacity))
        assert await probe.end() == [*range(40), "|"]

    async def test_nothing_is_requested_before_a_subscriber_requests(self, kind: Kind) -> None:
        foreign, hot = PublisherProbe[int](), kind(4)
        foreign.subscribe(hot)
        probe = SubscriberProbe[int]().subscribed_to(hot)
        assert foreign.requested == 0
        probe.request(1)
        assert foreign.requested == 4

    async def test_as_many_elements_are_requested_as_there_is_room_for(self, kind: Kind) -> None:
        foreign, hot = PublisherProbe[int](), kind(4)
        foreign.subscribe(hot)
        probe = SubscriberProbe[int](1).subscribed_to(hot)
        foreign.emit(*range(4))
        assert (foreign.requested, probe.signals) == (5, [0])
        probe.request(3)
        assert foreign.requested == 8

    async def test_a_second_publisher_is_cancelled_rule_2_5(self, kind: Kind) -> None:
        hot, first, second = kind(), PublisherProbe[int](), PublisherProbe[int]()
        first.subscribe(hot)
        second.subscribe(hot)
        assert (first.cancel_count, second.cancel_count) == (0, 1)
        probe = SubscriberProbe[int](1).subscribed_to(hot)
        first.emit(1)
        assert probe.signals == [1]

    async def test_a_publisher_that_feeds_an_ended_processor_is_cancelled(self, kind: Kind) -> None:
        foreign, hot = PublisherProbe[int](), kind()
        hot.complete()
        foreign.subscribe(hot)
        assert foreign.cancel_count == 1

    async def test_elements_without_demand_fail_it_rule_1_1(self, kind: Kind) -> None:
        foreign, hot = PublisherProbe[int](), kind(2)
        foreign.subscribe(hot)
        probe = SubscriberProbe[int](1).subscribed_to(hot)
        foreign.emit(*range(9))
        probe.request(9)
        assert cast("Any", probe.error).rule == "1.1"


class TestUnicast:
    async def test_elements_emitted_early_wait_for_the_subscriber(self) -> None:
        hot: UnicastProcessor[int] = UnicastProcessor(2)
        assert [hot.try_emit(x).name for x in range(3)] == ["ACCEPTED", "ACCEPTED", "REFUSED"]
        assert SubscriberProbe[int](9).subscribed_to(hot).signals == [0, 1]

    async def test_a_second_subscriber_is_refused_rule_1_11(self) -> None:
        hot: UnicastProcessor[int] = UnicastProcessor()
        SubscriberProbe[int](9).subscribed_to(hot)
        error = SubscriberProbe[int](9).subscribed_to(hot).error
        assert "MulticastProcessor" in str(error)

    async def test_it_ends_when_its_subscriber_cancels(self) -> None:
        foreign, hot = PublisherProbe[int](), UnicastProcessor[int]()
        foreign.subscribe(hot)
        probe = SubscriberProbe[int]().subscribed_to(hot)
        hot.try_emit(1)
        probe.cancel()
        assert (hot.try_emit(1), hot.emit_threadsafe(2)) == (Emission.ENDED, Emission.ENDED)
        assert foreign.cancel_count == 1
        assert hot.stats().dropped == {"discarded": 1}

    async def test_an_early_overflow_fails_after_the_elements_held(
        self,
    ) -> None:
        hot: UnicastProcessor[int] = UnicastProcessor(1, overflow="fail")
        assert [hot.try_emit(x).name for x in range(3)] == ["ACCEPTED", "OVERFLOWED", "ENDED"]
        probe = SubscriberProbe[int](9).subscribed_to(hot)
        assert probe.elements == [0]
        assert isinstance(probe.error, Overflow)


class TestMulticast:
    async def test_each_subscriber_has_its_own_demand(self) -> None:
        hot: MulticastProcessor[int] = MulticastProcessor()
        slow = SubscriberProbe[int](1).subscribed_to(hot)
        fast = SubscriberProbe[int](9).subscribed_to(hot)
        for x in range(3):
            hot.try_emit(x)
        assert (slow.signals, fast.signals) == ([0], [0, 1, 2])
        slow.request(9)
        assert slow.signals == [0, 1, 2]

    async def test_the_slowest_holds_back_by_at_most_the_capacity(self) -> None:
        hot: MulticastProcessor[int] = MulticastProcessor(2)
        slow = SubscriberProbe[int]().subscribed_to(hot)
        fast = SubscriberProbe[int](9).subscribed_to(hot)
        assert [hot.try_emit(x).name for x in range(3)] == ["ACCEPTED", "ACCEPTED", "REFUSED"]
        assert fast.signals == [0, 1]
        slow.cancel()
        assert hot.try_emit(2)
        assert fast.signals == [0, 1, 2]

    @pytest.mark.parametrize(
        ("overflow", "expected"),
        [("drop_newest", [0, 1]), ("drop_oldest", [2, 3]), ("latest", [3])],
    )
    async def test_only_the_slow_subscriber_misses_elements(
        self, overflow: Any, expected: list[int]
    ) -> None:
        hot: MulticastProcessor[int] = MulticastProcessor(2, overflow=overflow)
        slow = SubscriberProbe[int]().subscribed_to(hot)
        fast = SubscriberProbe[int](9).subscribed_to(hot)
        assert sum(bool(hot.try_emit(x)) for x in range(4)) == 4
        slow.request(9)
        assert (fast.signals, slow.signals) == ([0, 1, 2, 3], expected)
        assert hot.stats().dropped == {overflow: 4 - len(expected)}

    async def test_with_overflow_fail_only_the_slow_subscriber_fails(self) -> None:
        hot: MulticastProcessor[int] = MulticastProcessor(1, overflow="fail")
        slow = SubscriberProbe[int]().subscribed_to(hot)
        fast = SubscriberProbe[int](9).subscribed_to(hot)
        assert sum(bool(hot.try_emit(x)) for x in range(3)) == 3
        slow.request(1)
        assert slow.elements == [0]
        assert isinstance(slow.error, Overflow)
        assert fast.signals == [0, 1, 2]

    async def test_without_subscribers_elements_are_dropped_and_counted(self) -> None:
        hot: MulticastProcessor[int] = MulticastProcessor()
        assert hot.try_emit(1) is Emission.DROPPED
        assert await hot.emit(1) is Emission.DROPPED
        assert hot.stats().dropped == {"no_subscriber": 2}

    async def test_statistics_describe_the_slowest_subscriber(self) -> None:
        hot: MulticastProcessor[int] = MulticastProcessor()
        SubscriberProbe[int](1).subscribed_to(hot)
        SubscriberProbe[int](9).subscribed_to(hot)
        for x in range(3):
            hot.try_emit(x)
        stats = hot.stats()
        assert (stats.accepted, stats.subscribers, stats.held, stats.requested) == (3, 2, 2, 0)
        assert not stats.is_done

    @pytest.mark.parametrize("overflow", ["wait", "drop_newest"])
    async def test_each_knows_for_reports_what_it_waits_for(self, overflow: Any) -> None:
        hot: MulticastProcessor[int] = MulticastProcessor(1, overflow=overflow)
        probes = [SubscriberProbe[int](n).subscribed_to(hot) for n in (0, 9)]
        slow, fast = (cast("Any", probe.subscription).upstreams[0] for probe in probes)
        assert (fast.held_back_by, fast.shared_source) == (None, None)
        r.never().subscribe(hot)
        hot.try_emit(1)
        assert fast.held_back_by is (slow.downstream if overflow == "wait" else None)
        assert slow.held_back_by is None
        assert fast.shared_source is not None

    async def test_nothing_is_requested_after_the_end(self) -> None:
        hot: MulticastProcessor[int] = MulticastProcessor()
        SubscriberProbe[int](9).subscribed_to(hot)
        assert hot.stats().requested == 9
        hot.complete()
        assert (hot.stats().requested, hot.stats().is_done) == (0, True)


# -- a failure that many receive -------------------------------------------------------------------
class Session:
    """What a consumer has in its frame."""


LATE: dict[str, Callable[[], tuple[Any, Callable[[Any], Any]]]] = {
    "multicast": lambda: (MulticastProcessor[int](), lambda hot: hot.map(str).to_list()),
    "replay": lambda: (ReplayProcessor[int](2), lambda hot: hot.map(str).to_list()),
    "latest": lambda: (LatestProcessor[int](0), lambda hot: hot.map(str).to_list()),
    "changed": lambda: (LatestProcessor[int](0), lambda hot: hot.changed()),
    "wait_for": lambda: (LatestProcessor[int](0), lambda hot: hot.wait_for(bool)),
}


@pytest.mark.parametrize("way", LATE)
async def test_a_processor_that_has_failed_keeps_no_frame_of_its_later_consumers(way: str) -> None:
    hot, consume = LATE[way]()
    error = OSError("lost")
    error.add_note("of the producer")
    hot.fail(error)
    sessions = list["weakref.ref[Session]"]()
    lengths = set[int]()

    async def consumer() -> None:
        session = Session()
        sessions.append(weakref.ref(session))
        with pytest.raises(OSError, match="lost") as raised:
            await consume(hot)
        assert raised.value is error
        lengths.add(len(traceback.extract_tb(error.__traceback__)))
        assert error.__notes__[0] == "of the producer"

    for _ in range(5):
        await consumer()
    gc.collect()
    assert sum(session() is not None for session in sessions) <= 1, "the last one may be kept"
    assert len(lengths) == 1
