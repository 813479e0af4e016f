"""The routes that the network kit requires, served by this library: see docs/protocol.md."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

from reactive_aio import Flow, from_iterable
from reactive_aio.rsocket import InteractionModel, Payload, Request, Requester, Router, StreamFailed

__all__ = ("Script", "kit_routes")


class Script:
    """What a subscriber of the kit requests, when it cancels, and what it reports then."""

    def __init__(
        self, words: list[str], done: Any, answer: Callable[[bytes], object] = bytes
    ) -> None:
        self.words = words
        self.done = done
        self.answer = answer
        self.count = self.size = self.due = 0

    def on_subscribe(self, subscription: Any, /) -> None:
        self.subscription = subscription
        self.step()

    def take(self, element: bytes) -> None:
        self.count += 1
        self.size += len(element)
        if self.count == self.due:
            self.step()

    def step(self) -> None:
        """Take the next number; after the first ``cancel``, all remaining words."""
        cancelled = False
        while self.words and (cancelled or self.count == self.due):
            word = self.words.pop(0)
            if word == "cancel":
                cancelled = True
                self.subscription.cancel()
            else:
                self.due += int(word)
                self.subscription.request(int(word))
        if cancelled:
            self.end("cancel")

    def on_complete(self) -> None:
        self.end("complete")

    def end(self, how: str) -> None:
        if not self.done.done():
            self.done.set_result(self.answer(f"{self.count} {self.size} {how}".encode()))


class ScriptedSubscriber(Script):
    """A subscriber of this library that follows a script."""

    def on_next(self, element: bytes, /) -> None:
        self.take(element)

    def on_error(self, error: BaseException, /) -> None:
        self.end(f"error {error.code if isinstance(error, StreamFailed) else 0}")


async def follow(peer: Requester[bytes], script: str) -> bytes:
    """Run *script* and return its report."""
    what, *words = script.split()
    if what in ("stream", "twice"):
        done: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        stream = peer.request_stream(route="tck.answer")
        for _ in range(2 if what == "twice" else 1):
            stream.subscribe(ScriptedSubscriber(list(words), done))
        return await done
    try:
        element = await peer.request_response(route="tck.answer")
    except StreamFailed as error:
        return b"0 0 error %d" % error.code
    except LookupError:
        return b"0 0 complete"
    return b"1 %d complete" % len(element)


def kit_routes() -> Router:
    """A router with all routes of the network kit."""
    router = Router()

    @router.route("tck.echo")
    def echo(payload: bytes) -> Payload:
        return Payload(payload)

    @router.route("tck.stream.{n}")
    def stream(n: str) -> Flow[bytes]:
        return from_iterable(range(int(n))).map(lambda each: b"%d" % each)

    @router.route("tck.endless")
    def endless() -> Flow[bytes]:
        return from_iterable(count()).map(lambda each: b"%01000d" % each)

    @router.route("tck.fail")
    def fail(request: Request) -> Flow[bytes]:
        divisors = [1, 0] if request.model is InteractionModel.STREAM else [0]
        return from_iterable(divisors).map(lambda each: b"%d" % (1 // each))

    @router.route("tck.never")
    async def never() -> None:
        await asyncio.Event().wait()

    @router.route("tck.channel")
    def channel(incoming: Flow[bytes]) -> Flow[bytes]:
        return incoming

    @router.route("tck.ask")
    def ask(request: Request) -> Awaitable[bytes]:
        peer: Any = request.peer
        return follow(peer, bytes(request.payload).decode())

    del echo, stream, endless, fail, never, channel, ask
    return router
