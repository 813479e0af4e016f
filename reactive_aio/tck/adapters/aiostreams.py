"""Streams of aiostream as publishers."""

from collections.abc import Callable
from typing import Any, Final, ParamSpec

from .pulled import ANSWERED as PULLED, Pulled
from .shapes import shaped

__all__ = ("ANSWERED", "from_aiostream")

P = ParamSpec("P")

ANSWERED: Final = PULLED


def from_aiostream(make: Callable[P, Any]) -> Callable[P, Pulled[Any]]:
    """A publisher of what *make* returns: a stream of aiostream, or what has its ``stream()``.

    Translated: a subscription is one ``async with made.stream() as streamer``, from the first
    demand on; each requested element is one ``anext(streamer)``. The end of the iteration is
    on_complete, so it is found by demand only. What it raises is on_error. A cancellation cancels
    the pull that is under way and leaves the context, which closes the operators.

    Not translated: what an operator of aiostream prefetches, it prefetches.
    """
    made = shaped("from_aiostream", make, "stream", "a stream of aiostream")

    def publisher(*args: P.args, **kwargs: P.kwargs) -> Pulled[Any]:
        return Pulled("from_aiostream", made(*args, **kwargs).stream)

    return publisher
