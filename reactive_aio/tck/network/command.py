"""``python -m reactive_aio.tck network tcp://host:port``: judge a server by rules of the wire."""

import argparse
import shlex
import ssl
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from ..report.export import report_as_json, report_as_junit
from ..report.show import Style
from ..report.table import failures, summary, table
from ..report.verdict import Report
from ..run.supervisor import BadCall
from ..terms import Terms
from .judge import TERMS, check_server
from .laws import WIRE_LAWS
from .offer import OFFERS, Offer, Routing
from .rules import WIRE_RULES

__all__ = ("add_arguments", "judge")

_TERMS: Final = {
    "timeout": ("come", "seconds to wait for what must come"),
    "quiet": ("quiet", "seconds to wait for what must not come"),
    "longest": ("longest", "seconds after which a law is stopped, whatever happens"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    add = parser.add_argument
    add("where", metavar="URI", nargs="?", help="tcp://, tls://, unix:///, ws:// or wss://")
    add("--laws", action="store_true", help="list the rules and laws, and what must be offered")
    add("--rule", action="append", default=[], metavar="RULE", help="only this rule (N.14) or law")
    add("--offer", action="append", default=[], metavar="NAME=ROUTE",
        help=f"another route for one of {', '.join(OFFERS)}; none: it is not offered")  # fmt: skip
    add("--routing", choices=[Routing.COMPOSITE, Routing.PLAIN], default=Routing.COMPOSITE,
        help="how requests name their route (composite)")  # fmt: skip
    add("--user", type=_pair, metavar="NAME:PASSWORD", help="credentials that are let in")
    add("--refused", type=_pair, metavar="NAME:PASSWORD", help="credentials that are refused")
    add("--ca", type=Path, metavar="FILE", help="certificates to trust, for tls:// and wss://")
    add("--start", type=shlex.split, default=(), metavar="COMMAND",
        help="start the server by this command, and again when a law has been its end")  # fmt: skip
    add("--pid", type=int, metavar="PID", help="the server's process, to see what memory it takes")
    add("--largest", type=_size, default=Offer.largest, metavar="BYTES",
        help=f"the largest payload to try ({Offer.largest})")  # fmt: skip
    add("--patience", type=_seconds, default=Offer.patience, metavar="S",
        help=f"seconds within which a silent client is let go ({Offer.patience:g})")  # fmt: skip
    add("--json", type=Path, metavar="FILE", help="write the report as JSON")
    add("--junit", type=Path, metavar="FILE", help="write it as JUnit's XML")
    add("--strict", action="store_true", help="a broken SHOULD is as bad as a broken MUST")
    add("--short", action="store_true", help="explain one failure of each rule, name the others")
    for name, (term, about) in _TERMS.items():
        default = getattr(TERMS, term)
        add(f"--{name}", dest=term, type=_seconds, default=default, metavar="S",
            help=f"{about} ({default:g})")  # fmt: skip


def _pair(text: str) -> tuple[str, str]:
    name, colon, password = text.partition(":")
    if not colon:
        raise argparse.ArgumentTypeError(f"write name:password, not {text!r}")
    return name, password


def _size(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of seconds, got {text}")
    return number


def judge(
    options: argparse.Namespace, begun: Callable[[int, int, str], object] | None = None
) -> Report | None:
    """The report on the server that *options* name; None if only the laws were to be listed."""
    if options.laws:
        _list_laws()
        return None
    for name in options.rule:
        if name not in WIRE_RULES and name not in WIRE_LAWS:
            raise BadCall(f"there is no rule or law {name!r} of the wire: --laws lists them")
    if options.where is None:
        raise BadCall("whom to judge? write an address, like tcp://localhost:7000")
    try:
        return check_server(
            options.where,
            _offer(options),
            rules=options.rule,
            terms=Terms(**{term: getattr(options, term) for term, _ in _TERMS.values()}),
            trusted=_trusted(options.ca),
            start=options.start,
            begun=begun,
        )
    except (ValueError, ConnectionError) as error:
        raise BadCall(str(error)) from None


def _offer(options: argparse.Namespace) -> Offer:
    routes = {name: route for name, (route, _) in OFFERS.items()}
    for given in options.offer:
        name, equals, route = given.partition("=")
        if not equals:
            raise BadCall(f"write --offer {name}=ROUTE, and --offer {name}= if it is not offered")
        routes[name] = route
    return Offer(
        routes=routes,
        routing=options.routing,
        user=options.user,
        refused=options.refused,
        largest=options.largest,
        patience=options.patience,
        pid=options.pid,
    )


def _trusted(file: Path | None) -> ssl.SSLContext | None:
    if file is None:
        return None
    try:
        return ssl.create_default_context(cafile=file)
    except OSError as error:
        raise BadCall(f"{file} cannot be read as certificates: {error}") from None


def _list_laws() -> None:
    style = Style.of(sys.stdout)
    for rule in WIRE_RULES.values():
        first = f"{rule.number:<5} {rule.strength.name:<7} "
        _write(style.wrap(rule.text, len(first), first))
        for law in WIRE_LAWS.values():
            if law.rule == rule.number:
                needs = f" (needs {', '.join(law.needs)})" if law.needs else ""
                _write(style.wrap(f"{law.name}: {law.text}{needs}", len(first) + 2,
                                  f"{'':{len(first)}}· "))  # fmt: skip
    _write(["", "What a server must offer to be judged by all of them:"])
    for name, (route, about) in OFFERS.items():
        _write(style.wrap(f"{route}  {about.replace('`', '').replace('*', '')}", 10, f"{name:<10}"))


def tell(report: Report, options: argparse.Namespace) -> None:
    """Write the tables, and the files that are asked for."""
    style = Style.of(sys.stdout)
    _write(table(report, style, complete=False))
    _write(failures(report, style, short=options.short))
    _write(summary(report, style))
    sys.stdout.flush()
    about: dict[str, Any] = {"server": options.where}
    if options.json is not None:
        options.json.write_text(report_as_json(report, about), "utf-8")
    if options.junit is not None:
        options.junit.write_text(report_as_junit(report, strict=options.strict), "utf-8")


def _write(lines: Any) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")
