"""A graph as SVG: cards for islands, bars for what holds elements, from the sources down.

The colors are those of the page around it that is light or dark; every class is limited to the
picture, since a notebook puts several into one document.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from .model import GraphModel, GraphNode, NodeFigures

__all__ = ("svg_of",)

_LETTER: Final = 7.25
"""The width of a letter of a step, at 12px."""
_LINE: Final = 18
_PADDING: Final = 14
_NARROWEST: Final = 190
_LONGEST: Final = 64
"""Letters of a line."""
_FIRST_STEPS, _LAST_STEPS = 6, 6
_BESIDE: Final = 28
"""The space between two nodes of one row."""
_BELOW: Final = 34
"""The space between two rows."""
_EDGE: Final = 14
_BAR: Final = 6
_HALF_FULL, _FULL = 0.5, 0.9
_STYLE: Final = """
.rxg text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#1f2328}
.rxg .h{font-size:10.5px;fill:#59636e;letter-spacing:.03em}
.rxg .f{font-size:11px;fill:#0969da}.rxg .w{font-size:11px;fill:#59636e}
.rxg .i{fill:#fff;stroke:#c3ccd6}.rxg .b{fill:#eef4fb;stroke:#8fb3d9}
.rxg .m{fill:none;stroke:#c3ccd6;stroke-dasharray:3 3}
.rxg .r{fill:#d1d9e0}.rxg .low{fill:#2da44e}.rxg .half{fill:#bf8700}.rxg .full{fill:#cf222e}
.rxg .l{stroke:#818b98;stroke-width:1.5;fill:none}.rxg .a{fill:#818b98}
.rxg .run .i{stroke:#2da44e;stroke-width:1.5}
.rxg .stuck .i,.rxg .stuck .b{stroke:#cf222e;stroke-width:2.5}.rxg .k{font-weight:600;fill:#cf222e}
@media (prefers-color-scheme:dark){
.rxg text{fill:#e6edf3}.rxg .h,.rxg .w{fill:#9da7b3}.rxg .f{fill:#6cb0ff}
.rxg .i{fill:#151b23;stroke:#3d444d}.rxg .b{fill:#14243a;stroke:#3f6ea3}.rxg .m{stroke:#3d444d}
.rxg .r{fill:#2f3742}.rxg .low{fill:#3fb950}.rxg .half{fill:#d29922}.rxg .full{fill:#f85149}
.rxg .l{stroke:#7d8590}.rxg .a{fill:#7d8590}.rxg .run .i{stroke:#3fb950}
.rxg .stuck .i,.rxg .stuck .b{stroke:#f85149}.rxg .k{fill:#f85149}}
""".strip()


@dataclass(slots=True)
class _Card:
    """A node and its place in the picture."""

    node: GraphNode
    lines: list[tuple[str, str]]
    """The class and the text of each line."""
    width: float
    height: float
    x: float = 0
    y: float = 0

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


def svg_of(graph: GraphModel, title: str) -> str:
    """The picture of *graph*."""
    cards = {node.key: _card(node) for node in graph.nodes}
    width = _place_across(graph, cards) + 2 * _EDGE
    height = _place_down(_rows(graph), cards)
    parts = [
        *(_edge(cards[above], cards[below], n) for (above, below), n in graph.edges.items()),
        *(part for card in cards.values() for part in _draw(card)),
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="rxg" role="img" width="{width:g}" '
            f'height="{height:g}" viewBox="0 0 {width:g} {height:g}" '
            'style="max-width:100%;height:auto">',
            f"<title>{escape(title)}</title>",
            f"<style>{_STYLE}</style>",
            *parts,
            "</svg>",
        ]
    )


# -- where everything is ---------------------------------------------------------------------------
def _rows(graph: GraphModel) -> list[list[str]]:
    """The nodes in rows, each below all that it reads from, and as near to its reader as it can."""
    below: dict[str, list[str]] = {node.key: [] for node in graph.nodes}
    for above, reader in graph.edges:
        below[above].append(reader)
    height: dict[str, int] = {}
    for key in reversed(_readers_last(graph)):
        height[key] = 1 + max([height[reader] for reader in below[key]], default=-1)
    rows: list[list[str]] = [[] for _ in range(max(height.values()) + 1)]
    for node in graph.nodes:
        rows[-1 - height[node.key]].append(node.key)
    return rows


def _readers_last(graph: GraphModel) -> list[str]:
    """The keys in an order in which each node comes after those that it reads from."""
    missing = {node.key: 0 for node in graph.nodes}
    readers: dict[str, list[str]] = {node.key: [] for node in graph.nodes}
    for above, reader in graph.edges:
        missing[reader] += 1
        readers[above].append(reader)
    ready = [key for key, count in missing.items() if not count]
    ordered: list[str] = []
    while ready:
        ordered.append(key := ready.pop())
        for reader in readers[key]:
            missing[reader] -= 1
            if not missing[reader]:
                ready.append(reader)
    return ordered


def _place_down(rows: list[list[str]], cards: dict[str, _Card]) -> float:
    """Give each card its row; return the height of all."""
    y = float(_EDGE)
    for row in rows:
        lowest = max(cards[key].height for key in row)
        for key in row:
            cards[key].y = y + lowest - cards[key].height
        y += lowest + _BELOW
    return y - _BELOW + _EDGE


def _place_across(graph: GraphModel, cards: dict[str, _Card]) -> float:
    """Put each card in the middle above its first reader, beside the others; return the width."""
    upstreams: dict[str, list[str]] = {key: [] for key in cards}
    ordered, placed = _readers_last(graph), set[str]()
    for above, below in sorted(graph.edges, key=lambda edge: int(edge[0][1:])):
        if above not in placed:
            placed.add(above)
            upstreams[below].append(above)
    spans: dict[str, float] = {}
    for key in ordered:
        spans[key] = max(cards[key].width, _side_by_side([spans[each] for each in upstreams[key]]))
    begins = {ordered[-1]: float(_EDGE)}
    for key in reversed(ordered):
        begin, span = begins[key], spans[key]
        cards[key].x = begin + (span - cards[key].width) / 2
        begin += (span - _side_by_side([spans[each] for each in upstreams[key]])) / 2
        for each in upstreams[key]:
            begins[each] = begin
            begin += spans[each] + _BESIDE
    return spans[ordered[-1]]


def _side_by_side(widths: Sequence[float]) -> float:
    return sum(widths) + _BESIDE * max(0, len(widths) - 1)


# -- one node --------------------------------------------------------------------------------------
def _card(node: GraphNode) -> _Card:
    lines = list(_lines(node))
    width = max(_NARROWEST, *(len(text) * _LETTER + 2 * _PADDING for _, text in lines))
    height = len(lines) * _LINE + _PADDING + (_BAR + 6) * _has_bar(node)
    return _Card(node, lines, width, height)


def _has_bar(node: GraphNode) -> bool:
    return node.kind == "boundary" and node.figures is not None and bool(node.holds)


def _lines(node: GraphNode) -> Iterator[tuple[str, str]]:
    figures = node.figures
    if node.kind == "boundary":
        yield "s", _short(node.label)
        yield ("h", size_text(node.holds)) if figures is None else ("f", held_text(node, figures))
        yield from [("k", node.stuck)] * bool(node.stuck)
        return
    yield "h", _short(node.label)
    yield from (("s", _short(step)) for step in _few(node.steps))
    if node.holds != 0:
        yield "h", size_text(node.holds)
    if figures is not None:
        yield "f", delivered_text(figures)
        if figures.waits_for:
            yield "w", _short(f"waits for {figures.waits_for}")
    yield from [("k", node.stuck)] * bool(node.stuck)


def _few(steps: tuple[str, ...]) -> tuple[str, ...]:
    hidden = len(steps) - _FIRST_STEPS - _LAST_STEPS
    if hidden <= 1:
        return steps
    return (*steps[:_FIRST_STEPS], f"… {hidden} more", *steps[-_LAST_STEPS:])


def size_text(holds: int | None) -> str:
    """How many elements are held at most."""
    if holds is None:
        return "unbounded"
    return f"holds at most {holds:,}" if holds else "holds nothing"


def held_text(node: GraphNode, figures: NodeFigures) -> str:
    """What a boundary or an operator does now."""
    size = "∞" if node.holds is None else f"{node.holds:,}"
    parts = [f"{figures.held:,} of {size} held"]
    parts += [f"{figures.calls:,} calls"] * bool(figures.calls)
    parts += [f"{figures.inner:,} inner flows"] * bool(figures.inner)
    parts += [f"{figures.retries:,} retries"] * bool(figures.retries)
    parts.append(f"{demand_text(figures.requested)} requested")
    return " · ".join(parts)


def delivered_text(figures: NodeFigures) -> str:
    """What the islands at a node have delivered, and still have to."""
    rate = "" if figures.rate is None else f" · {figures.rate:,.1f}/s"
    several = f"{figures.islands:,} running · " if figures.islands > 1 else ""
    return (
        f"{several}{figures.delivered:,} delivered{rate} · "
        f"{demand_text(figures.requested)} requested"
    )


def demand_text(requested: int | None) -> str:
    """A demand; ∞ if it is unlimited."""
    return "∞" if requested is None else f"{requested:,}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _draw(card: _Card) -> Iterator[str]:
    node = card.node
    kind = {"island": "i", "boundary": "b", "more": "m"}[node.kind]
    running = "stuck" if node.stuck else "run" if node.figures is not None else ""
    yield f'<g data-node="{node.key}"' + (f' class="{running}">' if running else ">")
    if places := "\n".join(dict.fromkeys(filter(None, node.places))):
        yield f"<title>{escape(places)}</title>"
    yield (
        f'<rect class="{kind}" x="{card.x:g}" y="{card.y:g}" width="{card.width:g}" '
        f'height="{card.height:g}" rx="{4 if kind == "b" else 8}"/>'
    )
    y = card.y + _PADDING / 2
    for style, text in card.lines:
        y += _LINE
        yield f'<text class="{style}" x="{card.x + _PADDING:g}" y="{y - 5:g}">{escape(text)}</text>'
    if _has_bar(node):
        yield from _bar(card, y + 3)
    yield "</g>"


def _bar(card: _Card, y: float) -> Iterator[str]:
    """How full a boundary is."""
    figures, holds = card.node.figures, card.node.holds
    fill = min(1.0, figures.held / holds) if figures is not None and holds else 0.0
    width = card.width - 2 * _PADDING
    level = "low" if fill < _HALF_FULL else "half" if fill < _FULL else "full"
    at = f'x="{card.x + _PADDING:g}" y="{y:g}" height="{_BAR}" rx="3"'
    yield f'<rect class="r" {at} width="{width:g}"/>'
    if fill:
        yield f'<rect class="{level}" {at} width="{max(_BAR, width * fill):g}"/>'


def _edge(above: _Card, below: _Card, times: int) -> str:
    x, y, to_x, to_y = above.middle, above.y + above.height, below.middle, below.y - 1
    bend = max(12.0, (to_y - y) / 2)
    line = (
        f'<path class="l" d="M{x:g} {y:g}C{x:g} {y + bend:g} {to_x:g} {to_y - bend:g} '
        f'{to_x:g} {to_y - 6:g}"/><path class="a" d="M{to_x:g} {to_y:g}l-5-9h10z"/>'
    )
    if times > 1:
        line += f'<text class="h" x="{to_x + 9:g}" y="{to_y - 10:g}">×{times}</text>'
    return line
