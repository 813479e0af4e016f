"""What can be read as a flow: `to_flow`, and the openers that the sources share with it.

It stands below the operators, so that those that take other sources (merge, zip, flat_map …) accept
whatever the user has: a flow, a foreign publisher, an asynchronous iterable, or an iterable.
"""

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from ._core.compiler.inline import describe
from ._core.upstreams.forwarding import ForwardingCoordinator
from .errors import AlreadySubscribed
from .spec import Publisher
from .stage import Downstream, Fluent, from_async, from_pull, from_push

if TYPE_CHECKING:
    from .flow import Flow

__all__ = ("WINDOW", "Source", "deferred", "iterated", "iterated_async", "published", "to_flow")

T = TypeVar("T")

Source = Publisher[T] | AsyncIterable[T] | Iterable[T]
"""What `to_flow` accepts."""

WINDOW: Final = 256
"""The most that is requested at a time of a publisher that is relayed."""

# Their iterators cannot yield None.
_NEVER_NONE: Final = (range, str, bytes, bytearray)


def to_flow(source: Source[T], *, name: str = "") -> "Flow[T]":
    """Read *source* as a flow: a flow is returned as it is, a publisher is guarded.

    A text or bytes is refused: it is an iterable of characters, which is hardly ever meant. *name*
    is that of the caller, for the error.
    """
    if isinstance(source, Fluent):
        return cast("Flow[T]", source)
    if callable(getattr(source, "subscribe", None)):
        return published(cast("Publisher[T]", source))
    if isinstance(source, AsyncIterable):
        return iterated_async(source)
    if isinstance(source, Iterable) and not isinstance(source, (str, bytes, bytearray)):
        return iterated(source)
    raise TypeError(_refusal(source, name))


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


def iterated(source: Iterable[T], *, name: str = "from_iterable") -> "Flow[T]":
    """Pull from *source*; one that is its own iterator serves one subscription."""
    checked = isinstance(source, _NEVER_NONE)
    return from_pull(_Once(source, iter, name), name=f"{name}({describe(source)})", checked=checked)


def iterated_async(source: AsyncIterable[T], *, name: str = "from_aiter") -> "Flow[T]":
    """The same for an asynchronous iterable."""
    return from_async(_Once(source, aiter, name), name=f"{name}({describe(source)})")


def deferred(factory: Callable[[], Source[T]], *, name: str) -> "Flow[T]":
    """Relay what *factory* makes for each subscription, guarded in the same way."""

    def open(downstream: Downstream[T]) -> ForwardingCoordinator[T]:
        made = factory()
        direct = callable(getattr(made, "subscribe", None))
        return ForwardingCoordinator(downstream).attach(
            cast("Publisher[T]", made) if direct else to_flow(made, name=name)
        )

    return from_push(
        open, name=f"{name}({describe(factory)})", holds=WINDOW, checked=True, window=WINDOW
    )


def published(source: Publisher[T], *, name: str = "from_publisher") -> "Flow[T]":
    """Relay a foreign publisher through the guards of an arm."""

    def open(downstream: Downstream[T]) -> ForwardingCoordinator[T]:
        return ForwardingCoordinator(downstream).attach(source)

    return from_push(
        open, name=f"{name}({describe(source)})", holds=WINDOW, checked=True, window=WINDOW
    )


class _Once:
    """Opens an iterable for each subscription, but an iterator for one only."""

    __slots__ = ("_iterable", "_name", "_open", "_used")

    def __init__(self, iterable: object, opener: Callable[[Any], Any], name: str) -> None:
        self._iterable = iterable
        self._open = opener
        self._name = name
        self._used = False

    def __call__(self) -> Any:
        iterator = self._open(self._iterable)
        if iterator is self._iterable:
            if self._used:
                raise AlreadySubscribed(
                    f"rule 1.11: {self._name} was given an iterator, which serves one subscription "
                    "and has served it; give what can be iterated anew, or use defer()"
                )
            self._used = True
        return iterator
