"""Take each guard away once, and find the test that fails.

python -m tests.guards.prove              # the guards of the table, into docs/guards.md
python -m tests.guards.prove 3.17 deep    # those whose name contains a word; prints only
python -m tests.guards.prove --sample 300 # so many of all decisions; SEED=7 chooses them
python -m tests.guards.prove --all        # all of them, into docs/guards.md
"""

import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from tests.guards.changes import ROOT, Change
from tests.guards.reach import BEFORE_ALL
from tests.guards.sites import ROOMS, Site, all_sites, reasons
from tests.guards.table import GUARDS

TABLE: Final = ROOT / "docs" / "guards.md"
TESTS: Final = (  # the quick ones first, and one loop will do
    "tests/core/test_demand.py",
    "tests/core/test_input_queue.py",
    "tests/core/test_lifecycle.py",
    "tests/core/test_trampoline.py",
    "tests/core/test_serial_executor.py",
    "tests/contract",
    "tests/model",
)
REACHING: Final = (
    "tests/core",
    "tests/contract",
    "tests/model",
    "tests/operators",
    "tests/sources",
    "tests/sinks",
    "tests/processors",
    "tests/delivery",
    "tests/rsocket",
    "tests/executors",
    "tests/observe",
    "tests/testing",
    "tests/asgi",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").glob("test_*.py")),
)
"""Where tests are looked for that reach a decision."""
SECONDS: Final = 240
"""For one run of them."""
MOST: Final = 600
"""Of the tests that reach a decision, the quickest are tried, as many as this."""
LAST: Final = 30
"""Then the slowest, which look at most."""


class Verdict(NamedTuple):
    """What happened with a change."""

    change: Change
    failed: str
    """The first test that noticed; empty when none did."""


def first_failure(change: Change | None, tests: Iterable[str]) -> str:
    """The first of *tests* that fails with *change*; empty if none does."""
    command = [sys.executable, "-u", "-m", "tests.guards.mutant", json.dumps(change), "-x", "-v",
               "--timeout=60", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist",
               "-k", "not uvloop", *tests]  # fmt: skip
    with tempfile.TemporaryFile("w+") as output:
        try:
            ended = subprocess.run(
                command, cwd=ROOT, stdout=output, stderr=output, check=False, timeout=SECONDS
            )
            code: int | None = ended.returncode
        except subprocess.TimeoutExpired:
            code = None
        output.seek(0)
        # A line of `-v`, since a run that hangs after its failure prints no summary.
        named = re.search(r"^(tests/\S+?::\w+).* (?:FAILED|ERROR)\b", output.read(), re.M)
    answers = {0: "", None: "(the whole run: it never ends)"}
    return named[1] if named else answers.get(code, "(the whole run: it was stopped)")


def at_once(judge: Callable[[Change], Verdict], changes: Sequence[Change]) -> list[Verdict]:
    """Judge *changes*, one on each core, and print each verdict."""
    verdicts: list[Verdict] = []
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for verdict in threads.map(judge, changes):
            verdicts.append(verdict)
            say_verdict(verdict)
    return verdicts


def say_verdict(verdict: Verdict) -> None:
    say(f"{verdict.change}: {verdict.failed or 'NO TEST FAILED'}")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


# -- the guards of the table -----------------------------------------------------------------------
def prove_guards(words: Sequence[str]) -> int:
    """Prove the guards whose names contain one of *words*; all, and write the table, without."""
    chosen = [each for each in GUARDS if not words or any(word in each.name for word in words)]
    if not chosen:
        raise SystemExit(f"no guard has {' or '.join(words)} in its name\n\n{__doc__}")
    say(f"{len(chosen)} guards; first the tests run with all of them, which takes a minute")
    if failed := first_failure(None, TESTS):
        raise SystemExit(f"with all guards, {failed} fails: it would notice everything")

    def judge(change: Change) -> Verdict:
        return Verdict(change, first_failure(change, TESTS))

    verdicts = at_once(judge, [each.change for each in chosen])
    if not words:
        named = zip(chosen, verdicts, strict=True)
        rows = [row(guard.name, verdict) for guard, verdict in named]
        write_part("the table", ["| guard | where | noticed by |", "|---|---|---|", *rows])
    return sum(not verdict.failed for verdict in verdicts)


def row(name: str, verdict: Verdict) -> str:
    test = verdict.failed.replace("tests/", "", 1) or "**no test**"
    return f"| {name} | `{verdict.change.file.removeprefix('reactive_aio/')}` | `{test}` |"


