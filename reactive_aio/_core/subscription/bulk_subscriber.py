"""Batched: subscribers inside the package that take elements without a call for each."""

from collections.abc import Callable
from typing import Any

__all__ = ("BulkSubscriber",)


class BulkSubscriber:
    """An internal subscriber that has its elements appended, and is told when a batch is over.

    A synchronous drain flushes when it pauses; a task, which cannot know when what it awaits will
    suspend it, after each element, unless the subscriber is *told* already.
    """

    __slots__ = ()
    append: Callable[[Any], None]
    is_notified: bool
    """It will look at what was appended, and need not be told again before it has."""

    def flush(self) -> None:
        """Take notice of what was appended; each subscriber does so in its own way."""
        raise NotImplementedError
