"""The command: ``python -m reactive_aio.rsocket URI`` talks to a server, as curl does over HTTP.

The exit status is 0 on success, 1 if the request or the connection failed, 2 if the command line is
wrong, and 130 after Ctrl-C.
"""

import argparse
import os
import re
import ssl
import sys
import time
from argparse import ArgumentTypeError
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from anyio import Event, run, sleep, to_thread, wait_readable, wait_writable

from .._core.foreign_text import printable
from ..errors import EmptyFlow, ReactiveError
from .client import Client, connect
from .link.reconnection import is_permanent
from .payloads import Codec
from .protocol.errors import ConnectionLost, StreamFailed
from .protocol.metadata import BearerToken, Credentials, MetadataItem, SimpleAuth
from .protocol.resume import Resumption
from .requesting.requests import RequestOptions
from .uri import Address

if TYPE_CHECKING:
    from ..flow import Flow
    from ..spec import Subscription

PROGRAM: Final = "python -m reactive_aio.rsocket"
OK, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130
RETRY_DELAY: Final = 1.0
"""Seconds between two attempts to connect."""
_DEFAULT_REQUEST_N: Final = 256
_WRITE_SIZE: Final = 4096
"""The number of bytes that a writable pipe takes without blocking."""
_READ_SIZE: Final = 64 * 1024
_MAX_MIME: Final = 128
_INTERVAL: Final = 0.1
"""The minimum number of seconds between two updates of the progress line."""
_MODELS: Final = {
    "response": "request one element",
    "stream": "request a stream (the default)",
    "channel": "send each --data, or the lines of standard input, and show the elements received",
    "fnf": "fire and forget: send a request without a response",
    "push": "push the --metadata to the server",
}
_EPILOG: Final = """\
TEXT may be @FILE, which stands for the content of a file. Examples:

  %(prog)s 'tcp://localhost:7000?route=prices.ACME' --request-n 10 --take 100
  %(prog)s wss://prices.example/rsocket --route quote --response --data '{"symbol": "ACME"}' \\
      --type application/json --auth bearer:@token.txt --timeout 5
  seq 10 | %(prog)s tcp://localhost:7000 --route double --channel
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    try:
        run(execute, parse_arguments(arguments))
    except UsageError as error:
        return _report(str(error), WRONG_USAGE)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # as in `… | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ReactiveError, OSError, ValueError) as error:
        is_bare = isinstance(error, StreamFailed) and not error.data
        return _report(str(error).rstrip(": ") if is_bare else str(error), FAILED)
    return OK


def _report(message: str, status: int) -> int:
    if sys.stderr is not None:  # it may be closed
        sys.stderr.write(f"{PROGRAM}: {printable(' '.join(message.split()))}\n")
    return status


# -- the command line ------------------------------------------------------------------------------
class UsageError(Exception):
    """The command line is wrong."""


class CommandOptions(argparse.Namespace):
    """The parsed command line."""

    address: Address
    model: str
    route: str | None
    request_n: int
    data: list[bytes | None]
    """The payloads to send; None stands for the lines of standard input."""
    mime: str
    metadata: list[MetadataItem]
    credentials: Credentials | None
    timeout: float | None
    connect_timeout: float
    take: int | None
    resume: bool
    retry: int | None
    ca: Path | None
    cert: Path | None
    key: Path | None
    insecure: bool
    tls: ssl.SSLContext | None
    show: str
    progress: bool | None

    @property
    def reads_stdin(self) -> bool:
        return None in self.data or (self.model == "channel" and not self.data)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see --help)")


def parse_arguments(arguments: Sequence[str] | None) -> CommandOptions:
    """Parse the command line; raise `UsageError` if it is wrong."""
    options = _parser().parse_args(arguments, CommandOptions())
    if options.route is None:
        options.route = options.address.route
    options.request_n = options.request_n or options.address.prefetch or _DEFAULT_REQUEST_N
    if options.reads_stdin and options.model != "channel":
        raise UsageError("--data -: standard input is read for --channel only; write --data @FILE")
    if len(options.data) > 1 and (options.model != "channel" or options.reads_stdin):
        raise UsageError("--data: only --channel takes more than one")
    options.tls = _tls_context(options)
    return options


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=PROGRAM,
        description="Send a request to an RSocket server and show the response.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(model="stream")
    about = "tcp://, tls://, unix://, ws:// or wss://, with ?route=…&n=…"
    parser.add_argument("address", metavar="URI", type=_address, help=about)
    models = parser.add_mutually_exclusive_group()
    for name, about in _MODELS.items():
        models.add_argument(f"--{name}", dest="model", action="store_const", const=name, help=about)
    add = parser.add_argument
    add("--route", metavar="ROUTE", help="the route, unless the URI names it")
    about = "the maximum number of elements requested at a time (256)"
    add("--request-n", type=_positive, metavar="N", help=about)
    add("--take", "--count", type=_positive, metavar="N", help="cancel after N elements")
    about = "the data of the request; repeatable for --channel; - for standard input"
    add("--data", action="append", default=[], type=_data, metavar="TEXT", help=about)
    about = "the MIME type of the data (text/plain)"
    add("--type", dest="mime", type=_mime, default="text/plain", metavar="MIME", help=about)
    about = "an item of metadata in addition to the route; repeatable"
    add("--metadata", action="append", default=[], type=_item, metavar="MIME=TEXT", help=about)
    about = "fail unless the response is complete within S seconds"
    add("--timeout", type=_seconds, metavar="S", help=about)
    about = "elements as lines of text, as lines of hex digits, or as raw bytes (text)"
    add("--show", choices=("text", "hex", "raw"), default="text", help=about)
    about = "show on standard error how many elements were requested and received (on a terminal)"
    add("--progress", action=argparse.BooleanOptionalAction, default=None, help=about)
    _add_connection_options(parser)
    return parser


def _add_connection_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    about = "credentials; PASSWORD and TOKEN are TEXT, or $VARIABLE of the environment"
    metavar = "simple:USER:PASSWORD|bearer:TOKEN"
    add("--auth", dest="credentials", type=_credentials, metavar=metavar, help=about)
    about = "fail unless the connection is established within S seconds (10)"
    add("--connect-timeout", type=_seconds, default=10.0, metavar="S", help=about)
    about = "resume over another connection if this one is lost"
    add("--resume", action="store_true", help=about)
    about = "try to connect up to N times, a second apart"
    add("--retry", type=_positive, metavar="N", help=about)
    about = "trust servers whose certificate is signed by one in FILE"
    add("--ca", type=Path, metavar="FILE", help=about)
    about = "the client certificate; FILE may contain its key"
    add("--cert", type=Path, metavar="FILE", help=about)
    add("--key", type=Path, metavar="FILE", help="the key of the client certificate")
    add("--insecure", action="store_true", help="trust any server: for tests")


# -- values ----------------------------------------------------------------------------------------
def _address(text: str) -> Address:
    try:
        return Address.parse(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def _positive(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) < 2**63:
        raise ArgumentTypeError(f"must be a number of at least 1, not {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise ArgumentTypeError(f"must be seconds, more than 0, not {text!r}")
    return number


def _data(text: str) -> bytes | None:
    return None if text == "-" else _content(text)


def _content(text: str) -> bytes:
    """*text* itself, or the content of the file that it names as ``@FILE``."""
    if not text.startswith("@"):
        return text.encode()
    try:
        return Path(text[1:]).read_bytes()
    except OSError as error:
        raise ArgumentTypeError(f"{text[1:]}: {error.strerror}") from None


def _secret(text: str) -> str:
    """A password or token; the end of line of a file is not part of it."""
    if text.startswith("$"):
        if text[1:] not in os.environ:
            raise ArgumentTypeError(f"there is no variable {text[1:]} in the environment")
        return os.environ[text[1:]]
    return _content(text).decode("utf-8", "surrogateescape").rstrip("\r\n")


def _credentials(text: str) -> Credentials:
    kind, _, rest = text.partition(":")
    user, colon, password = rest.partition(":")
    if kind == "bearer" and rest:
        return BearerToken(_secret(rest))
    if kind == "simple" and user and colon:
        return SimpleAuth(user, _secret(password))
    raise ArgumentTypeError("write simple:USER:PASSWORD or bearer:TOKEN")


def _mime(text: str) -> str:
    if not re.fullmatch(r"[!-.0-~]+/[!-~]+", text) or len(text) > _MAX_MIME:
        raise ArgumentTypeError(f"must be a type such as application/json, not {text!r}")
    return text


def _item(text: str) -> MetadataItem:
    mime, equals, content = text.partition("=")
    if not equals or not re.fullmatch(r"[\x21-\x7e]+", mime):
        raise ArgumentTypeError(f"write MIME=TEXT, not {text!r}")
    return MetadataItem(mime, _content(content))


def _tls_context(options: CommandOptions) -> ssl.SSLContext | None:
    if not options.address.is_secure:
        if options.ca or options.cert or options.key or options.insecure:
            raise UsageError("certificates are for tls:// and wss://")
        return None
    if options.key is not None and options.cert is None:
        raise UsageError("--key: write --cert as well")
    try:
        context = ssl.create_default_context(cafile=options.ca)
        if options.cert is not None:
            context.load_cert_chain(options.cert, options.key)
    except OSError as error:
        raise UsageError(f"certificates: {error}") from None
    if options.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


# -- the request -----------------------------------------------------------------------------------
async def execute(options: CommandOptions) -> None:
    """Connect, send the request, write the response."""
    _require_open_streams(options)
    async with await _connect(options) as client:
        await _request(options, client)


def _require_open_streams(options: CommandOptions) -> None:
    """Fail unless the streams that the request needs are open: Python has None for a closed one."""
    if options.reads_stdin and sys.stdin is None:
        raise OSError("standard input is closed")
    if options.model not in ("fnf", "push") and sys.stdout is None:
        raise OSError("standard output is closed")


async def _connect(options: CommandOptions) -> Client[bytes]:
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
        except ConnectionLost as error:
            attempts -= 1
            if not attempts or is_permanent(error):
                raise
            await sleep(RETRY_DELAY)


async def _request(options: CommandOptions, client: Client[bytes]) -> None:
    data = options.data[0] if options.data else None
    if options.model == "fnf":
        await client.fire_and_forget(data, route=options.route, metadata=options.metadata)
        return
    if options.model == "push":
        client.metadata_push(*options.metadata)
        return
    common = RequestOptions(route=options.route, metadata=options.metadata, timeout=options.timeout)
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


async def _show(options: CommandOptions, flow: "Flow[bytes]") -> None:
    """Write the elements as they come; request more once they are written."""
    progress = Progress(shown=options.progress)
    subscriber = _BatchSubscriber(options.request_n, progress)
    (flow if options.take is None else flow.take(options.take)).subscribe(subscriber)
    try:
        async for batch in subscriber.batches():
            await write(_formatted(options.show, batch))
    finally:
        subscriber.cancel()
        progress.update(last=True)


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
                self._progress.update(received=len(batch))
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
            self._progress.update(requested=n)
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


def _formatted(show: str, elements: list[bytes]) -> bytes:
    if show == "raw":
        return b"".join(elements)
    if show == "hex":
        lines = [each.hex() for each in elements]
    else:
        lines = [each.decode("utf-8", "backslashreplace") for each in elements]
        if sys.stdout.isatty():  # what a program reads is left as it is
            lines = [printable(each) for each in lines]
    return "".join(f"{each}\n" for each in lines).encode()


# -- standard input and output, without blocking the event loop ------------------------------------
async def _ready(wait: Callable[[int], Awaitable[None]], fd: int) -> bool:
    """Wait until *fd* is ready; return False if waiting is impossible, as for a file."""
    try:
        await wait(fd)
    except (OSError, ValueError, NotImplementedError):
        return False
    return True


async def read_lines() -> AsyncIterator[bytes]:
    """Yield the lines of standard input, without their line ends, as they come."""
    fd, rest = sys.stdin.fileno(), b""
    while True:
        if await _ready(wait_readable, fd) or os.name != "nt":
            data = os.read(fd, _READ_SIZE)
        else:
            data = await to_thread.run_sync(os.read, fd, _READ_SIZE, abandon_on_cancel=True)
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r")
        if not data:
            if rest:
                yield rest
            return


async def write(data: bytes) -> None:
    """Write *data* to standard output. A slow reader slows down the requests, nothing else."""
    fd, view = sys.stdout.fileno(), memoryview(data)
    while view:
        size = _WRITE_SIZE if await _ready(wait_writable, fd) else len(view)
        view = view[os.write(fd, view[:size]) :]


class Progress:
    """One line on standard error: how many elements were requested and received."""

    def __init__(self, *, shown: bool | None) -> None:
        self._is_terminal = sys.stderr is not None and sys.stderr.isatty()
        # If standard output is the same terminal, the line would mix with the elements.
        self._shown = self._is_terminal and not sys.stdout.isatty() if shown is None else shown
        self._requested = self._received = 0
        self._start = time.monotonic()
        self._next_update = 0.0

    def update(self, *, requested: int = 0, received: int = 0, last: bool = False) -> None:
        self._requested += requested
        self._received += received
        now = time.monotonic()
        if not self._shown or sys.stderr is None or (now < self._next_update and not last):
            return
        self._next_update = now + _INTERVAL
        if self._is_terminal or last:
            clear, end = "\r\x1b[K" if self._is_terminal else "", "\n" if last else ""
            counts = f"requested {self._requested}, received {self._received}"
            sys.stderr.write(f"{clear}{counts}, {now - self._start:.1f} s{end}")
            sys.stderr.flush()
