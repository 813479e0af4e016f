"""What this process has lost: elements that were dropped, and errors without a receiver."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from threading import RLock
from typing import Final

from .observation.registry import NamedFlow, current_flow, named_flow

DISCARDED: Final = "discarded"
"""The reason counted for elements that were held when the subscriber cancelled."""
OVERTAKEN: Final = "overtaken"
"""The reason counted for elements that were held when the upstream failed (rule 4.2)."""
REFUSED: Final = "refused"
"""The reason counted for elements that were refused, as the policy is to wait."""
_NO_LOSSES: Final = frozenset((DISCARDED, OVERTAKEN))

# Re-entrant, since the finalizer of an object may report an error at any time.
_lock = RLock()
_elements: Counter[tuple[str, str]] = Counter()
_errors = 0
_freed = 0
"""How many counters have been freed."""
# The counts of each `DropCounter` that lives, and the named flow that it is for, by its id.
_counters: dict[int, tuple[str, Counter[str], NamedFlow | None]] = {}


@dataclass(frozen=True, slots=True)
class Losses:
    """How much was lost; see `losses`. The difference of two is what was lost in between."""

    elements: Mapping[str, int]
    """Elements dropped, by what dropped them and why, such as ``"share: drop_oldest"``."""
    errors: int
    """Errors that went to an event loop's exception handler, since no subscriber was left."""

    def __sub__(self, earlier: "Losses") -> "Losses":
        elements = Counter(self.elements)
        elements.subtract(earlier.elements)
        return Losses({key: n for key, n in elements.items() if n}, self.errors - earlier.errors)


def losses() -> Losses:
    """What flows and processors of this process have lost until now, on all of its threads.

    Elements count that an overflow policy or an operator such as ``debounce`` dropped, with or
    without an ``on_drop``, and those whose work failed in ``map_async`` or ``for_each`` and which
    ``on_error`` left out. Those that a filter left out, or that were held when their flow was
    cancelled or failed, do not. An element that was refused (``overflow="wait"``) counts as
    ``"refused"`` each time: only its producer knows whether it emits the element again.
    """
    with _lock:
        elements, live = _snapshot()
        errors = _errors
    for where, by_reason, _ in live:
        elements.update({(where, reason): n for reason, n in dict(by_reason).items()})
    lost = {_key(*key): n for key, n in elements.items() if key[1] not in _NO_LOSSES}
    return Losses(lost, errors)


def dropped_by(flow: NamedFlow) -> Mapping[str, int]:
    """What the operators of *flow* have dropped, with the keys of `Losses.elements`."""
    with _lock:
        dropped = flow.drops.copy()
        live = [counter for counter in _counters.values() if counter[2] is flow]
    for where, by_reason, _ in live:
        dropped.update({_key(where, reason): n for reason, n in _lost(by_reason)})
    return dropped


def _key(where: str, reason: str) -> str:
    return ": ".join(filter(None, (where, reason)))


def _lost(by_reason: Counter[str]) -> list[tuple[str, int]]:
    return [(reason, n) for reason, n in dict(by_reason).items() if reason not in _NO_LOSSES]


def _snapshot() -> tuple[
    Counter[tuple[str, str]], list[tuple[str, Counter[str], NamedFlow | None]]
]:
    """The counts of the counters that were freed, and those of the others."""
    while True:
        before = _freed
        elements, live = _elements.copy(), list(_counters.values())
        if _freed == before:  # otherwise one that was freed in between is in neither, or in both
            return elements, live


def count_dropped(where: str, reason: str = "", count: int = 1) -> None:
    """*where*, *count* elements were dropped for *reason*, if the name does not say it."""
    flow = current_flow.get()
    with _lock:
        _elements[where, reason] += count
        if flow is not None:
            flow.drops[_key(where, reason)] += count


def count_dropped_error() -> None:
    """An error went to an event loop's exception handler."""
    global _errors
    with _lock:
        _errors += 1


class DropCounter:
    """How many elements the queues of one subscription dropped, by reason; part of `losses`.

    It counts for the named flow in whose subscription it is created, or else for the flow called
    *label*, if there is one. What it counts is added to *total* as well. Only one thread at a time
    changes it, so that it needs no lock. When it is freed, its counts are kept.
    """

    __slots__ = ("_total", "_where", "by_reason")

    def __init__(
        self, where: str, label: str | None = None, total: Counter[str] | None = None
    ) -> None:
        flow = current_flow.get()
        if flow is None and label is not None:
            flow = named_flow(label)
        self._where = where
        self._total = total
        self.by_reason: Counter[str] = Counter()
        with _lock:
            _counters[id(self)] = where, self.by_reason, flow

    def __del__(self) -> None:
        global _freed
        with _lock:
            _freed += 1
            where, by_reason, flow = _counters.pop(id(self))
            for reason, count in by_reason.items():
                _elements[where, reason] += count
            if flow is not None:
                flow.drops.update({_key(where, reason): n for reason, n in _lost(by_reason)})

    def add(self, reason: str, count: int = 1) -> None:
        if count:
            self.by_reason[reason] += count
            if self._total is not None:
                self._total[reason] += count
