"""``python -m benchmarks.gate``: fails when a way costs 20 % more instructions than was recorded.

``--record`` records the instructions of today in `instructions.json`, for this version of Python.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .runner.catalog import CORE, entries, select
from .runner.instructions import counted_cases, instructions_each
from .runner.question import Question

FILE: Final = Path(__file__).with_name("instructions.json")
TOLERANCE: Final = 1.2
"""A row that loses 25 % is found. Most counts vary by less than 1 % from run to run; those of
windows that grow with the time (`async for` over `timeout`, `merge`, `map_async`) by up to 19 %,
so that 10 % cannot be asked of all."""
VERSION: Final = "{}.{}".format(*sys.version_info)

Counts = dict[str, float]


@dataclass(frozen=True)
class Verdict:
    """How the counts of today compare with the recorded ones."""

    lost: list[str]
    gained: list[str]
    unknown: list[str]
    """Ways without a record, and records without a way."""


def count(names: list[str]) -> Iterator[tuple[str, float]]:
    """Count the instructions of the ways of this package, in the questions that *names* select."""
    for family, module in select(names):
        for entry in entries(family, module):
            for case in counted_cases(entry.question):
                assert isinstance(entry.question, Question)
                yield f"{entry.key}: {case.name}", instructions_each(entry.question, case)


def compare(counts: Counts, recorded: Counts, *, is_all: bool = True) -> Verdict:
    """Compare *counts* with the recorded ones; *is_all* if no question was left out."""
    both = [name for name in counts if name in recorded]
    gone = [name for name in recorded if name not in counts] if is_all else []
    return Verdict(
        [
            _change(name, counts[name], recorded[name])
            for name in both
            if counts[name] > TOLERANCE * recorded[name]
        ],
        [
            _change(name, counts[name], recorded[name])
            for name in both
            if counts[name] * TOLERANCE < recorded[name]
        ],
        [*(name for name in counts if name not in recorded), *gone],
    )


def _change(name: str, now: float, before: float) -> str:
    return f"{name}: {now:.1f} instructions for each element, recorded {before:.1f}"


def recorded(file: Path = FILE) -> dict[str, Counts]:
    """Return the recorded counts by version of Python."""
    stored: dict[str, Counts] = json.loads(file.read_text("utf-8")) if file.exists() else {}
    return stored


def record(counts: Counts, file: Path = FILE) -> None:
    """Record *counts* for this version of Python."""
    stored = recorded(file) | {VERSION: {name: round(counts[name], 1) for name in sorted(counts)}}
    ordered = dict(sorted(stored.items()))
    file.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate", description=__doc__)
    parser.add_argument("questions", nargs="*", metavar="QUESTION")
    parser.add_argument("--record", action="store_true", help="record the counts of today")
    options = parser.parse_args()
    counts = dict(count(options.questions or list(CORE)))
    before = recorded().get(VERSION, {})
    if options.record:
        record(before | counts if options.questions else counts)
        print(f"recorded {len(counts)} ways for Python {VERSION} in {FILE.name}")
        return 0
    if not before:
        print(f"nothing is recorded for Python {VERSION}: run python -m benchmarks.gate --record")
        return 0
    return report(compare(counts, before, is_all=not options.questions))


def report(verdict: Verdict) -> int:
    """Print the verdict; return 1 if a way has lost."""
    for title, lines in (
        ("lost more than 20 %", verdict.lost),
        ("gained more than 20 %; record that with --record", verdict.gained),
        ("not recorded, or recorded and gone; run with --record", verdict.unknown),
    ):
        if lines:
            print(f"{title}:", *lines, sep="\n  ")
    return bool(verdict.lost)


if __name__ == "__main__":
    sys.exit(main())
