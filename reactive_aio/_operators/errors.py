"""Operators that handle a failure: with another source, or by another attempt."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from random import random
from typing import TYPE_CHECKING, Any, Final, TypeGuard, TypeVar, cast

from ..coerce import WINDOW, Source, to_flow
from ..errors import NotAnElement, RetriesExhausted
from ..retry import RetryPolicy
from ..spec import Publisher
from ..stage import (
    SequentialCoordinator,
    describe,
    from_pull,
    from_push,
    pull,
    require_sync_callable,
)

if TYPE_CHECKING:
    from .._core.loop import TimerHandle
    from ..flow import Flow
    from ..stage import InnerSubscriber

__all__ = ("on_error_resume", "on_error_return", "retry")

T = TypeVar("T")
U = TypeVar("U")

Errors = type[BaseException] | tuple[type[BaseException], ...]

_MAX_NOTES: Final = 10  # failed attempts that the last error lists


def on_error_resume(
    source: "Flow[T]",
    fallback: Source[U] | Callable[[BaseException], Source[U]],
    *,
    only: Errors = Exception,
) -> "Flow[T | U]":
    """When the source fails, continue with another source.

    *fallback* is a flow (or a publisher, an iterable, an asynchronous iterable), or a function of
    the error that returns one. Errors that are not instances of *only* are passed on.

    ::

        a--b--#
        .on_error_resume(["x", "y"])
        a--b--(xy|)

    Demand: passed through; the rest is carried over to *fallback*.
    Completes: when the source or *fallback* completes.
    Fails: when *fallback* fails, when the function raises, or with an error that is not *only*.
    Cancels: the active source, when the subscriber cancels.
    Holds: nothing where both are synchronous; else up to 256 elements in delivery.
    Rules: 1.4, 1.7, 3.13
    """
    _check_only(only)
    following: Flow[Any] | Callable[[BaseException], Source[Any]]
    upstreams: tuple[Flow[Any], ...]
    if _is_function(fallback):
        remedy = "return a flow that awaits: from_awaitable."
        require_sync_callable(
            "on_error_resume", "fallback", fallback, remedy, takes=1, may_generate=True
        )
        following, upstreams, shown = fallback, (source,), describe(fallback)
    else:
        following = to_flow(cast("Source[Any]", fallback), name="on_error_resume")
        upstreams, shown = (source, following), following.chain.trail()
    name = f"on_error_resume({shown})"
    if all(flow.chain.is_pullable for flow in upstreams) and len(upstreams) == 2:
        return from_pull(
            partial(_resume, *upstreams, only), name=name, checked=True, upstreams=upstreams
        )
    return from_push(
        lambda downstream: _Resume(downstream, source, following, only),
        name=name,
        holds=WINDOW,
        checked=True,
        upstreams=upstreams,
        window=WINDOW,
    )


def on_error_return(source: "Flow[T]", value: U, *, only: Errors = Exception) -> "Flow[T | U]":
    """When the source fails, emit *value* and complete.

    ::

        a--b--#
        .on_error_return("x")
        a--b--(x|)

    Demand: passed through; *value* waits for demand like any element.
    Completes: when the source completes, or after *value*.
    Fails: with an error that is not an instance of *only*.
    Cancels: when the subscriber cancels.
    Holds: nothing where the source is synchronous; else up to 256 elements in delivery.
    Rules: 1.4, 1.7
    """
    if value is None:
        raise NotAnElement("on_error_return(None): None is not an element")
    return on_error_resume(source, (value,), only=only)


def _is_function(
    fallback: Source[Any] | Callable[[BaseException], Source[Any]],
) -> TypeGuard[Callable[[BaseException], Source[Any]]]:
    return callable(fallback) and not isinstance(fallback, (Publisher, Iterable))


def _check_only(only: object) -> None:
    kinds = cast("tuple[object, ...]", only if isinstance(only, tuple) else (only,))
    if not kinds or not all(isinstance(kind, type) for kind in kinds):
        raise TypeError(f"only must be an exception type or a tuple of them, not {only!r}")


def _resume(source: "Flow[Any]", other: "Flow[Any]", only: Errors) -> Iterator[Any]:
    try:
        yield from pull(source)
    except GeneratorExit:
        raise
    except only:
        pass
    else:
        return
    yield from pull(other)


@dataclass(eq=False, repr=False)
class _Resume(SequentialCoordinator[Any]):
    _source: "Flow[Any]"
    _fallback: "Flow[Any] | Callable[[BaseException], Source[Any]] | None"
    _only: Errors

    def begin(self) -> None:
        self.switch(self._source)

    def next_after(self, error: BaseException | None) -> None:
        fallback, self._fallback = self._fallback, None
        if error is None or fallback is None or not isinstance(error, self._only):
            self.end(error)
            return
        try:
            made = fallback(error) if _is_function(fallback) else cast("Flow[Any]", fallback)
            self.switch(to_flow(made, name="on_error_resume"))
        except Exception as raised:
            raised.__context__ = error
            self.end(raised)


def retry(source: "Flow[T]", policy: RetryPolicy | int = 3) -> "Flow[T]":
    """When the source fails, subscribe to it again, as *policy* allows.

    An int is the number of attempts, including the first, without delays in between. Each
    subscription has its own attempts and its own time budget. A cold source starts from the
    beginning: the elements of the failed attempt are emitted again.

    ::

        a--b--#
        .retry(2)
        a--b--a--b--#

    Demand: passed through; the rest is carried over to the next attempt.
    Completes: when an attempt completes.
    Fails: when *policy* gives up: with RetriesExhausted, whose cause is the last error and whose
        notes list the attempts; with the error itself if *policy* does not cover it.
    Cancels: the running attempt, or the wait for the next one.
    Holds: up to 256 elements in delivery.
    Rules: 1.1, 1.4, 1.7
    """
    policy = RetryPolicy.of(policy)
    return from_push(
        lambda downstream: _Retry(downstream, source, policy),
        name=f"retry({policy})",
        holds=WINDOW,
        checked=True,
        upstreams=(source,),
        window=WINDOW,
    )


@dataclass(eq=False, repr=False)
class _Retry(SequentialCoordinator[Any]):
    _source: "Flow[Any]"
    _policy: RetryPolicy
    _attempt: int = 0
    _began: float = 0.0
    _failures: deque[str] = field(default_factory=lambda: deque(maxlen=_MAX_NOTES))
    _timer: "TimerHandle | None" = None

    # -- decisions --------------------------------------------------------------------------------
    def begin(self) -> None:
        self._began = self.loop_handle.time()
        self._try()

    def on_elements(self, inner: "InnerSubscriber[Any]") -> None:
        if self._policy.reset and inner.elements:
            self._attempt, self._began = 1, self.loop_handle.time()
            self._failures.clear()
        super().on_elements(inner)

    def next_after(self, error: BaseException | None) -> None:
        if error is None:
            self.complete()
            return
        self._failures.append(f"attempt {self._attempt}: {error!r}")
        elapsed = self.loop_handle.time() - self._began
        wait = self._policy.decide(self._attempt, error, elapsed, random())
        if wait is None:
            self._give_up(error, elapsed)
        elif wait == 0:
            self._try()
        else:
            self._timer = self.loop_handle.call_later(wait, self.submit, self._try)

    def on_stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    # -- acts -------------------------------------------------------------------------------------
    def _try(self) -> None:
        if not self.is_closed:
            self._attempt += 1
            self.switch(self._source)

    def _give_up(self, error: BaseException, elapsed: float) -> None:
        if not self._policy.covers(error) or self._policy.attempts == 1:
            self.fail(error)
            return
        exhausted = RetriesExhausted(
            f"all {self._attempt} attempts failed, within {elapsed:.3g} s; the last one with "
            f"{error!r}"
        )
        exhausted.__cause__ = error
        for failure in self._failures:
            exhausted.add_note(failure)
        self.fail(exhausted)
