"""What is measured, for each system that collects it: metrics of a snapshot, with labels."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from .._core.observation.figures import FlowStats, PartStats, SubscriptionStats
from ..processors import ProcessorStats
from .snapshots import Snapshot

__all__ = ("METRICS", "Metric")

Labels = tuple[str, ...]
Values = Iterable[tuple[Labels, float]]


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure of all flows, of all processors, or of the process."""

    name: str
    """Its parts are separated by points."""
    kind: Literal["counter", "gauge"]
    help: str
    labels: Labels
    values: Callable[[Snapshot], Values]
    """Its values in a snapshot, each with the values of its labels."""
    unit: str = ""
    """As in UCUM; what is counted stands in braces."""


def _of_flows(value: Callable[[FlowStats], float | None]) -> Callable[[Snapshot], Values]:
    def values(taken: Snapshot) -> Iterator[tuple[Labels, float]]:
        for flow in taken.flows.values():
            if (found := value(flow)) is not None:
                yield (flow.name,), found

    return values


def _oldest(flow: FlowStats) -> float | None:
    return max((each.oldest or 0.0 for each in flow.subscriptions), default=None)


def _idle(flow: FlowStats) -> float | None:
    return max((each.idle for each in flow.subscriptions), default=None)


def _requested(flow: FlowStats) -> float | None:
    """None if there is a subscription whose demand is unlimited."""
    return _sum_of(each.requested for each in flow.subscriptions)


def _sum_of(numbers: Iterable[int | None]) -> int | None:
    found = list(numbers)
    return None if None in found else sum(each for each in found if each is not None)


def _ended(taken: Snapshot) -> Iterator[tuple[Labels, float]]:
    for flow in taken.flows.values():
        yield (flow.name, "completed"), flow.completed
        yield (flow.name, "failed"), flow.failed
        yield (flow.name, "cancelled"), flow.cancelled


def _waiting(taken: Snapshot) -> Iterator[tuple[Labels, float]]:
    for flow in taken.flows.values():
        counts = Counter(each.waits_on for each in flow.subscriptions)
        for what, count in counts.items():
            yield (flow.name, what), count


def _dropped(
    dropped: Callable[[Snapshot], Iterable[tuple[str, Mapping[str, int]]]],
) -> Callable[[Snapshot], Values]:
    def values(taken: Snapshot) -> Iterator[tuple[Labels, float]]:
        for name, by_reason in dropped(taken):
            for reason, count in by_reason.items():
                yield (name, reason), count

    return values


def _of_parts(
    value: Callable[[PartStats], float | None], combine: Callable[[Iterable[float]], float]
) -> Callable[[Snapshot], Values]:
    def values(taken: Snapshot) -> Iterator[tuple[Labels, float]]:
        for flow in taken.flows.values():
            found: dict[str, list[float]] = {}
            for part in _parts(flow.subscriptions):
                if (of_part := value(part)) is not None:
                    found.setdefault(_name(part), []).append(of_part)
            for part_name, numbers in found.items():
                yield (flow.name, part_name), combine(numbers)

    return values


def _name(part: PartStats) -> str:
    """Without the arguments, where these may be others for each element: names must be few."""
    return part.name.partition("(")[0] if part.is_made else part.name


def _parts(subscriptions: Iterable[SubscriptionStats]) -> Iterator[PartStats]:
    return (part for each in subscriptions for part in each.parts)


def _of_processors(value: Callable[[ProcessorStats], float]) -> Callable[[Snapshot], Values]:
    """Those with the same name count together."""

    def values(taken: Snapshot) -> Iterator[tuple[Labels, float]]:
        found: Counter[str] = Counter()
        for each in taken.processors:
            found[each.name] += int(value(each))
        for name, number in found.items():
            yield (name,), number

    return values


_FLOW: Final = ("flow",)
_PART: Final = ("flow", "part")
_PROCESSOR: Final = ("processor",)
_ELEMENTS: Final = "{element}"
_SUBSCRIPTIONS: Final = "{subscription}"

