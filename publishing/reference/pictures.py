"""Marble diagrams as pictures: a run of a diagram, drawn as SVG.

Each tick has a column, which is as wide as the elements in it; the ticks of all lanes are aligned.
Equal letters have one color, whatever their case. The picture has a background, and colors for
light and dark screens.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from publishing.reference.diagram_runs import SOURCE_NAMES, InputLane, Run
from reactive_aio.testing.marbles import COMPLETE, FAIL, Demand, Lane

__all__ = ("picture", "title")

EDGE: Final = 20
"""The space around everything."""
LANE: Final = 48
"""The height of a lane."""
LINE: Final = 20
"""The height of a line of code."""
HALF: Final = 15
"""Half the height of an element."""
EMPTY: Final = 24
"""The width of a tick without a signal."""
LETTER: Final = 8.4
"""The width of a letter of an element, and of the code."""
NAME: Final = 76
"""The width of the names of the lanes."""
LONGEST: Final = 72
"""The longest line of code."""
COLORS: Final = 6
STYLE: Final = """
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#1f2328;text-anchor:middle}
.n{font-size:12px;fill:#59636e;text-anchor:start}
.t{font-size:11px;fill:#59636e}
.k{fill:#fff;stroke:#d1d9e0}
.b{fill:#eef4fb;stroke:#8fb3d9}
.l,.e{stroke:#59636e;stroke-width:2;fill:none}
.o{stroke:#b7bfc8;stroke-width:2;stroke-dasharray:2 4;fill:none}
.x{stroke:#cf222e;stroke-width:3;fill:none}
.a{fill:#59636e}
.d{fill:#f6f8fa;stroke:#818b98}
.p{opacity:.4}
.c0{fill:#cfe5ff;stroke:#2f6fbd}.c1{fill:#ffdfb6;stroke:#b1690e}.c2{fill:#c8efd0;stroke:#2b8a3e}
.c3{fill:#ecd9fb;stroke:#8250b8}.c4{fill:#ffd6e2;stroke:#b8386c}.c5{fill:#d5eeee;stroke:#1c7a7d}
.cn{fill:#f1f3f5;stroke:#6e7781}
@media (prefers-color-scheme:dark){
text{fill:#f0f6fc}.n,.t{fill:#9da7b3}.k{fill:#0d1117;stroke:#3d444d}.b{fill:#14243a;stroke:#3f6ea3}
.l,.e{stroke:#9da7b3}.o{stroke:#4a525c}.x{stroke:#ff7b72}.a{fill:#9da7b3}
.d{fill:#1c222a;stroke:#7d8590}
.c0{fill:#123a66;stroke:#6cb0ff}.c1{fill:#553408;stroke:#f0a94c}.c2{fill:#154427;stroke:#5dc977}
.c3{fill:#3c2459;stroke:#c297f2}.c4{fill:#561d35;stroke:#f586ae}.c5{fill:#0f4143;stroke:#57c3c6}
.cn{fill:#262c34;stroke:#8d96a0}}
""".strip()


@dataclass(frozen=True)
class _Columns:
    """Where each tick is."""

    centers: list[float]
    begin: float
    end: float

    @classmethod
    def of(cls, lanes: Sequence[Lane], begin: float) -> "_Columns":
        """Columns that are wide enough for all *lanes*."""
        centers: list[float] = []
        at = begin + 6
        for tick in range(max(lane.length for lane in lanes)):
            width = max(EMPTY, *(_width(_at(lane, tick)) + 6 for lane in lanes))
            centers.append(at + width / 2)
            at += width
        return cls(centers, begin, at + 14)


def picture(run: Run) -> str:
    """The SVG of *run*."""
    output = _shortened(run.output, run)
    lanes = [*(each.lane for each in run.inputs), output]
    named = len(run.inputs) > 1 or run.demand is not None
    columns = _Columns.of(lanes, EDGE + named * NAME)
    code = _lines(run.code)
    inside = max(columns.end - EDGE, max(map(len, code)) * LETTER + 24)
    parts: list[str] = []
    y = EDGE
    for name, each in zip(SOURCE_NAMES, run.inputs, strict=False):
        parts += [*_name(name, y + HALF, named), *_input(each, columns, y + HALF)]
        y += LANE - 6 * (each.cancelled_at is None)
    height = LINE * len(code) + 14
    parts += _box(code, y, inside, height)
    y += height + LANE - 6 - HALF
    parts += [*_name("result", y, named), *_lane(output, columns, y)]
    if run.demand is not None:
        y += LANE
        parts += [*_name("demand", y, named), *_demand(run.demand, output, columns, y)]
    return _document(parts, inside + 2 * EDGE, y + HALF + EDGE, title(run))


def _shortened(output: Lane, run: Run) -> Lane:
    """The output up to its end, or for as long as the diagram lasts."""
    length = max([each.lane.length for each in run.inputs], default=0)
    if not output.end:
        return output
    return Lane(output.signals, max(length, output.signals[-1][0] + 1))


def title(run: Run) -> str:
    """The lanes of *run* as text, with its code in between."""
    output = run.output
    if output.end:
        output = Lane(output.signals, output.signals[-1][0] + 1)
    return "\n".join([*(str(each.lane) for each in run.inputs), run.code, str(output)])


def _document(parts: Sequence[str], width: float, height: float, title: str) -> str:
    card = f'<rect class="k" x=".5" y=".5" width="{width - 1:g}" height="{height - 1:g}" rx="8"/>'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:g}" '
            f'height="{height:g}" viewBox="0 0 {width:g} {height:g}">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style>",
            card,
            *parts,
            "</svg>\n",
        ]
    )


# -- the operator ----------------------------------------------------------------------------------
def _lines(code: str) -> list[str]:
    """*code* in lines that are not too long, each of which begins with a method."""
    lines = [""]
    for number, part in enumerate(code.split(").")):
        call = part if number == 0 else f".{part}"
        call += ")" * (number < code.count(")."))
        if lines[-1] and len(lines[-1]) + len(call) > LONGEST:
            lines.append("")
        lines[-1] += call
    return lines


def _box(code: list[str], y: float, width: float, height: float) -> Iterator[str]:
    yield (f'<rect class="b" x="{EDGE}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6"/>')
    for number, line in enumerate(code):
        at = y + 7 + LINE * (number + 0.5) + 5
        yield f'<text x="{EDGE + width / 2:g}" y="{at:g}">{escape(line)}</text>'


def _name(name: str, y: float, shown: bool) -> Iterator[str]:
    if shown:
        yield f'<text class="n" x="{EDGE}" y="{y + 4:g}">{name}</text>'


# -- lanes -----------------------------------------------------------------------------------------
def _input(source: InputLane, columns: _Columns, y: float) -> Iterator[str]:
    if source.cancelled_at is None or source.cancelled_at >= source.lane.length:
        yield from _lane(source.lane, columns, y)
        return
    tick = source.cancelled_at
    after = Lane(tuple(each for each in source.lane.signals if each[0] > tick), source.lane.length)
    before = Lane(tuple(each for each in source.lane.signals if each[0] <= tick), tick + 1)
    at = columns.centers[tick] + _width(_at(before, tick)) / 2 + 5
    yield _line("l", columns.begin, at, y)
    yield _line("o", at, _end(after, columns), y)
    yield from _signals(before, columns, y)
    yield from ('<g class="p">', *_signals(after, columns, y), "</g>")
    yield f'<path class="e" d="M{at - 4:g} {y - 9:g}l8 18"/>'
    yield f'<text class="t" x="{at + 8:g}" y="{y + 22:g}">cancelled</text>'


def _lane(lane: Lane, columns: _Columns, y: float) -> Iterator[str]:
    end = _end(lane, columns)
    yield _line("l", columns.begin, end, y)
    if not lane.end:
        yield f'<path class="a" d="M{end:g} {y:g}l-9-5v10z"/>'
    yield from _signals(lane, columns, y)


def _end(lane: Lane, columns: _Columns) -> float:
    if not lane.end:
        return columns.end
    tick = lane.signals[-1][0]
    here = _at(lane, tick)
    return columns.centers[tick] + _width(here) / 2 - _width(here[-1:]) / 2


def _line(kind: str, begin: float, end: float, y: float) -> str:
    return f'<path class="{kind}" d="M{begin:g} {y:g}H{end:g}"/>'


def _signals(lane: Lane, columns: _Columns, y: float) -> Iterator[str]:
    for tick in dict.fromkeys(tick for tick, _ in lane.signals):
        here = _at(lane, tick)
        at = columns.centers[tick] - _width(here) / 2
        for signal in here:
            width = _width([signal])
            yield from _signal(signal, at + width / 2, y, width)
            at += width


def _signal(signal: str, x: float, y: float, width: float) -> Iterator[str]:
    if signal == COMPLETE:
        yield f'<path class="e" d="M{x:g} {y - HALF:g}v{2 * HALF}"/>'
    elif signal == FAIL:
        yield f'<path class="x" d="M{x - 8:g} {y - 8:g}l16 16m0-16l-16 16"/>'
    else:
        yield from _element(signal, x, y, width - 2, f"c{_color(signal)}")


def _element(text: str, x: float, y: float, width: float, kind: str) -> Iterator[str]:
    yield (
        f'<rect class="{kind}" x="{x - width / 2:g}" y="{y - HALF:g}" width="{width:g}" '
        f'height="{2 * HALF}" rx="{HALF}"/>'
    )
    yield f'<text x="{x:g}" y="{y + 5:g}">{escape(text)}</text>'


def _demand(demand: Demand, output: Lane, columns: _Columns, y: float) -> Iterator[str]:
    """The requests, as arrows that point at the first signal of their tick."""
    for tick, cell in enumerate(demand.cells()[: len(columns.centers)]):
        if cell != "-":
            here = _at(output, tick)
            x = columns.centers[tick] - _width(here) / 2 + _width(here[:1]) / 2
            yield f'<path class="d" d="M{x:g} {y - 21:g}l12 10v22h-24v-22z"/>'
            yield f'<text x="{x:g}" y="{y + 5:g}">{escape(cell)}</text>'


def _at(lane: Lane, tick: int) -> list[str]:
    return [signal for at, signal in lane.signals if at == tick]


def _width(signals: Sequence[str]) -> float:
    """The width of *signals* side by side."""
    return sum(_width_of(each) for each in signals)


def _width_of(signal: str) -> float:
    if signal in (COMPLETE, FAIL):
        return 14 if signal == COMPLETE else 22
    return max(2.0 * HALF, len(signal) * LETTER + 12) + 2


def _color(text: str) -> int | str:
    """A number for a letter or a digit; lists, tuples and words have none."""
    if len(text) != 1:
        return "n"
    shift = COLORS // 2 if text.isdigit() else 0  # "1" and "a" differ
    return (ord(text.lower()) + shift) % COLORS
