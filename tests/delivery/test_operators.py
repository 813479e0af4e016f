"""What each operator does to the tie of an element."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import RateLimit, RetryPolicy
from reactive_aio.delivery import BatchFailed, deliveries
from reactive_aio.errors import NotAnElement, TimedOut
from reactive_aio.testing import PublisherProbe
from tests.delivery.brokers import Broker, DeadLetters
from tests.operators.ways import Failed

pytestmark = pytest.mark.virtual_time


def nothing(_: object) -> None:
    """Work that is done at once."""


def fail_at(*values: int) -> Any:
    """A function that fails at some values, and returns the others."""

    def function(value: int) -> int:
        if value in values:
            raise Failed(value)
        return value

    return function


def fail_at_async(*values: int) -> Any:
    plain = fail_at(*values)

    async def function(value: int) -> int:
        await asyncio.sleep(1)
        return int(plain(value))

    return function


class TestMap:
    async def test_the_value_changes_and_the_tie_does_not(self) -> None:
        broker = Broker()
        flow = broker.deliveries(r.just("a", "b")).map(str.upper).map(ord)
        assert await flow.ack_after(nothing).to_list() == [65, 66]
        assert broker.acked == ["a", "b"]

    async def test_an_element_that_fails_is_nacked_and_fails_the_flow(self) -> None:
        broker = Broker()
        flow = broker.deliveries(r.range(5)).map(fail_at(2))
        with pytest.raises(Failed) as caught:
            await flow.ack_after(nothing).run()
        assert broker.acked == [0, 1]
        assert broker.nacked[2] is caught.value
        assert broker.is_consistent()

    async def test_none_is_not_an_element(self) -> None:
        broker = Broker()
        with pytest.raises(NotAnElement, match="map produced None"):
            await broker.deliveries(r.just(1)).map(nothing).ack_after(nothing).run()
        assert [*broker.nacked] == [1]

    async def test_an_error_names_the_function(self) -> None:
        flow = Broker().deliveries(r.just(2)).map(fail_at(2))
        with pytest.raises(Failed) as caught:
            await flow.ack_after(nothing).run()
        [note] = caught.value.__notes__
        assert ">>map(function)<<" in note
        assert "\n    with the element 2\n" in note
        assert note.splitlines()[-2].endswith(".map(fail_at(2))")

    def test_a_coroutine_function_is_refused(self) -> None:
        with pytest.raises(TypeError, match="map: mapper must be a plain function"):
            Broker().deliveries(r.just(1)).map(fail_at_async())


class TestFilter:
    async def test_an_element_that_is_left_out_is_acknowledged(self) -> None:
        broker = Broker()
        flow = broker.deliveries(r.range(5)).filter(lambda x: x % 2)
        assert await flow.ack_after(nothing).to_list() == [1, 3]
        assert broker.acked == [0, 1, 2, 3, 4]

    async def test_a_predicate_that_raises_nacks_the_element(self) -> None:
        broker = Broker()
        with pytest.raises(Failed):
            await broker.deliveries(r.range(5)).filter(fail_at(0)).ack_after(nothing).run()
        assert isinstance(broker.nacked[0], Failed)


class TestMapAsync:
    async def test_results_arrive_in_any_order_and_acknowledge_their_own_element(self) -> None:
        broker = Broker()

        async def work(value: int) -> int:
            await asyncio.sleep(5 - value)
            return -value

        flow = broker.deliveries(r.range(5)).map_async(work, concurrency=5, ordered=False)
        assert await flow.ack_after(nothing).to_list() == [-4, -3, -2, -1, 0]
        assert broker.acked == [4, 3, 2, 1, 0]

    async def test_an_element_that_fails_is_nacked_and_fails_the_flow(self) -> None:
        broker = Broker()
        flow = broker.deliveries(r.range(9)).map_async(fail_at_async(2), concurrency=3)
        with pytest.raises(Failed):
            await flow.ack_after(nothing).run()
        assert isinstance(broker.nacked[2], Failed)
        assert broker.is_consistent()

    async def test_an_element_that_is_skipped_is_nacked(self) -> None:
        broker = Broker()
        flow = broker.deliveries(r.range(4)).map_async(fail_at_async(1), on_error="skip")
        assert await flow.ack_after(nothing).to_list() == [0, 2, 3]
        assert (sorted(broker.acked), broker.errors) == ([0, 2, 3], {1: "1"})

    async def test_an_element_that_a_handler_has_taken_care_of_is_acknowledged(self) -> None:
        broker, handled = Broker(), list[Any]()

        async def handle(value: int, error: Exception) -> None:
            await asyncio.sleep(1)
            assert value not in broker.acked
            handled.append((value, type(error)))

        flow = broker.deliveries(r.range(3)).map_async(fail_at_async(1), on_error=handle)
        assert await flow.ack_after(nothing).to_list() == [0, 2]
        assert handled == [(1, Failed)]
        assert sorted(broker.acked) == [0, 1, 2]

    async def test_a_handler_that_fails_nacks_the_element_and_fails_the_flow(self) -> None:
        broker = Broker()

        def handle(value: int, error: Exception) -> None:
            raise KeyError(value)

        flow = broker.deliveries(r.range(3)).map_async(fail_at_async(1), on_error=handle)
        with pytest.raises(KeyError):
            await flow.ack_after(nothing).run()
        assert isinstance(broker.nacked[1], KeyError)

    async def test_work_is_retried_limited_and_in_the_order_of_its_key(self) -> None:
        broker, calls = Broker(), list[Any]()

        async def work(value: int) -> int:
            calls.append(value)
            await asyncio.sleep(0 if calls.count(value) > 1 else 9)
            return value

        flow = broker.deliveries(r.range(4)).map_async(
            work,
            concurrency=4,
            key=lambda value: value % 2,
            retry=2,
            timeout=5,
            limiter=RateLimit(1, per=1, cost=lambda value: 1 + 0 * int(value)),
        )
        assert await flow.ack_after(nothing).to_list() == [0, 1, 2, 3]
        assert calls == [0, 1, 0, 2, 1, 3, 2, 3]
        assert broker.acked == [0, 1, 2, 3]

    async def test_a_call_that_takes_too_long_nacks_the_element(self) -> None:
        broker = Broker()
        flow = broker.deliveries(r.just(1)).map_async(fail_at_async(), timeout=0.5)
        with pytest.raises(TimedOut):
            await flow.ack_after(nothing).run()
        assert isinstance(broker.nacked[1], TimedOut)

    @pytest.mark.parametrize("policy", [False, True])
    async def test_a_plain_function_is_a_mistake_whatever_the_policy(self, policy: bool) -> None:
        broker = Broker()
        flow = broker.deliveries(r.just(1))
        if policy:
            flow = flow.nack_on_error(3, dead_letter=DeadLetters())
        with pytest.raises(TypeError, match="map_async: mapper must be a coroutine function"):
            await flow.map_async(fail_at()).ack_after(nothing).run()
        assert [*broker.nacked] == [1]

    async def test_a_result_of_none_is_a_mistake(self) -> None:
        async def work(_: int) -> None: ...

        with pytest.raises(NotAnElement, match="map_async produced None"):
            await Broker().deliveries(r.just(1)).map_async(work).ack_after(nothing).run()


async def parts_of(value: int) -> AsyncIterator[tuple[int, int]]:
    for i in range(value):
        await asyncio.sleep(1)
        yield value, i


PARTS: dict[str, Callable[[int], Any]] = {
    "a list": lambda value: [(value, i) for i in range(value)],
    "a generator": lambda value: ((value, i) for i in range(value)),
    "a flow": lambda value: r.range(value).map(lambda i: (value, i)),
    "an asynchronous generator": parts_of,
    "a flow that pushes": lambda value: r.range(value).map(lambda i: (value, i)).boundary(1),
}


class TestFlatMap:
    @pytest.mark.parametrize("kind", PARTS)
    async def test_an_element_is_acknowledged_when_all_its_parts_are(self, kind: str) -> None:
        written: list[Any] = []

        def check(value: int) -> None:
            assert sorted(i for v, i in written if v == value) == [*range(value)]

        async def write(part: Any) -> None:
            await asyncio.sleep(1)
            written.append(part)

        broker = Broker(check=check)
        flow = broker.deliveries(r.range(4)).flat_map(PARTS[kind], concurrency=2)
        assert await flow.ack_after(write, concurrency=3).count() == 6
        assert sorted(broker.acked) == [0, 1, 2, 3]

    @pytest.mark.parametrize("kind", PARTS)
    async def test_a_part_that_fails_nacks_the_element(self, kind: str) -> None:
        broker = Broker()

        def write(part: Any) -> None:
            if part == (3, 1):
                raise Failed

        flow = broker.deliveries(r.range(6)).flat_map(PARTS[kind], concurrency=1)
        with pytest.raises(Failed):
            await flow.ack_after(write).run()
        assert {0, 1, 2} <= {*broker.acked}
        assert 3 in broker.nacked
        assert broker.is_consistent()

    @pytest.mark.parametrize("kind", PARTS)
    async def test_leaving_early_gives_back_what_has_parts_left(self, kind: str) -> None:
        broker = Broker()
        flow = broker.deliveries(r.just(2, 3, 2)).flat_map(PARTS[kind], concurrency=1)
        assert await flow.ack_after(nothing).take(3).count() == 3
        await asyncio.sleep(9)
        assert broker.acked == [2]
        assert 3 in broker.nacked

    @pytest.mark.parametrize("is_async", [False, True])
    async def test_parts_that_cannot_be_made_nack_the_element(self, is_async: bool) -> None:
        broker = Broker()

        def parts(value: int) -> Iterator[int]:
            yield value
            raise Failed(value)

        async def parts_async(value: int) -> AsyncIterator[int]:
            yield value
            raise Failed(value)

        started = broker.deliveries(r.range(2))
        flow = started.flat_map(parts_async) if is_async else started.flat_map(parts)
        with pytest.raises(Failed):
            await flow.ack_after(nothing).run()
        assert isinstance(broker.nacked[0], Failed)
        assert broker.is_consistent()

    async def test_a_function_that_raises_nacks_the_element(self) -> None:
        broker = Broker()
        with pytest.raises(Failed):
            await broker.deliveries(r.range(2)).flat_map(fail_at(0)).ack_after(nothing).run()
        assert isinstance(broker.nacked[0], Failed)

    @pytest.mark.parametrize("made", ["text", 3, [1, None]])
    async def test_what_has_no_parts_is_a_mistake(self, made: Any) -> None:
        broker = Broker()
        with pytest.raises(TypeError, match="flat_map"):
            await broker.deliveries(r.just(1)).flat_map(lambda _: made).ack_after(nothing).run()
        assert [*broker.nacked] == [1]


class TestBuffer:
    async def test_a_list_acknowledges_its_elements(self) -> None:
        broker = Broker()
        flow = broker.deliveries(r.range(7)).buffer(3)
        assert await flow.ack_after(nothing).to_list() == [[0, 1, 2], [3, 4, 5], [6]]
        assert broker.acked == [*range(7)]

    async def test_each_element_has_its_own_failure(self) -> None:
        broker = Broker()

        def write(values: list[int]) -> None:
            if 3 in values:
                raise BatchFailed({values.index(3): Failed("alone")})

        flow = broker.deliveries(r.range(8)).buffer(4)
        with pytest.raises(BatchFailed):
            await flow.ack_after(write).run()
        assert {0, 1, 2} <= {*broker.acked}
        assert broker.errors[3] == "alone"
        assert broker.is_consistent()

    async def test_any_other_failure_is_that_of_each_element(self) -> None:
        broker = Broker()
        with pytest.raises(Failed):
            await broker.deliveries(r.range(3)).buffer(3).map(fail_all).ack_after(nothing).run()
        assert [type(error) for error in broker.nacked.values()] == [Failed] * 3

    async def test_a_list_that_nothing_can_complete_is_complete(self) -> None:
        """All that may be held is in it, so that no other element can arrive."""
        broker = Broker()
        flow = broker.deliveries(r.range(7), limit=3).buffer(100)
        assert await flow.ack_after(nothing).to_list() == [[0, 1, 2], [3, 4, 5], [6]]

    async def test_lists_of_lists_are_complete_as_well(self) -> None:
        broker = Broker(seconds=1)
        flow = broker.deliveries(r.range(7), limit=4).buffer(3).buffer(3)
        assert await flow.ack_after(nothing).to_list() == [[[0, 1, 2], [3]], [[4, 5, 6]]]
        assert broker.acked == [*range(7)]

    async def test_a_list_waits_for_the_source_as_long_as_there_is_room(self) -> None:
        broker, probe = Broker(), PublisherProbe[int]()
        written: list[Any] = []
        flow = broker.deliveries(r.from_publisher(probe)).buffer(3).ack_after(written.append)
        task = asyncio.ensure_future(flow.run())
        await asyncio.sleep(1)
        probe.emit(1)
        probe.emit(2)
        await asyncio.sleep(100)
        assert written == []
        probe.emit(3)
        await asyncio.sleep(1)
        assert written == [[1, 2, 3]]
        probe.complete()
        await task


class TestBufferTimeout:
    async def test_a_list_is_due_after_a_time(self) -> None:
        broker = Broker()
        flow = broker.deliveries(r.interval(4).take(4)).buffer_timeout(9, 5)
        assert await flow.ack_after(nothing).to_list() == [[0, 1], [2, 3]]
        assert broker.acked == [0, 1, 2, 3]

    async def test_a_list_ends_by_weight_and_by_an_element(self) -> None:
        flow = Broker().deliveries(r.range(9))
        by_weight = flow.buffer_timeout(9, 5, weight=float, max_weight=7)
        assert await by_weight.ack_after(nothing).to_list() == [
            [0, 1, 2, 3],
            [4],
            [5],
            [6],
            [7],
            [8],
        ]
        by_element = flow.buffer_timeout(9, 5, until=lambda x: x % 4 == 0)
        expected = [[0], [1, 2, 3, 4], [5, 6, 7, 8]]
        assert await by_element.ack_after(nothing).to_list() == expected


def fail_all(_: object) -> object:
    raise Failed


class TestAckAfter:
    async def test_an_element_is_acknowledged_when_its_work_is_done_and_not_before(self) -> None:
        written: list[int] = []

        def check(value: int) -> None:
            assert value in written

        async def write(value: int) -> None:
            await asyncio.sleep(1)
            assert value not in broker.acked
            written.append(value)

        broker = Broker(seconds=1, check=check)
        assert await broker.deliveries(r.range(9)).ack_after(write, concurrency=4).count() == 9
        assert sorted(broker.acked) == [*range(9)]

    async def test_the_flow_completes_when_the_source_knows_of_all(self) -> None:
        broker = Broker(seconds=10)
        async with broker.deliveries(r.range(3)).ack_after(nothing).stream() as values:
            assert [value async for value in values] == [0, 1, 2]
            assert broker.acked == [0, 1, 2]

    async def test_work_is_retried(self) -> None:
        broker, calls = Broker(), list[int]()

        async def write(value: int) -> None:
            calls.append(value)
            if len(calls) < 3:
                raise Failed

        policy = RetryPolicy(attempts=3, delay=1)
        await broker.deliveries(r.just(1)).ack_after(write, retry=policy).run()
        assert (calls, broker.acked) == ([1, 1, 1], [1])

    async def test_an_element_that_waits_for_its_retry_keeps_no_place(self) -> None:
        tried: list[int] = []

        async def write(x: int) -> None:
            tried.append(x)
            if x < 4 and tried.count(x) == 1:
                raise OSError
            await asyncio.sleep(1)

        acked: list[int] = []
        policy = RetryPolicy(attempts=2, delay=50, jitter=0)
        flow = deliveries(range(20), ack=acked.append).ack_after(
            write, concurrency=2, ahead=20, retry=policy
        )
        assert "ack_after(write, concurrency=2, ahead=20), holds at most 40" in flow.explain()
        async with flow.running() as run:
            await asyncio.sleep(20)
            assert acked == [*range(4, 20)], "16 are done in 8 s, beside four that wait"
            await run.wait()
        assert sorted(acked) == [*range(20)]

    async def test_no_more_than_the_limit_are_held(self) -> None:
        broker = Broker(seconds=1)
        held: list[int] = []

        async def write(_: int) -> None:
            held.append(len(broker.sent) - len(broker.acked))
            await asyncio.sleep(1)

        flow = broker.deliveries(r.range(30), limit=4)
        await flow.ack_after(write, concurrency=9).run()
        assert max(held) == 4

    async def test_the_same_flow_may_be_subscribed_to_several_times(self) -> None:
        broker = Broker()
        flow = broker.deliveries(r.range(3)).buffer(2).ack_after(nothing)
        assert await flow.to_list() == await flow.to_list()
        assert sorted(broker.acked) == [0, 0, 1, 1, 2, 2]


class TestAsFlow:
    async def test_the_consumer_settles_each_delivery(self) -> None:
        broker = Broker()
        async for delivery in broker.deliveries(r.range(4)).map(str).as_flow():
            if delivery.value == "2":
                delivery.nack(Failed("taken back"))
            else:
                delivery.ack()
        assert (broker.acked, broker.errors) == ([0, 1, 3], {2: "taken back"})

    async def test_the_flow_completes_when_each_delivery_is_settled(self) -> None:
        broker, open_ = Broker(), list[Any]()
        flow = broker.deliveries(r.range(3)).as_flow()
        task = asyncio.ensure_future(flow.for_each(open_.append))
        await asyncio.sleep(10)
        assert [each.value for each in open_] == [0, 1, 2]
        open_[1].ack()
        open_[0].ack()
        await asyncio.sleep(10)
        assert not task.done()
        open_[2].ack()
        assert await task == 3
        assert broker.acked == [1, 0, 2]

    async def test_a_nack_that_leads_nowhere_fails_the_flow(self) -> None:
        flow = deliveries(r.range(3), nothing).as_flow()
        with pytest.raises(Failed) as caught:
            await flow.for_each(lambda delivery: delivery.nack(Failed()))
        start = "deliveries: an element was nacked, and the source takes none back; give nack="
        assert caught.value.__notes__[0].startswith(start)


class TestBound:
    def test_unacknowledged_elements_count(self) -> None:
        flow = deliveries(r.range(9), nothing, limit=50)
        assert str(flow.bound()) == (
            "holds at most 114 elements (deliveries(limit=50) 50, (end of deliveries) 64)"
        )
        assert flow.map_async(fail_at_async(), concurrency=4).bound().total == 114 + 8
        assert flow.buffer(10).bound().total == 50 + 20 + 16 * 10

    def test_its_operators_are_shown(self) -> None:
        flow = deliveries(r.range(9), nothing, limit=5).map(fail_at()).buffer(3)
        assert repr(flow).startswith(
            "<DeliveryFlow range(0, 9) → deliveries(limit=5) → map(function) → "
        )


class TestMistakes:
    """They are refused where the flow is written."""

    FLOW: Any = deliveries(r.range(3), nothing)
    START: Any = staticmethod(deliveries)

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda: TestMistakes.START(r.range(3), None, nothing), "nack is given without ack"),
            (lambda: TestMistakes.START("abc"), "deliveries: 'abc'"),
            (lambda: TestMistakes.START([], nothing, nothing), "nack is called with 2 arguments"),
            (lambda: TestMistakes.START([], nothing, limit=0), "limit must be at least 1"),
            (lambda: TestMistakes.START([], nothing, ack_concurrency=0), "ack_concurrency must be"),
            (
                lambda: TestMistakes.START([], nothing, ack_timeout=0),
                "ack_timeout must be more",
            ),
            (lambda: TestMistakes.FLOW.buffer(0), "buffer: size must be at least 1"),
            (lambda: TestMistakes.FLOW.flat_map(nothing, concurrency=0), "flat_map: concurrency"),
            (lambda: TestMistakes.FLOW.ack_after(nothing, concurrency=0), "ack_after: concurr"),
            (lambda: TestMistakes.FLOW.ack_after(nothing, on_error="no"), "on_error must be"),
            (lambda: TestMistakes.FLOW.map(fail_at()).nack_on_error(3), "directly after deliver"),
            (lambda: TestMistakes.FLOW.nack_on_error(3).nack_on_error(3), "write it once"),
            (lambda: TestMistakes.FLOW.nack_on_error(3, dead_letter=nothing), "2 arguments"),
        ],
    )
    def test_a_wrong_argument(self, call: Any, message: str) -> None:
        with pytest.raises((TypeError, ValueError), match=message):
            call()

    async def test_an_element_that_is_not_a_delivery(self) -> None:
        source: Any = r.just(1)
        with pytest.raises(TypeError, match="1 \\(int\\), which is not a Delivery; make one of it"):
            await deliveries(source).ack_after(nothing).run()


def test_a_method_of_flows_that_would_leave_the_tie_is_refused_with_a_remedy() -> None:
    flow: Any = deliveries([1], ack=str)
    with pytest.raises(AttributeError, match=r"no attribute 'run': end it with ack_after\(write\)"):
        flow.run()
