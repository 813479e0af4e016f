"""The command line, and what it means."""

import argparse
import os
import re
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn

from ..protocol.metadata import BearerToken, Credentials, MetadataItem, SimpleAuth
from ..uri import Address

__all__ = ("PROGRAM", "STDIN", "CommandOptions", "UsageError", "parse_arguments")

PROGRAM: Final = "python -m reactive_aio.rsocket"
STDIN: Final = "-"
_MODELS: Final = {
    "response": "ask for one element",
    "stream": "ask for a stream; this is what is done if nothing else is asked for",
    "channel": "send each --data, or the lines of standard input, and show what comes back",
    "fnf": "fire and forget: send a request that nobody answers",
    "push": "push the --metadata to the server",
}
_EPILOG: Final = """\
TEXT may be @FILE, for what a file holds. Examples:

  %(prog)s 'tcp://localhost:7000?route=prices.ACME' --request-n 10 --take 100
  %(prog)s wss://prices.example/rsocket --route quote --response --data '{"symbol": "ACME"}' \\
      --type application/json --auth bearer:@token.txt --timeout 5
  seq 10 | %(prog)s tcp://localhost:7000 --route double --channel
"""


class UsageError(Exception):
    """The command line makes no sense."""


@dataclass(slots=True, kw_only=True)
class CommandOptions:
    """What the command line asks for."""

    address: Address
    model: str
    route: str | None
    n: int
    data: list[bytes]
    lines: bool
    """Whether the data are the lines of standard input."""
    mime: str
    metadata: list[MetadataItem] = field(default_factory=list["MetadataItem"])
    credentials: Credentials | None = None
    timeout: float | None = None
    connect_timeout: float = 10.0
    take: int | None = None
    resume: bool = False
    retry: int | None = None
    show: str = "text"
    progress: bool | None = None
    tls: ssl.SSLContext | None = None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (--help tells more)")


def parse_arguments(arguments: Sequence[str] | None) -> CommandOptions:
    """Read the command line; raise `UsageError`."""
    given = _parser().parse_args(arguments)
    try:
        address = Address.parse(given.uri)
    except ValueError as error:
        raise UsageError(str(error)) from None
    data: list[str] = given.data
    lines = STDIN in data or (given.model == "channel" and not data)
    if len(data) > 1 and (given.model != "channel" or lines):
        raise UsageError("--data: one is enough, but for --channel, whose elements they are")
    if lines and given.model != "channel":
        raise UsageError("--data -: standard input is read for --channel only; write --data @FILE")
    return CommandOptions(
        address=address,
        model=given.model,
        route=given.route if given.route is not None else address.route,
        n=given.n or address.n or 256,
        data=[] if lines else [_value("--data", each) for each in data],
        lines=lines,
        mime=given.type,
        metadata=[_item(each) for each in given.metadata],
        credentials=None if given.auth is None else _credentials(given.auth),
        timeout=given.timeout,
        connect_timeout=given.connect_timeout,
        take=given.take,
        resume=given.resume,
        retry=given.retry,
        show=given.show,
        progress=given.progress,
        tls=_tls(address, given),
    )


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=PROGRAM,
        description="Ask an RSocket server for something, and show what it answers.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(model="stream")
    add = parser.add_argument
    add("uri", metavar="URI", help="tcp://, tls://, unix://, ws:// or wss://, with ?route=…&n=…")
    models = parser.add_mutually_exclusive_group()
    for name, about in _MODELS.items():
        models.add_argument(f"--{name}", dest="model", action="store_const", const=name, help=about)
    _add_request(parser)
    _add_connection(parser)
    _add_display(parser)
    return parser


