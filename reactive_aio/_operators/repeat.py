"""repeat: subscribe again when the source has completed."""

from dataclasses import dataclass
from random import random
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ..coerce import WINDOW
from ..retry import RetryPolicy
from ..stage import SequentialCoordinator, Timer, from_push, require_int, to_seconds

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("repeat",)

T = TypeVar("T")


def repeat(source: "Flow[T]", times: int | RetryPolicy | None = None) -> "Flow[T]":
    """When the source completes, subscribe to it again.

    *times* is how often it runs in all, without end by default. A `RetryPolicy` sets delays between
    the runs as well: *attempts* of them, with *delay*, *factor*, *maximum* and *jitter*, and none
    that would start after *within*.

    ::

        a--b|
        .repeat(2)
        a--b a--b|

    Demand: passed through; the rest is carried over to the next run, which starts when there is
        some.
    Completes: after *times* runs.
    Fails: when a run fails.
    Cancels: the active run, or the wait for the next one.
    Holds: up to 256 elements in delivery.
    Rules: 1.1, 1.7, 3.3
    """
    policy = _policy_of(times)
    shown = "" if policy.attempts is None else policy.attempts
    return from_push(
        lambda downstream: _Repeat(downstream, source, policy),
        name=f"repeat({shown})",
        holds=WINDOW,
        checked=True,
        upstreams=(source,),
        window=WINDOW,
    )


def _policy_of(times: object) -> RetryPolicy:
    if isinstance(times, RetryPolicy):
        return times
    if times is None:
        return RetryPolicy(attempts=None)
    if not isinstance(times, int):
        raise TypeError(f"repeat: times must be an int or a RetryPolicy, not {times!r}")
    return RetryPolicy(attempts=require_int("repeat", "times", times, least=1))


@dataclass(eq=False, repr=False)
class _Repeat(SequentialCoordinator[Any]):
    _source: "Flow[Any]"
    _policy: RetryPolicy
    _runs: int = 0
    _began: float = 0.0
    _is_due: bool = False  # a run starts with the next demand

    def __post_init__(self) -> None:
        super().__post_init__()
        self._timer = Timer(self, self._run)

    # -- decisions --------------------------------------------------------------------------------
    def begin(self) -> None:
        self._began = self.loop_handle.time()
        self._run()

    def on_demand(self) -> None:
        if self._is_due:
            self._run()
        else:
            super().on_demand()

    def next_after(self, error: BaseException | None) -> None:
        if error is not None or self._runs == self._policy.attempts:
            self.end(error)
            return
        wait = self._policy.backoff(self._runs, random())
        if self._is_too_late(wait):
            self.complete()
        elif wait:
            self._timer.start(wait)
        else:
            self._run()

    def on_stop(self) -> None:
        self._timer.stop()

    # -- acts -------------------------------------------------------------------------------------
    def _run(self) -> None:
        # A source that completes without demand would run for ever if this did not wait for any.
        self._is_due = not self.demand
        if self.demand and not self.is_closed:
            self._runs += 1
            self.switch(self._source)

    def _is_too_late(self, wait: float) -> bool:
        within = self._policy.within
        if within is None:
            return False
        elapsed = self.loop_handle.time() - self._began
        return elapsed + wait > to_seconds(cast("Any", within), "")
