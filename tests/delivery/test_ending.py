"""The end of a subscription: nothing is forgotten, and only what is done is acknowledged."""

import asyncio
import sys
import warnings
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio.delivery import AlreadySettled, Delivery, Unfinished, deliveries
from reactive_aio.errors import Interrupted, TimedOut, WrongLoop
from reactive_aio.testing import PublisherProbe
from tests.delivery.brokers import Broker
from tests.operators.ways import Failed


def nothing(_: object) -> None:
    """Work that is done at once."""


async def until(condition: Any) -> None:
    """Give the loop turns until *condition* holds."""
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it does not come to that")


class TestCancellation:
    async def test_what_is_not_done_is_given_back(self) -> None:
        broker = Broker()
        async for delivery in broker.deliveries(r.range(9), limit=4).as_flow():
            if delivery.value == 3:
                break
            delivery.ack()
        await until(broker.is_consistent)
        assert broker.acked == [0, 1, 2]
        assert isinstance(broker.nacked[3], Unfinished)

    async def test_closing_waits_until_the_source_knows(self) -> None:
        broker = Broker()
        flow = broker.deliveries(r.range(9)).map_async(slow, concurrency=3).ack_after(nothing)
        async with flow.stream() as values:
            async for _ in values:
                break
        assert broker.is_consistent()
        assert broker.acked
        assert broker.nacked

    @pytest.mark.virtual_time
    async def test_an_element_is_given_back_when_the_work_on_it_has_ended(self) -> None:
        broker, ended = Broker(), list[Any]()

        async def work(value: int) -> int:
            try:
                await asyncio.sleep(100)
            finally:
                await asyncio.sleep(5)
                ended.append((value, dict(broker.nacked)))
            return value

        flow = broker.deliveries(r.range(2)).map_async(work, concurrency=2).ack_after(nothing)
        task = asyncio.ensure_future(flow.run())
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == [(0, {}), (1, {})]
        assert [*broker.nacked] == [0, 1]

    @pytest.mark.virtual_time
    async def test_a_call_of_the_source_that_has_begun_ends(self) -> None:
        broker = Broker(seconds=10)
        flow = broker.deliveries(r.range(9)).ack_after(nothing)
        async with flow.stream() as values:
            assert await anext(values) == 0
        assert broker.acked[0] == 0
        assert broker.is_consistent()

    async def test_a_list_that_grows_is_given_back(self) -> None:
        broker, probe = Broker(), PublisherProbe[int]()
        flow = broker.deliveries(r.from_publisher(probe)).buffer(9).ack_after(nothing)
        task = asyncio.ensure_future(flow.run())
        await until(lambda: probe.requested)
        probe.emit(1)
        probe.emit(2)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [*broker.nacked] == [1, 2]

    async def test_deliveries_that_the_source_holds_are_given_back(self) -> None:
        broker = Broker()
        source = r.range(9).map(broker.delivery).boundary(4)
        async with deliveries(source, limit=1).ack_after(nothing).stream() as values:
            await anext(values)
        await until(broker.is_consistent)
        assert len(broker.sent) > 2

    async def test_deliveries_that_arrive_after_the_end_are_given_back(self) -> None:
        """A publisher may send what was requested before it sees the cancellation (2.8)."""
        broker, probe = Broker(), PublisherProbe[Delivery[str]]()
        flow = deliveries(r.from_publisher(probe)).ack_after(nothing)
        task = asyncio.ensure_future(flow.run())
        await until(lambda: probe.requested)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        probe.emit(broker.delivery("late"))
        await until(broker.is_consistent)
        assert [*broker.nacked] == ["late"]

    async def test_deliveries_after_something_else_are_given_back(self) -> None:
        broker = Broker()
        source: Any = [broker.delivery("a"), "no", broker.delivery("b")]
        with pytest.raises(TypeError, match=r"'no' \(str\), which is not a Delivery"):
            await deliveries(source).ack_after(nothing, concurrency=3).run()
        await until(broker.is_consistent)

    async def test_a_delivery_cannot_be_settled_after_the_end(self) -> None:
        broker = Broker()
        delivery = await broker.deliveries(r.range(9)).as_flow().first()
        await until(lambda: broker.nacked)
        for _ in range(2):
            with pytest.raises(AlreadySettled, match="was nacked when its flow ended"):
                delivery.ack()
        assert (broker.acked, [*broker.nacked]) == ([], [0])

    async def test_one_that_requests_nothing_holds_nothing(self) -> None:
        broker = Broker()
        async with broker.deliveries(r.range(9)).ack_after(nothing).stream():
            pass
        assert broker.sent == []


