"""``python -m benchmarks``: measure every question, or the ones named, and print tables."""

import argparse
import asyncio
import importlib
import platform
from typing import TYPE_CHECKING

from .runner import Question, Row, measure, table

if TYPE_CHECKING:
    from .rsocket_runner import Pairs

QUESTIONS = (
    "fused_chain",
    "async_for",
    "boundary",
    "map_async",
    "stop_and_wait",
    "guarantees",
)
# These do not run by default, because they need more than the package.
MORE = (
    "edge",
    "rsocket_stream",
    "rsocket_requests",
    "rsocket_one",
    "rsocket_unread",
    "spark_rows",
    "spark_rows_beside",
    "spark_connect",
    "spark_flights",
    "spark_first_row",
    "spark_lag",
    "spark_memory",
)


def main() -> None:
    """Parse the arguments, run on the selected loop."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("questions", nargs="*", default=QUESTIONS, metavar="QUESTION",
                        help=f"of {', '.join([*QUESTIONS, *MORE])}; by default "
                        f"all but {', '.join(MORE)}")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of elements")
    parser.add_argument("--uvloop", action="store_true")
    options = parser.parse_args()
    unknown = set(options.questions) - {*QUESTIONS, *MORE}
    if unknown:
        parser.error(f"no such question: {', '.join(sorted(unknown))}")
    name = "uvloop" if options.uvloop else "asyncio"
    print(f"{platform.python_implementation()} {platform.python_version()}, {name}, "
          f"{options.rounds} rounds\n")  # fmt: skip
    for each in options.questions:
        question: Question | Pairs = importlib.import_module(f"benchmarks.{each}").question
        if not isinstance(question, Question):
            asyncio.run(question.measure(rounds=options.rounds, scale=options.scale))
            print(question.table(), flush=True)
            continue
        rows = _run(question, options.rounds, options.scale, uvloop=options.uvloop)
        print(table(question, rows), flush=True)


def _run(question: Question, rounds: int, scale: float, *, uvloop: bool) -> list[Row]:
    work = measure(question, rounds=rounds, scale=scale)
    if not uvloop:
        return asyncio.run(work)
    import uvloop as loops

    with asyncio.Runner(loop_factory=loops.new_event_loop) as runner:
        return runner.run(work)


if __name__ == "__main__":
    main()
