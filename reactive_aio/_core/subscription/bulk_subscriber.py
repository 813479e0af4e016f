"""BulkSubscriber: a subscriber of this package that receives elements without a call for each."""

from collections import deque
from collections.abc import Callable
from typing import Any

from ..cleanup import CleanupErrors
from ..compiler.discards import OnDiscard


class BulkSubscriber:
    """A subscriber whose island appends elements for it, and calls `flush` after a batch.

    A synchronous drain flushes when it pauses. A task flushes after each element, since it cannot
    know when its next await suspends it, unless the subscriber *is_notified* already.
    """

    # Not an ABC, as `FlowSubscription` is none.
    __slots__ = ()
    append: Callable[[Any], object]
    """Takes one element; it must not raise, and what it returns is ignored."""
    is_notified: bool
    """Whether the subscriber is going to read what was appended without another `flush`."""
    tells_finished: bool = False
    """Whether it calls `finished` of its subscription, which has ended or was cancelled, when it
    has processed all elements; otherwise they are processed when it has received the end."""
    takes_lists: bool = False
    """Whether `container` can be extended without its island, and its requests are valid and come
    from the loop's thread."""
    only_wakes: bool = False
    """Whether `flush` does no more than to wake a task, so that any source may call it, in any
    context and at any depth; the rest is as for *takes_lists*."""
    pulls: bool = False
    """Whether it calls `pull` of its subscription before it waits, so that elements which are
    pushed one by one while it *is_notified* can be processed together: without that, ``async for``
    over a processor takes twice as long for each `emit`."""

    @property
    def container(self) -> list[Any] | deque[Any] | None:
        """The container whose ``append`` is `append`; None if `append` examines each element, and
        so may cancel after any of them."""
        return None

    @property
    def cleanup(self) -> CleanupErrors | None:
        """Where the errors of the flow's cleanup go, if a consumer awaits it."""
        return None

    @property
    def on_discard(self) -> OnDiscard | None:
        """What receives each element that is discarded upstream; None if nothing does."""
        return None

    def consumer_line(self) -> str | None:
        """Where the consumer that reads from it is suspended in the user's code, if one does."""
        return None

    def flush(self) -> None:
        """Elements have been appended since the last call."""
        raise NotImplementedError(f"{type(self).__name__} does not define flush()")


class BulkReceiver:
    """A subscriber that has a `BulkSubscriber` receive the signals of this package's flows."""

    __slots__ = ()

    def bulk_subscriber(self) -> BulkSubscriber | None:
        """The subscriber that a flow is to serve instead of this one; None if it belongs to
        another event loop than the flow."""
        raise NotImplementedError(f"{type(self).__name__} does not define bulk_subscriber()")
