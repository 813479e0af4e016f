"""The report of ``python -m reactive_aio``, and its exit status."""

import sys
from collections.abc import Iterable, Iterator

from .installed import extras, java, versions
from .self_test import Outcome, loops, run

__all__ = ("main",)


def main() -> int:
    """Print the report as it is made; return 1 if a flow of the self-test has failed, else 0."""
    _print(versions())
    _print(["", "extras", *_indented(extras()), "", f"Java for Spark: {java()}", "", "self-test"])
    is_passed = True
    for loop in loops():
        outcome = run(loop)
        is_passed &= outcome.error is None
        _print(_indented(_lines(outcome)))
    return 0 if is_passed else 1


def _lines(outcome: Outcome) -> Iterator[str]:
    passed = ", ".join(outcome.passed) or "nothing"
    if outcome.error is None:
        yield f"{outcome.loop}: {passed}: passed in {outcome.seconds:.1f} s"
    else:
        yield f"{outcome.loop}: {passed}: passed; {outcome.failed}: FAILED"
        yield from _indented(outcome.error.rstrip().splitlines())


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
