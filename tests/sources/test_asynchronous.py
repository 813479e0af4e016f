"""Asynchronous iterables, awaitables and queues: demand, subscriptions, cleanup, ends."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, cast

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.errors import AlreadySubscribed, NotAnElement
from reactive_aio.spec import Publisher
from reactive_aio.testing import AsyncSubscriberProbe, SubscriberProbe


async def numbers(n: int, log: list[str] | None = None) -> AsyncIterator[int]:
    try:
        for x in range(n):
            await asyncio.sleep(0)
            yield x
    finally:
        if log is not None:
            await asyncio.sleep(0)
            log.append("closed")


async def broken() -> AsyncIterator[int]:
    yield 1
    raise OSError("broken")


async def forever() -> AsyncIterator[int]:
    while True:
        yield 1


async def given(x: int) -> int:
    await asyncio.sleep(0)
    return x


async def failing() -> int:
    raise OSError("no")


def filled(*elements: Any, bound: int = 0) -> asyncio.Queue[Any]:
    queue: asyncio.Queue[Any] = asyncio.Queue(bound)
    for element in elements:
        queue.put_nowait(element)
    return queue


def queued(n: int) -> Publisher[Any]:
    return r.defer(lambda: r.from_queue(filled(*range(n), "end"), end="end"))


OF_LENGTH: Mapping[str, Callable[[int], Publisher[Any]]] = {
    "from_aiter: generator function": lambda n: r.from_aiter(lambda: numbers(n)),
    "from_aiter: flow": lambda n: r.from_aiter(r.range(n)),
    "from_awaitable": lambda n: r.range(n).flat_map(lambda x: r.from_awaitable(lambda: given(x))),
    "from_queue": queued,
}
FAILING: Mapping[str, Callable[[], Publisher[Any]]] = {
    "from_aiter": lambda: r.from_aiter(broken),
    "from_awaitable": lambda: r.from_awaitable(failing),
    "from_queue": lambda: r.defer(lambda: r.from_queue(filled(1, None))),
}
INFINITE: Mapping[str, Callable[[], Publisher[Any]]] = {
    "from_aiter": lambda: r.from_aiter(forever),
}


class TestFromAiter:
    async def test_a_function_makes_one_for_each_subscription(self) -> None:
        flow = r.from_aiter(lambda: numbers(3))
        assert [await flow.to_list() for _ in range(2)] == [[0, 1, 2]] * 2

    async def test_a_generator_serves_one_subscription_rule_1_11(self) -> None:
        flow = r.from_aiter(numbers(2))
        assert await flow.to_list() == [0, 1]
        with pytest.raises(AlreadySubscribed, match=r"1\.11"):
            await flow.to_list()

    async def test_it_is_advanced_only_by_demand(self) -> None:
        pulled: list[int] = []

        async def source() -> AsyncIterator[int]:
            for x in range(9):
                pulled.append(x)
                yield x

        probe = SubscriberProbe[int]().subscribed_to(r.from_aiter(source))
        await asyncio.sleep(0)
        assert pulled == []
        probe.request(2)
        await probe.wait_for_signals(2)
        await asyncio.sleep(0)
        assert pulled == [0, 1]
        probe.cancel()

    async def test_cancel_closes_it_and_aclose_waits(self) -> None:
        log: list[str] = []
        async with r.from_aiter(lambda: numbers(9, log)).stream() as elements:
            async for _ in elements:
                break
        assert log == ["closed"]

    async def test_elements_before_an_error_are_not_lost(self) -> None:
        probe = SubscriberProbe[int](9).subscribed_to(r.from_aiter(broken))
        await probe.end()
        assert probe.elements == [1]
        assert isinstance(probe.error, OSError)

    async def test_a_function_that_makes_something_else_fails_the_flow(self) -> None:
        flow: Flow[int] = r.from_aiter(cast("Any", lambda: given(1)))
        with pytest.raises(TypeError, match="from_awaitable"):
            await flow.to_list()

    @pytest.mark.parametrize("wrong", [5, [1], "abc"])
    def test_a_synchronous_iterable_is_refused(self, wrong: Any) -> None:
        with pytest.raises(TypeError, match="from_aiter: source"):
            r.from_aiter(wrong)


class TestFromAwaitable:
    async def test_a_coroutine_function_is_called_for_each_subscription(self) -> None:
        flow = r.from_awaitable(lambda: given(7))
        probe = SubscriberProbe[int](1).subscribed_to(flow)
        assert await probe.end() == [7, "|"]
        assert await flow.single() == 7

    async def test_a_bare_coroutine_serves_one_subscription_rule_1_11(self) -> None:
        flow = r.from_awaitable(given(7))
        assert await flow.single() == 7
        with pytest.raises(AlreadySubscribed, match=r"1\.11"):
            await flow.single()

    async def test_nothing_is_awaited_before_the_first_request(self) -> None:
        called: list[int] = []

        async def work() -> int:
            called.append(1)
            return 1

        probe = AsyncSubscriberProbe[int]().subscribed_to(r.from_awaitable(work))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert called == []
        probe.request(1)
        assert await probe.end() == [1, "|"]

    async def test_a_future_serves_many_and_is_not_cancelled_with_them(self) -> None:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        flow = r.from_awaitable(future)
        leaver, stayer = (SubscriberProbe[int](1).subscribed_to(flow) for _ in range(2))
        await asyncio.sleep(0)
        leaver.cancel()
        await asyncio.sleep(0)
        assert not future.cancelled()
        future.set_result(5)
        assert await stayer.end() == [5, "|"]
        assert await flow.single() == 5

    async def test_cancel_cancels_the_awaitable(self) -> None:
        log: list[str] = []

        async def work() -> int:
            try:
                await asyncio.Event().wait()
            finally:
                log.append("cancelled")
            return 1

        task = asyncio.ensure_future(r.from_awaitable(work).single())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)
        assert log == ["cancelled"]

    async def test_none_fails_the_flow_rule_2_13(self) -> None:
        with pytest.raises(NotAnElement, match="from_awaitable produced None"):
            await r.from_awaitable(lambda: asyncio.sleep(0)).run()

    def test_something_that_is_not_awaitable_is_refused(self) -> None:
        with pytest.raises(TypeError, match="from_awaitable: source"):
            r.from_awaitable(cast("Any", 5))


class TestFromQueue:
    async def test_the_end_element_completes(self) -> None:
        end = object()
        assert await r.from_queue(filled(1, 2, end, 3), end=end).to_list() == [1, 2]

    async def test_elements_are_taken_only_by_demand(self) -> None:
        queue = filled(1, 2, 3)
        probe = SubscriberProbe[int](2).subscribed_to(r.from_queue(queue))
        await probe.wait_for_signals(2)
        await asyncio.sleep(0)
        assert queue.qsize() == 1
        probe.cancel()

    async def test_a_bounded_queue_holds_its_producer_back(self) -> None:
        queue = filled(bound=1)

        async def produce() -> None:
            for x in [*range(5), -1]:
                await queue.put(x)

        task = asyncio.ensure_future(produce())
        assert await r.from_queue(queue, end=-1).to_list() == list(range(5))
        await task

    async def test_cancelling_while_it_waits_loses_no_element(self) -> None:
        queue = filled()
        probe = SubscriberProbe[int](1).subscribed_to(r.from_queue(queue))
        await asyncio.sleep(0)
        queue.put_nowait(1)
        probe.cancel()
        await asyncio.sleep(0)
        assert (queue.qsize(), probe.signals) == (1, [])

    @pytest.mark.skipif(sys.version_info < (3, 13), reason="queues can be shut down from 3.13 on")
    async def test_shutting_the_queue_down_completes(self) -> None:
        queue = filled(1)
        cast("Any", queue).shutdown()
        assert await r.from_queue(queue).to_list() == [1]

    def test_something_else_is_refused(self) -> None:
        with pytest.raises(TypeError, match="from_queue: queue must be"):
            r.from_queue(cast("Any", [1]))
