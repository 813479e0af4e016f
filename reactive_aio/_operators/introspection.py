"""Reports about a flow: how many elements it holds at most, and how it runs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._core.compiler.chain import AsyncSource, Chain, PullSource, PushSource

if TYPE_CHECKING:
    from ..stage import Fluent

__all__ = ("Bound", "bound", "explain")


@dataclass(frozen=True, slots=True)
class Bound:
    """How many elements a flow holds at most, part by part; `str` makes a sentence of it."""

    parts: tuple[tuple[str, int | None], ...]
    """The parts that hold elements, and how many; None for an unbounded one."""

    @property
    def total(self) -> int | None:
        """The sum, or None when something is unbounded."""
        sizes = [size for _, size in self.parts if size is not None]
        return sum(sizes) if len(sizes) == len(self.parts) else None

    @property
    def unbounded(self) -> tuple[str, ...]:
        """The names of the unbounded parts."""
        return tuple(name for name, size in self.parts if size is None)

    def __str__(self) -> str:
        if self.unbounded:
            return f"unbounded: {', '.join(self.unbounded)}"
        if not self.parts:
            return "holds no element"
        parts = ", ".join(f"{name} {size}" for name, size in self.parts)
        return f"holds at most {_elements(self.total)} ({parts})"


def bound(source: "Fluent[Any]") -> Bound:
    """Report how many elements one subscription of this flow holds at most.

    Elements count while they wait: in boundaries, in operators that collect, in sources that read
    ahead. The element that is being processed does not count. For flows that an operator makes
    while it runs (the inner ones of flat_map), the operator's prefetch counts.
    """
    return Bound(tuple(_held(source.chain)))


def _held(chain: Chain) -> Iterator[tuple[str, int | None]]:
    for upstream in chain.source.upstreams:
        yield from _held(upstream.chain)
    if chain.source.holds != 0:
        yield chain.name, chain.source.holds
    for each in chain.stages:
        if each.holds != 0:
            yield str(each), each.holds


def explain(source: "Fluent[Any]", *, code: bool = False) -> str:
    """Describe how this flow runs: its islands, the queues between them, and what they hold.

    With *code*, also show the loop that each island runs for a subscriber with ``def`` methods, as
    tracebacks show it.
    """
    return "\n".join([*_lines(source.chain, code, last=True), str(bound(source))])


def _lines(chain: Chain, code: bool, *, last: bool = False) -> Iterator[str]:
    head = chain.source
    several = len(head.upstreams) > 1
    for upstream in head.upstreams:
        for number, line in enumerate(_lines(upstream.chain, code)):
            yield ("├ " if number == 0 else "│ ") + line if several else line
    stages = " → ".join(map(str, chain.stages))
    if isinstance(head, PushSource) and head.upstreams:
        yield f"║ {chain.name}{_size(head.holds)}"
        if not stages and not last:
            return
        yield f"island ({_mode(chain)}): {stages or 'delivery'}"
    else:
        yield f"island ({_mode(chain)}): {chain.island_text()}"
    if isinstance(head, PushSource) and head.details is not None:
        yield from ("    " + line for line in head.details().splitlines())
    if code:
        text = chain.compiled_loop("task" if chain.awaits else "sync", "call").text
        yield from ("    " + line for line in text.splitlines())


def _mode(chain: Chain) -> str:
    if chain.awaits:
        return "one task"
    feed = {PullSource: "pulled", PushSource: "pushed", AsyncSource: "awaited"}[type(chain.source)]
    return f"one loop, {feed}"


def _size(holds: int | None) -> str:
    if holds is None:
        return ", unbounded"
    return f", holds at most {_elements(holds)}" if holds else ""


def _elements(count: int | None) -> str:
    return f"{count} element{'' if count == 1 else 's'}"
