"""Probes do as they are told, remember what happens, and say what did not come."""

import asyncio
import threading
from typing import Any

import pytest

from reactive_aio import from_iterable, range as numbers
from reactive_aio.coerce import to_flow
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

    async def test_writes_down_both_directions(self) -> None:
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

    async def test_an_element_that_does_not_come_is_drawn(self) -> None:
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
    async def test_silence_is_a_failure_after_a_while(self) -> None:
        probe = SubscriberProbe[int]().subscribed_to(numbers(1))
        with pytest.raises(AssertionError, match=r"^no signal came within 7 s"):
            await probe.next_signal(within=7)
        assert asyncio.get_running_loop().time() == 7
        with pytest.raises(
            AssertionError, match=r"on_subscribe did not come within 1 s \(rule 1\.9\)"
        ):
            await SubscriberProbe[int]().expect_subscription(within=1)

    async def test_a_signal_where_nothing_was_expected_is_a_failure(self) -> None:
        probe = SubscriberProbe[str](1).subscribed_to(from_iterable("ab"))
        with pytest.raises(AssertionError, match=r"nothing was expected, and on_next\('a'\) came"):
            await probe.expect_nothing()

    async def test_can_ask_for_what_is_wrong(self) -> None:
        probe = SubscriberProbe[int]().subscribed_to(numbers(1))
        probe.request(-1)
        entry = await probe.next_signal()
        assert "3.9" in str(entry.value)

    async def test_coroutines_are_waited_for_as_well(self) -> None:
        probe = AsyncSubscriberProbe[int](2).subscribed_to(numbers(3))
        assert [await probe.next_element(), await probe.next_element()] == [0, 1]
        await probe.expect_nothing()
        probe.cancel()


class TestPublisher:
    async def test_emits_what_is_asked_for_and_knows_what_is_outstanding(self) -> None:
        puppet, probe = PublisherProbe[int](), SubscriberProbe[str](2)
        to_flow(puppet).map(str).subscribe(probe)
        await puppet.expect_request(2)
        puppet.emit(1)
        assert await probe.next_element() == "1"
        assert puppet.outstanding == puppet.requested - 1
        puppet.complete()
        assert (await probe.next_signal()).kind is Kind.ON_COMPLETE
        assert [entry.kind for entry in puppet.journal.entries[:2]] == [
            Kind.SUBSCRIBE,
            Kind.ON_SUBSCRIBE,
        ]

    async def test_waits_until_somebody_subscribes(self) -> None:
        puppet, probe = PublisherProbe[int](), SubscriberProbe[int]()
        asyncio.get_running_loop().call_soon(puppet.subscribe, probe)
        assert await puppet.expect_subscriber() is probe

    @pytest.mark.virtual_time
    async def test_says_what_was_not_asked(self) -> None:
        puppet, probe = PublisherProbe[int](), SubscriberProbe[int](2)
        with pytest.raises(AssertionError, match="1 must subscribe; 0 did within 3 s"):
            await puppet.expect_subscriber(within=3)
        puppet.subscribe(probe)
        with pytest.raises(AssertionError) as caught:
            await puppet.expect_request(5)
        assert lines(caught)[0] == "5 must be requested; 2 were within 5 s"
        assert lines(caught)[2].startswith("demand   ")
        with pytest.raises(AssertionError, match=r"cancel\(\) must come within 5 s"):
            await puppet.expect_cancel()

    async def test_one_cancellation_is_enough(self) -> None:
        puppet, probe = PublisherProbe[int](), SubscriberProbe[int](2)
        puppet.subscribe(probe)
        await puppet.expect_nothing()
        probe.cancel()
        await puppet.expect_cancel()
        probe.cancel()
        with pytest.raises(AssertionError, match="it came 2 times"):
            await puppet.expect_cancel()

    async def test_demand_where_none_was_expected_is_a_failure(self) -> None:
        puppet, probe = PublisherProbe[int](), SubscriberProbe[int]()
        puppet.subscribe(probe)
        asyncio.get_running_loop().call_soon(probe.request, 1)
        with pytest.raises(AssertionError, match="nothing was expected from downstream"):
            await puppet.expect_nothing()

    async def test_breaks_any_rule_when_told_to(self) -> None:
        puppet, probe = PublisherProbe[Any](), SubscriberProbe[Any](1)
        puppet.subscribe(probe)
        puppet.emit(1, 2, None)
        puppet.complete()
        puppet.fail(ValueError("late"))
        puppet.subscribe(probe)
        assert probe.signals[:4] == [1, 2, None, "|"]
        assert len(probe.subscriptions) == 2

    async def test_sends_to_coroutines_one_after_another(self) -> None:
        puppet, probe = PublisherProbe[int](), AsyncSubscriberProbe[int](9)
        flow = to_flow(puppet)
        flow.subscribe(probe)
        await puppet.expect_request(2)
        await puppet.send(1, 2)
        assert [await probe.next_element(), await probe.next_element()] == [1, 2]
        probe.cancel()


async def test_who_waits_is_woken_from_another_thread() -> None:
    puppet, probe = PublisherProbe[int](), SubscriberProbe[int]()
    puppet.subscribe(probe)
    thread = threading.Thread(target=probe.request, args=(3,))
    asyncio.get_running_loop().call_later(0.01, thread.start)
    await puppet.expect_request(3)
