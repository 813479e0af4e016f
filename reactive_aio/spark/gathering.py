"""The elements of a flow in parts that are bounded by rows and by bytes."""

from contextlib import AbstractAsyncContextManager
from math import inf
from typing import TYPE_CHECKING, Any, Final, Self

import anyio

from .._core.cleanup import CleanupErrors
from .._core.subscription.bulk_subscriber import BulkSubscriber
from ..stage import FlowSubscription, LoopHandle
from .executors.batch_size import BatchSize
from .rows import cut

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..flow import Flow
    from ..spec import Publisher, Subscription

_PARTS: Final = 8
"""How many parts of a commit a large record batch is cut into, so that a commit is about full."""
_CHUNK: Final = 10_000
"""Rows that are converted to Arrow at a time, at most."""


class Elements(BulkSubscriber, AbstractAsyncContextManager["Elements"]):
    """The elements of a flow, as many at a time as are asked for. It subscribes with the first.

    Leaving its ``async with`` cancels, and waits for the cleanup. Every method runs on the loop.
    """

    __slots__ = ("_cleanup", "_elements", "_event", "_flow", "_is_ended", "_is_subscribed",
                 "_name", "_requested", "_subscription", "_target", "append",
                 "error")  # fmt: skip
    is_notified: bool = False

    def __init__(self, name: str, flow: "Publisher[Any]") -> None:
        self._name = name
        self._flow = flow
        self._elements: list[Any] = []
        self.append: Callable[[Any], None] = self._elements.append
        self._cleanup = CleanupErrors()
        self._event = anyio.Event()
        self._subscription: Subscription | None = None
        self._requested = 0  # and not taken
        self._target = 0  # elements that are waited for
        self._is_subscribed = False
        self._is_ended = False
        self.error: BaseException | None = None
        """What the flow has failed with."""

    @property
    def container(self) -> list[Any]:
        return self._elements

    @property
    def cleanup(self) -> CleanupErrors | None:
        return self._cleanup

    # -- the consumer -----------------------------------------------------------------------------
    def ask(self, count: int) -> None:
        """Ask for *count* elements, of which some may have been requested before, and not taken."""
        self._target = count
        missing = max(0, count - self._requested)
        self._requested += missing
        if not self._is_subscribed:
            self._is_subscribed = True
            self._flow.subscribe(self)
        elif missing and self._subscription is not None:
            self._subscription.request(missing)

    @property
    def is_ready(self) -> bool:
        """Whether the elements that were asked for have arrived, or the flow has ended."""
        return self._is_ended or len(self._elements) >= self._target

    @property
    def is_over(self) -> bool:
        """Whether the flow has ended, and all its elements were taken."""
        return self._is_ended and not self._elements

    async def wait(self, deadline: float = inf) -> None:
        """Wait until it is ready, or `wake` is called, until *deadline* at most."""
        if not self.is_ready:
            self._event = anyio.Event()
            with anyio.CancelScope(deadline=deadline):
                await self._event.wait()

    def wake(self) -> None:
        """End the wait."""
        self._event.set()

    def taken(self) -> list[Any]:
        """Take the elements that have arrived, and return them."""
        elements = self._elements[:]
        self._elements.clear()
        self._requested -= len(elements)
        return elements

    def take(self) -> list[Any] | None:
        """Return the elements that have arrived; None at the end, or raise the flow's error."""
        if self.is_over:
            if self.error is not None:
                raise self.error
            return None
        return self.taken()

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Cancel, and wait for the cleanup; raise its error, or report it beside another one."""
        subscription, self._subscription = self._subscription, None
        try:
            if isinstance(subscription, FlowSubscription):
                with anyio.CancelScope(shield=True):
                    await self._cleanup.wait(subscription)
            elif subscription is not None:
                subscription.cancel()
            if (failed := self._cleanup.take()) is not None:
                raise failed
        except Exception as cleanup:
            if error is None:
                raise
            LoopHandle(self._name).report("the cleanup of the flow has failed", cleanup)

    # -- the subscriber ---------------------------------------------------------------------------
    def on_subscribe(self, subscription: "Subscription") -> None:
        self._subscription = subscription
        subscription.request(self._requested)  # it may come later than it was asked for

    def on_next(self, element: Any) -> None:
        self.append(element)
        self.flush()

    def flush(self) -> None:
        if len(self._elements) >= self._target:
            self._event.set()

    def on_error(self, error: BaseException) -> None:
        self.error = error
        self.on_complete()

    def on_complete(self) -> None:
        self._is_ended = True
        self._event.set()


class Gathering(Elements):
    """Elements for commits: as many at a time as were small and quick before, and as many ahead."""

    __slots__ = ("_asked", "_size", "_whole")

    def __init__(self, name: str, flow: "Flow[Any]", whole: int) -> None:
        """Elements are handed over wherever *whole* of them are complete."""
        super().__init__(f"{name}()", flow)
        self._whole = whole
        self._asked = 0
        self._size = BatchSize(min(whole, _CHUNK))

    def measure(self, rows: int, size: int, seconds: float) -> None:
        """*rows* elements had *size* bytes, and took *seconds*."""
        self._size.measure(rows, size, seconds)

    async def __aenter__(self) -> Self:
        """Subscribe, and request the first element."""
        self._ask_next()
        return self

    def _ask_next(self) -> None:
        count = min(self._size.rows, self._whole - self._asked % self._whole)
        self._asked += count
        self.ask(count)

    async def next(self, deadline: float) -> list[Any] | None:
        """Return the next elements, and request more; None at the end, and none at *deadline*."""
        await self.wait(deadline)
        elements = self.take()
        if elements and not self._is_ended:
            self._ask_next()
        return elements


class Commits:
    """The record batches that wait for a commit, which has *rows* rows or *size* bytes."""

    def __init__(self, rows: int, size: int) -> None:
        self._most_rows = rows
        self._most_bytes = size
        self._batches: list[Any] = []

    def add(self, batches: list[Any]) -> None:
        """Take the next record batches."""
        for each in batches:
            self._batches += cut(each, self._most_rows, max(1, self._most_bytes // _PARTS))

    @property
    def is_empty(self) -> bool:
        return not any(each.num_rows for each in self._batches)

    def next(self) -> list[Any]:
        """Return the record batches of a full commit; none if there are not enough."""
        rows = size = 0
        for at, batch in enumerate(self._batches):
            if at and size + batch.nbytes > self._most_bytes:
                return self._take(at)
            missing = self._most_rows - rows
            if batch.num_rows > missing:
                self._batches[at : at + 1] = [batch.slice(0, missing), batch.slice(missing)]
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if rows >= self._most_rows or size >= self._most_bytes:
                return self._take(at + 1)
        return []

    def _take(self, count: int) -> list[Any]:
        taken, self._batches = self._batches[:count], self._batches[count:]
        return taken

    def rest(self) -> list[Any]:
        """Return all that waits."""
        rest, self._batches = self._batches, []
        return rest
