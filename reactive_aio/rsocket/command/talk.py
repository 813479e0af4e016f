"""Does what the command line asks for."""

import sys
from typing import TYPE_CHECKING, Any, Final

from anyio import sleep

from ...errors import EmptyFlow, ReactiveError
from ..client import connect
from ..payloads import Codec
from ..protocol.errors import ConnectionLost, StreamFailed
from ..protocol.resume import Resumption
from .sink import Sink
from .terminal import Progress, lines, write

if TYPE_CHECKING:
    from ...flow import Flow
    from ..client import Client
    from .options import Wish

__all__ = ("Failed", "talk")

PAUSE: Final = 1.0
"""Between two attempts to connect."""


class Failed(Exception):
    """What was asked for did not come."""


async def talk(wish: "Wish") -> None:
    """Connect, ask, show the answer."""
    try:
        async with await _connect(wish) as client:
            await _ask(wish, client)
    except (ReactiveError, OSError, ValueError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise Failed(_told(error)) from error


async def _connect(wish: "Wish") -> "Client[bytes]":
    left = wish.retry or 1
    while True:
        try:
            return await connect(
                str(wish.address),
                codec=Codec(wish.mime, bytes, bytes),
                ssl=wish.tls,
                timeout=wish.connect_timeout,
                credentials=wish.credentials,
                resume=Resumption() if wish.resume else None,
            )
        except ConnectionLost:
            left -= 1
            if not left:
                raise
            await sleep(PAUSE)


async def _ask(wish: "Wish", client: "Client[bytes]") -> None:
    data = wish.data[0] if wish.data else None
    about: Any = {"route": wish.route, "metadata": wish.metadata}
    if wish.model == "fnf":
        await client.fire_and_forget(data, **about)
    elif wish.model == "push":
        client.metadata_push(*wish.metadata)
    elif wish.model == "response":
        try:
            answer = await client.request_response(data, timeout=wish.timeout, **about)
        except EmptyFlow:
            return
        await write(_shown(wish.show, [answer]))
    elif wish.model == "channel":
        source = lines() if wish.lines else wish.data
        await _show(wish, client.request_channel(source, timeout=wish.timeout, **about))
    else:
        await _show(wish, client.request_stream(data, timeout=wish.timeout, **about))


async def _show(wish: "Wish", flow: "Flow[bytes]") -> None:
    """Write the elements as they come; more are asked for when those have been written."""
    progress = Progress(sys.stderr, shown=wish.progress)
    sink = Sink(wish.n, progress)
    (flow if wish.take is None else flow.take(wish.take)).subscribe(sink)
    try:
        async for batch in sink.batches():
            await write(_shown(wish.show, batch))
    finally:
        sink.cancel()
        progress.end()


def _shown(show: str, elements: "list[bytes]") -> bytes:
    if show == "raw":
        return b"".join(elements)
    line = bytes.hex if show == "hex" else _text
    return "".join(f"{line(each)}\n" for each in elements).encode()


def _text(element: bytes) -> str:
    return element.decode("utf-8", "backslashreplace")


def _told(error: BaseException) -> str:
    if isinstance(error, StreamFailed) and not error.data:
        return str(error).rstrip(": ")
    return str(error)
