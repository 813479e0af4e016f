"""`nack_on_error`: an element that fails is delivered again, and cannot stop the flow."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, cast

import pytest

import reactive_aio as r
from reactive_aio import RetryPolicy
from reactive_aio.delivery import BatchFailed, deliveries, log_deliveries
from tests.delivery.brokers import Broker, DeadLetters, live_timers
from tests.operators.ways import Failed

pytestmark = pytest.mark.virtual_time


class Work:
    """Fails for an element as often as *failures* says, and counts the calls."""

    def __init__(self, failures: dict[int, int]) -> None:
        self._failures = failures
        self.calls: Counter[int] = Counter()
        self.at: list[tuple[float, int]] = []

    def __call__(self, value: int) -> int:
        self.calls[value] += 1
        self.at.append((asyncio.get_running_loop().time(), value))
        if self.calls[value] <= self._failures.get(value, 0):
            raise Failed(value)
        return value

    async def awaited(self, value: int) -> int:
        await asyncio.sleep(1)
        return self(value)

    def passes(self, value: int) -> bool:
        return self(value) >= 0

    def list_of(self, value: int) -> list[int]:
        return [self(value)]

    def parts(self, value: int) -> Iterator[int]:
        yield value
        yield self(value)

    async def parts_async(self, value: int) -> AsyncIterator[int]:
        yield value
        yield self(value)

    def of_list(self, values: list[int]) -> list[int]:
        errors: dict[int, Exception] = {}
        for position, value in enumerate(values):
            try:
                self(value)
            except Failed as error:
                errors[position] = error
        if errors:
            raise BatchFailed(errors)
        return values


def nothing(_: object) -> None:
    """Work that is done at once."""


WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "map": lambda flow, work: flow.map(work),
    "filter": lambda flow, work: flow.filter(work.passes),
    "map_async": lambda flow, work: flow.map_async(work.awaited, concurrency=3),
    "flat_map": lambda flow, work: flow.flat_map(work.parts),
    "flat_map: asynchronous": lambda flow, work: flow.flat_map(work.parts_async),
    "flat_map: the function": lambda flow, work: flow.flat_map(work.list_of),
    "buffer": lambda flow, work: flow.buffer(4).map(work.of_list),
    "buffer_timeout": lambda flow, work: flow.buffer_timeout(4, 5).map(work.of_list),
    "ack_after": lambda flow, work: flow.map_async(work.awaited, on_error="skip"),
}


@pytest.mark.parametrize("way", WAYS)
class TestAnyOperator:
    async def test_an_element_that_fails_is_delivered_until_it_succeeds(self, way: str) -> None:
        work, broker = Work({3: 2, 5: 1}), Broker()
        flow = WAYS[way](broker.deliveries(r.range(8)).nack_on_error(3), work)
        await flow.ack_after(nothing).run()
        assert work.calls[3] == 3
        assert work.calls[5] == 2
        assert sorted(broker.acked) == [*range(8)]
        assert broker.nacked == {}

    async def test_a_poison_element_is_buried_and_acknowledged(self, way: str) -> None:
        work, buried = Work({3: 99}), list[Any]()

        def check(value: int) -> None:
            assert value != 3 or buried

        async def bury(value: int, error: Exception) -> None:
            await asyncio.sleep(1)
            buried.append((value, type(error)))

        broker = Broker(check=check)
        started = broker.deliveries(r.range(8)).nack_on_error(3, dead_letter=bury)
        await WAYS[way](started, work).ack_after(nothing).run()
        assert buried == [(3, Failed)]
        assert work.calls[3] == 3
        assert sorted(broker.acked) == [*range(8)]

    async def test_without_a_dead_letter_the_last_attempt_fails_the_flow(self, way: str) -> None:
        work, broker = Work({3: 99}), Broker()
        flow = WAYS[way](broker.deliveries(r.range(8)).nack_on_error(2), work)
        with pytest.raises(Failed) as caught:
            await flow.ack_after(nothing).run()
        assert any("give dead_letter=" in note for note in caught.value.__notes__)
        assert isinstance(broker.nacked[3], Failed)
        assert broker.is_consistent()


async def test_others_overtake_an_element_that_waits() -> None:
    work, written = Work({0: 1}), list[int]()
    policy = RetryPolicy(attempts=2, delay=10, jitter=0)
    flow = Broker().deliveries(r.range(4)).nack_on_error(policy).map(work)
    await flow.ack_after(written.append).run()
    assert written == [1, 2, 3, 0]
    assert work.at[-1][0] - work.at[0][0] == pytest.approx(10)


async def test_one_that_waits_counts_as_held() -> None:
    work, broker = Work({0: 1}), Broker()
    policy = RetryPolicy(attempts=2, delay=10, jitter=0)
    flow = broker.deliveries(r.range(4), limit=1).nack_on_error(policy).map(work)
    written: list[int] = []
    await flow.ack_after(written.append).run()
    assert written == [0, 1, 2, 3]


async def test_one_that_waits_when_the_flow_ends_is_given_back() -> None:
    broker = Broker()
    policy = RetryPolicy(attempts=2, delay=1000)
    flow = broker.deliveries(r.range(3)).nack_on_error(policy).map(Work({0: 9}))
    async with flow.ack_after(nothing).stream() as values:
        assert await anext(values) == 1
    assert isinstance(broker.nacked[0], Failed), "the reason why it waits"
    assert broker.is_consistent()
    assert live_timers() == []


async def test_work_that_fails_after_the_end_is_given_back_whatever_the_policy() -> None:
    broker, buried = Broker(), DeadLetters()

    async def work(value: int) -> int:
        if value:
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                raise Failed from None
        return value

    flow = broker.deliveries(r.range(2)).nack_on_error(1, dead_letter=buried)
    worked = flow.map_async(work, concurrency=2).ack_after(nothing)
    async with worked.stream() as values:
        assert await anext(values) == 0
    assert isinstance(broker.nacked[1], Failed)
    assert buried == []


async def test_a_dead_letter_that_fails_fails_the_flow_and_gives_the_element_back() -> None:
    broker = Broker()

    def bury(value: int, error: Exception) -> None:
        raise KeyError("full")

    flow = broker.deliveries(r.range(3)).nack_on_error(1, dead_letter=bury).map(Work({1: 9}))
    with pytest.raises(KeyError):
        await flow.ack_after(nothing).run()
    assert isinstance(broker.nacked[1], KeyError)
    assert broker.is_consistent()


@pytest.mark.parametrize("fails", [{0}, {0, 2}, {1, 3}, {0, 1, 2, 3}])
@pytest.mark.parametrize("seconds", [0.0, 0.01])
@pytest.mark.parametrize("concurrency", [1, 3])
async def test_each_element_of_a_list_is_settled_when_dead_letters_fail(
    concurrency: int, seconds: float, fails: set[int], expects_loop_errors: list[dict[str, Any]]
) -> None:
    acked, nacked = list[int](), list[int]()

    async def bury(value: int, error: Exception) -> None:
        await asyncio.sleep(seconds)
        if value in fails:
            raise KeyError(value)

    flow = deliveries(
        r.range(4),
        acked.append,
        lambda value, _: nacked.append(value),
        ack_concurrency=concurrency,
    )
    buffered = flow.nack_on_error(1, dead_letter=bury).buffer(4)
    with pytest.raises(KeyError):
        await buffered.as_flow().for_each(lambda delivery: delivery.nack(Failed(0)))
    assert sorted(acked + nacked) == [0, 1, 2, 3]
    assert fails <= set(nacked)


async def test_how_often_the_source_has_delivered_an_element_proves_nothing() -> None:
    broker, work, buried = Broker(), Work({1: 2}), DeadLetters()
    source = r.just(0, 1).map(lambda value: broker.delivery(value, attempt=99))
    flow = deliveries(source).nack_on_error(3, dead_letter=buried)
    await flow.map(work).ack_after(nothing).run()
    assert buried.values == []
    assert sorted(broker.acked) == [0, 1]


async def test_an_outage_buries_nothing_and_what_fails_while_others_are_done_is_buried() -> None:
    """For ten minutes, every call fails; the element 3 fails for ever, by itself."""
    buried, broker, calls = DeadLetters(), Broker(), Counter[int]()
    time = asyncio.get_running_loop().time
    end = time() + 600

    def work(value: int) -> int:
        calls[value] += 1
        if value == 3 or time() < end:
            raise ConnectionError("no answer")
        return value

    async def slowly() -> AsyncIterator[int]:
        for value in range(40):
            yield value
            await asyncio.sleep(20)

    policy = RetryPolicy(attempts=3, delay=0.1)
    flow = broker.deliveries(r.from_aiter(slowly))
    flow = flow.nack_on_error(policy, dead_letter=buried, outage=OSError)
    await flow.map(work).ack_after(nothing).run()
    assert buried.values == [3]
    assert time() >= end
    assert sorted(broker.acked) == [*range(40)]
    assert max(calls.values()) < 600, "attempts become rare"


def is_any(_: BaseException) -> bool:
    return True


@pytest.mark.parametrize("outage", [OSError, (OSError, KeyError), is_any])
async def test_only_errors_that_are_named_may_be_an_outage(outage: Any) -> None:
    buried, broker = DeadLetters(), Broker()

    def work(value: int) -> int:
        raise ValueError(value)

    is_named = outage is is_any
    flow = broker.deliveries(r.range(3))
    flow = flow.nack_on_error(2, dead_letter=buried, outage=outage)
    task = asyncio.create_task(flow.map(work).ack_after(nothing).run())
    await asyncio.sleep(60)
    assert task.done() is not is_named
    assert buried.values == ([] if is_named else [0, 1, 2])
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_outage_names_errors() -> None:
    flow = deliveries(r.range(3), ack=nothing)
    with pytest.raises(TypeError, match="outage must be exception types or a predicate, not 3"):
        flow.nack_on_error(2, outage=cast("Any", 3))


async def test_errors_that_the_policy_does_not_cover_are_not_retried() -> None:
    work, buried = Work({1: 99}), DeadLetters()
    policy = RetryPolicy(attempts=9, only=OSError)
    flow = Broker().deliveries(r.range(3)).nack_on_error(policy, dead_letter=buried)
    await flow.map(work).ack_after(nothing).run()
    assert work.calls[1] == 1
    assert len(buried) == 1


async def test_a_handler_of_the_operator_comes_first() -> None:
    handled: list[int] = []
    broker, work = Broker(), Work({1: 99})
    flow = broker.deliveries(r.range(3)).nack_on_error(5)
    await (
        flow.map_async(work.awaited, on_error=lambda x, _: handled.append(x))
        .ack_after(nothing)
        .run()
    )
    assert (handled, work.calls[1], sorted(broker.acked)) == ([1], 1, [0, 1, 2])


async def test_a_consumer_that_nacks_gets_the_element_again() -> None:
    broker, seen = Broker(), list[int]()
    async for delivery in broker.deliveries(r.range(3)).nack_on_error(9).as_flow():
        seen.append(delivery.value)
        if seen.count(1) == 3 or delivery.value != 1:
            delivery.ack()
        else:
            delivery.nack(Failed())
    assert sorted(seen) == [0, 1, 1, 1, 2]
    assert sorted(broker.acked) == [0, 1, 2]


async def test_elements_that_fail_with_another_are_delivered_again_without_an_attempt() -> None:
    buried = DeadLetters()
    broker = Broker()
    flow = broker.deliveries(r.range(4), limit=4).nack_on_error(2, dead_letter=buried)
    work = Work({0: 9, 1: 1})
    assert await flow.buffer(2).map(work.of_list).ack_after(nothing).to_list() == [[2, 3], [1]]
    assert buried.values == [0]
    assert sorted(broker.acked) == [0, 1, 2, 3]


async def test_an_element_that_fills_no_list_alone_is_not_stuck() -> None:
    """The window is full of done elements after one that fails."""
    commits: list[dict[str, int]] = []
    flow = log_deliveries(
        r.range(9), commits.append, position=int, partition=lambda _: "p", limit=3, every=1
    )
    work = Work({0: 2})
    written: list[list[int]] = []

    def write(values: list[int]) -> None:
        written.append(work.of_list(values))

    policied = flow.nack_on_error(RetryPolicy(attempts=3, delay=1))
    await policied.buffer(3).ack_after(write).run()
    assert commits[-1] == {"p": 8}
    assert written == [[0], [3, 4, 5], [6, 7, 8]]


async def test_elements_that_failed_with_another_wait_for_it_in_a_list() -> None:
    commits: list[dict[str, int]] = []
    flow = log_deliveries(
        r.range(9), commits.append, position=int, partition=lambda _: "p", limit=3, every=1
    )
    work = Work({0: 2})
    written: list[list[int]] = []
    policied = flow.nack_on_error(RetryPolicy(attempts=3, delay=1)).buffer(3).map(work.of_list)
    await policied.ack_after(written.append).run()
    assert commits[-1] == {"p": 8}
    assert written == [[1, 2, 0], [3, 4, 5], [6, 7, 8]]
    assert work.calls[0] == 3
