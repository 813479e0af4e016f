"""Judge this library and others by the conformance kit, and write the results into the docs.

    python -m tests.tck.scoreboard               # all of them, into docs/conformance.md
    python -m tests.tck.scoreboard rsocket       # those whose name contains a word; prints only

Each is judged in its own process, so that no leak affects another.
"""

import json
import logging
import platform
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

from reactive_aio.tck import Timeouts, Verdict, check
from reactive_aio.tck.adapters import KEPT_BY_ADAPTER
from reactive_aio.tck.candidate import load_candidate

from .contestant import Contestant
from .other_libraries import OTHER_LIBRARIES
from .scores import Score, details, score, table
from .this_library import THIS_LIBRARY

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = ROOT / "docs" / "conformance.md"
BEGIN: Final = "<!-- scoreboard: written by `nox -s scoreboard` -->"
END: Final = "<!-- end of the scoreboard -->"
JUDGE: Final = "--judge"
TIMEOUTS: Final = Timeouts(response=3.0, reduced_response=0.5)
"""Short, since all candidates are in memory."""

LEGEND: Final = """\
✓: how many rules are kept; **✗**: these rules are broken; △: these rules of strength SHOULD are
broken; (n): how many rules the adapter keeps, since the library lacks the concept; ?: how many
rules could not be judged, since another rule was broken first; –: nothing was judged. Rules of
strength MAY count if the feature is offered. "Library" are this library's promises beyond the
specification, which the other libraries have not made.
"""


def main(words: list[str]) -> None:
    """Judge the contestants whose names contain one of *words*; all without words."""
    select_laws = [
        contestant
        for contestant in (*THIS_LIBRARY, *OTHER_LIBRARIES)
        if not words or any(word in contestant.name for word in words)
    ]
    if not select_laws:
        sys.exit(f"no contestant has a name like {' or '.join(words)}")
    scores: dict[Contestant, Score] = {}
    for contestant in select_laws:
        print(contestant.name, flush=True)  # noqa: T201 - progress
        kept_by_adapter = (
            KEPT_BY_ADAPTER[contestant.adapter] if contestant.adapter else frozenset[str]()
        )
        scores[contestant] = score(judged(contestant), kept_by_adapter)
    text = "\n".join(section(scores))
    if words:
        print(text)  # noqa: T201
    else:
        write(text)


def judged(contestant: Contestant) -> list[Verdict]:
    """The verdicts on one contestant, from another process."""
    command = [sys.executable, "-m", __package__ or "", JUDGE, contestant.where]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        sys.exit(f"{contestant.name} could not be judged:\n{done.stderr}")
    return [Verdict.from_json(each) for each in json.loads(lines[-1])]


def judge(where: str) -> None:
    """Run in that process: judge the candidate of a factory, and print the verdicts."""
    logging.disable()
    report = check(load_candidate(where), timeouts=TIMEOUTS)
    sys.stdout.write("\n" + json.dumps([verdict.to_json() for verdict in report]) + "\n")


def section(scores: Mapping[Contestant, Score]) -> Iterator[str]:
    """The lines between the markers."""
    libraries = dict.fromkeys(contestant.library for contestant in scores if contestant.library)
    versions = ", ".join(f"{library} {_version(library)}" for library in libraries)
    yield f"Judged on {platform.python_implementation()} {platform.python_version()}: {versions}."
    yield ""
    yield from table(scores)
    yield ""
    yield from LEGEND.splitlines()
    yield ""
    yield "Broken rules, and the law that detected each first:"
    yield ""
    for contestant, found in scores.items():
        yield from details(contestant, found)


def _version(library: str) -> str:
    """The version that was judged; this project need not be installed."""
    if library == THIS_LIBRARY[0].library:
        return str(
            tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
        )
    return version(library)


def write(text: str) -> None:
    """Put *text* between the markers of the page."""
    page = PAGE.read_text("utf-8")
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        sys.exit(f"{PAGE.name} has no markers for the scoreboard: {BEGIN} … {END}")
    PAGE.write_text(f"{before}{begin}\n\n{text.rstrip()}\n\n{end}{after}", "utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == [JUDGE]:
        judge(sys.argv[2])
    else:
        main(sys.argv[1:])
