"""The subscriptions of the flows that have a name, and how those that have ended did."""

import re
from collections import Counter
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import RLock
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet

from ..foreign_text import without_secrets
from .tracing import End, OnEnd, current_tracer

_MOST_NAMES: Final = 1000
"""The names that are known at most; beyond, those without a subscription are forgotten."""

_LONGEST_MESSAGE: Final = 2000

# The first line of a note is the trail, in which the failing operator is marked.
_FAILING: Final = re.compile(r"\A[^\n]*?>>(\w+)")
_LINE: Final = re.compile(r'^ +(File "[^"\n]*", line \d+, in .*)$', re.MULTILINE)

# Re-entrant, since a subscription may be freed, and so end, at any time.
_lock = RLock()


@dataclass(slots=True, eq=False)
class NamedFlow:
    """The subscriptions of all flows with one name."""

    name: str
    running: "WeakKeyDictionary[Any, Progress]" = field(
        default_factory=WeakKeyDictionary[Any, "Progress"]
    )
    """Those that have not ended, and what was seen of each at the last look."""
    started: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    delivered: int = 0
    """Elements that were delivered by those that have ended."""
    retries: int = 0
    turns: int = 0
    last_error: str = ""
    last_failure: str = ""
    """The same, without what may be an element: for those who may not see any."""
    drops: Counter[str] = field(default_factory=Counter[str])
    """Elements that were dropped, by operator and reason, as far as their counters were freed."""

    def begin(self, subscription: Any, now: float) -> None:
        progress = Progress(now, now)
        with _lock:
            self.started += 1
            self.running[subscription] = progress
        if (tracer := current_tracer()) is not None:
            progress.on_end = tracer.begin(self.name, subscription)

    def end(self, subscription: Any, end: End) -> None:
        """*subscription* has ended. Of an error only a text is kept, as it refers to its frames."""
        with _lock:
            progress = self.running.pop(subscription, None)
            if progress is None:
                return
            self.delivered += end.delivered
            setattr(self, end.outcome, getattr(self, end.outcome) + 1)
        if end.error is not None:
            self._note(end.error, end.note)
        if progress.on_end is not None:
            progress.on_end(subscription, end)

    def retried(self, error: BaseException) -> None:
        """Something of this flow is tried again after *error*."""
        with _lock:
            self.retries += 1
            subscription = next(iter(self.running), None)
        note = "" if subscription is None else subscription.chain.trail_of(error)
        self._note(error, note, " (and was tried again)")

    def _note(self, error: BaseException, note: str, remark: str = "") -> None:
        self.last_error = error_text(error, note, remark)
        self.last_failure = f"{type(error).__name__}{remark}{_place_in(note)}"

    def subscriptions(self) -> "list[tuple[Any, Progress]]":
        with _lock:
            return list(self.running.items())


@dataclass(slots=True)
class Progress:
    """What was seen of a subscription at the last look."""

    at: float
    """When the rate was measured."""
    changed_at: float
    """When `seen` was first seen."""
    delivered: int = 0
    """How many elements it had delivered at that time."""
    seen: int = 0
    """How many it had delivered when it was last looked at."""
    on_end: OnEnd | None = None
    """Of a tracer."""

    def look(self, delivered: int, now: float) -> float:
        """It has delivered so many elements; return for how long it was not seen to deliver any."""
        if delivered != self.seen:
            self.seen, self.changed_at = delivered, now
        return now - self.changed_at


def error_text(error: BaseException, note: str, remark: str = "") -> str:
    """Type and message of *error*, and what is known of where it was raised."""
    try:
        message = without_secrets(str(error)[:_LONGEST_MESSAGE])
    except Exception as raised:
        message = f"its message raises {type(raised).__name__}"
    where = f"\n{note}" if note else ""
    return f"{type(error).__name__}: {message}{remark}{where}"


def _place_in(note: str) -> str:
    """The failing operator and the line that a note of an error has, without arguments and code."""
    operator, line = _FAILING.search(note), _LINE.search(note)
    where = "" if operator is None else f" in {operator[1]}"
    return where if line is None else f"{where}, {line[1]}"


current_flow: ContextVar[NamedFlow | None] = ContextVar("reactive_aio named flow", default=None)
"""The named flow in whose subscription this code runs: its operators, and functions of the user."""


def note_retry(error: BaseException) -> None:
    """What runs here is tried again after *error*: count that for the flow, if it has a name."""
    flow = current_flow.get()
    if flow is not None:
        flow.retried(error)
        if (tracer := current_tracer()) is not None:
            tracer.retried(error)


def note_turn() -> None:
    """What runs here has used its time slice: count that for the flow, if it has a name."""
    flow = current_flow.get()
    if flow is not None:
        flow.turns += 1


_names: dict[str, NamedFlow] = {}
_processors: WeakSet[Any] = WeakSet()


def named_flow(name: str) -> NamedFlow:
    """The subscriptions of the flows called *name*."""
    with _lock:
        found = _names.get(name)
        if found is None:
            if len(_names) >= _MOST_NAMES:
                _forget_unused()
            found = _names[name] = NamedFlow(name)
        return found


def _forget_unused() -> None:
    for name in [name for name, flow in _names.items() if not flow.running]:
        del _names[name]


def named_flows() -> list[NamedFlow]:
    """All of them, by name."""
    with _lock:
        return sorted(_names.values(), key=lambda flow: flow.name)


def add_processor(processor: Any) -> None:
    """*processor* was given a name."""
    with _lock:
        _processors.add(processor)


def named_processors() -> list[Any]:
    with _lock:
        return list(_processors)
