"""reactive_aio at both ends, used as in an application."""

import asyncio
from functools import partial
from itertools import repeat
from typing import Any

from reactive_aio import Flow, MulticastProcessor, from_iterable
from reactive_aio.rsocket import Requester, Router, connect, serve

from .command import CREDIT, IN_FLIGHT, PAYLOAD, REFILL, Work, concurrently, main

MANY = 20_000
CAPACITY = 64

routes = Router()
hubs: dict[str, MulticastProcessor[bytes]] = {}


@routes.route("stream")
def stream(payload: bytes) -> Flow[bytes]:
    return from_iterable(repeat(PAYLOAD, int(payload)))


class Plain:
    """A publisher of no library: it emits the requested elements within `request`."""

    def __init__(self, count: int) -> None:
        self._elements = repeat(PAYLOAD, count)
        self._demand = 0
        self._subscriber: Any = None

    def subscribe(self, subscriber: Any) -> None:
        self._subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int) -> None:
        self._demand += n
        if self._demand > n:
            return  # the loop below is running
        while self._demand and (subscriber := self._subscriber) is not None:
            element = next(self._elements, None)
            if element is None:
                self._subscriber = None
                subscriber.on_complete()
                return
            subscriber.on_next(element)
            self._demand -= 1

    def cancel(self) -> None:
        self._subscriber = None


@routes.route("plain")
def plain(payload: bytes) -> Any:
    return Plain(int(payload))


@routes.route("echo")
def echo(payload: bytes) -> bytes:
    return payload


@routes.route("later")
async def later(payload: bytes) -> bytes:
    return payload


@routes.route("once")
async def once(payload: bytes) -> bytes:
    await asyncio.sleep(0)
    return payload


@routes.route("hot")
def hot() -> Flow[bytes]:
    return hubs["wait"]


@routes.route("dropping")
def dropping() -> Flow[bytes]:
    return hubs["drop"]


def new_hub(overflow: str) -> MulticastProcessor[bytes]:
    if overflow == "wait":
        return MulticastProcessor[bytes](CAPACITY)
    return MulticastProcessor[bytes](CAPACITY, overflow="drop_oldest")


class Subscriber:
    """Requests 256 elements, then 192 whenever as many have been received."""

    def __init__(self) -> None:
        self.done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.received = 0
        self.remaining = REFILL

    def on_subscribe(self, subscription: Any) -> None:
        self.subscription = subscription
        subscription.request(CREDIT)

    def on_next(self, element: bytes) -> None:
        self.received += 1
        self.remaining -= 1
        if not self.remaining:
            self.remaining = REFILL
            self.subscription.request(REFILL)

    def on_error(self, error: BaseException) -> None:
        self.done.set_exception(error)

    def on_complete(self) -> None:
        self.done.set_result(self.received)


class Ours:
    async def serve(self) -> int:
        hubs.update({each: new_hub(each) for each in ("wait", "drop")})
        self.server = await serve("tcp://127.0.0.1:0", routes, max_connections=MANY)
        assert self.server.address is not None
        return self.server.address.port

    async def connect(self, port: int) -> dict[str, Work]:
        self.requester: Requester[bytes] = await connect(f"tcp://127.0.0.1:{port}")
        request = self.requester.request_response
        echo = partial(request, PAYLOAD, route="echo")
        later = partial(request, PAYLOAD, route="later")
        once = partial(request, PAYLOAD, route="once")
        return {
            "stream": self.stream,
            "boundary": self.boundary,
            "iterate": self.iterate,
            "async_for": self.async_for,
            "plain": self.plain,
            "unbounded": lambda count: self.flow(count).count(),
            "many": lambda count: concurrently(count, echo, IN_FLIGHT),
            "one": lambda count: concurrently(count, echo, 1),
            "later": lambda count: concurrently(count, later, IN_FLIGHT),
            "once": lambda count: concurrently(count, once, IN_FLIGHT),
        }

    def commands(self) -> dict[str, Work]:
        return {"fan": partial(self.feed, "wait"), "drop": partial(self.feed, "drop")}

    async def feed(self, name: str, count: int) -> int:
        """Publish *count* elements as fast as the processor requests them."""
        hub, hubs[name] = hubs[name], new_hub(name)
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        elements = from_iterable(repeat(PAYLOAD, count))
        elements.do_on_complete(lambda: done.set_result(count)).subscribe(hub)
        return await done

    def flow(self, count: int, route: str = "stream") -> Flow[bytes]:
        return self.requester.request_stream(b"%d" % count, route=route)

    async def stream(self, count: int) -> int:
        return await self._received(self.flow(count))

    async def plain(self, count: int) -> int:
        return await self._received(self.flow(count, "plain"))

    async def _received(self, flow: Flow[bytes]) -> int:
        subscriber = Subscriber()
        flow.subscribe(subscriber)
        return await subscriber.done

    async def boundary(self, count: int) -> int:
        return await self.flow(count).boundary(CREDIT).count()

    async def iterate(self, count: int) -> int:
        received = 0
        async with self.flow(count).stream(prefetch=CREDIT) as elements:
            async for _ in elements:
                received += 1
        return received

    async def async_for(self, count: int) -> int:
        received = 0
        async for _ in self.flow(count):
            received += 1
        return received


if __name__ == "__main__":
    main(Ours())
