"""The command: ``python -m reactive_aio.tck`` with ``rules``, ``check`` or ``network``.

``check package.module:factory`` judges publishers, subscribers and processors; ``network
tcp://host:port`` a server of RSocket.

Its exit status is 0 if all is well, 1 if a rule of strength MUST is broken or nothing could be
judged, 2 if the call was wrong, and 130 after Ctrl-C.
"""

import argparse
import difflib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, TextIO

from .law import SETUP
from .laws import LAWS
from .network import command as network
from .report.export import report_as_json, report_as_junit, rules_as_json
from .report.show import Style, rule_named
from .report.standing import all_rules
from .report.table import failures, rule_list, summary, table
from .report.verdict import Outcome, Report
from .rules import UNJUDGED
from .run.supervisor import BadCall, Supervisor
from .run.worker import LOOPS, Job
from .terms import Terms

__all__ = ("main",)

OK, BROKEN, WRONG_CALL, INTERRUPTED = 0, 1, 2, 130
PROGRAM: Final = "python -m reactive_aio.tck"

_TERMS: Final = {
    "timeout": ("come", "seconds to wait for what must come"),
    "quiet": ("quiet", "seconds to wait for what must not come"),
    "held-up": ("held_up", "seconds that the subject may hold up the event loop"),
    "stuck": ("stuck", "seconds without a turn of the loop after which a law is stopped"),
    "longest": ("longest", "seconds after which a law is stopped, whatever happens"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks; the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return _COMMANDS[options.what](options)
    except BadCall as error:
        sys.stderr.write(f"{PROGRAM}: {error}\n")
        return WRONG_CALL
    except BrokenPipeError:  # as in `… rules | head`
        sys.stdout = None  # nothing is flushed into it at the exit
        return OK


# -- the command line ------------------------------------------------------------------------------
def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Judge publishers, subscribers and processors of Reactive Streams.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="what", required=True, metavar="COMMAND")
    rules = commands.add_parser("rules", help="list the rules, and the laws that judge them")
    rules.add_argument("--json", action="store_true", help="as JSON")
    _add_check(commands.add_parser("check", help="judge what a factory returns"))
    network.add_arguments(
        commands.add_parser("network", help="judge a server of RSocket by the rules of the wire")
    )
    return parser


def _add_check(check: argparse.ArgumentParser) -> None:
    add = check.add_argument
    add("where", metavar="PACKAGE.MODULE:FACTORY", help="returns a reactive_aio.tck.Subject")
    add(
        "--rule",
        action="append",
        default=[],
        metavar="RULE",
        help="only this rule (1.3), or this law (spec103_…); can be repeated",
    )
    add("--json", type=Path, metavar="FILE", help="write the report as JSON")
    add("--junit", type=Path, metavar="FILE", help="write it as JUnit's XML")
    add("--loop", choices=list(LOOPS), help="the event loop; else the subject's own choice")
    add("--repeat", type=_positive, default=1, metavar="N", help="judge N times")
    add("--strict", action="store_true", help="a broken SHOULD is as bad as a broken MUST")
    add("--memory", type=_positive, metavar="MIB", help="the most memory a subject may take")
    add("--short", action="store_true", help="explain one failure of each rule, name the others")
    add("--show-output", action="store_true", help="show what the subject prints as it comes")
    for name, (term, about) in _TERMS.items():
        default = getattr(Terms, term)
        add(
            f"--{name}",
            dest=term,
            type=_seconds,
            default=default,
            metavar="S",
            help=f"{about} ({default:g})",
        )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of seconds, got {text}")
    return number


def _wanted(asked: Sequence[str]) -> tuple[str, ...]:
    """The rules and laws of ``--rule``; each must be one, and have a law."""
    about = {law.rule for law in LAWS.values()}
    for name in asked:
        if name in LAWS or name in about:
            continue
        if rule_named(name) is not None:
            reason = UNJUDGED.get(name, "there is no law for it")
            raise BadCall(f"rule {name} cannot be judged: {reason}")
        known = [*(rule.number for rule in all_rules()), SETUP, *LAWS]
        near = difflib.get_close_matches(name, known, 3, 0.5)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise BadCall(f"there is no rule or law {name!r}: {hint}`{PROGRAM} rules` lists them")
    return tuple(asked)


# -- what it does ----------------------------------------------------------------------------------
def _rules(options: argparse.Namespace) -> int:
    if options.json:
        sys.stdout.write(rules_as_json())
    else:
        _write(rule_list(Style.of(sys.stdout)))
    sys.stdout.flush()
    return OK


def _check_files(options: argparse.Namespace) -> None:
    for file in (options.json, options.junit):
        if file is not None and not file.absolute().parent.is_dir():
            raise BadCall(f"{file} cannot be written: there is no folder {file.parent}")


def _network(options: argparse.Namespace) -> int:
    _check_files(options)
    progress = _Progress(sys.stderr)
    try:
        report = network.judge(options, progress.show)
    except KeyboardInterrupt:
        sys.stderr.write(f"{PROGRAM}: stopped by Ctrl-C\n")
        return INTERRUPTED
    finally:
        progress.clear()
    if report is None:
        return OK
    network.tell(report, options)
    return _status(report, options.strict)


def _check(options: argparse.Namespace) -> int:
    _check_files(options)
    progress = _Progress(sys.stderr)
    supervisor = Supervisor(_job(options), begun=progress.show, shown=options.show_output)
    try:
        report = supervisor.run()
    except KeyboardInterrupt:
        progress.clear()
        done = len(supervisor.report.verdicts)
        sys.stderr.write(f"{PROGRAM}: stopped by Ctrl-C after {done} laws\n")
        return INTERRUPTED
    finally:
        progress.clear()
    if report.subject == _UNNAMED:
        report.subject = options.where
    _tell(report, options)
    return _status(report, options.strict)


_UNNAMED: Final = "the subject"
_COMMANDS: Final = {"rules": _rules, "check": _check, "network": _network}


def _job(options: argparse.Namespace) -> Job:
    _check_place(options.where)
    terms = {term: getattr(options, term) for term, _ in _TERMS.values()}
    return Job(
        where=options.where,
        only=_wanted(options.rule),
        loop=options.loop,
        repeat=options.repeat,
        memory=options.memory,
        terms=Terms(**terms),
    )


def _check_place(where: str) -> None:
    module, colon, factory = where.partition(":")
    if "/" in module or "\\" in module or module.endswith(".py"):
        dotted = module.removesuffix(".py").replace("\\", "/").strip("./").replace("/", ".")
        raise BadCall(
            f"{where!r} names a file, and a module is needed: write {dotted}:{factory or 'factory'}"
        )
    if not (module and colon and factory):
        raise BadCall(f"{where!r} is no place of a factory: write package.module:factory")


def _tell(report: Report, options: argparse.Namespace) -> None:
    style = Style.of(sys.stdout)
    _write(table(report, style, complete=not options.rule))
    _write(failures(report, style, short=options.short))
    _write(summary(report, style))
    sys.stdout.flush()
    about: dict[str, Any] = {"factory": options.where, "loop": options.loop or "the subject's own"}
    if options.json is not None:
        options.json.write_text(report_as_json(report, about), "utf-8")
    if options.junit is not None:
        options.junit.write_text(report_as_junit(report, strict=options.strict), "utf-8")


def _status(report: Report, strict: bool) -> int:
    failed = report.having(Outcome.FAIL)
    if report.broken or (failed and strict):
        return BROKEN
    return OK if failed or report.having(Outcome.PASS) else BROKEN


def _write(lines: Any) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")


class _Progress:
    """One line that says which law is under way, on a terminal only."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_shown = stream.isatty()

    def show(self, number: int, count: int, law: str) -> None:
        if self._is_shown:
            self._stream.write(f"\r\x1b[K{number}/{count} {law}"[: Style.of(self._stream).width])
            self._stream.flush()

    def clear(self) -> None:
        if self._is_shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
