"""Sources that depend on time: on the loop's clock, so that virtual time applies."""

from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, overload

from .._core.losses import count_dropped
from ..errors import NotAnElement
from ..stage import Downstream, Duration, FlowSubscription, LoopHandle, from_push, to_seconds

if TYPE_CHECKING:
    from .._core.loop import TimerHandle
    from ..flow import Flow

__all__ = ("interval", "timer")

T = TypeVar("T")

_POLICIES: Final = ("latest", "drop_newest")


def interval(
    period: Duration,
    *,
    initial_delay: Duration | None = None,
    overflow: Literal["latest", "drop_newest"] = "latest",
) -> "Flow[int]":
    """Emit 0, 1, 2 … at a fixed rate: every *period*, first after *initial_delay* (one *period*).

    The clock starts with the first request and does not drift: a late tick does not delay the next
    ones. A tick without demand waits for the next request, where a later tick replaces it
    (``overflow="latest"``), or is dropped at once (``"drop_newest"``). Numbers count ticks, not
    elements, so that a gap shows how many were missed. Ticks that a busy loop has delayed count as
    one, the last of them.

    ::

        interval(3)
        ---0--1--2--

    Demand: obeyed; without demand the clock continues, and *overflow* decides about its ticks.
    Completes: never.
    Fails: never.
    Cancels: stops the clock.
    Holds: one tick with ``overflow="latest"``, else nothing.
    Rules: 1.1, 3.5
    """
    every = to_seconds(period, "interval: period")
    first = every
    if initial_delay is not None:
        first = to_seconds(initial_delay, "interval: initial_delay", zero=True)
    if overflow not in _POLICIES:
        raise ValueError(f"interval: overflow must be one of {_POLICIES}, not {overflow!r}")
    keep = overflow == "latest"
    return from_push(
        lambda downstream: _Clock(downstream, first, every, keep),
        name=f"interval({every:g})",
        holds=int(keep),
        checked=True,
        window=1,
        one_by_one=True,
        lossy=True,
    )


class _Clock(FlowSubscription):
    """Receives demand for one tick at a time: a busy subscriber has not requested the next."""

    def __init__(self, downstream: Downstream[int], first: float, every: float, keep: bool) -> None:
        self._downstream = downstream
        self._loop_handle = LoopHandle("interval")
        self._first = first
        self._every = every
        self._keep = keep
        self._origin: float | None = None
        self._next = 0  # the tick of the timer
        self._missed: int | None = None
        self._is_requested = False
        self._timer: TimerHandle | None = None

    def request(self, n: int, /) -> None:
        self._is_requested = True
        if self._origin is None:
            self._origin = self._loop_handle.time() + self._first
            self._set_timer()
        elif self._missed is not None:
            self._emit(self._missed)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _at(self, tick: int) -> float:
        """When *tick* is due, computed from the first one, so that errors do not add up."""
        return (self._origin or 0.0) + tick * self._every

    def _set_timer(self) -> None:
        delay = max(0.0, self._at(self._next) - self._loop_handle.time())
        self._timer = self._loop_handle.call_later(delay, self._tick)

    def _tick(self) -> None:
        # A timer may fire early, by the resolution of the loop's clock.
        delay = self._loop_handle.time() - self._at(self._next)
        lost = max(0, int(delay / self._every))
        tick = self._next + lost
        self._next = tick + 1
        self._set_timer()
        if self._is_requested:
            self._emit(tick)
        elif not self._keep:
            lost += 1
        else:
            lost += self._missed is not None
            self._missed = tick
        if lost:
            count_dropped("interval", count=lost)

    def _emit(self, tick: int) -> None:
        self._is_requested, self._missed = False, None
        self._downstream.push([tick])


@overload
def timer(delay: Duration) -> "Flow[int]": ...
@overload
def timer(delay: Duration, value: T) -> "Flow[T]": ...
def timer(delay: Duration, value: Any = 0) -> "Flow[Any]":
    """Emit *value* once, *delay* after the first request, and complete.

    ::

        timer(3)
        ---(0|)

    Demand: the first request starts the clock.
    Completes: after *value*.
    Fails: never.
    Cancels: stops the clock.
    Holds: nothing.
    Rules: 1.1, 1.5, 3.5
    """
    wait = to_seconds(delay, "timer: delay", zero=True)
    if value is None:
        raise NotAnElement("timer: value is None, which is not an element")
    return from_push(
        lambda downstream: _DelayedValue(downstream, wait, value),
        name=f"timer({wait:g})",
        checked=True,
        window=1,
    )


class _DelayedValue(FlowSubscription):
    def __init__(self, downstream: Downstream[Any], wait: float, value: object) -> None:
        self._downstream = downstream
        self._wait = wait
        self._value = value
        self._loop_handle = LoopHandle("timer")
        self._timer: TimerHandle | None = None

    def request(self, n: int, /) -> None:
        if self._timer is None:
            self._timer = self._loop_handle.call_later(self._wait, self._emit_value)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _emit_value(self) -> None:
        self._downstream.push([self._value])
        self._downstream.complete()
