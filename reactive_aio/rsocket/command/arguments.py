"""The command line: its options and their values."""

import argparse
import os
import re
import ssl
from argparse import ArgumentTypeError
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

from ..protocol.metadata import BearerToken, Credentials, MetadataItem, SimpleAuth
from ..uri import Address

__all__ = ("PROGRAM", "CommandOptions", "UsageError", "parse_arguments")

PROGRAM: Final = "python -m reactive_aio.rsocket"
_DEFAULT_REQUEST_N: Final = 256
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
    _add_request(parser)
    _add_connection(parser)
    _add_display(parser)
    return parser


def _add_request(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--route", metavar="ROUTE", help="the route, unless the URI names it")
    about = "the maximum number of elements requested at a time (256)"
    add("--request-n", type=_positive, metavar="N", help=about)
    add("--take", "--count", type=_positive, metavar="N", help="cancel after N elements")
    about = "the data of the request; repeatable for --channel; - for standard input"
    add("--data", action="append", default=[], type=_data, metavar="TEXT", help=about)
    about = "the MIME type of the data (text/plain)"
    add("--type", dest="mime", default="text/plain", metavar="MIME", help=about)
    about = "an item of metadata in addition to the route; repeatable"
    add("--metadata", action="append", default=[], type=_item, metavar="MIME=TEXT", help=about)
    about = "fail unless the response is complete within S seconds"
    add("--timeout", type=_seconds, metavar="S", help=about)


def _add_connection(parser: argparse.ArgumentParser) -> None:
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


def _add_display(parser: argparse.ArgumentParser) -> None:
    about = "elements as lines of text, as lines of hex digits, or as raw bytes (text)"
    parser.add_argument("--show", choices=("text", "hex", "raw"), default="text", help=about)
    about = "show on standard error how many elements were requested and received (on a terminal)"
    parser.add_argument(
        "--progress", action=argparse.BooleanOptionalAction, default=None, help=about
    )


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
