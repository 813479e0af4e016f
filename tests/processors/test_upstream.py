"""Processors fed by a publisher: failures (rule 4.2), overflow policies, the last subscriber."""

import asyncio
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Emission, MulticastProcessor, UnicastProcessor
from reactive_aio.errors import Interrupted, Overflow
from reactive_aio.testing import AsyncSubscriberProbe, PublisherProbe, SubscriberProbe

Hot = UnicastProcessor[int] | MulticastProcessor[int]
Kind = Callable[..., Hot]
KINDS: list[Kind] = [UnicastProcessor[int], MulticastProcessor[int]]
BOTH = pytest.mark.parametrize("kind", KINDS, ids=["unicast", "multicast"])
MANY = 2**63 - 1


def fed(kind: Kind, *arguments: Any, **options: Any) -> tuple[PublisherProbe[int], Any]:
    foreign, hot = PublisherProbe[int](), kind(*arguments, **options)
    foreign.subscribe(hot)
    return foreign, hot


@BOTH
class TestFailure:
    async def test_it_overtakes_elements_without_demand_rule_4_2(self, kind: Kind) -> None:
        foreign, hot = fed(kind)
        probe = SubscriberProbe[int](1).subscribed_to(hot)
        foreign.emit(0, 1, 2)
        error = OSError("no")
        foreign.fail(error)
        assert probe.signals == [0, error]
        assert hot.stats().dropped == {"overtaken": 2}
        assert hot.try_emit(3) is Emission.ENDED

    async def test_it_overtakes_elements_without_room_rule_4_2(self, kind: Kind) -> None:
        foreign, hot = fed(kind, 2)
        probe = SubscriberProbe[int](1).subscribed_to(hot)
        foreign.emit(0)
        hot.try_emit(10)
        hot.try_emit(11)
        hot.emit_threadsafe(12)
        hot.emit_threadsafe(13)
        foreign.emit(1)
        waiting = asyncio.ensure_future(hot.emit(14))
        await asyncio.sleep(0)
        error = OSError("no")
        foreign.fail(error)
        assert probe.signals == [0, error]
        assert hot.stats().dropped == {"overtaken": 5}
        assert await waiting is Emission.ENDED

    async def test_it_follows_elements_with_demand(self, kind: Kind) -> None:
        """They arrive while another one is delivered."""
        foreign, hot = fed(kind)
        error = OSError("no")

        def react(x: int) -> None:
            if x == 0:
                foreign.emit(1, 2)
                foreign.fail(error)

        probe = SubscriberProbe[int](9).subscribed_to(hot.do_on_next(react))
        foreign.emit(0)
        assert probe.signals == [0, 1, 2, error]

    async def test_a_late_subscriber_receives_it(self, kind: Kind) -> None:
        foreign, hot = fed(kind)
        hot.try_emit(1)
        error = OSError("no")
        foreign.fail(error)
        assert SubscriberProbe[int]().subscribed_to(hot).signals == [error]

    async def test_that_of_a_producer_keeps_its_place(self, kind: Kind) -> None:
        _, hot = fed(kind)
        probe = SubscriberProbe[int](1).subscribed_to(hot)
        for x in range(2):
            hot.try_emit(x)
        error = OSError("no")
        hot.fail(error)
        assert probe.signals == [0]
        probe.request(1)
        assert probe.signals == [0, 1, error]
        assert hot.stats().dropped == {}

    async def test_a_producer_may_fail_at_once_as_well(self, kind: Kind) -> None:
        hot: Any = kind()
        probe = SubscriberProbe[int]().subscribed_to(hot)
        hot.try_emit(1)
        error = OSError("no")
        hot.on_error(error)
        assert probe.signals == [error]

    async def test_one_after_the_end_is_reported(self, kind: Kind) -> None:
        """The end of the producer has come first, and waits for an element of a thread."""
        foreign, hot = fed(kind, 1)
        reported: list[Any] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))
        probe = SubscriberProbe[int]().subscribed_to(hot)
        hot.try_emit(0)
        hot.emit_threadsafe(1)
        hot.complete()
        error = OSError("no")
        foreign.fail(error)
        probe.request(9)
        assert probe.signals == [0, 1, "|"]
        assert reported == [error]

    async def test_a_completion_does_not_overtake(self, kind: Kind) -> None:
        foreign, hot = fed(kind, 2)
        probe = SubscriberProbe[int](1).subscribed_to(hot)
        foreign.emit(0, 1)
        foreign.complete()
        assert probe.signals == [0]
        probe.request(1)
        assert probe.signals == [0, 1, "|"]


