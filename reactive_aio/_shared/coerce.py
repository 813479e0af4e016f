"""Conversion to a flow: `to_flow`, and the functions that it shares with the sources.

The operators with several sources (merge, zip, flat_map …) use it to accept a flow, a foreign
publisher, an asynchronous iterable, or an iterable.
"""

from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Sequence,
)
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from inspect import CORO_CLOSED, CORO_CREATED, getcoroutinestate, iscoroutine
from threading import Event as ThreadEvent
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast, runtime_checkable

from .._core.loop import Future, shield
from ..errors import AlreadySubscribed
from ..spec import Publisher
from ..stage import (
    Downstream,
    Fluent,
    ForwardingCoordinator,
    describe,
    from_async,
    from_pull,
    from_push,
)

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = (
    "WINDOW",
    "AwaitOnce",
    "FlowIterator",
    "Moment",
    "Source",
    "close_unstarted",
    "from_async_iterable",
    "from_factory",
    "from_foreign",
    "from_sync_iterable",
    "is_source",
    "to_flow",
    "to_flows",
    "to_moment",
)

T = TypeVar("T")

Source = Publisher[T] | AsyncIterable[T] | Iterable[T]
"""The types that `to_flow` accepts."""


@runtime_checkable
class Settable(Protocol):
    """An event of asyncio, anyio or trio."""

    def is_set(self) -> bool:
        """Whether it has happened."""
        ...

    async def wait(self) -> object:
        """Wait until it has happened."""
        ...


Moment = Settable | Awaitable[Any] | Source[Any]
"""The types that `to_moment` accepts."""

WINDOW: Final = 256
"""The most elements requested at a time of a publisher whose signals are forwarded."""

# Their iterators never yield None.
_NEVER_NONE: Final = (range, str, bytes, bytearray)


class FlowIterator:
    """An asynchronous iterator that reads a flow, and perhaps ahead of its own reader."""

    __slots__ = ()

    def reads(self) -> "tuple[Flow[Any], int]":
        """The flow, and how many of its elements are read ahead at most."""
        raise NotImplementedError


def to_flow(source: Source[T], *, name: str = "") -> "Flow[T]":
    """Read *source* as a flow: a flow is returned unchanged, a publisher is guarded.

    A string is refused, as its characters are rarely meant. *name* is the name of the caller, for
    the error.
    """
    if isinstance(source, Fluent):
        return cast("Flow[T]", source)
    if callable(getattr(source, "subscribe", None)):
        return from_foreign(cast("Publisher[T]", source))
    if isinstance(source, AsyncIterable):
        return from_async_iterable(source)
    if isinstance(source, Iterable) and not isinstance(source, (str, bytes, bytearray)):
        return from_sync_iterable(source)
    given = cast("object", source)
    if iscoroutine(given):
        given.close()  # nothing awaits it, as the error says
    raise TypeError(_refusal(source, name))


def is_source(value: object) -> bool:
    """Whether *value* is a flow or can become one, and is not a function that makes one."""
    return hasattr(value, "subscribe") or isinstance(value, (AsyncIterable, Iterable))


def to_flows(sources: Iterable[Source[Any]], *, name: str) -> "tuple[Flow[Any], ...]":
    """Read each of *sources* as a flow, for an operator that takes several."""
    sources = tuple(sources)
    _refuse_list(sources, name)
    return tuple(to_flow(source, name=name) for source in sources)


def _refuse_list(sources: tuple[Source[Any], ...], name: str) -> None:
    """The elements of the only source must not be sources themselves, as in ``merge([a, b])``."""
    given = sources[1:] if name.endswith("_with") else sources  # the first is the flow itself
    only: object = given[0] if len(given) == 1 else None
    if isinstance(only, (list, tuple)) and only:
        found = cast("Sequence[Any]", only)[0]
        if isinstance(found, (Publisher, AsyncIterable)):
            shown, kind = describe(cast("object", found)), type(cast("object", only)).__name__
            raise TypeError(
                f"{name}: {shown} in a {kind} would become an element; unpack it: {name}(*sources)"
            )


def _refusal(source: object, name: str) -> str:
    where = f"{name}: " if name else ""
    what = f"{where}{describe(source)} ({type(source).__name__}) cannot be read as a flow"
    if isinstance(source, (str, bytes, bytearray)):
        return f"{what}; wrap it: just(...) for one element, from_iterable(...) for its characters."
    if isinstance(source, Awaitable):
        return f"{what}; wrap it: from_awaitable(...)."
    if callable(source):
        return f"{what}; call it, or wrap it: defer(...)."
    return f"{what}; give a Flow, a Publisher, an AsyncIterable or an Iterable."


def from_sync_iterable(source: Iterable[T], *, name: str = "from_iterable") -> "Flow[T]":
    """Make a flow of an iterable; an iterator serves one subscription."""
    checked = isinstance(source, _NEVER_NONE)
    shown = partial(_shown, name, source)
    is_shared = isinstance(source, Iterator) and not hasattr(source, "close")
    return from_pull(_Once(source, iter, name), name=shown, checked=checked, one_by_one=is_shared)


