"""The results as Markdown: one table of all ways, and one of all cases for each question."""

from collections.abc import Iterator
from typing import Final

from .cases import TIME, Row
from .catalog import FAMILIES, heading
from .results import Result, Results, Run

HEAD: Final = (
    "| way | cost | × hand-written | to reach | best peer |\n"
    "|---|--:|--:|--:|---|"
)  # fmt: skip
NANO: Final = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns"))


def amount(figure: float, unit: str) -> str:
    """Write a figure with its unit, in at most four digits."""
    name, _, rest = unit.partition(" ")
    if name == TIME:
        factor, name = next((each for each in NANO if figure >= each[0]), NANO[-1])
        figure /= factor
    return " ".join(filter(None, (number(figure), name, rest)))


def number(value: float) -> str:
    """Write a number in three digits, or as many as it has before the point."""
    return f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f}"


def goal(result: Result, row: Row) -> str:
    """Write the goal of a row, and whether it is reached."""
    if row.goal is None:
        return ""
    mark = {True: " ✓", False: " ✗", None: ""}[result.is_reached(row)]
    unit = f" {result.unit}" if result.is_goal_a_figure else ""
    written = f"{row.goal:,.0f}" if row.goal >= 100 else f"{row.goal:.3g}"
    return f"≤ {written}{unit}{mark}"


def measured(result: Result, row: Row) -> str:
    """Write what the goal is about: the figure, or the ratio."""
    if not result.is_goal_a_figure:
        return ratio(row)
    return "" if row.figure is None else amount(row.figure, result.unit)


def ratio(row: Row) -> str:
    return "" if row.ratio is None else number(row.ratio)


def peer(result: Result, row: Row) -> str:
    """Write the best peer, its ratio to hand-written code, and whether it costs less."""
    best = result.best_peer()
    if best is None or best.figure is None:
        return "–" if not result.of("peer") else "not installed"
    cost = f"× {number(best.ratio)}" if best.ratio is not None else amount(best.figure, result.unit)
    return f"{best.name}: {cost}" + (", **less**" if is_undercut(result, row) else "")


def summary(results: Results) -> str:
    """One table: the ways that have a goal, by families."""
    lines = [HEAD]
    for family in FAMILIES:
        rows = [line for result in results.family(family) for line in _ways(result)]
        if rows:
            lines += [f"| **{heading(family)}** | | | | |", *rows]
    return "\n".join(lines)


def _ways(result: Result) -> Iterator[str]:
    for row in result.of("ours"):
        if row.goal is None:
            continue
        cost = row.note.partition(":")[0] if row.figure is None else amount(row.figure, result.unit)
        ours = f"**{ratio(row)}**" if row.ratio is not None else ""
        yield f"| {row.name} | {cost} | {ours} | {goal(result, row)} | {peer(result, row)} |"


def shortfalls(results: list[Result]) -> str:
    """List the ways that miss their goal, and those that a peer undercuts."""
    missed = [
        f"{row.name}: {measured(result, row) or row.note}, {goal(result, row)}"
        for result in results
        for row in result.of("ours")
        if result.is_reached(row) is False
    ]
    undercut = [
        f"{row.name}: {ratio(row)}; {peer(result, row)}"
        for result in results
        for row in result.of("ours")
        if row.goal is not None and is_undercut(result, row)
    ]
    return "\n".join(
        f"{title}:\n  " + "\n  ".join(lines) + "\n"
        for title, lines in (("Not reached", missed), ("A peer costs less", undercut))
        if lines
    )


def is_undercut(result: Result, row: Row) -> bool:
    """Whether a peer costs less than *row*."""
    best = result.best_peer()
    return bool(best and best.figure and row.figure and best.figure < row.figure)


def cases(result: Result) -> str:
    """All cases of one question, as a table with a heading."""
    run = result.run
    lines = [
        f"### {result.text}",
        "",
        f"Medians of {run.rounds} rounds; {run.date}." if run.rounds > 1 else f"{run.date}.",
        "",
        "| | case | cost | × hand-written | to reach | |",
        "|---|---|--:|--:|--:|---|",
    ]
    for row in result.rows:
        cost = "" if row.figure is None else amount(row.figure, result.unit)
        cells = (row.kind, row.name, cost, ratio(row), goal(result, row), row.note)
        lines.append("| " + " | ".join(map(_cell, cells)) + " |")
    return "\n".join([*lines, ""])


def _cell(text: str) -> str:
    """Write *text*, such as the message of an error, in one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def all_cases(results: Results) -> str:
    """Every question of every family, with all of its cases."""
    parts: list[str] = []
    for family in FAMILIES:
        if found := results.family(family):
            parts += [f"## {heading(family)}", "", *map(cases, found)]
    return "\n".join(parts)


def circumstances(results: Results) -> str:
    """The machine, Python and the versions of each run, and which families it measured."""
    families: dict[str, list[str]] = {}
    for result in results.in_order():
        names = families.setdefault(_described(result.run), [])
        if result.family not in names:
            names.append(result.family)
    return "\n".join(
        f"- {', '.join(f'`{name}`' for name in names)}: {run}" for run, names in families.items()
    )


def _described(run: Run) -> str:
    parts = [f"{run.date}: {run.python}, {run.loop}", run.machine]
    if run.versions:
        parts.append(", ".join(f"{name} {version}" for name, version in run.versions))
    if run.scale != 1:
        parts.append(f"{run.scale:g} of the elements")
    return "; ".join(parts)
