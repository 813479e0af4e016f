"""``python -m benchmarks``: measure the questions, print tables, and write the page if told to."""

import argparse
import asyncio
import sys
import time
from collections.abc import Coroutine
from typing import Any

from .runner.cases import QUICK, Effort, Row
from .runner.catalog import CORE, FAMILIES, MORE, Entry, NoSuchQuestion, entries, places, select
from .runner.pages import write_pages
from .runner.results import Result, Results, Run
from .runner.tables import cases, shortfalls


def main() -> int:
    """Parse the arguments, measure on the selected loop; return 1 if a case failed."""
    options = _arguments()
    effort = QUICK if options.quick else Effort(options.rounds, options.scale)
    loop = "uvloop" if options.uvloop else "asyncio"
    run = Run.now(loop=loop, rounds=effort.rounds, scale=effort.scale)
    results = Results.load() if options.write else Results()
    print(f"{run.python}, {loop}, {run.rounds} rounds; {run.machine}\n")
    failed: list[str] = []
    measured: list[Result] = []
    selected = _selected(options.questions, is_quick=options.quick)
    results.keep({*places()}, selected)
    for entry in selected:
        before = time.process_time()
        rows = _run(entry.question.measure(effort), uvloop=options.uvloop)
        failed += [f"{entry.key}: {row.name} {row.note}" for row in rows if _is_failed(row)]
        result = results.add(entry, run, rows)
        measured.append(result)
        took = time.process_time() - before
        brief = f"{entry.key}: {len(rows)} cases, {took:.2f} s"
        print(brief if options.quick else cases(result), flush=True)
        if options.write:
            write_pages(results)
    if not options.quick:
        print(shortfalls(measured))
    for each in failed:
        print(each, file=sys.stderr)
    return bool(failed)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure what each way costs, as a ratio to hand-written code.",
        epilog=f"families: {', '.join(FAMILIES)}",
    )
    parser.add_argument("questions", nargs="*", metavar="QUESTION",
                        help="a family, a question, or family/question; by default "
                        f"{', '.join(CORE)}")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of elements")
    parser.add_argument("--uvloop", action="store_true")
    parser.add_argument("--quick", action="store_true",
                        help="run every case once and briefly, to see that it works; "
                        "growth and asgi/responses too")  # fmt: skip
    parser.add_argument("--write", action="store_true",
                        help="store the results, write README.md, cases.md and plots")  # fmt: skip
    options = parser.parse_args()
    if options.write and (options.quick or options.uvloop):
        parser.error("--write stores figures of asyncio, without --quick or --uvloop")
    return options


def _selected(names: list[str], *, is_quick: bool) -> list[Entry]:
    by_default = [*CORE, "growth", "asgi/responses"] if is_quick else [*CORE]
    try:
        modules = select(names or by_default)
    except NoSuchQuestion as error:
        sys.exit(str(error))
    found: list[Entry] = []
    for family, module in modules:
        try:
            found += entries(family, module)
        except ImportError as error:
            if family not in MORE:
                raise
            print(f"{family}/{module} is left out: {error}", file=sys.stderr)
    return found


def _is_failed(row: Row) -> bool:
    return row.note.startswith("fails")


def _run(work: Coroutine[Any, Any, list[Row]], *, uvloop: bool) -> list[Row]:
    if not uvloop:
        return asyncio.run(work)
    import uvloop as loops

    with asyncio.Runner(loop_factory=loops.new_event_loop) as runner:
        return runner.run(work)


if __name__ == "__main__":
    sys.exit(main())