async def slow(value: int) -> int:
    await asyncio.sleep(0)
    return value


class TestFailure:
    async def test_an_error_of_the_source_follows_the_elements_before_it(self) -> None:
        broker = Broker()
        source = r.range(5).concat_with(r.error(Failed("of the source")))
        written: list[Any] = []
        with pytest.raises(Failed, match="of the source"):
            await broker.deliveries(source).buffer(3).ack_after(written.append).run()
        assert written == [[0, 1, 2], [3, 4]]
        assert broker.acked == [*range(5)]

    async def test_an_acknowledgement_that_fails_fails_the_flow(self) -> None:
        async def ack(value: int) -> None:
            await asyncio.sleep(0)
            if value == 2:
                raise Failed("no connection")

        taken_back: list[int] = []
        flow = deliveries(r.range(9), ack, lambda x, _: taken_back.append(x)).ack_after(nothing)
        with pytest.raises(Failed, match="no connection"):
            await flow.run()
        assert 2 not in taken_back, "the source may have acknowledged it"

    async def test_errors_of_the_source_and_of_its_acknowledgement_are_both_raised(self) -> None:
        def ack(_: int) -> None:
            raise Failed("of ack")

        source = r.just(1).concat_with(r.error(Failed("of the source")))
        flow = deliveries(source, ack).as_flow()
        open_: list[Delivery[int]] = []
        task = asyncio.ensure_future(flow.for_each(open_.append))
        await until(lambda: open_)
        await asyncio.sleep(0)
        open_[0].ack()
        with pytest.raises(ExceptionGroup) as caught:
            await task
        assert {str(error) for error in caught.value.exceptions} == {"of ack", "of the source"}

    @pytest.mark.virtual_time
    async def test_an_acknowledgement_that_takes_too_long_fails_the_flow(
        self, expects_loop_errors: list[Any]
    ) -> None:
        broker = Broker(seconds=100)
        with pytest.raises(TimedOut, match=r"Broker\.ack took longer than 7 s"):
            await broker.deliveries(r.range(9), ack_timeout=7).ack_after(nothing).run()
        await asyncio.sleep(100)
        # After the end, the first call that fails is the last, or the end would take a minute.
        [context] = expects_loop_errors
        assert isinstance(context["exception"], TimedOut)
        assert "7 more calls are not made" in context["exception"].__notes__[0]

    @pytest.mark.virtual_time
    async def test_a_timeout_of_the_source_itself_is_its_own_error(self) -> None:
        async def ack(_: int) -> None:
            raise TimeoutError("of the broker")

        with pytest.raises(TimeoutError, match="of the broker"):
            await deliveries(r.just(1), ack).ack_after(nothing).run()

    async def test_a_nack_that_fails_after_the_end_is_reported(
        self, expects_loop_errors: list[Any]
    ) -> None:
        def nack(_: int, error: Exception) -> None:
            raise KeyError("of nack")

        async for delivery in deliveries(r.range(3), nothing, nack).as_flow():
            delivery.ack()
            if delivery.value == 1:
                break
        async for delivery in deliveries(r.range(3), nothing, nack).as_flow():
            assert not delivery.is_settled
            break
        await until(lambda: expects_loop_errors)
        [context] = expects_loop_errors
        assert isinstance(context["exception"], KeyError)

    async def test_a_base_exception_gives_the_element_back_at_the_end(self) -> None:
        class Stop(BaseException): ...

        def work(value: int) -> int:
            if value == 1:
                raise Stop
            return value

        broker = Broker()
        with pytest.raises(Stop):
            await broker.deliveries(r.range(3)).map(work).ack_after(nothing).run()
        await until(broker.is_consistent)
        assert isinstance(broker.nacked[1], Unfinished)

    async def test_the_program_can_end_while_an_acknowledgement_runs(self) -> None:
        """The tasks of a loop are cancelled then, those of the flow as well."""
        started: list[int] = []

        async def ack(value: int) -> None:
            started.append(value)
            await asyncio.Event().wait()

        async def nack(value: int, error: Exception) -> None:
            raise AssertionError("nothing would await it to its end")

        async def work(value: int) -> int:
            try:
                await asyncio.sleep(1000 * value)
            finally:
                for _ in range(9):
                    await asyncio.sleep(0)
            return value

        flow = deliveries(r.range(9), ack, nack).map_async(work, concurrency=4).ack_after(nothing)
        task = asyncio.ensure_future(flow.run())
        await until(lambda: started)
        for each in asyncio.all_tasks() - {asyncio.current_task()}:
            each.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert started == [0]


