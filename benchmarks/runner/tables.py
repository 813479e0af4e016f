"""The results as Markdown: one table of all ways, and one of all cases for each question."""

from collections.abc import Iterator
from typing import Final

from .catalog import FAMILIES, heading
from .question import TIME, Row
from .results import Result, Results, Run

HEAD: Final = (
    "| way | cost | × by hand | to reach | best peer |\n"
    "|---|--:|--:|--:|---|"
)  # fmt: skip
NANO: Final = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns"))


def amount(figure: float, unit: str) -> str:
    """Write a figure with its unit, in at most four digits."""
    name, _, rest = unit.partition(" ")
    if name == TIME:
        factor, name = next(
            (each for each in NANO if figure >= each[0]), NANO[-1]
        )
        figure /= factor
    return " ".join(filter(None, (number(figure), name, rest)))


def number(value: float) -> str:
    """Write a number in three digits, or as many as it has before the point."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def goal(result: Result, row: Row) -> str:
    """Write the goal of a row, and whether it is reached."""
    if row.goal is None:
        return ""
    mark = {True: " ✓", False: " ✗", None: ""}[result.is_reached(row)]
    written = amount(row.goal, result.unit) if result.is_goal_a_figure else number(row.goal)
    return f"≤ {written}{mark}"


def ratio(row: Row) -> str:
    return "" if row.ratio is None else number(row.ratio)


def peer(result: Result) -> str:
    """Write the best peer, and its cost as a ratio to the code by hand."""
    best = result.best_peer()
    if best is None or best.figure is None:
        return "–" if not result.of("peer") else "not installed"
    cost = f"× {number(best.ratio)}" if best.ratio is not None else amount(best.figure, result.unit)
    return f"{best.name}: {cost}"


def summary(results: Results) -> str:
    """One table: every way of this package, by families."""
    lines = [HEAD]
    for family in FAMILIES:
        rows = [line for result in results.family(family) for line in _ways(result)]
        if rows:
            lines += [f"| **{heading(family)}** | | | | |", *rows]
    return "\n".join(lines)


def _ways(result: Result) -> Iterator[str]:
    for row in result.of("ours"):
        cost = row.note.partition(":")[0] if row.figure is None else amount(row.figure, result.unit)
        ours = f"**{ratio(row)}**" if row.ratio is not None else ""
        yield f"| {row.name} | {cost} | {ours} | {goal(result, row)} | {peer(result)} |"


def cases(result: Result) -> str:
    """All cases of one question, as a table with a heading."""
    lines = [
        f"### {result.text}",
        "",
        "| | case | cost | × by hand | to reach | |",
        "|---|---|--:|--:|--:|---|",
    ]
    for row in result.rows:
        cost = "" if row.figure is None else amount(row.figure, result.unit)
        cells = (row.kind, row.name, cost, ratio(row), goal(result, row), row.note)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def all_cases(results: Results) -> str:
    """Every question of every family, with all of its cases."""
    parts: list[str] = []
    for family in FAMILIES:
        if found := results.family(family):
            parts += [f"## {heading(family)}", "", *map(cases, found)]
    return "\n".join(parts)


def circumstances(results: Results) -> str:
    """The machine, Python and the versions of each run, and which families it measured."""
    families: dict[Run, list[str]] = {}
    for result in results.in_order():
        names = families.setdefault(result.run, [])
        if result.family not in names:
            names.append(result.family)
    lines: list[str] = []
    for run, names in families.items():
        versions = ", ".join(f"{name} {version}" for name, version in run.versions)
        lines.append(
            f"- {', '.join(f'`{name}`' for name in names)}: {run.date} UTC, {run.python}, "
            f"{run.loop}, medians of {run.rounds} rounds"
            + (f" at {run.scale:g} of the elements" if run.scale != 1 else "")
            + f"; {run.machine}; {versions}"
        )
    return "\n".join(lines)
