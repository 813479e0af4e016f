"""Does what the command line asks for."""

import sys
from typing import TYPE_CHECKING, Any, Final

from anyio import sleep

from ...errors import EmptyFlow, ReactiveError
from ..client import connect
from ..payloads import Codec
from ..protocol.errors import ConnectionLost, StreamFailed
from ..protocol.resume import Resumption
from .batch_subscriber import BatchSubscriber
from .terminal import Progress, lines, write

if TYPE_CHECKING:
    from ...flow import Flow
    from ..client import Client
    from .arguments import CommandOptions

__all__ = ("RequestFailed", "execute")

PAUSE: Final = 1.0
"""Between two attempts to connect."""


class RequestFailed(Exception):
    """What was asked for did not come."""


async def execute(options: "CommandOptions") -> None:
    """Connect, ask, show the answer."""
    try:
        async with await _connect(options) as client:
            await _ask(options, client)
    except (ReactiveError, OSError, ValueError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise RequestFailed(_told(error)) from error


async def _connect(options: "CommandOptions") -> "Client[bytes]":
    left = options.retry or 1
    while True:
        try:
            return await connect(
                str(options.address),
                codec=Codec(options.mime, bytes, bytes),
                ssl=options.tls,
                timeout=options.connect_timeout,
                credentials=options.credentials,
                resume=Resumption() if options.resume else None,
            )
        except ConnectionLost:
            left -= 1
            if not left:
                raise
            await sleep(PAUSE)


async def _ask(options: "CommandOptions", client: "Client[bytes]") -> None:
    data = options.data[0] if options.data else None
    about: Any = {"route": options.route, "metadata": options.metadata}
    if options.model == "fnf":
        await client.fire_and_forget(data, **about)
    elif options.model == "push":
        client.metadata_push(*options.metadata)
    elif options.model == "response":
        try:
            answer = await client.request_response(data, timeout=options.timeout, **about)
        except EmptyFlow:
            return
        await write(_shown(options.show, [answer]))
    elif options.model == "channel":
        source = lines() if options.lines else options.data
        await _show(options, client.request_channel(source, timeout=options.timeout, **about))
    else:
        await _show(options, client.request_stream(data, timeout=options.timeout, **about))


async def _show(options: "CommandOptions", flow: "Flow[bytes]") -> None:
    """Write the elements as they come; more are asked for when those have been written."""
    progress = Progress(sys.stderr, shown=options.progress)
    subscriber = BatchSubscriber(options.n, progress)
    (flow if options.take is None else flow.take(options.take)).subscribe(subscriber)
    try:
        async for batch in subscriber.batches():
            await write(_shown(options.show, batch))
    finally:
        subscriber.cancel()
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
