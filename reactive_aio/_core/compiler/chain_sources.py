"""What feeds an island: an iterator, an asynchronous iterator, or a source that pushes."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from ..flow_subscription import FlowSubscription

T = TypeVar("T")

# Iterators that report how many elements are left, so that on_complete can follow the last
# requested element directly (1.5) without reading ahead.
_SIZED: tuple[Iterable[Any], ...] = ((), [], {}, "", b"", range(0), range(1 << 70))
_EXACT: Final = frozenset(type(iter(sized)) for sized in _SIZED)


def is_spent(iterator: Any) -> bool:
    """Whether *iterator* is known to have no more elements."""
    return type(iterator) in _EXACT and not iterator.__length_hint__()


class Downstream(Protocol[T]):
    """The island below a pushing source. Its methods may be called on the loop's thread only."""

    def push(self, elements: list[T], /) -> None:
        """Push *elements*, at most as many as are requested and not yet pushed (rule 1.1)."""
        ...

    def push_from(self, elements: Iterator[T], count: int, /) -> None:
        """Push the next *count* of *elements*, each created when it is delivered.

        Like `push`, but faster where elements take memory. The iterator must have *count* elements
        left and must not block; the caller must not advance it until there is new demand or
        ``processed()`` is called. If it raises, the flow fails with that error. Elements that are
        cancelled before their delivery are never created.
        """
        ...

    def complete(self) -> None:
        """Complete after the elements pushed so far."""
        ...

    def fail(self, error: BaseException, /) -> None:
        """Fail after the elements pushed so far."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class PullSource:
    """An iterator per subscription: pulled, and fused with the stages."""

    name: str
    open: Callable[[], Iterator[Any]]
    checked: bool = False
    """Whether its elements are known not to be None."""
    holds: int | None = 0
    upstreams: tuple[Any, ...] = ()
    """The flows it reads from, for `bound` and `explain`."""


@dataclass(frozen=True, slots=True, eq=False)
class AsyncSource:
    """An asynchronous iterator per subscription, advanced in the subscription's task."""

    name: str
    open: Callable[[], AsyncIterator[Any]]
    checked: bool = False
    holds: int | None = 0
    upstreams: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class PushSource:
    """A source that pushes elements to a `Downstream` as it receives demand."""

    name: str
    open: Callable[[Downstream[Any]], FlowSubscription]
    holds: int | None = 0
    checked: bool = False
    upstreams: tuple[Any, ...] = ()
    window: int = 0
    """The largest request that an island makes; 0 if demand is passed through."""
    details: Callable[[], str] | None = None
    """More lines about it for `explain`."""


ChainSource = PullSource | AsyncSource | PushSource
