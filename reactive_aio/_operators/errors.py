"""Operators that handle a failure: another source, another attempt, another error, or the end."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from random import random
from typing import TYPE_CHECKING, Any, Final, TypeGuard, TypeVar, cast

from .._core.arguments import are_types, refuse_awaitable
from .._core.failures import PLAIN_READER, close_pulled
from .._core.observation.awaited import Wait
from .._shared.coerce import WINDOW, Source, to_flow
from ..errors import NotAnElement
from ..retry import Attempts, RetryPolicy
from ..spec import Publisher
from ..stage import (
    InlineStage,
    OnDiscard,
    SequentialCoordinator,
    Timer,
    describe,
    from_pull,
    from_push,
    pull,
    require_sync_callable,
)

if TYPE_CHECKING:
    from ..flow import Flow
    from ..stage import InnerSubscriber

__all__ = (
    "on_error_complete",
    "on_error_map",
    "on_error_resume",
    "on_error_return",
    "retry",
)

T = TypeVar("T")
U = TypeVar("U")

_NOT_AWAITED: Final = "map the error without awaiting"
Errors = type[BaseException] | tuple[type[BaseException], ...]


def on_error_resume(
    source: "Flow[T]",
    fallback: Source[U] | Callable[[BaseException], Source[U]],
    *,
    only: Errors = Exception,
) -> "Flow[T | U]":
    """When the source fails, continue with another source.

    The other one begins when the source has cleaned up, so that a pool of one connection is enough.

    *fallback* is a flow (or a publisher, an iterable, an asynchronous iterable), or a function of
    the error that returns one. Errors that are not instances of *only* are passed on. The error of
    a *fallback* that fails as well has the first one as its ``__context__``. What the cleanup of
    the source raises when the flow is left, or after ``take``, is no failure: it opens nothing.

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
        opened = partial(_resume, *upstreams, only)
        return from_pull(opened, name=name, checked=True, upstreams=upstreams, gives_back=True)
    return from_push(
        lambda downstream: _Resume(downstream, source, following, only),
        name=name,
        holds=WINDOW,
        checked=True,
        upstreams=upstreams,
        window=WINDOW,
        lossy=None if callable(following) else ...,
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


def on_error_complete(source: "Flow[T]", *, only: Errors = Exception) -> "Flow[T]":
    """When the source fails, complete.

    ::

        a--b--#
        .on_error_complete()
        a--b--|

    Demand: passed through.
    Completes: when the source completes or fails.
    Fails: with an error that is not an instance of *only*.
    Cancels: when the subscriber cancels.
    Holds: nothing where the source is synchronous; else up to 256 elements in delivery.
    Rules: 1.4, 1.7
    """
    return on_error_resume(source, (), only=only)


def on_error_map(
    source: "Flow[T]", mapper: Callable[[Any], Exception], *, only: Errors = Exception
) -> "Flow[T]":
    """When the source fails, fail with ``mapper(error)`` instead.

    ::

        a--b--#
        .on_error_map(lambda error: OSError("lost"))
        a--b--#

    The first error is the ``__cause__`` of the new one. Errors that are not instances of *only* are
    passed on.

    Demand: passed through.
    Completes: when the source completes.
    Fails: when the source fails: with ``mapper(error)``, or what *mapper* raises.
    Cancels: when the subscriber cancels.
    Holds: nothing.
    Rules: 1.4
    """
    _check_only(only)
    require_sync_callable("on_error_map", "mapper", mapper, _NOT_AWAITED, takes=1)
    return source.via(_ON_ERROR_MAP, mapper, only)


def mapped_error(mapper: Callable[[Any], object], error: BaseException) -> Exception:
    """The result of ``mapper(error)``, caused by *error*."""
    made = mapper(error)
    refuse_awaitable("on_error_map", mapper, made, _NOT_AWAITED)
    if not isinstance(made, Exception):
        raise TypeError(
            f"on_error_map: {describe(mapper)} returned {type(made).__name__}, not an Exception"
        ) from error
    if made is not error:
        made.__cause__ = error
    return made


_ON_ERROR_MAP = InlineStage(
    "on_error_map",
    params=("mapper", "only"),
    uses=(mapped_error,),
    on_end="""
    if how == "failed" and isinstance(error, $only):
        raise mapped_error($mapper, error)
    """,
)


def _is_function(
    fallback: Source[Any] | Callable[[BaseException], Source[Any]],
) -> TypeGuard[Callable[[BaseException], Source[Any]]]:
    return callable(fallback) and not isinstance(fallback, (Publisher, Iterable))


def _check_only(only: object) -> None:
    if not are_types(only):
        raise TypeError(f"only must be an exception type or a tuple of them, not {only!r}")


def _resume(
    source: "Flow[Any]", other: "Flow[Any]", only: Errors, on_discard: OnDiscard | None = None
) -> Iterator[Any]:
    elements: Any = None
    try:
        elements = pull(source, on_discard)
        # Leaving this ends it at the `yield`: without `chain`, it would close the source in there,
        # where an error of that cleanup would look like a failure of the source.
        yield from chain(elements)
    except GeneratorExit:
        close_pulled(elements)
        raise
    except BaseException as error:
        # A `CancelledError` of a function is what the subscriber would receive for it.
        first = PLAIN_READER.failure_of(error)
        if not isinstance(first, only):
            del first  # its traceback refers to this frame
            raise
    else:
        return
    try:
        yield from pull(other, on_discard)
    except GeneratorExit:
        raise
    except BaseException as error:
        _set_context(error, first)
        raise
    finally:
        del first  # its traceback refers to this frame


def _set_context(error: BaseException, first: BaseException) -> None:
    """Make *first* the context of *error*, as in an ``except`` clause, unless it has another."""
    before: BaseException | None = first
    while before is not None and before is not error:
        before = before.__context__
    if before is None and error.__context__ is None:
        with suppress(Exception):  # an exception may be frozen
            error.__context__ = first


@dataclass(eq=False, repr=False)
class _Resume(SequentialCoordinator[Any]):
    _source: "Flow[Any]"
    _fallback: "Flow[Any] | Callable[[BaseException], Source[Any]] | None"
    _only: Errors
    _first: BaseException | None = None

    def begin(self) -> None:
        self.switch(self._source)

    def next_after(self, error: BaseException | None) -> None:
        fallback, self._fallback = self._fallback, None
        if error is not None and fallback is not None and isinstance(error, self._only):
            self._first = error
            self.after_cleanup(partial(self._begin_fallback, fallback, error), kind="source")
        else:
            self.end(error)

    def _begin_fallback(self, fallback: Any, error: BaseException) -> None:
        made = fallback(error) if _is_function(fallback) else fallback
        self.follow(to_flow(made, name="on_error_resume"))

    def fail(self, error: BaseException) -> None:
        if self._first is not None:
            _set_context(error, self._first)
        super().fail(error)

    def on_stop(self) -> None:
        self._first = None


def retry(source: "Flow[T]", policy: RetryPolicy | int = 3) -> "Flow[T]":
    """When the source fails, subscribe to it again, as *policy* allows.

    An int is the number of attempts, including the first, without delays in between. Each
    subscription has its own attempts and its own time budget. A cold source starts from the
    beginning: the elements of the failed attempt are emitted again. An attempt begins when the one
    before has cleaned up, so that a pool of one connection is enough; a delay counts from the
    failure, and the cleanup is part of it.

    ::

        a--b--#
        .retry(2)
        a--b--a--b--#

    Demand: passed through; the rest is carried over to the next attempt.
    Completes: when an attempt completes.
    Fails: when *policy* gives up: with the error of the last attempt, whose notes list the last ten
        attempts before it.
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

    def __post_init__(self) -> None:
        super().__post_init__()
        self._timer = Timer(self, self._try)
        self._attempts = Attempts(self._policy, 0.0)

    # -- decisions --------------------------------------------------------------------------------
    def begin(self) -> None:
        self._attempts.restart(self.loop_handle.time())
        self._try()

    def on_elements(self, inner: "InnerSubscriber[Any]") -> None:
        if self._policy.reset and inner.elements:
            self._attempts.restart(self.loop_handle.time())
        super().on_elements(inner)

    def next_after(self, error: BaseException | None) -> None:
        if error is None:
            self.complete()
            return
        wait = self._attempts.failed(error, self.loop_handle.time(), random())
        if wait is None or self.is_drained:  # there is no source to try again
            self.fail(error)
        elif wait == 0:
            self._try()
        else:
            self._timer.start(wait)

    @property
    def own_wait(self) -> Wait | None:
        if self._timer.is_running:
            return Wait("limit", self._attempts.delay_text)
        return super().own_wait

    @property
    def retries(self) -> int:
        return self._attempts.retries

    # -- acts -------------------------------------------------------------------------------------
    def _try(self) -> None:
        if not self.is_closed:
            self.switch(self._source)
