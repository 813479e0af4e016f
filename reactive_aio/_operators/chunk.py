"""Operators that group elements into lists, by count or by what they are, and into windows."""

from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import Overflow
from ..stage import InlineStage, require_int, require_sync_callable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..flow import Flow

__all__ = ("buffer", "buffer_until", "sliding_window")

T = TypeVar("T")

_BUFFER = InlineStage(
    "buffer",
    params=("size",),
    setup="$kept = []",
    each="""
    $kept.append(x)
    if len($kept) < $size:
        drop
    x, $kept = $kept, []
    """,
    after="""
    if $kept:
        $last, $kept = $kept, []
        emit $last
    """,
    held="$kept",
    demand="need = need * $size - len($kept)",
    checked=True,
)


def partial_windows(
    kept: list[Any], step: int, make: "Callable[[Sequence[Any]], Any]"
) -> "Iterator[Any]":
    """The windows that have begun and are not full."""
    return (make(kept[start:]) for start in range(0, len(kept), step))


def _windows(name: str) -> InlineStage:
    return InlineStage(
        name,
        params=("size", "step", "partial", "make"),
        uses=(partial_windows,),
        # `gap`: the number of elements to skip before the next window
        # `delivered`: how many of those kept are part of a window that was delivered
        setup="""
        $kept, $gap = [], 0
        $delivered, $overlap = 0, max(0, $size - $step)
        """,
        each="""
        if $gap:
            $gap -= 1
            drop
        $kept.append(x)
        if len($kept) < $size:
            drop
        x = $make($kept)
        del $kept[:$step]
        $delivered = $overlap
        if $step > $size:
            $gap = $step - $size
        """,
        after="""
        if $partial:
            $last, $kept = $kept, []
            emit each partial_windows($last, $step, $make)
        """,
        held="$kept[$delivered:]",
        demand="need = (need - 1) * $step + $gap + $size - len($kept)",
        checked=True,
    )


_BUFFER_STEP = _windows("buffer")
_SLIDING = _windows("sliding_window")


def buffer(source: "Flow[T]", size: int, *, step: int | None = None) -> "Flow[list[T]]":
    """Collect elements into lists of *size*.

    ::

        a--b--c--|
        .buffer(2)
        ---[a,b]-----[c]|

    A list begins every *step* elements, *size* by default: with a smaller step lists overlap, with
    a larger one the elements between them are left out. When the source completes, the lists that
    have begun are emitted as they are.

    Demand: multiplied: as many elements as the requested lists still need.
    Completes: after the last list.
    Fails: when the source fails; lists that have begun are discarded.
    Cancels: when the subscriber cancels.
    Holds: *size* elements.
    Rules: 1.1
    """
    require_int("buffer", "size", size, least=1)
    if step is None or require_int("buffer", "step", step, least=1) == size:
        return source.via(_BUFFER, size, holds=size, contents=size)
    return source.via(_BUFFER_STEP, size, step, True, list, holds=size, contents=size)


def too_long(limit: int) -> Overflow:
    remedy = "allow more with limit=..., or make the predicate true more often."
    return Overflow("buffer_until", limit, remedy)


_BUFFER_UNTIL = InlineStage(
    "buffer_until",
    params=("predicate", "limit"),
    uses=(too_long,),
    setup="$kept = []",
    each="""
    if len($kept) == $limit:
        raise too_long($limit)
    $ends = $predicate(x)
    sync $ends of $predicate
    $kept.append(x)
    if not $ends:
        drop
    x, $kept = $kept, []
    """,
    after="""
    if $kept:
        $last, $kept = $kept, []
        emit $last
    """,
    held="$kept",
    checked=True,
)


def buffer_until(
    source: "Flow[T]", predicate: "Callable[[T], object]", *, limit: int = 1024
) -> "Flow[list[T]]":
    """Collect elements into lists, each of which ends with an element that satisfies *predicate*.

    ::

        a--b--c--|
        .buffer_until(lambda x: x == "b")
        ---[a, b]-----[c]|

    Demand: one element after the other, until the requested lists are complete.
    Completes: when the source completes, after a list of what is left.
    Fails: when the source fails or *predicate* raises; with `Overflow` when *limit* elements do not
        end a list and one more arrives. A list that has begun is discarded.
    Cancels: when the subscriber cancels.
    Holds: *limit* elements.
    Rules: 1.1
    """
    remedy = "decide without awaiting."
    require_sync_callable("buffer_until", "predicate", predicate, remedy, takes=1)
    limit = require_int("buffer_until", "limit", limit, least=1)
    return source.via(_BUFFER_UNTIL, predicate, limit, holds=limit, contents=limit)


def sliding_window(
    source: "Flow[T]", size: int, *, step: int = 1, partial: bool = False
) -> "Flow[tuple[T, ...]]":
    """Emit each window of *size* consecutive elements as a tuple, moving by *step* elements.

    ::

        a--b--c--d--|
        .sliding_window(3)
        ------(a,b,c)--(b,c,d)--|

    A source with fewer than *size* elements has no window. With *partial*, the windows that have
    begun when the source completes are emitted as they are.

    Demand: multiplied by *step*; the first window needs *size*.
    Completes: when the source completes; with *partial* after the last window.
    Fails: when the source fails.
    Cancels: when the subscriber cancels.
    Holds: *size* elements.
    Rules: 1.1
    """
    require_int("sliding_window", "size", size, least=1)
    require_int("sliding_window", "step", step, least=1)
    return source.via(_SLIDING, size, step, partial, tuple, holds=size, contents=size)