@BOTH
async def test_elements_that_wait_for_room_are_counted_when_a_producer_completes(
    kind: Kind,
) -> None:
    foreign, hot = fed(kind, 2)
    SubscriberProbe[int](1).subscribed_to(hot)
    hot.try_emit(0)
    hot.try_emit(1)
    hot.try_emit(2)
    foreign.emit(3)
    hot.complete()
    assert foreign.cancel_count == 1
    assert hot.stats().dropped == {"discarded": 1}


@BOTH
@pytest.mark.parametrize("is_fed_first", [True, False])
async def test_more_is_requested_when_a_coroutine_has_processed_a_part(
    kind: Kind, is_fed_first: bool
) -> None:
    foreign, hot = PublisherProbe[int](), kind(8)
    probe = AsyncSubscriberProbe[int](MANY)
    if is_fed_first:
        foreign.subscribe(hot)
    probe.subscribed_to(hot)
    await asyncio.sleep(0)
    if not is_fed_first:
        foreign.subscribe(hot)
    while foreign.requested < 8:  # noqa: ASYNC110 - turns of the loop, not time
        await asyncio.sleep(0)
    foreign.emit(*range(6))
    assert foreign.requested == 8
    for _ in range(9):
        await asyncio.sleep(0)
    assert foreign.requested == 14
    foreign.complete()
    assert await probe.end() == [*range(6), "|"]


@BOTH
async def test_a_flow_on_the_event_loop_of_another_thread_can_feed_it(kind: Kind) -> None:
    hot = kind(4)
    probe = SubscriberProbe[int](MANY).subscribed_to(hot)
    is_fed = Event()

    async def feed() -> None:
        # The lists of a flow are for its own loop.
        assert hot.bulk_subscriber() is None
        r.range(20).subscribe(hot)
        while not is_fed.is_set():  # noqa: ASYNC110 - another thread sets it
            await asyncio.sleep(0)

    thread = Thread(target=lambda: asyncio.run(feed()))
    thread.start()
    try:
        assert await probe.end() == [*range(20), "|"]
    finally:
        is_fed.set()
        thread.join()


FED = {
    "drop_newest": [0, 1],
    "drop_oldest": [38, 39],
    "latest": [39],
    "fail": [0, 1],
}
"""What a subscriber without demand holds of 40 elements, by policy, with a capacity of 2."""


class TestOverflow:
    @pytest.mark.parametrize("overflow", FED)
    @pytest.mark.parametrize("is_slow_first", [True, False])
    async def test_a_slow_subscriber_does_not_hold_the_others_back(
        self, overflow: Any, is_slow_first: bool
    ) -> None:
        hot: MulticastProcessor[int] = MulticastProcessor(2, overflow=overflow)
        slow, fast = SubscriberProbe[int](), SubscriberProbe[int](MANY)
        for probe in (slow, fast) if is_slow_first else (fast, slow):
            probe.subscribed_to(hot)
        r.range(40).subscribe(hot)
        assert await fast.end() == [*range(40), "|"]
        slow.request(9)
        assert slow.elements == FED[overflow]
        if overflow == "fail":
            assert isinstance(slow.error, Overflow)
        else:
            assert slow.signals[-1] == "|"
            assert hot.stats().dropped == {overflow: 40 - len(FED[overflow])}

    @pytest.mark.parametrize("overflow", FED)
    async def test_a_publisher_that_sends_one_by_one_is_not_held_back_either(
        self, overflow: Any
    ) -> None:
        hot: MulticastProcessor[int] = MulticastProcessor(2, overflow=overflow)
        slow = SubscriberProbe[int]().subscribed_to(hot)
        fast = SubscriberProbe[int](MANY).subscribed_to(hot)
        foreign = PublisherProbe[int]()
        foreign.subscribe(hot)
        for x in range(40):
            assert foreign.requested > x
            foreign.emit(x)
        foreign.complete()
        assert fast.signals == [*range(40), "|"]
        slow.request(9)
        assert slow.elements == FED[overflow]

    @pytest.mark.parametrize("overflow", ["wait", "drop_newest", "drop_oldest", "fail"])
    async def test_the_fastest_misses_nothing(self, overflow: Any) -> None:
        hot: MulticastProcessor[int] = MulticastProcessor(4, overflow=overflow)
        SubscriberProbe[int](MANY).subscribed_to(hot)

        async def read() -> list[int]:
            return [x async for x in hot]

        reading = asyncio.ensure_future(read())
        await hot.wait_for_subscribers(2)
        r.range(40).boundary(3).subscribe(hot)
        assert await reading == [*range(40)]

    async def test_under_wait_the_slowest_holds_the_others_back(self) -> None:
        hot: MulticastProcessor[int] = MulticastProcessor(2)
        slow = SubscriberProbe[int]().subscribed_to(hot)
        fast = SubscriberProbe[int](MANY).subscribed_to(hot)
        r.range(9).subscribe(hot)
        assert fast.signals == [0, 1]
        slow.request(MANY)
        assert await fast.end() == await slow.end() == [*range(9), "|"]

    @BOTH
    async def test_a_slow_subscriber_sees_the_latest(self, kind: Kind) -> None:
        foreign, hot = fed(kind, 4, overflow="latest")
        probe = SubscriberProbe[int](1).subscribed_to(hot)
        for x in range(40):
            assert foreign.requested > x
            foreign.emit(x)
        probe.request(1)
        assert probe.signals == [0, 39]

    @pytest.mark.parametrize(
        ("overflow", "received"),
        [
            ("wait", [*range(9)]),
            ("drop_newest", [0, 1, 2]),
            ("drop_oldest", [0, 7, 8]),
            ("latest", [8]),
        ],
    )
    @pytest.mark.parametrize("kind", [UnicastProcessor, MulticastProcessor])
    async def test_a_publisher_waits_for_a_sole_subscriber_under_wait_alone(
        self, kind: Any, overflow: Any, received: list[int]
    ) -> None:
        hot = kind(2, overflow=overflow)
        r.range(9).subscribe(hot)
        probe = SubscriberProbe[int](1).subscribed_to(hot)
        for _ in range(9):
            await asyncio.sleep(0)
        probe.request(9)
        assert await probe.end() == [*received, "|"]


