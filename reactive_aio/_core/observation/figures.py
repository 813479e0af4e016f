"""Figures: what one subscription has delivered, what upstream holds, and what it waits for.

The counts of a loop are local variables of a generator or a coroutine. They are read in its frame,
where it is suspended, so that they cost nothing while it runs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from ..compiler.chain import AsyncSource
from ..compiler.loop_compiler import NO_ELEMENTS
from ..demand import UNBOUNDED
from ..flow_subscription import FlowSubscription
from ..subscription.island import Island
from ..subscription.lifecycle import Phase
from .registry import NamedFlow, Progress, named_flow

_MOST_LINES: Final = 4
_MOST_CALLS: Final = 64
_MOST_PARTS: Final = 64
"""The most parts of one subscription that are reported: flat_map may have many upstreams."""


@dataclass(frozen=True, slots=True)
class PartStats:
    """A boundary, a pool of workers or another part of a flow that is upstream of its consumer."""

    name: str
    held: int
    """Elements that it holds now; a list counts once."""
    calls: int
    """Calls of the user's functions that run at the same time, and have not returned."""
    requested: int | None
    """What it may still deliver before it has to wait for demand; None if that is unlimited."""
    retries: int
    """How often it has subscribed again."""
    awaited: tuple[str, ...]
    """Where these calls are suspended in functions of the user: the first few different lines."""


@dataclass(frozen=True, slots=True)
class SubscriptionStats:
    """One running subscription of a named flow."""

    trail: str
    """The operators from the sources to the consumer."""
    delivered: int
    """Elements that have passed its name."""
    rate: float
    """Elements for each second since the last look, or since its start."""
    requested: int | None
    """The demand that it has not met; None if that is unlimited."""
    held: int
    """Elements that all parts hold."""
    waits_for: str
    """What it waits for: its subscriber, a source or operator, or a function that runs."""
    idle: float
    """For how many seconds nothing was delivered, as far as it was looked at."""
    parts: tuple[PartStats, ...]
    """What is upstream, the part closest to the consumer first."""


@dataclass(frozen=True, kw_only=True)
class FlowStats:
    """The figures of all flows with one name."""

    name: str = ""
    subscriptions: tuple[SubscriptionStats, ...] = ()
    """Those that run now."""
    started: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    last_error: str = ""
    """The last failure: its type and its message, and the operators of its flow."""


def flow_stats(name: str) -> FlowStats:
    """The figures of the flows called *name*."""
    return stats_of(named_flow(name))


def stats_of(flow: NamedFlow) -> FlowStats:
    """The figures of *flow*."""
    return FlowStats(
        name=flow.name,
        subscriptions=tuple(
            _subscription_stats(island, progress) for island, progress in flow.subscriptions()
        ),
        started=flow.started,
        completed=flow.completed,
        failed=flow.failed,
        cancelled=flow.cancelled,
        last_error=flow.last_error,
    )


def _subscription_stats(island: Island, before: Progress) -> SubscriptionStats:
    delivered, now = delivered_by(island), island.loop_handle.time()
    passed = now - before.at
    rate = (delivered - before.delivered) / passed if passed > 0 else 0.0
    before.at, before.delivered = now, delivered
    parts = tuple(_parts(island))
    return SubscriptionStats(
        trail=island.chain.trail(),
        delivered=delivered,
        rate=rate,
        requested=_limited(island.limit - delivered),
        held=sum(part.held for part in parts),
        waits_for=waits_for(island),
        idle=before.look(delivered, now),
        parts=parts,
    )


def stalled(flow: NamedFlow, seconds: float) -> Iterator[tuple[int, SubscriptionStats]]:
    """The subscriptions that have work and have delivered nothing for *seconds*, by their id."""
    for island, progress in flow.subscriptions():
        idle = progress.look(delivered_by(island), island.loop_handle.time())
        if idle >= seconds:
            # A copy, so that the rates of others are measured from their own looks.
            stats = _subscription_stats(island, replace(progress))
            is_working = any(part.calls for part in stats.parts) or bool(island.awaited_line())
            if stats.held or is_working:
                yield id(island), stats


def _limited(demand: float) -> int | None:
    return None if demand >= UNBOUNDED // 2 else max(0, int(demand)) if demand > 0 else 0


# -- the frame of a loop ---------------------------------------------------------------------------
def delivered_by(island: Island) -> int:
    """How many elements *island* has delivered, or its part up to its name."""
    counts = _counts(island)
    if "passed" in counts:  # what follows the name leaves elements out, as a terminal operator does
        passed: int = counts["passed"]
        return passed
    emitted: int = counts.get("emitted", island.emitted)
    # A loop over an asynchronous iterator counts a batch when it is complete.
    if "unmeasured" in counts:
        emitted += counts["size"] - counts["left"] - counts["dropped"]
    return max(emitted, island.emitted)


def _counts(island: Island) -> Mapping[str, Any]:
    frame = island.loop_frame
    return {} if frame is None else frame.f_locals


# -- what it waits for -----------------------------------------------------------------------------
def waits_for(island: Island) -> str:
    """What *island* waits for."""
    if island.phase is Phase.IDLE or island.is_waiting:
        if island.pause is not NO_ELEMENTS:
            return "demand of its subscriber"
        return f"elements of {island.chain.name}"
    if (line := island.awaited_line()) is not None:
        return line
    if isinstance(island.chain.source, AsyncSource) and island.phase is Phase.DRAINING:
        return f"elements of {island.chain.name}"
    return "nothing: it runs" if island.phase is Phase.DRAINING else island.phase.name.lower()


# -- upstream --------------------------------------------------------------------------------------
def _parts(island: Island) -> Iterator[PartStats]:
    """The queues and operators upstream of *island*, those closest to it first."""
    above: list[Island] = [island]
    count = 0
    while above and count < _MOST_PARTS:  # no recursion, for flows of any depth
        each, above = above[0], above[1:]
        queue = each.input_queue
        if queue is None:
            continue
        upstream = queue.upstream
        waiting = sum(len(chunk) for chunk in queue.waiting)
        if upstream is not None:
            count += 1
            yield PartStats(
                each.chain.name,
                waiting + upstream.held,
                upstream.calls,
                _limited(queue.outstanding),
                upstream.retries,
                _first_lines(upstream),
            )
            above += [found for found in upstream.upstreams if isinstance(found, Island)]


def _first_lines(upstream: FlowSubscription) -> tuple[str, ...]:
    lines = dict.fromkeys(islice(upstream.awaited_lines(), _MOST_CALLS))
    return tuple(islice(lines, _MOST_LINES))
