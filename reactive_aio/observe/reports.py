"""Snapshots as a text for people."""

from collections.abc import Iterator
from typing import Final

from .._core.foreign_text import printable
from .._core.observation.figures import FlowStats, PartStats, SubscriptionStats
from .._core.observation.registry import NamedFlow
from ..processors import ProcessorStats
from ..stage import UNBOUNDED
from .snapshots import Snapshot, snapshot

__all__ = ("report", "stall_text", "text_of")

_STUCK: Final = 1.0
"""For how many seconds nothing was delivered, before a report says where a flow is stuck."""


def report() -> str:
    """What each flow and processor with a name does, and what it waits for, as a text.

    It has names and arguments of operators, and no elements: of the last error of a flow the type,
    the operator and its line. ``flow.stats().last_error`` has the message and the element.
    """
    return text_of(snapshot())


def text_of(taken: Snapshot) -> str:
    """The text of a snapshot: names and errors may be of others, and are made printable."""
    lines = [line for flow in taken.flows.values() for line in _flow(flow)]
    lines += [_processor(each) for each in taken.processors]
    lines += [f"lost: {count} by {what}" for what, count in taken.losses.elements.items()]
    if taken.losses.errors:
        lines.append(f"lost: {taken.losses.errors} errors that no subscriber received")
    return printable("\n".join(lines or ['no flow has a name; give it one with flow.name("...")']))


def stall_text(flow: NamedFlow, stats: SubscriptionStats) -> str:
    """The report on a subscription of *flow* that makes no progress."""
    lines = [
        f"{flow.name}: nothing was delivered for {stats.idle:.1f} s: stuck at {stats.cause}",
        *_subscription(stats),
    ]
    if flow.retries:
        lines.append(_retries(flow.retries))
    if flow.last_failure:
        lines.append(f"last error: {flow.last_failure}")
    return printable("\n  ".join(lines))


def _flow(flow: FlowStats) -> Iterator[str]:
    ended = [
        f"{count} {how}"
        for count, how in (
            (flow.completed, "completed"),
            (flow.failed, "failed"),
            (flow.cancelled, "cancelled"),
        )
        if count
    ]
    running = f"{len(flow.subscriptions)} running"
    ended += [_retries(flow.retries)] * bool(flow.retries)
    ended += [f"{flow.turns} times busy for 2 ms"] * bool(flow.turns)
    ended += [f"{flow.delivered} delivered in all"] * (flow.started > len(flow.subscriptions))
    yield f"{flow.name}: {', '.join([running, *ended])}"
    for subscription in flow.subscriptions:
        yield from ("  " + line for line in _subscription(subscription))
        if subscription.idle >= _STUCK:
            yield f"    stuck at {subscription.cause}"
    yield from (f"  lost: {count} by {what}" for what, count in flow.dropped.items())
    if flow.last_failure:
        yield f"  last error: {flow.last_failure}"


def _subscription(stats: SubscriptionStats) -> Iterator[str]:
    yield stats.trail
    idle = f" (since {stats.idle:.1f} s)" if stats.idle >= 0.1 else ""
    yield (
        f"  {stats.delivered} delivered, {stats.rate:.1f}/s, holds {stats.held}, "
        f"{_demand(stats.requested)} requested{_age(stats.oldest)}; "
        f"waits for {stats.waits_for}{idle}"
    )
    for part in stats.parts:
        yield "  " + _part(part)
        yield from ("      in " + line for line in part.awaited)
        yield from ("      waits for " + what for what in part.waits)


def _part(part: PartStats) -> str:
    figures = [f"holds {part.held}", f"{_demand(part.requested)} requested"]
    if part.calls:
        figures.append(_calls(part.calls, "run" if part.awaited or not part.waits else "wait"))
    if part.retries:
        figures.append(_retries(part.retries))
    return f"║ {part.name}: {', '.join(figures)}{_age(part.oldest)}"


def _calls(count: int, verb: str) -> str:
    return f"1 call {verb}s" if count == 1 else f"{count} calls {verb}"


def _retries(count: int) -> str:
    return "1 retry" if count == 1 else f"{count} retries"


def _age(oldest: float | None) -> str:
    return "" if oldest is None or oldest < 0.1 else f", its oldest element is {oldest:.1f} s old"


def _demand(requested: int | None) -> str:
    return "unlimited" if requested is None else str(requested)


def _processor(stats: ProcessorStats) -> str:
    requested = _demand(None if stats.requested >= UNBOUNDED // 2 else stats.requested)
    dropped = "".join(f", {count} dropped by {why}" for why, count in stats.dropped.items())
    return (
        f"{stats.name}: {stats.subscribers} subscribers, {stats.accepted} accepted, "
        f"holds {stats.held} (at most {stats.highest} ever), {requested} requested, "
        f"{stats.refused} refused{dropped}{', done' if stats.is_done else ''}"
    )
