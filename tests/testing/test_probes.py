"""Probes record all signals, may break every rule, and report what did not come."""

import asyncio
import threading
from typing import Any

import pytest

from reactive_aio import from_iterable, range as numbers, to_flow
from reactive_aio.testing import AsyncSubscriberProbe, PublisherProbe, SubscriberProbe
from reactive_aio.testing.journal import Kind

MANY = 2**63 - 1


def lines(caught: pytest.ExceptionInfo[AssertionError]) -> list[str]:
    return str(caught.value).splitlines()


class TestSubscriber:
    async def test_reads_one_signal_after_another(self) -> None:
        probe = SubscriberProbe[int](2).subscribed_to(numbers(3))
        assert [await probe.next_element(), await probe.next_element()] == [0, 1]
        await probe.expect_nothing()
        probe.request(9)
        assert await probe.next_element() == 2
        assert (await probe.next_signal()).kind is Kind.ON_COMPLETE
        assert not probe.unread

    async def test_waits_for_on_subscribe(self) -> None:
        probe = SubscriberProbe[int]()
        asyncio.get_running_loop().call_soon(numbers(1).subscribe, probe)
        assert await probe.expect_subscription() is probe.subscription

    async def test_records_both_directions(self) -> None:
        probe = SubscriberProbe[int](1, again=1).subscribed_to(numbers(9))
        await probe.wait_for_signals(2)
        probe.cancel()
        assert [str(entry) for entry in probe.journal.entries[:6]] == [
            "subscribe()",
            "on_subscribe()",
            "request(1)",
            "on_next(0)",
            "request(1)",
            "on_next(1)",
        ]

    async def test_a_missing_element_is_drawn(self) -> None:
        probe = SubscriberProbe[int](9).subscribed_to(numbers(1))
        await probe.next_element()
        with pytest.raises(AssertionError) as caught:
            await probe.next_element()
        assert lines(caught)[0] == "an element was expected, and on_complete() came"
        assert lines(caught)[2:5] == [
            "demand   >---9-----",
            "signals    >---0-|",
            " " * 17 + "^-- an element was expected, and on_complete() came",
        ]

    @pytest.mark.virtual_time
    async def test_a_missing_signal_is_a_failure_after_a_timeout(self) -> None:
        probe = SubscriberProbe[int]().subscribed_to(numbers(1))
        with pytest.raises(
            AssertionError, match=r"^a signal was expected, and nothing came within 7 s"
        ):
            await probe.next_signal(within=7)
        assert asyncio.get_running_loop().time() == 7
        with pytest.raises(
            AssertionError, match=r"on_subscribe did not come within 1 s \(rule 1\.9\)"
        ):
            await SubscriberProbe[int]().expect_subscription(within=1)

    async def test_an_unexpected_signal_is_a_failure(self) -> None:
        probe = SubscriberProbe[str](1).subscribed_to(from_iterable("ab"))
        with pytest.raises(AssertionError, match=r"nothing was expected, and on_next\('a'\) came"):
            await probe.expect_nothing()

    async def test_can_make_an_invalid_request(self) -> None:
        probe = SubscriberProbe[int]().subscribed_to(numbers(1))
        probe.request(-1)
        entry = await probe.next_signal()
        assert "3.9" in str(entry.value)

    async def test_coroutine_methods_work_the_same(self) -> None:
        probe = AsyncSubscriberProbe[int](2).subscribed_to(numbers(3))
        assert [await probe.next_element(), await probe.next_element()] == [0, 1]
        await probe.expect_nothing()
        probe.cancel()


class TestPublisher:
    async def test_emits_on_call_and_counts_the_outstanding_demand(self) -> None:
        publisher, probe = PublisherProbe[int](), SubscriberProbe[str](2)
        to_flow(publisher).map(str).subscribe(probe)
        await publisher.expect_request(2)
        publisher.emit(1)
        assert await probe.next_element() == "1"
        assert publisher.outstanding == publisher.requested - 1
        publisher.complete()
        assert (await probe.next_signal()).kind is Kind.ON_COMPLETE
        assert [entry.kind for entry in publisher.journal.entries[:2]] == [
            Kind.SUBSCRIBE,
            Kind.ON_SUBSCRIBE,
        ]

    async def test_waits_for_a_subscriber(self) -> None:
        publisher, probe = PublisherProbe[int](), SubscriberProbe[int]()
        asyncio.get_running_loop().call_soon(publisher.subscribe, probe)
        assert await publisher.expect_subscriber() is probe

    @pytest.mark.virtual_time
    async def test_reports_a_missing_call(self) -> None:
        publisher, probe = PublisherProbe[int](), SubscriberProbe[int](2)
        with pytest.raises(AssertionError, match="1 must subscribe; 0 did within 3 s"):
            await publisher.expect_subscriber(within=3)
        publisher.subscribe(probe)
        with pytest.raises(AssertionError) as caught:
            await publisher.expect_request(5)
        assert lines(caught)[0] == "5 must be requested; 2 were within 5 s"
        assert lines(caught)[2].startswith("demand   ")
        with pytest.raises(AssertionError, match=r"cancel\(\) must come within 5 s"):
            await publisher.expect_cancel()

    async def test_a_second_cancellation_is_a_failure(self) -> None:
        publisher, probe = PublisherProbe[int](), SubscriberProbe[int](2)
        publisher.subscribe(probe)
        await publisher.expect_nothing()
        probe.cancel()
        await publisher.expect_cancel()
        probe.cancel()
        with pytest.raises(AssertionError, match="it came 2 times"):
            await publisher.expect_cancel()

    async def test_unexpected_demand_is_a_failure(self) -> None:
        publisher, probe = PublisherProbe[int](), SubscriberProbe[int]()
        publisher.subscribe(probe)
        asyncio.get_running_loop().call_soon(probe.request, 1)
        with pytest.raises(AssertionError, match="nothing was expected from downstream"):
            await publisher.expect_nothing()

    async def test_can_break_any_rule(self) -> None:
        publisher, probe = PublisherProbe[Any](), SubscriberProbe[Any](1)
        publisher.subscribe(probe)
        publisher.emit(1, 2, None)
        publisher.complete()
        publisher.fail(ValueError("late"))
        publisher.subscribe(probe)
        assert probe.signals[:4] == [1, 2, None, "|"]
        assert len(probe.subscriptions) == 2

    async def test_sends_to_coroutine_methods_one_after_another(self) -> None:
        publisher, probe = PublisherProbe[int](), AsyncSubscriberProbe[int](9)
        flow = to_flow(publisher)
        flow.subscribe(probe)
        await publisher.expect_request(2)
        await publisher.send(1, 2)
        assert [await probe.next_element(), await probe.next_element()] == [1, 2]
        probe.cancel()


async def test_a_waiting_test_is_woken_from_another_thread() -> None:
    publisher, probe = PublisherProbe[int](), SubscriberProbe[int]()
    publisher.subscribe(probe)
    thread = threading.Thread(target=probe.request, args=(3,))
    asyncio.get_running_loop().call_later(0.01, thread.start)
    await publisher.expect_request(3)
