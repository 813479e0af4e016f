"""to_queue, to_anyio and into: what waits, what ends, and what is refused."""

import asyncio
from typing import Any, cast

import anyio
import pytest
from anyio import BrokenResourceError, create_memory_object_stream

import reactive_aio as r
from reactive_aio import MulticastProcessor
from reactive_aio.testing import SubscriberProbe
from tests.cases import Needs, Sinks
from tests.operators.streams import slow


class Sink:
    """What accepts everything."""

    async def put(self, _: object, /) -> None: ...

    async def send(self, _: object, /) -> None: ...

    async def aclose(self) -> None: ...


SINKS: Sinks = {
    "to_queue": lambda flow: flow.to_queue(Sink()),
    "to_anyio": lambda flow: flow.to_anyio(Sink()),
}


async def test_a_full_queue_makes_the_source_wait() -> None:
    log: list[int] = []
    queue: asyncio.Queue[int] = asyncio.Queue(2)
    flow = slow(range(6)).do_on_next(log.append)
    task = asyncio.ensure_future(flow.to_queue(queue))
    for _ in range(20):
        await asyncio.sleep(0)
    assert log == [0, 1, 2]
    assert [await queue.get() for _ in range(6)] == [*range(6)]
    assert await task == 6


async def test_a_stream_of_anyio_takes_turns_with_its_receiver() -> None:
    send, receive = create_memory_object_stream[int](0)
    task = asyncio.ensure_future(slow(range(5)).to_anyio(send))
    assert [x async for x in receive] == [*range(5)]
    assert await task == 5
    receive.close()


async def test_a_stream_may_stay_open() -> None:
    send, receive = create_memory_object_stream[int](9)
    assert await r.range(2).to_anyio(send, close=False) == 2
    assert await r.range(2).to_anyio(send) == 2
    assert [x async for x in receive] == [0, 1, 0, 1]
    receive.close()


async def test_receivers_that_are_gone_cancel_the_source() -> None:
    log: list[str] = []
    send, receive = create_memory_object_stream[int](0)
    receive.close()
    with pytest.raises(BrokenResourceError):
        await slow(range(5), log=log).to_anyio(send)
    assert log == ["opened", "closed"]


async def test_a_failing_flow_closes_the_stream() -> None:
    send, receive = create_memory_object_stream[int](9)
    with pytest.raises(OSError, match="no"):
        await slow([1], error=OSError("no")).to_anyio(send)
    assert [x async for x in receive] == [1]
    receive.close()


async def test_a_processor_is_fed_in_one_expression() -> None:
    hot = r.range(3).into(MulticastProcessor[int]())
    probe = SubscriberProbe[int](9).subscribed_to(hot)
    assert await probe.end() == [0, 1, 2, "|"]


async def test_other_targets_are_refused() -> None:
    with pytest.raises(TypeError, match=r"to_queue: queue must be an asyncio\.Queue, not \[\]"):
        await r.just(1).to_queue(cast("Any", []))
    with pytest.raises(TypeError, match="to_anyio: stream must be an anyio stream that sends"):
        await r.just(1).to_anyio(cast("Any", asyncio.Queue()))


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Share one subscription": {
        "through a processor of my own": "into",
    },
    "End a flow, get a result": {
        "pass all on to a queue or a stream": "to_queue to_anyio",
    },
}


async def example_to_queue() -> None:
    queue: asyncio.Queue[int] = asyncio.Queue()
    print(await r.range(3).to_queue(queue), queue.qsize())


async def example_to_anyio() -> None:
    send, receive = anyio.create_memory_object_stream[int](10)
    print(await r.range(3).to_anyio(send))
    async with receive:
        print([n async for n in receive])


async def example_into() -> None:
    news = r.just("a", "b").into(r.ReplayProcessor[str](10))
    print(await news.to_list(), await news.to_list())
