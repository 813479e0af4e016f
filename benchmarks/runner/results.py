"""The results, as the runner stores them in `results.json`."""

import json
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

from .cases import Row
from .catalog import FAMILIES, Entry
from .machine import machine, python
from .peers import versions

FILE: Final = Path(__file__).parents[1] / "results.json"


@dataclass(frozen=True)
class Run:
    """The circumstances of a measurement."""

    date: str
    machine: str
    python: str
    loop: str
    rounds: int
    scale: float
    versions: tuple[tuple[str, str], ...]

    @classmethod
    def now(cls, *, loop: str, rounds: int, scale: float) -> Self:
        date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
        return cls(date, machine(), python(), loop, rounds, scale, tuple(versions().items()))


@dataclass(frozen=True)
class Result:
    """What was measured for one question."""

    key: str
    text: str
    unit: str
    is_goal_a_figure: bool
    run: Run
    rows: list[Row]

    @property
    def family(self) -> str:
        return self.key.partition("/")[0]

    @property
    def handwritten(self) -> Row | None:
        first = self.rows[0]
        return first if first.kind == "hand-written" else None

    def of(self, kind: str) -> list[Row]:
        """Return the rows of a kind that were measured, or that failed."""
        return [row for row in self.rows if row.kind == kind]

    def is_reached(self, row: Row) -> bool | None:
        """Whether *row* reaches its goal; None without one, or without a figure."""
        measured = row.figure if self.is_goal_a_figure else row.ratio
        if row.goal is None:
            return None
        if measured is None:
            return False if row.note.startswith("fails") else None
        return measured <= row.goal

    def best_peer(self) -> Row | None:
        peers = [row for row in self.of("peer") if row.figure is not None]
        return min(peers, key=lambda row: row.figure or 0.0, default=None)


@dataclass
class Results:
    """All stored results, in the order of the families."""

    of: dict[str, Result] = field(default_factory=dict[str, Result])

    @classmethod
    def load(cls, file: Path = FILE) -> Self:
        if not file.exists():
            return cls()
        stored: Any = json.loads(file.read_text("utf-8"))
        runs: list[Run] = [_run(**run) for run in stored["runs"]]
        found: dict[str, Result] = {}
        for key, each in stored["questions"].items():
            rows = [Row(**row) for row in each.pop("rows")]
            found[key] = Result(key, run=runs[int(each.pop("run"))], rows=rows, **each)
        return cls(found)

    def add(self, entry: Entry, run: Run, rows: list[Row]) -> Result:
        question = entry.question
        result = Result(
            entry.key, question.text, question.unit, question.is_goal_a_figure, run, rows
        )
        self.of[entry.key] = result
        return result

    def family(self, family: str) -> list[Result]:
        return [self.of[key] for key in sorted(self.of) if self.of[key].family == family]

    def in_order(self) -> list[Result]:
        return [each for family in FAMILIES for each in self.family(family)]

    def keep(self, places: set[tuple[str, str]], measured: list[Entry]) -> None:
        """Drop results of questions that are gone: from *places*, or from a measured module."""
        keys = {entry.key for entry in measured}
        modules = {(entry.family, entry.module) for entry in measured}
        for key in [*self.of]:
            family, _, name = key.partition("/")
            place = (family, name.partition(".")[0])
            if place not in places or (place in modules and key not in keys):
                del self.of[key]

    def save(self, file: Path = FILE) -> None:
        ordered = self.in_order()
        runs = list(dict.fromkeys(each.run for each in ordered))
        questions = {
            each.key: {
                "text": each.text,
                "unit": each.unit,
                "is_goal_a_figure": each.is_goal_a_figure,
                "run": runs.index(each.run),
                "rows": [asdict(_rounded(row)) for row in each.rows],
            }
            for each in ordered
        }
        stored = {"runs": [_stored(run) for run in runs], "questions": questions}
        file.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _run(versions: dict[str, str], **rest: Any) -> Run:
    return Run(versions=tuple(versions.items()), **rest)


def _stored(run: Run) -> dict[str, Any]:
    return asdict(run) | {"versions": dict(run.versions)}


def _rounded(row: Row) -> Row:
    """Keep four digits: the others change from run to run."""
    figure, ratio = (None if each is None else float(f"{each:.4g}") for each in
                     (row.figure, row.ratio))  # fmt: skip
    return Row(row.name, row.kind, figure, ratio, row.goal, row.note)
