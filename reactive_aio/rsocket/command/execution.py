"""Connect, make the request of the command line, and write the response."""

import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

from anyio import Event, sleep

from ...errors import EmptyFlow, ReactiveError
from ..client import connect
from ..payloads import Codec
from ..protocol.errors import ConnectionLost, StreamFailed
from ..protocol.resume import Resumption
from .terminal import Progress, read_lines, write

if TYPE_CHECKING:
    from ...flow import Flow
    from ...spec import Subscription
    from ..client import Client
    from .arguments import CommandOptions

__all__ = ("RequestFailed", "execute")

RETRY_DELAY: Final = 1.0
"""Seconds between two attempts to connect."""


class RequestFailed(Exception):
    """The connection or the request failed."""


async def execute(options: "CommandOptions") -> None:
    """Connect, send the request, write the response."""
    try:
        async with await _connect(options) as client:
            await _request(options, client)
    except (ReactiveError, OSError, ValueError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise RequestFailed(_message(error)) from error


async def _connect(options: "CommandOptions") -> "Client[bytes]":
    attempts = options.retry or 1
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
            attempts -= 1
            if not attempts:
                raise
            await sleep(RETRY_DELAY)


async def _request(options: "CommandOptions", client: "Client[bytes]") -> None:
    data = options.data[0] if options.data else None
    common: Any = {"route": options.route, "metadata": options.metadata}
    if options.model == "fnf":
        await client.fire_and_forget(data, **common)
        return
    if options.model == "push":
        client.metadata_push(*options.metadata)
        return
    common["timeout"] = options.timeout
    if options.model == "response":
        try:
            response = await client.request_response(data, **common)
        except EmptyFlow:
            return
        await write(_formatted(options.show, [response]))
    elif options.model == "channel":
        source = read_lines() if options.reads_stdin else [each or b"" for each in options.data]
        await _show(options, client.request_channel(source, **common))
    else:
        await _show(options, client.request_stream(data, **common))


async def _show(options: "CommandOptions", flow: "Flow[bytes]") -> None:
    """Write the elements as they come; request more once they are written."""
    progress = Progress(sys.stderr, shown=options.progress)
    subscriber = _BatchSubscriber(options.request_n, progress)
    (flow if options.take is None else flow.take(options.take)).subscribe(subscriber)
    try:
        async for batch in subscriber.batches():
            await write(_formatted(options.show, batch))
    finally:
        subscriber.cancel()
        progress.end()


class _BatchSubscriber:
    """Buffers the elements that are not written yet: never more than *request_n*."""

    def __init__(self, request_n: int, progress: "Progress") -> None:
        self._request_n = request_n
        self._progress = progress
        self._buffer: list[bytes] = []
        self._subscription: Subscription | None = None
        self._is_done = False
        self._error: BaseException | None = None
        self._changed = Event()

    async def batches(self) -> AsyncIterator[list[bytes]]:
        """Yield the elements as they come; at the end, raise the error of a failure."""
        while True:
            await self._changed.wait()
            self._changed = Event()
            batch, self._buffer = self._buffer, []
            if batch:
                yield batch
                self._progress.add_received(len(batch))
                self._request(len(batch))
            elif self._error is not None:
                raise self._error
            elif self._is_done:
                return
            if self._is_done:
                self._changed.set()

    def cancel(self) -> None:
        if self._subscription is not None and not self._is_done:
            self._is_done = True
            self._subscription.cancel()

    def _request(self, n: int) -> None:
        if self._subscription is not None and not self._is_done:
            self._progress.add_requested(n)
            self._subscription.request(n)

    # -- the subscriber ----------------------------------------------------------------------------
    def on_subscribe(self, subscription: "Subscription", /) -> None:
        self._subscription = subscription
        self._request(self._request_n)

    def on_next(self, element: bytes, /) -> None:
        self._buffer.append(element)
        self._changed.set()

    def on_error(self, error: BaseException, /) -> None:
        self._is_done, self._error = True, error
        self._changed.set()

    def on_complete(self) -> None:
        self._is_done = True
        self._changed.set()


def _formatted(show: str, elements: "list[bytes]") -> bytes:
    if show == "raw":
        return b"".join(elements)
    line = bytes.hex if show == "hex" else _text
    return "".join(f"{line(each)}\n" for each in elements).encode()


def _text(element: bytes) -> str:
    return element.decode("utf-8", "backslashreplace")


def _message(error: BaseException) -> str:
    if isinstance(error, StreamFailed) and not error.data:
        return str(error).rstrip(": ")
    return str(error)
