"""Streams of aiostream as publishers."""

from collections.abc import Callable
from typing import Any, ParamSpec

from .pull_publisher import PullPublisher
from .support import published

P = ParamSpec("P")


def from_aiostream(make: Callable[P, Any]) -> Callable[P, PullPublisher[Any]]:
    """A publisher of the aiostream stream that *make* returns, or any object with its ``stream()``.

    Translated: a subscription enters ``made.stream()`` at the first demand; each requested element
    is one ``anext()``. The end of the iteration becomes on_complete, so it takes demand to find it.
    An exception becomes on_error. A cancellation cancels the current ``anext()`` and exits the
    context, which closes the operators.

    Not translated: the prefetching of an aiostream operator.
    """

    def publish(made: Any) -> PullPublisher[Any]:
        return PullPublisher("from_aiostream", made.stream)

    return published("from_aiostream", make, "stream", "a stream of aiostream", publish)
