"""Options and output that the commands ``check`` and ``network`` share."""

import argparse
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from .report.export import report_as_json, report_as_junit
from .report.formatting import Style
from .report.table import failures, summary, table
from .report.verdict import Report
from .run.supervisor import UsageError
from .timeouts import Timeouts

_TIMEOUTS: Final = {
    "timeout": ("response", "seconds to wait for a signal that must come"),
    "quiet-period": ("quiet_period", "seconds without a signal that prove its absence"),
    "max-block": ("max_block", "seconds that the candidate may block the event loop"),
    "stall": ("stall", "seconds without a turn of the loop after which a law is stopped"),
    "law-timeout": ("law", "seconds after which a law is stopped"),
}


def positive_integer(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def seconds(text: str) -> float:
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of seconds, got {text}")
    return number


def add_report_options(parser: argparse.ArgumentParser) -> None:
    """The options about what is reported, and how strictly."""
    add = parser.add_argument
    add("--json", type=Path, metavar="FILE", help="write the report as JSON")
    add("--junit", type=Path, metavar="FILE", help="write the report as JUnit XML")
    add("--strict", action="store_true", help="treat a broken SHOULD like a broken MUST")
    add("--short", action="store_true", help="explain one failure of each rule, name the others")


def add_timeout_options(parser: argparse.ArgumentParser, defaults: Timeouts, *names: str) -> None:
    """An option for each of *names*, or for every timeout."""
    for name in names or _TIMEOUTS:
        field, about = _TIMEOUTS[name]
        default = getattr(defaults, field)
        parser.add_argument(
            f"--{name}",
            dest=f"timeout_{field}",
            type=seconds,
            default=default,
            metavar="S",
            help=f"{about} ({default:g})",
        )


def chosen_timeouts(options: argparse.Namespace) -> Timeouts:
    given = {name: value for name, value in vars(options).items() if name.startswith("timeout_")}
    return Timeouts(**{name.removeprefix("timeout_"): value for name, value in given.items()})


def check_output_files(options: argparse.Namespace) -> None:
    """Fail before the check, not after it, if its report cannot be written."""
    for file in (options.json, options.junit):
        if file is not None and not file.absolute().parent.is_dir():
            raise UsageError(f"{file} cannot be written: there is no folder {file.parent}")


def print_report(
    report: Report, options: argparse.Namespace, about: Mapping[str, Any], *, complete: bool
) -> None:
    """Print the tables, and write the files that the options name."""
    style = Style.of(sys.stdout)
    print_lines(table(report, style, complete=complete))
    print_lines(failures(report, style, short=options.short))
    print_lines(summary(report, style))
    sys.stdout.flush()
    if options.json is not None:
        options.json.write_text(report_as_json(report, about), "utf-8")
    if options.junit is not None:
        options.junit.write_text(report_as_junit(report, strict=options.strict), "utf-8")


def print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")
