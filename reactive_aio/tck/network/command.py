"""``python -m reactive_aio.tck network tcp://host:port``: judge a server by rules of the wire."""

import argparse
import shlex
import ssl
import sys
from collections.abc import Callable
from pathlib import Path

from ..command_line import (
    add_report_options,
    add_timeout_options,
    chosen_timeouts,
    positive_integer,
    print_lines,
    seconds,
)
from ..report.formatting import Style
from ..report.verdict import Report
from ..run.supervisor import UsageError
from .judge import TIMEOUTS, check_server
from .laws import WIRE_LAWS
from .rules import WIRE_RULES
from .server_profile import ROUTES, Routing, ServerProfile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    largest, patience = ServerProfile.largest, ServerProfile.patience
    add("where", metavar="URI", nargs="?", help="tcp://, tls://, unix:///, ws:// or wss://")
    add("--laws", action="store_true", help="list the rules, the laws and the routes they need")
    add("--rule", action="append", default=[], metavar="RULE", help="only this rule (N.14) or law")
    add("--route", action="append", default=[], metavar="NAME=ROUTE",
        help=f"the server's route for one of {', '.join(ROUTES)}; empty: it has none")  # fmt: skip
    add("--routing", choices=[Routing.COMPOSITE, Routing.PLAIN], default=Routing.COMPOSITE,
        help="how requests name their route (composite)")  # fmt: skip
    add("--user", type=_pair, metavar="NAME:PASSWORD", help="credentials that are accepted")
    add("--rejected-user", type=_pair, metavar="NAME:PASSWORD",
        help="credentials that are rejected")  # fmt: skip
    add("--ca", type=Path, metavar="FILE", help="certificates to trust, for tls:// and wss://")
    add("--start", type=shlex.split, default=(), metavar="COMMAND",
        help="start the server by this command, and again after a law has ended it")  # fmt: skip
    add("--pid", type=int, metavar="PID", help="the server's process, to measure its memory")
    add("--largest", type=positive_integer, default=largest, metavar="BYTES",
        help=f"the largest payload to send ({largest})")  # fmt: skip
    add("--patience", type=seconds, default=patience, metavar="S",
        help=f"seconds until the server disconnects a silent client ({patience:g})")  # fmt: skip
    add_report_options(parser)
    add_timeout_options(parser, TIMEOUTS, "timeout", "quiet-period", "law-timeout")


def _pair(text: str) -> tuple[str, str]:
    name, colon, password = text.partition(":")
    if not colon:
        raise argparse.ArgumentTypeError(f"write name:password, not {text!r}")
    return name, password


def judge(
    options: argparse.Namespace, on_start: Callable[[int, int, str], object] | None = None
) -> Report | None:
    """The report on the server that *options* name; None if the laws were only listed."""
    if options.laws:
        _list_laws()
        return None
    for name in options.rule:
        if name not in WIRE_RULES and name not in WIRE_LAWS:
            raise UsageError(f"there is no rule or law {name!r} of the wire: --laws lists them")
    if options.where is None:
        raise UsageError("no server given: write an address, like tcp://localhost:7000")
    try:
        return check_server(
            options.where,
            _profile(options),
            rules=options.rule,
            timeouts=chosen_timeouts(options),
            tls=_tls(options.ca),
            start=options.start,
            on_start=on_start,
        )
    except (ValueError, ConnectionError) as error:
        raise UsageError(str(error)) from None


def _profile(options: argparse.Namespace) -> ServerProfile:
    routes = {name: route for name, (route, _) in ROUTES.items()}
    for given in options.route:
        name, equals, route = given.partition("=")
        if not equals:
            raise UsageError(f"write --route {name}=ROUTE, or --route {name}= if there is none")
        routes[name] = route
    return ServerProfile(
        routes=routes,
        routing=options.routing,
        user=options.user,
        rejected_user=options.rejected_user,
        largest=options.largest,
        patience=options.patience,
        pid=options.pid,
    )


def _tls(file: Path | None) -> ssl.SSLContext | None:
    if file is None:
        return None
    try:
        return ssl.create_default_context(cafile=file)
    except OSError as error:
        raise UsageError(f"{file} cannot be read as certificates: {error}") from None


def _list_laws() -> None:
    style = Style.of(sys.stdout)
    for rule in WIRE_RULES.values():
        first = f"{rule.number:<5} {rule.strength.name:<7} "
        print_lines(style.wrap(rule.text, len(first), first))
        for law in WIRE_LAWS.values():
            if law.rule == rule.number:
                needs = f" (needs {', '.join(law.needs)})" if law.needs else ""
                print_lines(style.wrap(f"{law.name}: {law.text}{needs}", len(first) + 2,
                                       f"{'':{len(first)}}· "))  # fmt: skip
    print_lines(["", "The routes that a server needs to be judged by all of them:"])
    for name, (route, about) in ROUTES.items():
        plain = about.replace("`", "").replace("*", "")
        print_lines(style.wrap(f"{route}  {plain}", 10, f"{name:<10}"))
