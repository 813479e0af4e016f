"""Figures: what one subscription has delivered, what upstream holds, and what it waits for.

A loop adds 1 for each element that passes the name of its flow. Everything else is looked up on the
thread of the event loop: in the queues and operators upstream, and in suspended coroutines.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ..compiler.chain import Chain, ChainSource
from ..demand import UNBOUNDED
from ..flow_subscription import FlowSubscription
from ..losses import dropped_by
from ..subscription.island import Island
from ..subscription.list_delivery import ListDelivery
from .causes import Cause, WaitsOn, cause_of, waits_on_what
from .registry import NamedFlow, Progress, named_flow

if TYPE_CHECKING:
    from ..subscription.input_queue import InputQueue

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
    oldest: float | None
    """For how many seconds, at least, its oldest element is held, as far as it was looked at
    (docs/decisions/0019); None if it holds none, or makes something else of its elements."""
    is_made: bool
    """Whether it belongs to a flow that was made while this one runs, as `flat_map` does."""
    awaited: tuple[str, ...]
    """Where these calls are suspended in functions of the user: the first few different lines."""
    waits: tuple[str, ...]
    """What it waits for besides, or its calls before they begin, or begin again: a limiter, the
    delay of a retry, a cleanup, the end of a time."""


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
    waits_on: WaitsOn
    """The kind of that; nothing, if it runs at the moment of the look."""
    cause: str
    """What that waits for itself, and so on: the call, the limiter, the subscriber or the source
    because of which nothing is delivered now."""
    cause_in: int | None
    """Which of `parts` that is; None if it is a function that its own loop awaits, or what follows
    it."""
    idle: float
    """For how many seconds nothing was delivered, as far as it was looked at."""
    oldest: float | None
    """For how many seconds, at least, the oldest element is held that one of its parts holds."""
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
    delivered: int = 0
    """Elements that have passed the name, those of subscriptions that have ended included."""
    retries: int = 0
    """How often a subscription, or the work on an element, was tried again after an error."""
    turns: int = 0
    """How often its loops, and those upstream, have worked for 2 ms without a pause, and then let
    the event loop run other work. Many of them in a second mean that it keeps a core busy."""
    dropped: Mapping[str, int] = field(default_factory=dict[str, int])
    """Elements that were dropped, by what dropped them and why, as in `losses`."""
    last_error: str = ""
    """The last failure, or the last error after which something was tried again: its type and its
    message, and the operators of its flow."""
    last_failure: str = ""
    """The same for those who may see no elements: its type, and the operator and the line that
    failed, without the message, which may quote an element. Reports have this one."""


def flow_stats(name: str) -> FlowStats:
    """The figures of the flows called *name*."""
    return stats_of(named_flow(name))


def stats_of(flow: NamedFlow, *, is_look: bool = True) -> FlowStats:
    """The figures of *flow*; without *is_look*, the rates of others are not measured from here."""
    running = [
        _subscription_stats(island, before if is_look else replace(before))
        for island, before in flow.subscriptions()
    ]
    return FlowStats(
        name=flow.name,
        subscriptions=tuple(running),
        started=flow.started,
        completed=flow.completed,
        failed=flow.failed,
        cancelled=flow.cancelled,
        delivered=flow.delivered + sum(each.delivered for each in running),
        retries=flow.retries,
        turns=flow.turns,
        dropped=dropped_by(flow),
        last_error=flow.last_error,
        last_failure=flow.last_failure,
    )


def _subscription_stats(island: Island, before: Progress) -> SubscriptionStats:
    delivered, now = island.delivered, island.loop_handle.time()
    passed = now - before.at
    rate = (delivered - before.delivered) / passed if passed > 0 else 0.0
    before.at, before.delivered = now, delivered
    queues = list(_queues(island))
    parts = tuple(_parts(island, now, queues))
    waits_on, waits_for = waits_on_what(island)
    cause = cause_of(island)
    return SubscriptionStats(
        trail=island.chain.trail(),
        delivered=delivered,
        rate=rate,
        requested=limited(island.limit - delivered),
        held=sum(part.held for part in parts),
        waits_for=waits_for,
        waits_on=waits_on,
        cause=cause.text,
        cause_in=_index_of(cause, queues),
        idle=before.look(delivered, now),
        oldest=max((part.oldest for part in parts if part.oldest is not None), default=None),
        parts=parts,
    )


def stalled(flow: NamedFlow, seconds: float) -> Iterator[tuple[int, SubscriptionStats]]:
    """The subscriptions that have work and have delivered nothing for *seconds*, by their id.

    Each is looked at, so that the age of what it holds is known.
    """
    for island, progress in flow.subscriptions():
        now = island.loop_handle.time()
        idle = progress.look(island.delivered, now)
        for waiting, _, _, upstream in _queues(island):
            upstream.oldest(now, waiting)
        if idle >= seconds:
            # A copy, so that the rates of others are measured from their own looks.
            stats = _subscription_stats(island, replace(progress))
            if _is_stalled(stats, cause_of(island).kind):
                yield id(island), stats


def _is_stalled(stats: SubscriptionStats, kind: WaitsOn) -> bool:
    """Whether a subscription that delivers nothing because of something of that kind has work."""
    if kind == "demand":  # of another subscriber of a hot source, for which this one waits
        return bool(stats.held) or stats.waits_on == "elements"
    return kind in ("function", "limit") or (bool(stats.held) and kind != "time")


def held_by(island: Island) -> int:
    """How many elements all parts of *island* hold."""
    return sum(waiting + upstream.held for waiting, _, _, upstream in _queues(island))


def limited(demand: float) -> int | None:
    """*demand* as a figure: None if it is unlimited."""
    return None if demand >= UNBOUNDED // 2 else max(0, int(demand)) if demand > 0 else 0


# -- upstream --------------------------------------------------------------------------------------
def _parts(island: Island, now: float, queues: "list[_Queue]") -> Iterator[PartStats]:
    """The queues and operators upstream of *island*, those closest to it first."""
    known = _sources(island.chain)
    for waiting, requested, chain, upstream in queues:
        lines, waits = _waits(upstream)
        yield PartStats(
            chain.name,
            waiting + upstream.held,
            upstream.calls,
            limited(requested),
            upstream.retries,
            upstream.oldest(now, waiting),
            chain.shown_source not in known,
            lines,
            waits,
        )


def _sources(chain: Chain) -> set[ChainSource]:
    """The sources of the chains that a flow consists of before it runs."""
    known, waiting = {chain.shown_source}, [chain]
    while waiting:
        upstreams = [each.chain for each in waiting.pop().source.upstreams]
        waiting += [each for each in upstreams if each.source not in known]
        known.update(each.source for each in upstreams)
    return known


_Queue = tuple[int, int, Chain, FlowSubscription]


def _queues(island: Island) -> Iterator[_Queue]:
    """Each subscription upstream, what waits in front of the island that it feeds, what that has
    requested, and its chain."""
    above: list[Island | ListDelivery[Any]] = [island]
    count = 0
    while above and count < _MOST_PARTS:  # no recursion, for flows of any depth
        each, above = above[0], above[1:]
        queue: InputQueue[Any] | ListDelivery[Any] | None = (
            each if isinstance(each, ListDelivery) else each.input_queue
        )
        if queue is not None and (upstream := queue.upstream) is not None:
            count += 1
            waiting = 0 if isinstance(queue, ListDelivery) else queue.held
            yield waiting, queue.outstanding, each.chain, upstream
            above += [
                found for found in upstream.upstreams if isinstance(found, (Island, ListDelivery))
            ]


def _waits(upstream: FlowSubscription) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The first few lines in which its calls are suspended, and what else it waits for."""
    waits = dict.fromkeys(islice(upstream.call_waits(), _MOST_CALLS))
    if (own := upstream.own_wait) is not None:
        waits[own] = None
    lines = (text for kind, text in waits if kind == "function")
    others = (text for kind, text in waits if kind != "function")
    return tuple(islice(lines, _MOST_LINES)), tuple(islice(others, _MOST_LINES))


def _index_of(cause: Cause, queues: "list[_Queue]") -> int | None:
    """Which of the parts is to blame: what is above a hot source is in none."""
    known = [upstream for *_, upstream in queues]
    return next((known.index(each) for each in reversed(cause.path) if each in known), None)
