"""Tracing: what follows named subscriptions from begin to end, and carries a trace elsewhere."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Outcome = Literal["completed", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class End:
    """How a subscription has ended."""

    outcome: Outcome
    delivered: int
    error: BaseException | None = None
    note: str = ""
    """What the error was annotated with: the operators, and where it was raised."""


OnEnd = Callable[[Any, End], object]
"""Called once with the subscription, before that releases what it holds. It must not refer to the
subscription, which would never be freed."""


class Tracer(Protocol):
    """What traces the named subscriptions of this process. Its methods must not raise."""

    def begin(self, name: str, subscription: Any, /) -> OnEnd:
        """*subscription*, an `Island`, is about to begin, in the context of its loop handle."""
        ...

    def retried(self, error: BaseException, /) -> None:
        """What runs here is tried again after *error*."""
        ...

    def headers(self) -> Mapping[str, str]:
        """What carries the trace of what runs here to another process."""
        ...


class _Current:
    tracer: Tracer | None = None


def current_tracer() -> Tracer | None:
    """The tracer of this process."""
    return _Current.tracer


def set_tracer(tracer: Tracer | None) -> None:
    """Trace the named subscriptions that begin from now on."""
    if tracer is not None and _Current.tracer is not None:
        raise RuntimeError("the flows of this process are traced already; leave that block first")
    _Current.tracer = tracer


def trace_headers() -> Mapping[str, str]:
    """What carries the trace of what runs here to another process; empty without a tracer."""
    tracer = _Current.tracer
    return {} if tracer is None else tracer.headers()
