"""The routes that this library serves to other clients, and a record of their use."""

import asyncio
from typing import Any

from reactive_aio import Flow, from_iterable
from reactive_aio.rsocket import Payload, Request, Router, StreamFailed

__all__ = ("RecordingRoutes",)


class RecordingRoutes:
    """A router whose handlers record their calls."""

    def __init__(self) -> None:
        self.requests: list[int] = []
        """The demand on `counted`."""
        self.ends: asyncio.Queue[str] = asyncio.Queue()
        """The ends of `counted`."""
        self.forgotten: asyncio.Queue[bytes] = asyncio.Queue()
        """The fire-and-forget payloads."""
        self.received: list[bytes] = []
        """The elements of `swallow`."""
        self.router = router = Router()
        router.route("counted.{n}")(self.counted)
        router.route("forget")(self.forget)
        router.route("swallow")(self.swallow)
        router.route("echo")(self.echo)
        router.route("size")(self.size)
        router.route("large.{n}")(self.large)
        router.route("seen")(self.seen)
        router.route("refuse.{code}")(self.refuse)
        router.route("fail")(self.fail)
        router.route("back")(self.back)
        router.route("both")(self.both)

    def echo(self, payload: bytes) -> bytes:
        return payload

    def size(self, payload: bytes) -> bytes:
        return b"%d" % len(payload)

    def large(self, n: str) -> Payload:
        return Payload(b"big" * (int(n) // 3))

    def counted(self, n: str) -> Flow[bytes]:
        return (
            from_iterable(range(int(n)))
            .map(lambda each: b"%d" % each)
            .do_on_request(self.requests.append)
            .do_finally(self.ends.put_nowait)
        )

    async def forget(self, payload: bytes) -> None:
        await self.forgotten.put(payload)

    async def swallow(self, incoming: Flow[bytes]) -> bytes:
        self.received += await incoming.to_list(limit=1000)
        return b"%d" % len(self.received)

    def both(self, incoming: Flow[bytes]) -> Flow[bytes]:
        return incoming.do_on_request(self.requests.append).map(bytes.upper)

    def seen(self, request: Request) -> bytes:
        return b"; ".join(f"{mime}={content!r}".encode() for mime, content in request.metadata)

    def refuse(self, code: str) -> Flow[bytes]:
        return from_iterable([b"1"]).concat_with(self.failing(int(code)))

    def failing(self, code: int) -> Flow[bytes]:
        def raise_(_: int) -> bytes:
            raise StreamFailed(code, b"as requested")

        return from_iterable([0]).map(raise_)

    def fail(self) -> bytes:
        raise RuntimeError("a secret")

    async def back(self, request: Request) -> bytes:
        peer: Any = request.peer
        answer: bytes = await peer.request_response(b"hello")
        return answer
