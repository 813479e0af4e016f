"""The laws for publishers hold at the other end of a socket with the text protocol."""

import asyncio
from typing import Any

from reactive_aio import Flow, range as numbers
from reactive_aio._core.loop import LoopHandle
from reactive_aio.asgi import Counters, HttpRequest
from reactive_aio.asgi.formats import to_json
from reactive_aio.asgi.problem import ErrorPolicy
from reactive_aio.asgi.text_protocol.multiplexer import SocketConfig, StreamMultiplexer
from reactive_aio.rsocket import Router
from reactive_aio.tck import Candidate
from reactive_aio.tck.pytest_plugin import laws

served, nothing = Router(), Router()


@served.route("range.{n}")
def count(n: int) -> Flow[int]:
    return numbers(n)


@served.route("failing")
def failing() -> Flow[float]:
    return numbers(3).map(lambda each: 1 / (2 - each))


@served.route("endless")
def endless() -> Flow[int]:
    return numbers(2**62)


@served.route("echo")
def echo(incoming: Flow[Any]) -> Flow[Any]:
    return incoming


def config(router: Router) -> SocketConfig:
    return SocketConfig(
        router=router,
        encode=to_json,
        max_message=10**6,
        max_streams=100,
        max_useless=1000,
        errors=ErrorPolicy(expose_errors=False, on_error=str),
        on_connect=None,
        counters=Counters(),
    )


class Pair:
    """Two ends of a socket in memory: the protocol is the same from either side."""

    def __init__(self, mine: Router) -> None:
        self.queues: list[asyncio.Queue[Any]] = [asyncio.Queue(), asyncio.Queue()]
        self.ends: list[StreamMultiplexer] = []
        self.tasks: list[asyncio.Task[None]] = []
        for router, into, out_of in ((mine, 0, 1), (served, 1, 0)):
            send = self.sender(self.queues[into])
            end = StreamMultiplexer(LoopHandle("a test"), send, config(router), HttpRequest({}))
            self.ends.append(end)
            running = end.run(self.queues[out_of].get, None)
            self.tasks.append(asyncio.ensure_future(running))

    def sender(self, queue: "asyncio.Queue[Any]") -> Any:
        async def send(event: Any) -> None:
            if event["type"] == "websocket.send":
                event = {"type": "websocket.receive", "text": event["text"]}
            queue.put_nowait(event)

        return send

    def disconnect(self) -> None:
        for queue in self.queues:
            queue.put_nowait({"type": "websocket.disconnect"})

    async def aclose(self) -> None:
        self.disconnect()
        await asyncio.gather(*self.tasks)


pairs: list[Pair] = []


def subscribe_remotely(route: str, mine: Router = nothing) -> Flow[Any]:
    pair = Pair(mine)
    pairs.append(pair)
    stream = pair.ends[0].peer.request_stream(route=route)
    # No task may remain when the stream has ended.
    return stream.do_finally(lambda _: pair.disconnect())


def there_and_back(n: int) -> Flow[Any]:
    mine = Router()

    def echo() -> Flow[int]:
        return numbers(n)

    mine.route("echo")(echo)
    return subscribe_remotely("echo", mine)


async def close() -> None:
    while pairs:
        await pairs.pop().aclose()


def streams() -> Candidate:
    return Candidate(
        name="text protocol",
        publisher=lambda n: subscribe_remotely(f"range.{n}"),
        failing_publisher=lambda: subscribe_remotely("failing"),
        infinite_publisher=lambda: subscribe_remotely("endless"),
        after_each=close,
        max_elements=2**62,
        virtual_time=True,
    )


def both_ways() -> Candidate:
    return Candidate(
        name="text protocol, both ways",
        publisher=there_and_back,
        after_each=close,
        max_elements=2**62,
        virtual_time=True,
    )


test_streams = laws(streams)
test_both_ways = laws(both_ways)