class TestCalls:
    @pytest.mark.virtual_time
    @pytest.mark.parametrize(("concurrency", "seconds"), [(1, 12), (4, 3)])
    async def test_acknowledgements_run_as_many_at_a_time_as_allowed(
        self, concurrency: int, seconds: int
    ) -> None:
        running, most = 0, 0

        async def ack(_: int) -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(1)
            running -= 1

        began = asyncio.get_running_loop().time()
        flow = deliveries(r.range(12), ack, ack_concurrency=concurrency).ack_after(nothing)
        await flow.run()
        assert most == concurrency
        assert asyncio.get_running_loop().time() - began == pytest.approx(seconds)

    async def test_plain_functions_need_no_task(self) -> None:
        tasks = len(asyncio.all_tasks())
        acked: list[int] = []

        def ack(value: int) -> None:
            assert len(asyncio.all_tasks()) == tasks + 1, "that of ack_after"
            acked.append(value)

        await deliveries(r.range(9), ack).ack_after(nothing).run()
        assert acked == [*range(9)]

    async def test_a_long_synchronous_flow_needs_no_deep_stack(self) -> None:
        acked: list[int] = []
        count = sys.getrecursionlimit() + 100
        async for delivery in deliveries(r.range(count), acked.append, limit=1).as_flow():
            delivery.ack()
        assert acked == [*range(count)]

    async def test_a_delivery_is_settled_on_its_loop(self) -> None:
        broker = Broker()
        async for delivery in broker.deliveries(r.range(1)).as_flow():
            with pytest.raises(WrongLoop, match=r"ack\(\): it belongs to an event loop"):
                await asyncio.to_thread(delivery.ack)
            assert not delivery.is_settled
            delivery.ack()
        assert broker.acked == [0]


async def test_a_hook_below_sees_values_and_not_what_carries_them() -> None:
    seen: list[Any] = []
    broker = Broker()
    flow = broker.deliveries(r.range(9)).ack_after(nothing).do_on_discard(seen.append)
    async with flow.stream() as values:
        await anext(values)
    await until(broker.is_consistent)
    assert all(type(each) is int for each in seen)


async def test_an_acknowledgement_that_is_cancelled_before_it_begins_fails_the_flow() -> None:
    async def ack(_: int) -> None: ...

    def settle(delivery: Delivery[int]) -> None:
        delivery.ack()
        asyncio.get_running_loop().call_soon(cancel_acknowledgements)

    def cancel_acknowledgements() -> None:
        for task in asyncio.all_tasks():
            if task.get_name() == "an acknowledgement":
                task.cancel()

    with pytest.raises(Interrupted, match="an acknowledgement was cancelled from outside"):
        await deliveries(r.range(3), ack).as_flow().for_each(settle)


def test_a_program_may_end_right_after_it_has_left_a_flow() -> None:
    """The loop cancels the tasks that give elements back."""

    async def main() -> None:
        broker = Broker()
        async for _ in broker.deliveries(r.range(9)).as_flow():
            break

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(main())


@pytest.mark.parametrize("way", ["at once", "after another", "awaited"])
def test_an_acknowledgement_that_stops_the_program_stops_it(way: str) -> None:
    async def done() -> None:
        await asyncio.sleep(0)

    async def stop() -> None:
        sys.exit(3)

    def ack(value: int) -> object:
        if value != 2:
            return done() if way == "after another" else None
        return stop() if way == "awaited" else sys.exit(3)

    async def main() -> None:
        await deliveries(r.range(4), ack, ack_concurrency=1).ack_after(nothing).run()

    with pytest.raises(SystemExit):
        asyncio.run(main())
