"""Graph: the pictures of a flow."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .mermaid import mermaid_of
from .model import GraphModel, graph_of
from .svg import svg_of

if TYPE_CHECKING:
    from ...stage import Fluent

__all__ = ("Graph", "draw")

_TEXT, _HTML, _SVG = "text/plain", "text/html", "image/svg+xml"
_MERMAID: Final = "text/vnd.mermaid"


@dataclass(frozen=True, slots=True, repr=False)
class Graph:
    """The islands of a flow and what is between them, as they were when `Flow.graph` was called.

    A notebook shows the picture; `mermaid` and `svg` are for documents.
    """

    model: GraphModel
    trail: str
    """All operators on one line."""

    def mermaid(self) -> str:
        """A flowchart of Mermaid, which GitHub, GitLab and many editors show as a picture."""
        return mermaid_of(self.model)

    def svg(self) -> str:
        """A picture for light and dark pages, without scripts and without references outside."""
        return svg_of(self.model, self.trail)

    @property
    def running(self) -> int | None:
        """How many subscriptions the figures are of; None if no part of the flow has a name."""
        return self.model.running

    def __repr__(self) -> str:
        nodes, edges = len(self.model.nodes), len(self.model.edges)
        return f"<Graph of {nodes} nodes and {edges} edges: {self.trail}>"

    # -- notebooks ---------------------------------------------------------------------------------
    def _repr_html_(self) -> str:
        return f'<div style="overflow-x:auto">{self.svg()}</div>'

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        found = {
            _TEXT: repr(self),
            _HTML: self._repr_html_(),
            _SVG: self.svg(),
            _MERMAID: self.mermaid(),
        }
        return {
            kind: shown
            for kind, shown in found.items()
            if (include is None or kind in include) and kind not in (exclude or ())
        }


def draw(source: "Fluent[Any]") -> Graph:
    """The graph of *source*, as `Flow.graph` returns it."""
    return Graph(graph_of(source), source.chain.trail())
