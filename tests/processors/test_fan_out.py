"""Several subscribers of one processor: one order, whatever one does inside on_next; the cost."""

import asyncio
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import MulticastProcessor, UnicastProcessor
from reactive_aio.testing import PublisherProbe, SubscriberProbe

MANY = 2**63 - 1


class Sum:
    """A subscriber with unbounded demand."""

    def __init__(self) -> None:
        self.total = 0
        self.done = asyncio.Event()

    def on_subscribe(self, subscription: Any, /) -> None:
        subscription.request(MANY)

    def on_next(self, element: int, /) -> None:
        self.total += element

    def on_error(self, error: BaseException, /) -> None:
        raise error

    def on_complete(self) -> None:
        self.done.set()


class TestOrder:
    async def test_all_see_one_order_when_one_of_them_emits_among_those_of_a_publisher(
        self,
    ) -> None:
        hot: MulticastProcessor[int] = MulticastProcessor()

        def echo(x: int) -> None:
            if x < 10:
                hot.try_emit(10 + x)

        probes = [SubscriberProbe[int](99).subscribed_to(hot.do_on_next(echo))]
        probes += [SubscriberProbe[int](99).subscribed_to(hot) for _ in range(2)]
        r.range(4).subscribe(hot)
        await probes[-1].end()
        orders = [probe.elements for probe in probes]
        assert orders[0] == orders[1] == orders[2]
        assert sorted(orders[0]) == [0, 1, 2, 3, 10, 11, 12, 13]

    async def test_all_see_one_order_when_the_publisher_sends_inside_on_next(self) -> None:
        hot: MulticastProcessor[int] = MulticastProcessor()
        foreign = PublisherProbe[int]()
        foreign.subscribe(hot)
        first = SubscriberProbe[int](9)
        first.subscribed_to(hot.do_on_next(lambda x: None if x else foreign.emit(1)))
        second = SubscriberProbe[int](9).subscribed_to(hot)
        hot.try_emit(0)
        assert first.signals == second.signals == [0, 1]

    async def test_all_see_one_order_when_one_emits_as_it_leaves(self) -> None:
        hot: MulticastProcessor[int] = MulticastProcessor()

        class Last(Sum):
            def on_complete(self) -> None:
                hot.try_emit(1)

        hot.take(1).subscribe(Last())
        second = SubscriberProbe[int](9).subscribed_to(hot)
        hot.try_emit(0)
        assert second.signals == [0, 1]

    async def test_an_emission_stays_behind_the_elements_without_demand(self) -> None:
        """The slow subscriber receives a part of the list that the others receive whole."""
        hot: MulticastProcessor[int] = MulticastProcessor(8)
        slow = SubscriberProbe[int](2)
        slow.subscribed_to(hot.do_on_next(lambda x: hot.try_emit(9) if x == 1 else None))
        fast = SubscriberProbe[int](MANY).subscribed_to(hot)
        r.range(4).subscribe(hot)
        assert (slow.signals, fast.elements) == ([0, 1], [0, 1, 2, 3, 9])
        slow.request(9)
        assert await slow.end() == [0, 1, 2, 3, 9, "|"]

    @pytest.mark.parametrize("error", [None, OSError("no")])
    async def test_an_end_inside_on_next_follows_the_element(self, error: Any) -> None:
        hot: MulticastProcessor[int] = MulticastProcessor()

        def end(_: int) -> None:
            if error is None:
                hot.complete()
            else:
                hot.on_error(error)

        probes = [SubscriberProbe[int](9).subscribed_to(hot.do_on_next(end))]
        probes += [SubscriberProbe[int](9).subscribed_to(hot)]
        hot.try_emit(1)
        assert [probe.signals for probe in probes] == [[1, error or "|"]] * 2

    @pytest.mark.parametrize("is_fed", [True, False])
    async def test_a_subscriber_can_cancel_another_one(self, is_fed: bool) -> None:
        hot: MulticastProcessor[int] = MulticastProcessor()
        second = SubscriberProbe[int](9)
        first = SubscriberProbe[int](9).subscribed_to(hot.do_on_next(lambda _: second.cancel()))
        second.subscribed_to(hot)
        if is_fed:
            r.range(2).subscribe(hot)
        else:
            hot.try_emit(0)
            hot.try_emit(1)
        assert second.signals == []
        assert first.elements == [0, 1]

    @pytest.mark.parametrize("is_fed", [True, False])
    async def test_a_subscriber_that_cancels_itself_receives_no_more(self, is_fed: bool) -> None:
        hot: MulticastProcessor[int] = MulticastProcessor()
        first = SubscriberProbe[int](9)
        first.subscribed_to(hot.do_on_next(lambda x: first.cancel() if x else None))
        second = SubscriberProbe[int](9).subscribed_to(hot)
        if is_fed:
            r.range(4).subscribe(hot)
        else:
            for x in range(4):
                hot.try_emit(x)
        assert first.elements in ([0], [0, 1])
        assert second.elements == [0, 1, 2, 3]

    @pytest.mark.parametrize("is_fed", [True, False])
    async def test_a_new_subscriber_receives_what_is_emitted_later(self, is_fed: bool) -> None:
        hot: MulticastProcessor[int] = MulticastProcessor()
        late = SubscriberProbe[int](9)
        first = SubscriberProbe[int](9)
        first.subscribed_to(hot.do_on_next(lambda x: x or late.subscribed_to(hot)))
        foreign = PublisherProbe[int]()
        if is_fed:
            foreign.subscribe(hot)
            foreign.emit(0)
            foreign.emit(1)
        else:
            hot.try_emit(0)
            hot.try_emit(1)
        assert (first.signals, late.signals) == ([0, 1], [1])

    async def test_one_that_requests_inside_on_next_keeps_up(self) -> None:
        hot: MulticastProcessor[int] = MulticastProcessor(8)
        slow = SubscriberProbe[int](3)
        slow.subscribed_to(hot.do_on_next(lambda x: slow.request(3) if x % 3 == 0 else None))
        fast = SubscriberProbe[int](MANY).subscribed_to(hot)
        r.range(100).subscribe(hot)
        assert await slow.end() == await fast.end() == [*range(100), "|"]


