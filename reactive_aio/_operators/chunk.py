"""Operators that put elements together: in lists, by their number, and in windows that slide."""

from typing import TYPE_CHECKING, Any, TypeVar

from .._core.arguments import require_int
from ..stage import InlineStage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..flow import Flow

__all__ = ("buffer", "sliding_window")

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
        emit $kept
    """,
    demand="need = need * $size - len($kept)",
)


def windows_left(
    kept: list[Any], step: int, form: "Callable[[Sequence[Any]], Any]"
) -> "Iterator[Any]":
    """What has not become a full window: of each that has begun, what there is."""
    return (form(kept[start:]) for start in range(0, len(kept), step))


def _windows(name: str) -> InlineStage:
    return InlineStage(
        name,
        params=("size", "step", "partial", "form"),
        uses=(windows_left,),
        # `gap`: how many elements lie between the last window and the next one
        setup="$kept, $gap = [], 0",
        each="""
        if $gap:
            $gap -= 1
            drop
        $kept.append(x)
        if len($kept) < $size:
            drop
        x = $form($kept)
        del $kept[:$step]
        if $step > $size:
            $gap = $step - $size
        """,
        after="""
        if $partial:
            emit each windows_left($kept, $step, $form)
        """,
        demand="need = (need - 1) * $step + $gap + $size - len($kept)",
    )


_BUFFER_STEP = _windows("buffer")
_SLIDING = _windows("sliding_window")


def buffer(source: "Flow[T]", size: int, *, step: int | None = None) -> "Flow[list[T]]":
    """Put *size* elements at a time into a list.

    ::

        a--b--c--|
        .buffer(2)
        ---[a,b]-----[c]|

    A list begins every *step* elements, which is *size* unless you say otherwise: with a smaller
    one lists overlap, with a larger one elements between them are left out. When the source
    completes, lists that have begun are emitted with what is in them.

    Demand: multiplied: what the lists asked for still take.
    Completes: behind the last list.
    Fails: when the source fails; a list that has only begun is discarded.
    Cancels: when the subscriber cancels.
    Holds: *size* elements.
    Rules: 1.1
    """
    require_int("buffer", "size", size, least=1)
    if step is None or require_int("buffer", "step", step, least=1) == size:
        return source.via(_BUFFER, size, holds=size)
    return source.via(_BUFFER_STEP, size, step, True, list, holds=size)


def sliding_window(
    source: "Flow[T]", size: int, *, step: int = 1, partial: bool = False
) -> "Flow[tuple[T, ...]]":
    """Emit each *size* elements in a row as a tuple: a window that moves by *step* elements.

    ::

        a--b--c--d--|
        .sliding_window(3)
        ------(a,b,c)--(b,c,d)--|

    A source that is shorter than *size* has no window. With *partial*, windows that have begun when
    the source completes are emitted with what is in them.

    Demand: multiplied by *step*; the first window takes *size*.
    Completes: when the source completes; with *partial* behind the last window.
    Fails: when the source fails.
    Cancels: when the subscriber cancels.
    Holds: *size* elements.
    Rules: 1.1
    """
    require_int("sliding_window", "size", size, least=1)
    require_int("sliding_window", "step", step, least=1)
    return source.via(_SLIDING, size, step, partial, tuple, holds=size)
