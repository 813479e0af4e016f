"""A snapshot: the figures of every flow and processor with a name, at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass

from .._core.losses import Losses, losses
from .._core.observation.figures import FlowStats, stats_of
from .._core.observation.registry import named_flows, named_processors
from ..processors import ProcessorStats

__all__ = ("Snapshot", "snapshot")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the named flows and processors of this process do, and what the process has lost."""

    flows: Mapping[str, FlowStats]
    """By name."""
    processors: tuple[ProcessorStats, ...]
    """Of those that were given a name."""
    losses: Losses


def snapshot() -> Snapshot:
    """The figures of all flows and processors with a name; see ``Flow.stats``.

    Call it on the thread of the event loop. The rates are measured from one look to the next, which
    ``Flow.stats`` is as well.
    """
    return take_snapshot(is_look=True)


def take_snapshot(*, is_look: bool) -> Snapshot:
    """The same; without *is_look*, rates are not measured from here."""
    return Snapshot(
        {flow.name: stats_of(flow, is_look=is_look) for flow in named_flows()},
        tuple(sorted((each.stats() for each in named_processors()), key=lambda each: each.name)),
        losses(),
    )
