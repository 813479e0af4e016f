"""A graph as text: a flowchart of Mermaid."""

import re
from collections.abc import Iterator
from typing import Final

from .model import GraphModel, GraphNode
from .svg import delivered_text, held_text, size_text

__all__ = ("mermaid_of",)

_SPECIAL: Final = re.compile(r'[#"<>&`\\]')


def mermaid_of(graph: GraphModel) -> str:
    """The flowchart of *graph*; islands are boxes, and what holds elements has two more lines."""
    lines = ["flowchart TD"]
    for node in graph.nodes:
        text = "<br/>".join(map(_quoted, _lines(node)))
        begin, end = ("[[", "]]") if node.kind == "boundary" else ("[", "]")
        lines.append(f'    {node.key}{begin}"{text}"{end}')
    for (above, below), times in graph.edges.items():
        arrow = f"-- ×{times} -->" if times > 1 else "-->"
        lines.append(f"    {above} {arrow} {below}")
    return "\n".join(lines)


def _lines(node: GraphNode) -> Iterator[str]:
    yield from node.steps or (node.label,)
    if node.kind == "boundary" or node.holds != 0:
        yield size_text(node.holds)
    if node.figures is not None:
        is_queue = node.kind == "boundary"
        yield held_text(node, node.figures) if is_queue else delivered_text(node.figures)


def _quoted(text: str) -> str:
    """*text* without what has a meaning in Mermaid: those letters are written as numbers."""
    return _SPECIAL.sub(lambda found: f"#{ord(found[0])};", text)
