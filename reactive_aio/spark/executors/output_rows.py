"""The subscriber of a partition's flow: it gathers the rows of one Arrow batch at a time."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..._core.cleanup import CleanupErrors
from ..._core.subscription.bulk_subscriber import BulkSubscriber
from ...stage import FlowSubscription

if TYPE_CHECKING:
    from ...spec import Subscription

OnRows = Callable[[list[Any]], object]
"""Receives the rows of a batch; no more of them are requested until the next `fill`."""
OnEnd = Callable[[BaseException | None], object]
"""Called once, after the last rows; at once when the flow has failed."""


class OutputRows(BulkSubscriber):
    """Requests the rows of one batch at a time: each `fill` is answered by rows or by the end."""

    __slots__ = ("_cleanup", "_elements", "_is_ended", "_on_end", "_on_rows", "_requested",
                 "_subscription", "_target", "append")  # fmt: skip
    is_notified: bool = False

    def __init__(self, on_rows: OnRows, on_end: OnEnd) -> None:
        self._on_rows = on_rows
        self._on_end = on_end
        self._elements: list[Any] = []
        self.append: Callable[[Any], None] = self._elements.append
        self._cleanup = CleanupErrors()
        self._subscription: Subscription | None = None
        self._requested = 0  # and not handed over
        self._target = 0  # rows of a full batch; 0 while no `fill` waits for an answer
        self._is_ended = False

    @property
    def container(self) -> list[Any]:
        return self._elements

    @property
    def cleanup(self) -> CleanupErrors:
        return self._cleanup

    # -- called for the main thread ---------------------------------------------------------------
    def fill(self, rows: int) -> None:
        """Gather the next batch, of that many rows, and hand it over."""
        self._target = rows
        if self._is_ended:
            self._answer_end()
            return
        missing = rows - self._requested
        if missing > 0 and self._subscription is not None:
            self._requested += missing
            self._subscription.request(missing)
        else:
            self.flush()

    def flush_partial(self) -> None:
        """Hand over the rows gathered so far, if there are any and they are waited for."""
        if self._elements and self._target:
            self._hand_over()

    async def aclose(self) -> None:
        """Cancel, and wait for the cleanup; raise its error."""
        subscription, self._subscription = self._subscription, None
        if isinstance(subscription, FlowSubscription):
            await self._cleanup.wait(subscription)
        if (error := self._cleanup.take()) is not None:
            raise error

    # -- the subscriber ---------------------------------------------------------------------------
    def on_subscribe(self, subscription: "Subscription") -> None:
        self._subscription = subscription

    def on_next(self, element: Any) -> None:
        self.append(element)
        self.flush()

    def flush(self) -> None:
        if self._target and len(self._elements) >= self._target:
            self._hand_over()

    def on_error(self, error: BaseException) -> None:
        self._elements.clear()
        self._on_end(error)

    def on_complete(self) -> None:
        self._is_ended = True
        if self._target:
            self._answer_end()

    # -- answers ----------------------------------------------------------------------------------
    def _hand_over(self) -> None:
        rows = self._elements[:]
        self._elements.clear()
        self._requested -= len(rows)
        self._target = 0
        self._on_rows(rows)

    def _answer_end(self) -> None:
        """The flow has completed: the last rows come first."""
        if self._elements:
            self._hand_over()
        else:
            self._target = 0
            self._on_end(None)
