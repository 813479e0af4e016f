"""Reports about a flow: how many elements it holds at most, how it runs, and what it does."""

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .._core.compiler.bound import Bound, count_elements, held
from .._core.compiler.chain import Chain, PushSource
from .._core.observation.figures import FlowStats, flow_stats

if TYPE_CHECKING:
    from ..observe import Graph
    from ..stage import Fluent

__all__ = ("Bound", "FlowStats", "bound", "explain", "graph", "stats")


def bound(source: "Fluent[Any]") -> Bound:
    """Report how many elements one subscription of this flow holds at most.

    Elements count while they wait, and a list of n elements counts as n: in boundaries, in
    operators that collect, in sources that read ahead. The element that is being processed does not
    count. For flows that an operator makes while it runs (the inner ones of flat_map), the
    operator's prefetch counts. ``async for`` and `stream` read ahead as well: ``stream().bound()``
    includes that.
    """
    return Bound(tuple(held(source.chain)))


def stats(source: "Fluent[Any]") -> FlowStats:
    """Report what the subscriptions of this flow do, which needs a name: ``flow.name("orders")``.

    The figures are those of all flows with the same name: of each subscription that runs, how many
    elements it has delivered and at what rate, the demand that is left, what each part holds and
    how old that is, what it waits for and for how long; and of all, how many have ended in which
    way, what they have delivered and dropped, how often something was tried again, and the last
    error. A rate, and an age, is measured from one call to the next. Call it on the thread of the
    event loop. Flows that an ``async for`` or a terminal operator iterates without a subscription,
    since they are synchronous, have no figures.
    """
    if source.chain.label is None:
        raise ValueError('stats: the flow has no name; give it one with name("...")')
    return flow_stats(source.chain.label)


def explain(source: "Fluent[Any]", *, code: bool = False, color: bool | None = None) -> str:
    """Describe how this flow runs: its islands, the queues between them, and what they hold.

    With *code*, also show the loop that each island runs for a subscriber with ``def`` methods, as
    tracebacks show it. The text has colors if *color* is true; by default, if the standard output
    is a terminal, and neither ``NO_COLOR`` nor ``TERM=dumb`` is set.
    """
    text = "\n".join([*_lines(source.chain, code), str(bound(source))])
    return colored(text) if color or (color is None and is_terminal_colored()) else text


def graph(source: "Fluent[Any]") -> "Graph":
    """Draw this flow: its islands, what holds elements between them, and how much of that is used.

    A notebook shows the result as a picture; ``graph().svg()`` is the same as a file, and
    ``graph().mermaid()`` a flowchart for Markdown. If the flow has a name and runs, the picture has
    figures of all its subscriptions together: what was delivered, what is held, the demand that is
    left, and what is waited for. Call it on the thread of the event loop then.
    """
    from ..observe.drawing.pictures import draw  # a room above this one, needed for a picture only

    return draw(source)


@dataclass(frozen=True, slots=True)
class _Part:
    """A chain, and what stands before its first line and before the others."""

    chain: Chain
    first: str = ""
    rest: str = ""
    discards: bool = False

    def upstreams(self) -> "Iterator[_Part]":
        """The chains above it, the last one first, as a stack needs them."""
        upstreams = self.chain.source.upstreams
        discards = self.discards or bool(self.chain.discard_hooks)
        edge, line = ("├ ", "│ ") if len(upstreams) > 1 else ("", "")
        for number in reversed(range(len(upstreams))):
            first = self.rest if number else self.first
            yield _Part(upstreams[number].chain, first + edge, self.rest + line, discards)


def _lines(last: Chain, code: bool) -> Iterator[str]:
    """The lines of all chains, upstreams first. A stack, since flows are deeper than recursion."""
    stack = [(_Part(last), False)]
    while stack:
        part, is_below_upstreams = stack.pop()
        if part.chain.source.upstreams and not is_below_upstreams:
            stack.append((part, True))
            stack.extend((each, False) for each in part.upstreams())
            continue
        discards = part.discards or bool(part.chain.discard_hooks)
        own = _own_lines(part.chain, code, part.chain is last, discards)
        for number, line in enumerate(own):
            yield (part.rest if number or is_below_upstreams else part.first) + line


def _own_lines(chain: Chain, code: bool, is_last: bool, discards: bool) -> Iterator[str]:
    head = chain.source
    stages = " → ".join(map(str, chain.stages))
    if isinstance(head, PushSource) and head.upstreams:
        yield f"║ {chain.name}{_size(head.holds)}"
        if not stages and not is_last:
            return
        yield f"island ({chain.mode_text}): {stages or 'delivery'}"
    else:
        yield f"island ({chain.mode_text}): {chain.island_text()}"
    if isinstance(head, PushSource) and head.details is not None:
        yield from ("    " + line for line in head.details().splitlines())
    if code:
        mode = "task" if chain.awaits else "sync"
        text = chain.compiled_loop(mode, "call", discards).text
        yield from ("    " + line for line in text.splitlines())


def _size(holds: int | None) -> str:
    if holds is None:
        return ", unbounded"
    return f", holds at most {count_elements(holds)}" if holds else ""


# -- the text of `explain` in the colors of a terminal ---------------------------------------------
_RESET: Final = "\x1b[0m"
_BOLD, _DIM, _RED, _YELLOW, _CYAN = (f"\x1b[{code}m" for code in (1, 2, 31, 33, 36))
_LINE: Final = re.compile(
    r"(?P<tree>(?:[├│] )*)(?P<head>island \((?P<mode>[^)]*)\): |║ )?(?P<rest>.*)"
)
_OPERATOR: Final = re.compile(r"(?:(?<=^)|(?<=→ ))[\w ]+")


def is_terminal_colored() -> bool:
    """Whether the standard output is a terminal that shows colors."""
    is_refused = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    return not is_refused and sys.stdout.isatty()


def colored(text: str) -> str:
    """*text* with names of operators bold, what holds elements yellow, the unbounded red."""
    *lines, bound = text.split("\n")
    return "\n".join([*map(_colored_line, lines), _colored_bound(bound)])


def _colored_line(line: str) -> str:
    found = _LINE.fullmatch(line)
    if found is None or line.startswith("    "):
        return f"{_DIM}{line}{_RESET}"
    tree = f"{_DIM}{found['tree']}{_RESET}" if found["tree"] else ""
    head, rest = found["head"], found["rest"]
    if head is None:
        return f"{tree}{_DIM}{rest}{_RESET}"
    if head.startswith("║"):
        return f"{tree}{_RED if rest.endswith(', unbounded') else _YELLOW}{head}{rest}{_RESET}"
    rest = _OPERATOR.sub(lambda name: f"{_BOLD}{name[0]}{_RESET}", rest)
    rest = rest.replace(" → ", f" {_DIM}→{_RESET} ")
    return f"{tree}{_CYAN}island{_RESET} {_DIM}({found['mode']}){_RESET}: {rest}"


def _colored_bound(line: str) -> str:
    return f"{_RED if line.startswith('unbounded') else _YELLOW}{line}{_RESET}"
