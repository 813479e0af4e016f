"""A plot of each family as SVG: every way beside the peers, as a ratio to hand-written code.

It is drawn without a library: matplotlib and what it needs would be 100 MB for one kind of plot,
and its files differ from run to run where no figure does.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

from .cases import Row
from .results import Result
from .tables import number

LABEL_WIDTH: Final = 480
RATIO_WIDTH: Final = 60
AXIS_WIDTH: Final = 330
PEER_WIDTH: Final = 330
LEFT: Final = LABEL_WIDTH + RATIO_WIDTH
WIDTH: Final = LEFT + AXIS_WIDTH + PEER_WIDTH
LINE: Final = 26
TOP: Final = 92
BOTTOM: Final = 16
LONGEST_NAME: Final = 66
"""Characters that fit into the width of a label, and of a peer's name."""
LONGEST_PEER: Final = 36

INK, FAINT, OURS, PEER, GOAL = "#1f2328", "#d0d7de", "#0969da", "#bc4c00", "#1a7f37"


@dataclass(frozen=True)
class Line:
    """One line of a plot."""

    name: str
    ratio: float
    goal: float | None
    peers: tuple[float, ...]
    best_peer: str


class Axis:
    """A logarithmic axis that begins below 1."""

    def __init__(self, ratios: list[float]) -> None:
        self._least = min(0.5, *ratios) / 1.1
        self._most = max(4.0, *ratios) * 1.25

    def x(self, ratio: float) -> float:
        span = math.log(self._most / self._least)
        return LEFT + AXIS_WIDTH * math.log(ratio / self._least) / span

    def ticks(self) -> Iterator[float]:
        """1, and each power of 10, or more of them on a short axis."""
        steps = (1.0, 2.0, 5.0) if self._most / self._least < 60 else (1.0,)
        for power in range(-3, 8):
            for step in steps:
                tick = step * 10.0**power
                if self._least <= tick <= self._most:
                    yield tick


def plot(results: list[Result], heading: str) -> str:
    """Return the SVG of a family; empty if none of its ways has a ratio."""
    heading = heading.replace("`", "")
    lines = [line for result in results for line in _lines(result)]
    if not lines:
        return ""
    axis = Axis([ratio for line in lines for ratio in (line.ratio, *line.peers)])
    height = TOP + LINE * len(lines) + BOTTOM
    parts = [*_frame(heading, height), *_ticks(axis, height)]
    if any(line.peers for line in lines):
        parts.append(_text(LEFT + AXIS_WIDTH + 12, 72, "best peer"))
    for place, line in enumerate(lines):
        parts += _drawn(line, axis, TOP + LINE * place + LINE / 2)
    return "\n".join([*parts, "</svg>", ""])


def _lines(result: Result) -> Iterator[Line]:
    peers = tuple(row.ratio for row in result.of("peer") if row.ratio)
    best = result.best_peer()
    named = ""
    if best is not None and best.ratio:
        named = f"{_shortened(best.name, LONGEST_PEER)}  ×{number(best.ratio)}"
    for row in result.of("ours"):
        if row.ratio and row.goal is not None:
            yield Line(row.name, row.ratio, _goal(result, row), peers, named)


def _goal(result: Result, row: Row) -> float | None:
    """Return the goal as a ratio."""
    if row.goal is None or not result.is_goal_a_figure:
        return row.goal
    return row.goal * row.ratio / row.figure if row.ratio and row.figure else None


def _frame(heading: str, height: float) -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" '
        f'width="{WIDTH}" height="{height:g}" role="img" '
        'font-family="Helvetica, Arial, sans-serif" font-size="13">'
    )
    yield f"<title>{escape(heading)}: × hand-written</title>"
    yield f'<rect width="{WIDTH}" height="{height:g}" rx="6" fill="#ffffff"/>'
    yield _text(16, 28, heading, size=17, weight="bold")
    yield _text(LABEL_WIDTH + RATIO_WIDTH - 10, 72, "× hand-written", anchor="end")
    x = LEFT
    for mark, name in ((_circle, "this package"), (_diamond, "a peer"), (_stroke, "to reach")):
        yield mark(x + 6, 23)
        yield _text(x + 18, 28, name)
        x += 120


def _ticks(axis: Axis, height: float) -> Iterator[str]:
    for tick in axis.ticks():
        x, color = axis.x(tick), INK if tick == 1 else FAINT
        yield (
            f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{height - BOTTOM + 6:g}" '
            f'stroke="{color}"/>'
        )
        weight = "bold" if tick == 1 else "normal"
        yield _text(x, 72, f"{tick:,g}", anchor="middle", weight=weight)


def _drawn(line: Line, axis: Axis, y: float) -> Iterator[str]:
    yield _text(16, y + 4, _shortened(line.name, LONGEST_NAME))
    yield _text(LEFT - 10, y + 4, number(line.ratio), anchor="end", weight="bold", color=OURS)
    yield from (_diamond(axis.x(ratio), y) for ratio in line.peers)
    if line.goal is not None:
        yield _stroke(axis.x(line.goal), y)
    yield _circle(axis.x(line.ratio), y)
    yield _text(LEFT + AXIS_WIDTH + 12, y + 4, line.best_peer, color=PEER)


def _shortened(name: str, longest: int) -> str:
    plain = name.replace("`", "")
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    weight: str = "normal",
    size: int = 13,
    color: str = INK,
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" '
        f'font-size="{size}" fill="{color}">{escape(text)}</text>'
    )


def _circle(x: float, y: float) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="{OURS}"/>'


def _diamond(x: float, y: float) -> str:
    return (
        f'<path d="M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z" fill="#ffffff" '
        f'stroke="{PEER}" stroke-width="1.6"/>'
    )


def _stroke(x: float, y: float) -> str:
    return (
        f'<line x1="{x:.1f}" y1="{y - 9:.1f}" x2="{x:.1f}" y2="{y + 9:.1f}" '
        f'stroke="{GOAL}" stroke-width="3"/>'
    )