@contextmanager
def counted_calls() -> Generator[list[int]]:
    """Counts the calls of functions written in Python."""
    count = [0]

    def on_event(_frame: object, event: str, _argument: object) -> None:
        count[0] += event == "call"

    before = sys.getprofile()
    sys.setprofile(on_event)
    try:
        yield count
    finally:
        sys.setprofile(before)


class TestCost:
    """In calls, which no busy machine makes more."""

    async def test_an_element_of_a_publisher_costs_each_subscriber_one_call(self) -> None:
        hot: MulticastProcessor[int] = MulticastProcessor()
        subscribers = [Sum() for _ in range(10)]
        for subscriber in subscribers:
            hot.subscribe(subscriber)
        with counted_calls() as count:
            r.range(2000).subscribe(hot)
            await subscribers[-1].done.wait()
        assert {each.total for each in subscribers} == {sum(range(2000))}
        assert count[0] < 2000 * 10 * 1.5

    @pytest.mark.parametrize("kind", [UnicastProcessor[int], MulticastProcessor[int]])
    async def test_an_emission_makes_few_calls_beyond_those_of_the_island(self, kind: Any) -> None:
        hot = kind()
        downstream = _Island()
        downstream.output = hot._attach(downstream)
        downstream.output.request(MANY)
        with counted_calls() as count:
            for x in range(1000):
                hot.try_emit(x)
        assert downstream.total == sum(range(1000))
        # try_emit, is_running of the loop, try_push.
        assert count[0] < 1000 * 3 * 1.1


class _Island:
    """The shortest island: one call for each element."""

    output: Any

    def __init__(self) -> None:
        self.total = 0

    def try_push(self, element: int, /) -> bool:
        self.total += element
        return True
