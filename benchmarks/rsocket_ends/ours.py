"""Both ends ours, as an application would write them."""

import asyncio
from functools import partial
from itertools import repeat
from typing import Any

from reactive_aio import Flow, from_iterable
from reactive_aio.rsocket import Requester, Router, connect, serve

from .command import AT_ONCE, CREDIT, PAYLOAD, REFILL, Work, at_once, main

routes = Router()


@routes.route("stream")
def stream(payload: bytes) -> Flow[bytes]:
    return from_iterable(repeat(PAYLOAD, int(payload)))


@routes.route("echo")
def echo(payload: bytes) -> bytes:
    return payload


@routes.route("later")
async def later(payload: bytes) -> bytes:
    return payload


class Subscriber:
    """Asks for 256, and for 192 whenever so many have come."""

    def __init__(self) -> None:
        self.done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.came = 0
        self.left = REFILL

    def on_subscribe(self, subscription: Any) -> None:
        self.subscription = subscription
        subscription.request(CREDIT)

    def on_next(self, element: bytes) -> None:
        self.came += 1
        self.left -= 1
        if not self.left:
            self.left = REFILL
            self.subscription.request(REFILL)

    def on_error(self, error: BaseException) -> None:
        self.done.set_exception(error)

    def on_complete(self) -> None:
        self.done.set_result(self.came)


class Ours:
    async def serve(self) -> int:
        self.server = await serve("tcp://127.0.0.1:0", routes)
        assert self.server.address is not None
        return self.server.address.port

    async def connect(self, port: int) -> dict[str, Work]:
        self.requester: Requester[bytes] = await connect(f"tcp://127.0.0.1:{port}")
        ask = self.requester.request_response
        return {
            "stream": self.stream,
            "boundary": self.boundary,
            "iterate": self.iterate,
            "unbounded": lambda count: self.flow(count).count(),
            "many": lambda count: at_once(count, partial(ask, PAYLOAD, route="echo"), AT_ONCE),
            "one": lambda count: at_once(count, partial(ask, PAYLOAD, route="echo"), 1),
            "later": lambda count: at_once(count, partial(ask, PAYLOAD, route="later"), AT_ONCE),
        }

    def flow(self, count: int) -> Flow[bytes]:
        return self.requester.request_stream(b"%d" % count, route="stream")

    async def stream(self, count: int) -> int:
        subscriber = Subscriber()
        self.flow(count).subscribe(subscriber)
        return await subscriber.done

    async def boundary(self, count: int) -> int:
        return await self.flow(count).boundary(CREDIT).count()

    async def iterate(self, count: int) -> int:
        came = 0
        async with self.flow(count).stream(prefetch=CREDIT) as elements:
            async for _ in elements:
                came += 1
        return came


if __name__ == "__main__":
    main(Ours())
