"""The graph of a flow: its islands and the queues and operators between them, with live figures.

The nodes are those of `explain`. A subscription that runs is laid over them: its islands have the
sources of the chains that they were made of, which a chain shares with its continuations.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from ..._core.compiler.chain import Chain, PushSource
from ..._core.compiler.places import describe_place
from ..._core.observation.causes import Cause, waits_on_what
from ..._core.observation.figures import limited
from ..._core.observation.registry import named_flow
from ..._core.subscription.island import Island

if TYPE_CHECKING:
    from ...stage import Fluent

__all__ = (
    "GraphModel",
    "GraphNode",
    "NodeFigures",
    "graph_of",
    "graph_of_subscription",
)
_MOST_NODES: Final = 200
_MOST_SUBSCRIPTIONS: Final = 64
_MOST_ISLANDS: Final = 2000
"""Of one subscription: flat_map may have many upstreams."""


@dataclass(slots=True)
class NodeFigures:
    """What the running subscriptions do at one node, together."""

    islands: int = 0
    """How many islands run there; of an operator, how many subscriptions it has."""
    delivered: int = 0
    """Elements that have left it."""
    requested: int | None = 0
    """The demand that it has not met; None if that is unlimited."""
    held: int = 0
    """Elements that it holds; a list counts once."""
    rate: float | None = None
    """Elements for each second, for pictures that are taken again and again."""
    calls: int = 0
    """Calls of the user's functions that run at the same time."""
    retries: int = 0
    inner: int = 0
    """Flows that it has made of elements, and that run now."""
    waits_for: str = ""
    """What one of its islands waits for."""

    def add_demand(self, requested: int | None) -> None:
        both = self.requested is not None and requested is not None
        self.requested = (self.requested or 0) + (requested or 0) if both else None


@dataclass(slots=True)
class GraphNode:
    """An island, or what holds elements between two of them."""

    key: str
    """Its name within the graph: ``n0``."""
    kind: Literal["island", "boundary", "more"]
    label: str
    """How it runs; of a boundary, its operator."""
    steps: tuple[str, ...] = ()
    """The operators that run in the island, and its source."""
    holds: int | None = 0
    """How many elements a boundary holds at most; None if that is unlimited."""
    places: tuple[str, ...] = ()
    """Where these operators, or the boundary, are written."""
    figures: NodeFigures | None = None
    """None as long as nothing runs."""
    stuck: str = ""
    """What to say of the node because of which nothing is delivered."""


@dataclass(slots=True)
class GraphModel:
    """Nodes from the sources to the consumer, and between which of them elements pass."""

    nodes: list[GraphNode] = field(default_factory=list[GraphNode])
    edges: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    """The keys of two nodes, and how often the second subscribes to the first."""
    running: int | None = None
    """How many subscriptions run; None if no part of the flow has a name."""


def graph_of(source: "Fluent[Any]") -> GraphModel:
    """The graph of a flow, with the figures of its subscriptions if it, or a part, has a name."""
    builder = _Builder(source.chain)
    graph = builder.graph
    labels = [label for chain in builder.chains if (label := chain.label) is not None]
    if labels:
        islands = [
            island
            for label in dict.fromkeys(labels)
            for island, _ in named_flow(label).subscriptions()[:_MOST_SUBSCRIPTIONS]
        ]
        of_flow = [each for each in islands if builder.has(each.chain)]
        graph.running = len(of_flow)
        builder.lay_over(of_flow)
    return graph


def graph_of_subscription(island: Island, cause: Cause | None = None) -> GraphModel:
    """The graph of one running subscription; with a *cause*, of one that delivers nothing."""
    builder = _Builder(island.chain)
    builder.graph.running = 1
    builder.lay_over([island])
    if cause is not None:
        builder.mark(island, cause)
    return builder.graph