def _shown(name: str, source: object) -> str:
    return f"{name}({describe(source)})"


def from_async_iterable(source: AsyncIterable[T], *, name: str = "from_aiter") -> "Flow[T]":
    """Make a flow of an asynchronous iterable; an iterator serves one subscription."""
    if isinstance(source, Fluent):
        return cast("Flow[T]", source)
    upstreams: tuple[Fluent[Any], ...] = ()
    holds = 0
    if isinstance(source, FlowIterator):
        flow, holds = source.reads()
        upstreams, one_by_one = (flow,), flow.chain.is_one_by_one
    else:
        # The next reader of an iterator without `aclose` continues where this one has stopped.
        one_by_one = isinstance(source, AsyncIterator) and not hasattr(source, "aclose")
    return from_async(
        _Once(source, aiter, name),
        name=partial(_shown, name, source),
        holds=holds,
        upstreams=upstreams,
        one_by_one=one_by_one,
    )


def from_factory(factory: Callable[[], Source[T]], *, name: str) -> "Flow[T]":
    """Call *factory* for each subscription, and forward the signals of its source."""

    def publisher() -> Publisher[T]:
        made = factory()
        direct = callable(getattr(made, "subscribe", None))
        return cast("Publisher[T]", made) if direct else to_flow(made, name=name)

    return _forwarded(publisher, f"{name}({describe(factory)})")


def from_foreign(source: Publisher[T], *, name: str = "from_publisher") -> "Flow[T]":
    """Forward the signals of a foreign publisher, guarded by an `InnerSubscriber`."""
    return _forwarded(lambda: source, f"{name}({describe(source)})")


def _forwarded(publisher: Callable[[], Publisher[T]], name: str) -> "Flow[T]":
    def open(downstream: Downstream[T]) -> ForwardingCoordinator[T]:
        return ForwardingCoordinator(downstream).attach(publisher())

    return from_push(open, name=name, holds=WINDOW, checked=True, window=WINDOW, lossy=None)


def to_moment(moment: Moment, *, name: str) -> "Flow[Any]":
    """A flow whose first element, or whose end, comes at *moment*."""
    make: Callable[[], Awaitable[Any]]
    if isinstance(moment, ThreadEvent):
        raise TypeError(
            f"{name}: {describe(moment)} is an event of threads, whose wait() blocks the loop; "
            "give an asyncio.Event, which a thread sets: loop.call_soon_threadsafe(event.set)"
        )
    if isinstance(moment, (int, float, timedelta)):
        raise TypeError(
            f"{name}: {moment!r} is a duration, not something that happens; give timer({moment!r})"
        )
    if isinstance(moment, Settable):
        make = moment.wait
    elif isinstance(moment, Awaitable):
        make = AwaitOnce(moment, name)
    else:
        return to_flow(moment, name=name)

    async def happened() -> AsyncIterator[bool]:
        await make()
        yield True

    return from_async(happened, name=partial(describe, moment), checked=True)


@dataclass(slots=True, eq=False, repr=False)
class AwaitOnce:
    """Returns an awaitable for each subscription; a coroutine serves only the first."""

    _awaitable: Awaitable[Any]
    _name: str
    _is_used: bool = False

    def __call__(self) -> Awaitable[Any]:
        given: object = self._awaitable
        if iscoroutine(given):
            if self._is_used or getcoroutinestate(given) == CORO_CLOSED:
                raise AlreadySubscribed(
                    f"rule 1.11: {self._name} was given a coroutine, which serves one "
                    "subscription and has served it; give the coroutine function"
                )
            self._is_used = True
        elif isinstance(self._awaitable, Future):
            return shield(self._awaitable)  # it belongs to its creator
        return self._awaitable

    def __repr__(self) -> str:
        return describe(self._awaitable)

    def __del__(self) -> None:
        close_unstarted(self._awaitable)


def close_unstarted(given: object) -> None:
    """A flow that was *given* it ends, or is gone: close a coroutine that it did not come to.

    Else Python would warn that it was never awaited.
    """
    if iscoroutine(given) and getcoroutinestate(given) == CORO_CREATED:
        given.close()


@dataclass(slots=True, eq=False)
class _Once:
    """Iterates an iterable for each subscription, but an iterator only once."""

    iterable: object
    opener: Callable[[Any], Any]
    name: str
    is_used: bool = False

    def __call__(self) -> Any:
        iterator = self.opener(self.iterable)
        if iterator is self.iterable:
            if self.is_used:
                raise AlreadySubscribed(
                    f"rule 1.11: {self.name} was given an iterator, which serves one subscription "
                    f"and has served it; give {self._reusable()}"
                )
            self.is_used = True
        return iterator

    def _reusable(self) -> str:
        """What serves any number of subscriptions instead of the iterator."""
        name: object = getattr(self.iterable, "__name__", "")  # of the function of a generator
        is_known = isinstance(name, str) and name.isidentifier()
        what = "the generator function" if is_known else "a function that makes one"
        function = name if is_known else "lambda: …"
        if self.opener is aiter:
            return f"{what}: from_aiter({function})"
        return f"an iterable, or {what}: defer({function})"
