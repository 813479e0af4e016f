"""Operators that add the time to each element: that of the loop's clock."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ..stage import InlineStage, LoopHandle

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("elapsed", "timestamp")

T = TypeVar("T")


def loop_clock() -> Callable[[], float]:
    """The clock of the running loop, in seconds."""
    return LoopHandle("a clock").clock


_TIMESTAMP = InlineStage(
    "timestamp",
    uses=(loop_clock,),
    setup="$clock = loop_clock()",
    each="x = ($clock(), x)",
    checked=True,
)

_ELAPSED = InlineStage(
    "elapsed",
    uses=(loop_clock,),
    setup="""
    $clock = loop_clock()
    $last = $clock()
    """,
    each="""
    $now = $clock()
    x, $last = ($now - $last, x), $now
    """,
    checked=True,
)


def timestamp(source: "Flow[T]") -> "Flow[tuple[float, T]]":
    """Pair each element with the time at which it passes, in seconds of the loop's clock.

    An element that waited for demand passes when it is requested. To note when it arrived, put a
    ``boundary(n)`` below.

    ::

        a--b--|
        .timestamp().map(lambda pair: int(pair[0]))
        0--3--|

    Demand: passed through.
    Completes: when the source completes.
    Fails: when the source fails.
    Cancels: when the subscriber cancels.
    Holds: nothing.
    Rules: 1.1
    """
    return source.via(_TIMESTAMP)


def elapsed(source: "Flow[T]") -> "Flow[tuple[float, T]]":
    """Pair each element with the seconds since the one before; the first, since the beginning.

    It is the time between the moments at which they pass: see ``timestamp``.

    ::

        a--b--|
        .elapsed().map(lambda pair: int(pair[0]))
        0--3--|

    Demand: passed through.
    Completes: when the source completes.
    Fails: when the source fails.
    Cancels: when the subscriber cancels.
    Holds: nothing.
    Rules: 1.1
    """
    return source.via(_ELAPSED)
