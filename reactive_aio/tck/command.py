"""The command: ``python -m reactive_aio.tck`` with ``rules``, ``check`` or ``network``.

``check package.module:factory`` judges publishers, subscribers and processors; ``network
tcp://host:port`` judges an RSocket server.

The exit status is 0 if no rule of strength MUST is broken, 1 if one is broken or nothing could be
judged, 2 if the command line is wrong, and 130 after Ctrl-C.
"""

import argparse
import shlex
import ssl
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from .network.judge import TIMEOUTS, check_server
from .network.laws import WIRE_LAWS
from .network.server import ROUTES, ROUTINGS, ServerProfile
from .report.formats import (
    failures,
    report_as_json,
    report_as_junit,
    rule_list,
    rules_as_json,
    summary,
    table,
)
from .report.verdict import Outcome, Report, Style
from .rules import WIRE_RULES
from .run.checking import require_rules
from .run.supervisor import Supervisor, UsageError
from .run.worker import LOOPS, Job
from .timeouts import Timeouts

OK, BROKEN, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130
PROGRAM: Final = "python -m reactive_aio.tck"
_UNNAMED: Final = "the candidate"
_TIMEOUTS: Final = {
    "timeout": ("response", "seconds to wait for a signal that must come"),
    "quiet-period": ("quiet_period", "seconds without a signal that prove its absence"),
    "max-block": ("max_block", "seconds that the candidate may block the event loop"),
    "stall": ("stall", "seconds without a turn of the loop after which a law is stopped"),
    "law-timeout": ("law", "seconds after which a law is stopped"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return _COMMANDS[options.command](options)
    except UsageError as error:
        sys.stderr.write(f"{PROGRAM}: {error}\n")
        return WRONG_USAGE
    except KeyboardInterrupt:
        sys.stderr.write(f"{PROGRAM}: stopped by Ctrl-C\n")
        return INTERRUPTED
    except BrokenPipeError:  # as in `… rules | head`
        sys.stdout = None  # prevents a flush at the exit
        return OK


# -- the command line ------------------------------------------------------------------------------
def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Judge publishers, subscribers and processors of Reactive Streams.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    rules = commands.add_parser("rules", help="list the rules and the laws that judge them")
    rules.add_argument("--json", action="store_true", help="as JSON")
    _add_check(commands.add_parser("check", help="judge the candidate that a factory returns"))
    about = "judge an RSocket server by the rules of the wire"
    _add_network(commands.add_parser("network", help=about))
    return parser


def _add_check(check: argparse.ArgumentParser) -> None:
    add = check.add_argument
    add("where", metavar="PACKAGE.MODULE:FACTORY", help="returns a reactive_aio.tck.Candidate")
    add("--rule", action="append", default=[], metavar="RULE",
        help="only this rule (1.3) or this law (spec103_…); can be repeated")  # fmt: skip
    add("--loop", choices=list(LOOPS), help="the event loop; default: the candidate's choice")
    add("--repeat", type=_positive_integer, default=1, metavar="N", help="judge N times")
    add("--memory", type=_positive_integer, metavar="MIB", help="limit the candidate's memory")
    add("--show-output", action="store_true", help="show the candidate's output as it is printed")
    _add_report_options(check)
    _add_timeout_options(check, Timeouts())


def _add_network(network: argparse.ArgumentParser) -> None:
    add = network.add_argument
    largest, patience = ServerProfile.largest, ServerProfile.patience
    add("where", metavar="URI", nargs="?", help="tcp://, tls://, unix:///, ws:// or wss://")
    add("--laws", action="store_true", help="list the rules, the laws and the routes they need")
    add("--rule", action="append", default=[], metavar="RULE", help="only this rule (N.14) or law")
    add("--route", action="append", default=[], metavar="NAME=ROUTE",
        help=f"the server's route for one of {', '.join(ROUTES)}; empty: it has none")  # fmt: skip
    add("--routing", choices=ROUTINGS, default=ROUTINGS[0],
        help="how requests name their route (composite)")  # fmt: skip
    add("--user", type=_pair, metavar="NAME:PASSWORD", help="credentials that are accepted")
    add("--rejected-user", type=_pair, metavar="NAME:PASSWORD",
        help="credentials that are rejected")  # fmt: skip
    add("--ca", type=Path, metavar="FILE", help="certificates to trust, for tls:// and wss://")
    add("--start", type=shlex.split, default=(), metavar="COMMAND",
        help="start the server by this command, and again after a law has ended it")  # fmt: skip
    add("--pid", type=int, metavar="PID", help="the server's process, to measure its memory")
    add("--largest", type=_positive_integer, default=largest, metavar="BYTES",
        help=f"the largest payload to send ({largest})")  # fmt: skip
    add("--patience", type=_seconds, default=patience, metavar="S",
        help=f"seconds until the server disconnects a silent client ({patience:g})")  # fmt: skip
    _add_report_options(network)
    _add_timeout_options(network, TIMEOUTS, "timeout", "quiet-period", "law-timeout")


def _pair(text: str) -> tuple[str, str]:
    name, colon, password = text.partition(":")
    if not colon:
        raise argparse.ArgumentTypeError(f"write name:password, not {text!r}")
    return name, password


def _positive_integer(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of seconds, got {text}")
    return number


def _add_report_options(parser: argparse.ArgumentParser) -> None:
    """The options about what is reported, and how strictly."""
    add = parser.add_argument
    add("--json", type=Path, metavar="FILE", help="write the report as JSON")
    add("--junit", type=Path, metavar="FILE", help="write the report as JUnit XML")
    add("--strict", action="store_true", help="treat a broken SHOULD like a broken MUST")
    add("--short", action="store_true", help="explain one failure of each rule, name the others")


def _add_timeout_options(parser: argparse.ArgumentParser, defaults: Timeouts, *names: str) -> None:
    """An option for each of *names*, or for every timeout."""
    for name in names or _TIMEOUTS:
        field, about = _TIMEOUTS[name]
        default = getattr(defaults, field)
        parser.add_argument(
            f"--{name}",
            dest=f"timeout_{field}",
            type=_seconds,
            default=default,
            metavar="S",
            help=f"{about} ({default:g})",
        )


def _timeouts(options: argparse.Namespace) -> Timeouts:
    given = {name: value for name, value in vars(options).items() if name.startswith("timeout_")}
    return Timeouts(**{name.removeprefix("timeout_"): value for name, value in given.items()})


# -- check -----------------------------------------------------------------------------------------
def _check(options: argparse.Namespace) -> int:
    _check_output_files(options)
    try:
        require_rules(options.rule)
    except ValueError as error:
        raise UsageError(str(error)) from None
    job = Job(
        where=options.where,
        only=tuple(options.rule),
        loop=options.loop,
        repeat=options.repeat,
        memory=options.memory,
        timeouts=_timeouts(options),
    )
    supervisor = Supervisor(job, show_output=options.show_output)
    try:
        with _progress() as supervisor.on_start:
            report = supervisor.run()
    except KeyboardInterrupt:
        done = len(supervisor.report.verdicts)
        sys.stderr.write(f"{PROGRAM}: stopped by Ctrl-C after {done} laws\n")
        return INTERRUPTED
    if report.candidate == _UNNAMED:
        report.candidate = options.where
    about = {"factory": options.where, "loop": options.loop or "the candidate's own"}
    return _print_report(report, options, about, complete=not options.rule)


# -- network ---------------------------------------------------------------------------------------
def _network(options: argparse.Namespace) -> int:
    _check_output_files(options)
    if options.laws:
        _list_wire_laws()
        return OK
    for name in options.rule:
        if name not in WIRE_RULES and name not in WIRE_LAWS:
            raise UsageError(f"there is no rule or law {name!r} of the wire: --laws lists them")
    if options.where is None:
        raise UsageError("no server given: write an address, like tcp://localhost:7000")
    try:
        with _progress() as show:
            report = check_server(
                options.where,
                _profile(options),
                rules=options.rule,
                timeouts=_timeouts(options),
                tls=_tls(options.ca),
                start=options.start,
                on_start=show,
            )
    except (ValueError, ConnectionError) as error:
        raise UsageError(str(error)) from None
    return _print_report(report, options, {"server": options.where}, complete=False)


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


def _list_wire_laws() -> None:
    style = Style.of(sys.stdout)
    for rule in WIRE_RULES.values():
        first = f"{rule.number:<5} {rule.strength.name:<7} "
        _print_lines(style.wrap(rule.text, len(first), first))
        for law in WIRE_LAWS.values():
            if law.rule == rule.number:
                needs = f" (needs {', '.join(law.needs)})" if law.needs else ""
                _print_lines(style.wrap(f"{law.name}: {law.text}{needs}", len(first) + 2,
                                       f"{'':{len(first)}}· "))  # fmt: skip
    _print_lines(["", "The routes that a server needs to be judged by all of them:"])
    for name, (route, about) in ROUTES.items():
        plain = about.replace("`", "").replace("*", "")
        _print_lines(style.wrap(f"{route}  {plain}", 10, f"{name:<10}"))


# -- rules -----------------------------------------------------------------------------------------
def _rules(options: argparse.Namespace) -> int:
    if options.json:
        sys.stdout.write(rules_as_json())
    else:
        _print_lines(rule_list(Style.of(sys.stdout)))
    sys.stdout.flush()
    return OK


_COMMANDS: Final = {"rules": _rules, "check": _check, "network": _network}


# -- output ----------------------------------------------------------------------------------------
def _check_output_files(options: argparse.Namespace) -> None:
    """Fail before the check, not after it, if its report cannot be written."""
    for file in (options.json, options.junit):
        if file is not None and not file.absolute().parent.is_dir():
            raise UsageError(f"{file} cannot be written: there is no folder {file.parent}")


@contextmanager
def _progress() -> Generator[Callable[[int, int, str], None]]:
    """A function that shows the current law in one line, on a terminal only."""
    stream = sys.stderr

    def write(text: str) -> None:
        if stream.isatty():
            stream.write(f"\r\x1b[K{text}"[: Style.of(stream).width])
            stream.flush()

    try:
        yield lambda number, count, law: write(f"{number}/{count} {law}")
    finally:
        write("")


def _print_report(
    report: Report, options: argparse.Namespace, about: dict[str, str], *, complete: bool
) -> int:
    """Print the tables, and write the files that the options name; return the exit status."""
    style = Style.of(sys.stdout)
    _print_lines(table(report, style, complete=complete))
    _print_lines(failures(report, style, short=options.short))
    _print_lines(summary(report, style))
    sys.stdout.flush()
    if options.json is not None:
        options.json.write_text(report_as_json(report, about), "utf-8")
    if options.junit is not None:
        options.junit.write_text(report_as_junit(report, strict=options.strict), "utf-8")
    failed = report.having(Outcome.FAIL)
    if report.broken or (failed and options.strict):
        return BROKEN
    return OK if report.has_judged else BROKEN


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")