def write_part(part: str, lines: Sequence[str]) -> None:
    """Replace the lines between the two comments of *part* in the page."""
    before, rest = TABLE.read_text("utf-8").split(f"<!-- {part} -->\n")
    after = rest.partition(f"<!-- end of {part} -->")[2]
    text = "\n".join(lines)
    TABLE.write_text(f"{before}<!-- {part} -->\n{text}\n<!-- end of {part} -->{after}", "utf-8")


# -- all decisions ---------------------------------------------------------------------------------
def reach(folder: Path) -> dict[str, dict[str, list[str]]]:
    """The tests that reach each line of each file, the quickest first."""
    target = folder / "reach.json"
    subprocess.run([sys.executable, "-m", "tests.guards.reach", str(target), "-q", "-k",
                    "not uvloop", "-p", "no:cacheprovider", "-p", "no:xdist", *REACHING],
                   cwd=ROOT, check=False)  # fmt: skip
    found: dict[str, dict[str, list[str]]] = json.loads(target.read_text("utf-8"))
    return found


def prove_sites(sites: Sequence[Site]) -> list[Verdict]:
    """Try each of *sites* with the tests that reach its line."""
    with tempfile.TemporaryDirectory() as folder:
        reached = reach(Path(folder))
        tests_of = {
            site.change: chosen(reaching(reached.get(site.change.file, {}), site.lines))
            for site in sites
        }
        # A change of what has run before the first test would come too late in a fork.
        early = [change for change, tests in tests_of.items() if BEFORE_ALL in tests]
        late = [(change, tests_of[change]) for change in tests_of if change not in early]
        found = in_forks(late, Path(folder))

    def judge(change: Change) -> Verdict:
        tests = [test for test in tests_of[change] if test != BEFORE_ALL]
        return Verdict(change, first_failure(change, tests) if tests else "")

    return [*found, *at_once(judge, early)]


def reaching(tests: Mapping[str, list[str]], lines: range) -> list[str]:
    """The tests that reach the last of *lines* which any reaches."""
    return next((tests[str(line)] for line in reversed(lines) if str(line) in tests), [])


def chosen(tests: Sequence[str]) -> list[str]:
    """The quickest of *tests* and the slowest, in this order."""
    return [*by_file(tests[:MOST]), *tests[MOST:][-LAST:]]


def by_file(tests: Sequence[str]) -> list[str]:
    """*tests*, with those of a file together: each file has fixtures of its own."""
    files: dict[str, list[str]] = {}
    for test in tests:
        files.setdefault(test.partition("::")[0], []).append(test)
    return list(chain.from_iterable(files.values()))


def in_forks(
    jobs: Sequence[tuple[Change, list[str]]], folder: Path, files: Sequence[str] = REACHING
) -> list[Verdict]:
    """Judge *jobs*, of changes and their tests in *files*, each in a fork of one process."""
    (folder / "jobs").write_text(json.dumps(jobs), "utf-8")
    verdicts = folder / "verdicts"
    command = [sys.executable, "-m", "tests.guards.forks", str(folder / "jobs"), str(verdicts)]
    subprocess.run([*command, *files], cwd=ROOT, check=True)
    rows = map(json.loads, verdicts.read_text("utf-8").splitlines())
    found = [Verdict(Change(*fields), failed) for fields, failed in rows]
    for verdict in found:
        say_verdict(verdict)
    return found


def shares(verdicts: Sequence[Verdict]) -> list[str]:
    """How many of the decisions of each room were noticed, and how many cannot be."""
    known = reasons()
    counts: dict[str, Counter[str]] = {room: Counter() for room in (*ROOMS, "all")}
    for verdict in verdicts:
        room = next(each for each in ROOMS if f"reactive_aio/{each}/" in verdict.change.file)
        kind = "noticed" if verdict.failed else "known" if verdict.change[:3] in known else "left"
        counts[room][kind] += 1
        counts["all"][kind] += 1
    lines = ["| room | decisions | noticed | change nothing | left |", "|---|---|---|---|---|"]
    for room, count in counts.items():
        if tried := count.total():
            parts = (f"{count[kind] / tried:.1%}" for kind in ("noticed", "known"))
            lines.append(f"| `{room}` | {tried:,} | {' | '.join(parts)} | {count['left']} |")
    return lines


def main(words: list[str]) -> int:
    if words[:1] == ["--sample"]:
        sites = random.Random(int(os.environ.get("SEED", "1"))).sample(all_sites(), int(words[1]))
        verdicts = prove_sites(sites)
        say("\n".join(shares(verdicts)))
        unexplained = [
            each for each in verdicts if not each.failed and each.change[:3] not in reasons()
        ]
        return len(unexplained) > len(verdicts) // 20
    if words == ["--all"]:
        write_part("the shares", shares(prove_sites(all_sites())))
        return 0
    return prove_guards(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