class TestTheLastSubscriber:
    async def test_it_cancels_the_publisher_rule_3_14(self) -> None:
        foreign, hot = fed(MulticastProcessor[int])
        one = SubscriberProbe[int](1).subscribed_to(hot)
        other = SubscriberProbe[int](1).subscribed_to(hot)
        one.cancel()
        assert foreign.cancel_count == 0
        other.cancel()
        assert foreign.cancel_count == 1
        assert hot.try_emit(1) is Emission.ENDED
        assert hot.emit_threadsafe(1) is Emission.ENDED
        assert hot.stats().is_done

    async def test_elements_that_still_arrive_are_ignored_rule_2_8(self) -> None:
        foreign, hot = fed(MulticastProcessor[int])
        SubscriberProbe[int](1).subscribed_to(hot).cancel()
        foreign.emit(1)
        foreign.complete()

    async def test_a_later_one_receives_the_reason_and_the_remedy(self) -> None:
        _, hot = fed(MulticastProcessor[int])
        SubscriberProbe[int](1).subscribed_to(hot).cancel()
        error = SubscriberProbe[int]().subscribed_to(hot).error
        assert isinstance(error, Interrupted)
        assert "auto_cancel=False" in str(error)

    async def test_it_may_leave_because_its_queue_overflows(self) -> None:
        hot: MulticastProcessor[int] = MulticastProcessor(1, overflow="fail")
        foreign = PublisherProbe[int]()
        foreign.subscribe(hot)
        probe = SubscriberProbe[int](1).subscribed_to(hot)
        foreign.emit(0)
        assert hot.try_emit(1)
        assert hot.try_emit(2) is Emission.OVERFLOWED
        assert foreign.cancel_count == 1
        probe.request(9)
        assert probe.elements == [0, 1]
        assert isinstance(probe.error, Overflow)

    async def test_it_may_leave_the_publisher_as_it_is(self) -> None:
        foreign, hot = fed(MulticastProcessor[int], 2, auto_cancel=False)
        SubscriberProbe[int](1).subscribed_to(hot).cancel()
        assert foreign.cancel_count == 0
        foreign.emit(0)
        assert hot.stats().dropped == {"no_subscriber": 1}
        requested = foreign.requested
        probe = SubscriberProbe[int](9).subscribed_to(hot)
        foreign.emit(1)
        assert probe.signals == [1]
        assert foreign.requested > requested

    async def test_without_a_publisher_the_processor_stays_open(self) -> None:
        hot: MulticastProcessor[int] = MulticastProcessor()
        SubscriberProbe[int](1).subscribed_to(hot).cancel()
        assert hot.try_emit(1) is Emission.DROPPED
        probe = SubscriberProbe[int](1).subscribed_to(hot)
        assert hot.try_emit(2)
        assert probe.signals == [2]

    async def test_one_that_leaves_after_the_end_does_not_change_it(self) -> None:
        _, hot = fed(MulticastProcessor[int])
        probe = SubscriberProbe[int]().subscribed_to(hot)
        hot.try_emit(0)
        hot.complete()
        probe.cancel()
        assert SubscriberProbe[int]().subscribed_to(hot).signals == ["|"]

    async def test_a_waiting_producer_is_released(self) -> None:
        foreign, hot = fed(MulticastProcessor[int], 1)
        probe = SubscriberProbe[int]().subscribed_to(hot)
        hot.try_emit(0)
        waiting = asyncio.ensure_future(hot.emit(1))
        await asyncio.sleep(0)
        probe.cancel()
        assert await waiting is Emission.ENDED
        assert foreign.cancel_count == 1
