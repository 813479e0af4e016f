"""repeat and restart: subscribe again when the source has completed, or has ended."""

from dataclasses import dataclass, field
from random import random
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from .._core.observation.awaited import Wait
from .._shared.coerce import WINDOW
from ..retry import Attempts, RetryPolicy
from ..stage import SequentialCoordinator, Timer, from_push, require_int, to_seconds

if TYPE_CHECKING:
    from ..flow import Flow
    from ..stage import InnerSubscriber

__all__ = ("repeat", "restart")

T = TypeVar("T")


def repeat(source: "Flow[T]", times: int | RetryPolicy | None = None) -> "Flow[T]":
    """When the source completes, subscribe to it again, as soon as it has cleaned up.

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
    policy = RetryPolicy(attempts=None) if times is None else _policy_of("repeat", "times", times)
    shown = "" if policy.attempts is None else policy.attempts
    return from_push(
        lambda downstream: _Repeat(downstream, source, policy),
        name=f"repeat({shown})",
        holds=WINDOW,
        checked=True,
        upstreams=(source,),
        window=WINDOW,
    )


def _policy_of(operator: str, parameter: str, value: object) -> RetryPolicy:
    if isinstance(value, RetryPolicy):
        return value
    if not isinstance(value, int):
        raise TypeError(f"{operator}: {parameter} must be an int or a RetryPolicy, not {value!r}")
    return RetryPolicy(attempts=require_int(operator, parameter, value, least=1))


@dataclass(eq=False, repr=False)
class _Runs(SequentialCoordinator[Any]):
    """Runs the source again and again, each time once there is demand."""

    _source: "Flow[Any]"
    _policy: RetryPolicy
    _is_due: bool = field(default=False, init=False)  # a run starts with the next demand

    def __post_init__(self) -> None:
        super().__post_init__()
        self._timer = Timer(self, self._run)

    def on_demand(self) -> None:
        if self._is_due:
            self._run()
        else:
            super().on_demand()

    def _run(self) -> None:
        # A source that ends without demand would run for ever if this did not wait for any.
        self._is_due = not self.demand
        if self.demand and not self.is_closed:
            self._run_now()

    def _run_now(self) -> None:
        self.switch(self._source)

    @property
    def own_wait(self) -> Wait | None:
        return Wait("limit", self._delay_text) if self._timer.is_running else super().own_wait

    @property
    def _delay_text(self) -> str:
        return "the delay before the next run"


@dataclass(eq=False, repr=False)
class _Repeat(_Runs):
    _runs: int = field(default=0, init=False)
    _began: float = field(default=0.0, init=False)

    # -- decisions --------------------------------------------------------------------------------
    def begin(self) -> None:
        self._began = self.loop_handle.time()
        self._run()

    def next_after(self, error: BaseException | None) -> None:
        if error is not None or self._runs == self._policy.attempts:
            self.end(error)
            return
        wait = self._policy.backoff(self._runs, random())
        if self.is_drained or self._is_too_late(wait):
            self.complete()
        elif wait:
            self._timer.start(wait)
        else:
            self._run()

    # -- acts -------------------------------------------------------------------------------------
    def _run_now(self) -> None:
        self._runs += 1
        super()._run_now()

    def _is_too_late(self, wait: float) -> bool:
        within = self._policy.within
        if within is None:
            return False
        elapsed = self.loop_handle.time() - self._began
        return elapsed + wait > to_seconds(cast("Any", within), "")


_ALWAYS: Final = RetryPolicy(attempts=None, delay=0.1, maximum=30.0, reset=True)


def restart(source: "Flow[T]", policy: RetryPolicy | int = _ALWAYS) -> "Flow[T]":
    """When the source completes or fails, subscribe to it again, as *policy* allows.

    A run begins when the one before has cleaned up, so that a pool of one connection is enough; a
    delay counts from the end of that run, and its cleanup is part of it.

    For a source that is meant to run for ever: a consumer of a broker, a connection. By default
    there is no limit, and the delays grow from 0.1 to 30 seconds, beginning again once an element
    has arrived. An int is the number of runs, without delays in between. *only* of a policy says
    after which errors to start again; the flow fails with any other. A drain starts no further run.

    ::

        a--b|
        .restart(2)
        a--b a--b|

    Demand: passed through; the rest is carried over to the next run, which starts when there is
        some.
    Completes: when the last run that *policy* allows completes.
    Fails: when it fails, or with an error that *policy* does not cover; its notes list the last ten
        runs before it.
    Cancels: the active run, or the wait for the next one.
    Holds: up to 256 elements in delivery.
    Rules: 1.1, 1.4, 1.7
    """
    runs = _policy_of("restart", "policy", policy)
    return from_push(
        lambda downstream: _Restart(downstream, source, runs),
        name=f"restart({runs})",
        holds=WINDOW,
        checked=True,
        upstreams=(source,),
        window=WINDOW,
    )


@dataclass(eq=False, repr=False)
class _Restart(_Runs):
    def __post_init__(self) -> None:
        super().__post_init__()
        self._attempts = Attempts(self._policy, 0.0)

    # -- decisions --------------------------------------------------------------------------------
    def begin(self) -> None:
        self._attempts.restart(self.loop_handle.time())
        self._run()

    def on_elements(self, inner: "InnerSubscriber[Any]") -> None:
        if self._policy.reset and inner.elements:
            self._attempts.restart(self.loop_handle.time())
        super().on_elements(inner)

    def next_after(self, error: BaseException | None) -> None:
        now = self.loop_handle.time()
        if error is None:
            wait = self._attempts.completed(now, random())
        else:
            wait = self._attempts.failed(error, now, random())
        if wait is None or (self.is_drained and error is not None):
            self.end(error)
        elif wait and not self.is_drained:
            self._timer.start(wait)
        else:
            self._run()

    @property
    def _delay_text(self) -> str:
        return self._attempts.delay_text

    @property
    def retries(self) -> int:
        return self._attempts.retries