class _Builder:
    """Makes the nodes of a chain and of those that it reads from, each once."""

    def __init__(self, last: Chain) -> None:
        self.graph = GraphModel()
        self.chains: list[Chain] = []
        """Those that have nodes, sources first."""
        self.ends: dict[int, tuple[GraphNode, GraphNode]] = {}
        """The first and the last node of a chain, by the id of its source."""
        self._operators: dict[int, GraphNode] = {}
        """The nodes of the operators that run, by their ids."""
        self._hidden: GraphNode | None = None
        """The node for all chains that have none of their own."""
        self._hidden_count = 0
        for chain in _in_order(last):
            self._add(chain, is_last=chain is last)

    def _add(self, chain: Chain, *, is_last: bool) -> None:
        if len(self.graph.nodes) >= _MOST_NODES - 2 and not is_last:
            self._hide(chain)
            return
        self.chains.append(chain)
        head = chain.source
        stages = tuple(map(str, chain.stages))
        places = tuple(_place(each) for each in (chain, *chain.stages))
        if isinstance(head, PushSource) and head.upstreams:
            first = last = self._node("boundary", chain.name, holds=head.holds, places=places[:1])
            if stages or is_last:
                last = self._node("island", chain.mode_text, stages or ("delivery",), places[1:])
                self.graph.edges[first.key, last.key] = 1
        else:
            first = last = self._node(
                "island", chain.mode_text, (chain.name, *stages), places, head.holds
            )
        self.ends[id(head)] = first, last
        self._connect(chain, first)

    def _hide(self, chain: Chain) -> None:
        hidden = self._hidden = self._hidden or self._node("more", "")
        self._hidden_count += 1
        hidden.label = f"{self._hidden_count} more"
        self.ends[id(chain.source)] = hidden, hidden
        self._connect(chain, hidden)

    def _connect(self, chain: Chain, first: GraphNode) -> None:
        for upstream in chain.source.upstreams:
            _, above = self.ends[id(upstream.chain.source)]
            edge = above.key, first.key
            if self._hidden in (above, first):
                if above is not first:
                    self.graph.edges[edge] = 1
            else:
                self.graph.edges[edge] = self.graph.edges.get(edge, 0) + 1

    def _node(
        self,
        kind: Literal["island", "boundary", "more"],
        label: str,
        steps: tuple[str, ...] = (),
        places: tuple[str, ...] = (),
        holds: int | None = 0,
    ) -> GraphNode:
        key = f"n{len(self.graph.nodes)}"
        self.graph.nodes.append(node := GraphNode(key, kind, label, steps, holds, places))
        return node

    def has(self, chain: Chain) -> bool:
        """Whether *chain* is of this flow, or calls a function with its elements in its name."""
        upstreams = [each.chain for each in chain.source.upstreams]
        unnamed = [each for each in upstreams if each.label is None]
        return any(id(each.shown_source) in self.ends for each in (chain, *unnamed))

    # -- what runs ---------------------------------------------------------------------------------
    def lay_over(self, islands: Iterable[Island]) -> None:
        """Add the figures of *islands*, and of all that are upstream of them."""
        waiting, count, seen = list(islands), 0, set[int]()
        while waiting and count < _MOST_ISLANDS:
            island = waiting.pop()
            if id(island) in seen:
                continue
            seen.add(id(island))
            count += 1
            waiting += self._lay_over(island)

    def mark(self, island: Island, cause: Cause) -> None:
        """Mark the node because of which *island* delivers nothing: the last one that is shown."""
        shown = [self._operators[id(each)] for each in cause.path if id(each) in self._operators]
        ends = self.ends.get(id(island.chain.shown_source))
        if shown:
            shown[-1].stuck = "stuck here"
        elif ends is not None:
            ends[1].stuck = "stuck below" if cause.kind == "demand" else "stuck here"

    def _lay_over(self, island: Island) -> Iterator[Island]:
        ends = self.ends.get(id(island.chain.shown_source))
        if ends is not None and ends[0] is not self._hidden:
            first, last = ends
            _add_island(_figures(last), island)
            if first.kind == "boundary":
                _add_queue(_figures(first), island, is_last=first is last)
        upstream = None if island.input_queue is None else island.input_queue.upstream
        if upstream is not None:
            if ends is not None:
                self._operators[id(upstream)] = ends[0]
            yield from (each for each in upstream.upstreams if isinstance(each, Island))


def _in_order(last: Chain) -> list[Chain]:
    """*last* and the chains that it reads from, sources first; no recursion, for any depth."""
    found: dict[int, Chain] = {}
    waiting: list[tuple[Chain, bool]] = [(last, False)]
    while waiting:
        chain, is_complete = waiting.pop()
        if is_complete:
            found.setdefault(id(chain.source), chain)
        elif id(chain.source) not in found:
            waiting.append((chain, True))
            upstreams = reversed(chain.source.upstreams)
            waiting += [(each.chain, False) for each in upstreams]
    return list(found.values())


def _place(written: Any) -> str:
    return "" if written.place is None else describe_place(written.place).partition("\n")[0]


def _figures(node: GraphNode) -> NodeFigures:
    if node.figures is None:
        node.figures = NodeFigures()
    return node.figures


def _add_island(figures: NodeFigures, island: Island) -> None:
    count = island.delivered
    figures.islands += 1
    figures.delivered += count
    figures.add_demand(limited(island.limit - count))
    _, figures.waits_for = waits_on_what(island)


def _add_queue(figures: NodeFigures, island: Island, *, is_last: bool) -> None:
    """Add what *island* reads from: its input queue, and the operator that fills it."""
    queue = island.input_queue
    if queue is None:
        return
    waiting = sum(len(chunk) for chunk in queue.waiting)
    figures.held += waiting
    if not is_last:
        figures.islands += 1
        figures.add_demand(limited(queue.outstanding))
    if (upstream := queue.upstream) is not None:
        figures.held += upstream.held
        figures.calls += upstream.calls
        figures.retries += upstream.retries
        known = len(island.chain.source.upstreams)
        figures.inner += max(0, len(upstream.upstreams) - known)
