"""The command: ``python -m reactive_aio.tck`` with ``rules``, ``check`` or ``network``.

``check package.module:factory`` judges publishers, subscribers and processors; ``network
tcp://host:port`` judges an RSocket server.

The exit status is 0 if no rule of strength MUST is broken, 1 if one is broken or nothing could be
judged, 2 if the command line is wrong, and 130 after Ctrl-C.
"""

import argparse
import difflib
import sys
from collections.abc import Sequence
from typing import Final, TextIO

from .command_line import (
    add_report_options,
    add_timeout_options,
    check_output_files,
    chosen_timeouts,
    positive_integer,
    print_lines,
    print_report,
)
from .law import SETUP
from .laws import LAWS
from .network import command as network
from .report.export import rules_as_json
from .report.formatting import Style, find_rule
from .report.rule_status import NO_LAW, kit_rules
from .report.table import rule_list
from .report.verdict import Outcome, Report
from .run.supervisor import Supervisor, UsageError
from .run.worker import LOOPS, Job
from .timeouts import Timeouts

OK, BROKEN, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130
PROGRAM: Final = "python -m reactive_aio.tck"
_UNNAMED: Final = "the candidate"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return _COMMANDS[options.command](options)
    except UsageError as error:
        sys.stderr.write(f"{PROGRAM}: {error}\n")
        return WRONG_USAGE
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
    network.add_arguments(
        commands.add_parser("network", help="judge an RSocket server by the rules of the wire")
    )
    return parser


def _add_check(check: argparse.ArgumentParser) -> None:
    add = check.add_argument
    add("where", metavar="PACKAGE.MODULE:FACTORY", help="returns a reactive_aio.tck.Candidate")
    add(
        "--rule",
        action="append",
        default=[],
        metavar="RULE",
        help="only this rule (1.3) or this law (spec103_…); can be repeated",
    )
    add("--loop", choices=list(LOOPS), help="the event loop; default: the candidate's choice")
    add("--repeat", type=positive_integer, default=1, metavar="N", help="judge N times")
    add("--memory", type=positive_integer, metavar="MIB", help="limit the candidate's memory")
    add("--show-output", action="store_true", help="show the candidate's output as it is printed")
    add_report_options(check)
    add_timeout_options(check, Timeouts())


def _check_rules(names: Sequence[str]) -> None:
    """Each of ``--rule`` must be a law, or a rule that has one."""
    judged = {law.rule for law in LAWS.values()}
    for name in names:
        if name in LAWS or name in judged:
            continue
        if find_rule(name) is not None:
            raise UsageError(f"rule {name} cannot be judged: {NO_LAW}")
        known = [*(rule.number for rule in kit_rules()), SETUP, *LAWS]
        similar = difflib.get_close_matches(name, known, 3, 0.5)
        hint = f"did you mean {' or '.join(similar)}? " if similar else ""
        raise UsageError(f"there is no rule or law {name!r}: {hint}`{PROGRAM} rules` lists them")


# -- the commands ----------------------------------------------------------------------------------
def _rules(options: argparse.Namespace) -> int:
    if options.json:
        sys.stdout.write(rules_as_json())
    else:
        print_lines(rule_list(Style.of(sys.stdout)))
    sys.stdout.flush()
    return OK


def _check(options: argparse.Namespace) -> int:
    check_output_files(options)
    _check_rules(options.rule)
    job = Job(
        where=options.where,
        only=tuple(options.rule),
        loop=options.loop,
        repeat=options.repeat,
        memory=options.memory,
        timeouts=chosen_timeouts(options),
    )
    progress = _Progress(sys.stderr)
    supervisor = Supervisor(job, on_start=progress.show, show_output=options.show_output)
    try:
        report = supervisor.run()
    except KeyboardInterrupt:
        progress.clear()
        done = len(supervisor.report.verdicts)
        sys.stderr.write(f"{PROGRAM}: stopped by Ctrl-C after {done} laws\n")
        return INTERRUPTED
    finally:
        progress.clear()
    if report.candidate == _UNNAMED:
        report.candidate = options.where
    about = {"factory": options.where, "loop": options.loop or "the candidate's own"}
    print_report(report, options, about, complete=not options.rule)
    return _status(report, options.strict)


def _network(options: argparse.Namespace) -> int:
    check_output_files(options)
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
    print_report(report, options, {"server": options.where}, complete=False)
    return _status(report, options.strict)


_COMMANDS: Final = {"rules": _rules, "check": _check, "network": _network}


def _status(report: Report, strict: bool) -> int:
    failed = report.having(Outcome.FAIL)
    if report.broken or (failed and strict):
        return BROKEN
    return OK if failed or report.having(Outcome.PASS) else BROKEN


class _Progress:
    """One line that names the current law, on a terminal only."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()

    def show(self, number: int, count: int, law: str) -> None:
        if self._is_terminal:
            self._stream.write(f"\r\x1b[K{number}/{count} {law}"[: Style.of(self._stream).width])
            self._stream.flush()

    def clear(self) -> None:
        if self._is_terminal:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