def _add_request(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    about = "the route, if the URI names none"
    add("--route", metavar="ROUTE", help=about)
    about = "how many elements to ask for at a time, at most (256)"
    add("--request-n", dest="n", type=_positive, metavar="N", help=about)
    add("--take", "--count", type=_positive, metavar="N", help="cancel after N elements")
    about = "the data of the request; more than one for --channel; - for standard input"
    add("--data", action="append", default=[], metavar="TEXT", help=about)
    add("--type", default="text/plain", metavar="MIME", help="the type of data (text/plain)")
    about = "an item of metadata beside the route; can be repeated"
    add("--metadata", action="append", default=[], metavar="MIME=TEXT", help=about)
    about = "give up unless all has come in S seconds"
    add("--timeout", type=_seconds, metavar="S", help=about)


def _add_connection(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    about = "credentials; PASSWORD and TOKEN are TEXT, or $VARIABLE of the environment"
    add("--auth", metavar="simple:USER:PASSWORD|bearer:TOKEN", help=about)
    about = "give up unless there is a connection in S seconds (10)"
    add("--connect-timeout", type=_seconds, default=10.0, metavar="S", help=about)
    about = "go on over another connection if this one is lost"
    add("--resume", action="store_true", help=about)
    about = "try to connect up to N times, a second apart"
    add("--retry", type=_positive, metavar="N", help=about)
    about = "trust servers that the certificates in FILE vouch for"
    add("--ca", type=Path, metavar="FILE", help=about)
    about = "show this certificate; its key may stand in FILE too"
    add("--cert", type=Path, metavar="FILE", help=about)
    add("--key", type=Path, metavar="FILE", help="the key of that certificate")
    add("--insecure", action="store_true", help="trust any server: for tests")


def _add_display(parser: argparse.ArgumentParser) -> None:
    about = "elements as lines of text or of hex digits, or as their bytes alone (text)"
    parser.add_argument("--show", choices=("text", "hex", "raw"), default="text", help=about)
    about = "show on standard error how much was asked for and has come (on a terminal)"
    parser.add_argument(
        "--progress", action=argparse.BooleanOptionalAction, default=None, help=about
    )


def _positive(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) < 2**63:
        raise argparse.ArgumentTypeError(f"must be a number of at least 1, not {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be seconds, more than 0, not {text!r}")
    return number


# -- values ----------------------------------------------------------------------------------------
def _value(option: str, text: str) -> bytes:
    """What *text* says, or the file that it names says."""
    if not text.startswith("@"):
        return text.encode()
    try:
        return Path(text[1:]).read_bytes()
    except OSError as error:
        raise UsageError(f"{option}: {text[1:]}: {error.strerror}") from None


def _secret(text: str) -> str:
    """A password or token: its end of line, in a file, does not belong to it."""
    if text.startswith("$"):
        if text[1:] not in os.environ:
            raise UsageError(f"--auth: there is no variable {text[1:]} in the environment")
        return os.environ[text[1:]]
    return _value("--auth", text).decode("utf-8", "surrogateescape").rstrip("\r\n")


def _credentials(text: str) -> Credentials:
    kind, _, rest = text.partition(":")
    user, colon, password = rest.partition(":")
    if kind == "bearer" and rest:
        return BearerToken(_secret(rest))
    if kind == "simple" and user and colon:
        return SimpleAuth(user, _secret(password))
    raise UsageError("--auth: write simple:USER:PASSWORD or bearer:TOKEN")


def _item(text: str) -> MetadataItem:
    mime, equals, rest = text.partition("=")
    if not equals or not re.fullmatch(r"[\x21-\x7e]+", mime):
        raise UsageError(f"--metadata: write MIME=TEXT, not {text!r}")
    return MetadataItem(mime, _value("--metadata", rest))


def _tls(address: Address, given: argparse.Namespace) -> ssl.SSLContext | None:
    files: tuple[Path | None, ...] = (given.ca, given.cert, given.key)
    if not address.secure:
        if any(files) or given.insecure:
            raise UsageError("certificates are for tls:// and wss://")
        return None
    if given.key is not None and given.cert is None:
        raise UsageError("--key: write --cert as well")
    try:
        context = ssl.create_default_context(cafile=given.ca)
        if given.cert is not None:
            context.load_cert_chain(given.cert, given.key)
    except OSError as error:
        raise UsageError(f"certificates: {error}") from None
    if given.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