METRICS: Final = (
    Metric(
        "flow.subscriptions", "gauge", "Subscriptions that run.", _FLOW,
        _of_flows(lambda flow: len(flow.subscriptions)), _SUBSCRIPTIONS,
    ),
    Metric(
        "flow.started", "counter", "Subscriptions that have begun.", _FLOW,
        _of_flows(lambda flow: flow.started), _SUBSCRIPTIONS,
    ),
    Metric(
        "flow.ended", "counter", "Subscriptions that have ended, by how they did.",
        ("flow", "outcome"), _ended, _SUBSCRIPTIONS,
    ),
    Metric(
        "flow.delivered", "counter", "Elements that have passed the name of the flow.", _FLOW,
        _of_flows(lambda flow: flow.delivered), _ELEMENTS,
    ),
    Metric(
        "flow.dropped", "counter", "Elements that its operators have dropped, by what and why.",
        ("flow", "by"), _dropped(lambda taken: [(f.name, f.dropped) for f in taken.flows.values()]),
        _ELEMENTS,
    ),
    Metric(
        "flow.retries", "counter", "Attempts that were made again after an error.", _FLOW,
        _of_flows(lambda flow: flow.retries), "{attempt}",
    ),
    Metric(
        "flow.turns", "counter", "Time slices of 2 ms that its loops have used up.", _FLOW,
        _of_flows(lambda flow: flow.turns), "{slice}",
    ),
    Metric(
        "flow.held", "gauge", "Elements that all parts hold.", _FLOW,
        _of_flows(lambda flow: sum(each.held for each in flow.subscriptions)), _ELEMENTS,
    ),
    Metric(
        "flow.requested", "gauge", "Demand that is not met; absent where it is unlimited.", _FLOW,
        _of_flows(_requested), _ELEMENTS,
    ),
    Metric(
        "flow.oldest", "gauge", "How long the oldest element is held, at least.", _FLOW,
        _of_flows(_oldest), "s",
    ),
    Metric(
        "flow.idle", "gauge", "How long nothing was delivered, at the most idle subscription.",
        _FLOW, _of_flows(_idle), "s",
    ),
    Metric(
        "flow.waiting", "gauge", "Subscriptions by what they wait on.", ("flow", "on"), _waiting,
        _SUBSCRIPTIONS,
    ),
    Metric(
        "part.held", "gauge", "Elements that a boundary, a pool or another part holds.", _PART,
        _of_parts(lambda part: part.held, sum), _ELEMENTS,
    ),
    Metric(
        "part.calls", "gauge", "Calls of functions that run in it.", _PART,
        _of_parts(lambda part: part.calls, sum), "{call}",
    ),
    Metric(
        "part.oldest", "gauge", "How long its oldest element is held, at least.", _PART,
        _of_parts(lambda part: part.oldest, max), "s",
    ),
    Metric(
        "processor.subscribers", "gauge", "Subscribers of a processor.", _PROCESSOR,
        _of_processors(lambda each: each.subscribers), "{subscriber}",
    ),
    Metric(
        "processor.accepted", "counter", "Elements that it has accepted.", _PROCESSOR,
        _of_processors(lambda each: each.accepted), _ELEMENTS,
    ),
    Metric(
        "processor.refused", "counter", "Emissions that it has refused, for lack of room.",
        _PROCESSOR, _of_processors(lambda each: each.refused), "{emission}",
    ),
    Metric(
        "processor.dropped", "counter", "Elements that it has dropped, by reason.",
        ("processor", "by"),
        _dropped(lambda taken: [(each.name, each.dropped) for each in taken.processors]), _ELEMENTS,
    ),
    Metric(
        "processor.held", "gauge", "Elements that its fullest queue holds.", _PROCESSOR,
        _of_processors(lambda each: each.held), _ELEMENTS,
    ),
    Metric(
        "lost.elements", "counter", "Elements that the process has dropped, by what and why.",
        ("by",), lambda taken: [((by,), n) for by, n in taken.losses.elements.items()], _ELEMENTS,
    ),
    Metric(
        "lost.errors", "counter", "Errors that no subscriber could receive.", (),
        lambda taken: [((), taken.losses.errors)], "{error}",
    ),
)  # fmt: skip
