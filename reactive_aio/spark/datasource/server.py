"""Answering Spark's tasks: a socket that listens, a task for each connection, a token."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from hmac import compare_digest
from secrets import token_hex
from typing import Any, Final

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from ..._core.loop import report
from .wire import HEAD, LONGEST_QUESTION, Answer, frame, told, words

__all__ = ("Caller", "Served", "listening")

_SECONDS: Final = 15.0  # in which whoever connects must have asked something
_LONGEST: Final = 1 << 31
_GONE: Final = (
    anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError,
)  # fmt: skip


class Served:
    """Where Spark finds what is served: ``.options(**served.options)``."""

    def __init__(self, address: str, token: str) -> None:
        self.address: str = address
        self.token: str = token

    @property
    def options(self) -> dict[str, str]:
        """For ``spark.read``, ``spark.readStream``, ``df.write`` or ``df.writeStream``."""
        return {"address": self.address, "token": self.token}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self.address}>"


class Caller:
    """The other end of one connection."""

    def __init__(self, stream: Any) -> None:  # a SocketStream of anyio
        self._stream = stream
        self._buffered = BufferedByteReceiveStream(stream)
        self.question: Answer = {}

    async def receive(self, longest: int = _LONGEST) -> bytes:
        (length,) = HEAD.unpack(await self._buffered.receive_exactly(HEAD.size))
        if length > longest:
            raise ValueError(f"a frame of {length} bytes")
        return await self._buffered.receive_exactly(length)

    async def hear(self) -> Answer:
        return told(await self.receive(LONGEST_QUESTION))

    async def send(self, content: bytes) -> None:
        await self._stream.send(frame(content))

    async def tell(self, **message: Any) -> None:
        await self.send(words(message))


Respond = Callable[[Caller], Awaitable[None]]


@asynccontextmanager
async def listening(
    respond: Respond, *, host: str, port: int, token: str | None
) -> AsyncGenerator[tuple[str, str]]:
    """Listen, and have *respond* answer those who know the token; yield address and token."""
    secret = token or token_hex(32)

    async def welcome(stream: SocketStream) -> None:
        async with stream:
            caller = Caller(stream)
            try:
                if await _is_known(caller, secret):
                    await respond(caller)
            except _GONE:
                pass  # Spark has ended the task; whoever it worked for is told by Spark
            except Exception as error:
                report("a connection to a served flow ended with an error", error)

    listener = await anyio.create_tcp_listener(local_host=host, local_port=port)
    address = listener.extra(SocketAttribute.local_address)
    raised: Exception | None = None
    async with listener, anyio.create_task_group() as connections:
        connections.start_soon(listener.serve, welcome)
        try:
            yield _text(host, address), secret
        except Exception as error:
            raised = error  # as it is, and not in a group
        finally:
            connections.cancel_scope.cancel()
    if raised is not None:
        raise raised


async def _is_known(caller: Caller, secret: str) -> bool:
    with anyio.move_on_after(_SECONDS), suppress(ValueError):  # what is no question
        caller.question = await caller.hear()
        given = caller.question.get("token")
        return isinstance(given, str) and compare_digest(given.encode(), secret.encode())
    return False


def _text(host: str, address: Any) -> str:
    return f"[{host}]:{address[1]}" if ":" in host else f"{host}:{address[1]}"
