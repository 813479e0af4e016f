"""What an island is fed by: an iterator, an asynchronous iterator, or a source that pushes."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

if TYPE_CHECKING:
    from ...spec import Subscription

__all__ = ("AsyncSource", "ChainSource", "Downstream", "PullSource", "PushSource", "is_spent")

T = TypeVar("T")

# Iterators that know how many elements they have left, so that on_complete can follow the last
# demanded element at once (1.5) without looking ahead.
_SIZED: tuple[Iterable[Any], ...] = ((), [], {}, "", b"", range(0), range(1 << 70))
_EXACT: Final = frozenset(type(iter(sized)) for sized in _SIZED)


def is_spent(iterator: Any) -> bool:
    """Whether *iterator* is known to have no more elements."""
    return type(iterator) in _EXACT and not iterator.__length_hint__()


class Downstream(Protocol[T]):
    """Where a pushing source hands its elements in; to be used on the loop's thread only."""

    def push(self, elements: list[T], /) -> None:
        """Hand over *elements*: no more than are requested and not yet handed over (rule 1.1)."""
        ...

    def push_from(self, elements: Iterator[T], count: int, /) -> None:
        """Hand over the next *count* of *elements*, to be made one by one as they are delivered.

        As if they were pushed, and faster where they cost memory. The iterator must have so many
        left, must not block, and is not to be touched until there is new demand or ``processed()``;
        if it raises, the flow fails with that. What is cancelled before its turn is never made.
        """
        ...

    def complete(self) -> None:
        """Complete, behind the elements handed over before."""
        ...

    def fail(self, error: BaseException, /) -> None:
        """Fail, behind the elements handed over before."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class PullSource:
    """An iterator for each subscription: pulled, and fused with the stages to the end."""

    name: str
    open: Callable[[], Iterator[Any]]
    checked: bool = False
    """Whether its elements are known not to be None."""
    holds: int | None = 0
    upstreams: tuple[Any, ...] = ()
    """The flows it draws from, for bound() and explain()."""


@dataclass(frozen=True, slots=True, eq=False)
class AsyncSource:
    """An asynchronous iterator for each subscription, iterated inside the subscription's task."""

    name: str
    open: Callable[[], AsyncIterator[Any]]
    checked: bool = False
    holds: int | None = 0
    upstreams: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class PushSource:
    """A source that hands elements to an `Downstream` as demand reaches it."""

    name: str
    open: "Callable[[Downstream[Any]], Subscription]"
    holds: int | None = 0
    checked: bool = False
    upstreams: tuple[Any, ...] = ()
    window: int = 0
    """The most that an island asks for at a time; 0 when its demand goes through as it is."""
    about: Callable[[], str] | None = None
    """What explain() is to say of it, in lines."""


ChainSource = PullSource | AsyncSource | PushSource
