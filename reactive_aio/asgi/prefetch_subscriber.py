"""PrefetchSubscriber: buffers a flow's elements for the coroutine that sends them."""

from typing import TYPE_CHECKING, Any

from .._core.flow_subscription import FlowSubscription
from .._core.loop import Future, LoopHandle
from .._core.subscription.bulk_subscriber import BulkSubscriber
from .counters import Counters

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..spec import Subscription
    from ..stage import Fluent

__all__ = ("PrefetchSubscriber",)


class PrefetchSubscriber(BulkSubscriber):
    """Buffers elements until they are taken; never more than were requested."""

    __slots__ = (
        "_counters",
        "_loop_handle",
        "_subscription",
        "_waiter",
        "append",
        "elements",
        "error",
        "is_disconnected",
        "is_done",
        "is_notified",
        "outstanding",
    )  # fmt: skip

    def __init__(self, loop_handle: LoopHandle, counters: Counters) -> None:
        self.elements: list[Any] = []
        self.append: Callable[[Any], None] = self.elements.append
        self.is_notified: bool = False
        self.is_done: bool = False
        self.error: BaseException | None = None
        self.is_disconnected: bool = False
        """Whether the client has disconnected."""
        self.outstanding: int = 0
        """The number of elements requested and not yet taken."""
        self._loop_handle = loop_handle
        self._counters = counters
        self._subscription: Subscription | None = None
        self._waiter: Future[Any] | None = None

    # -- the client's side -------------------------------------------------------------------------
    def subscribe_to(self, flow: "Fluent[Any]", n: int) -> None:
        """Subscribe, and request the first *n* elements."""
        flow.subscribe(self)
        self.request(n)

    def request(self, n: int) -> None:
        if self._subscription is not None and not self.is_done and not self.is_disconnected:
            self.outstanding += n
            self._counters.outstanding += n
            self._subscription.request(n)

    def take(self) -> list[Any]:
        """Remove the buffered elements, and return them."""
        elements = self.elements[:]
        self.elements.clear()
        self.outstanding -= len(elements)
        self._counters.outstanding -= len(elements)
        return elements

    async def wait(self, seconds: float | None) -> bool:
        """Wait for an element, the end or a disconnect; return False after *seconds* without."""
        if self.elements or self.is_done or self.is_disconnected:
            return True
        self._waiter = waiter = self._loop_handle.create_future()
        timer = (
            None if seconds is None else self._loop_handle.call_later(seconds, self._wake, False)
        )
        try:
            return bool(await waiter)
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def cancel(self) -> None:
        """Cancel upstream and discard the buffered elements."""
        self._counters.outstanding -= self.outstanding
        self.outstanding = 0
        self.elements.clear()
        was_done, self.is_done = self.is_done, True
        if self._subscription is not None and not was_done:
            self._subscription.cancel()

    def disconnect(self) -> None:
        """Cancel, because the client has disconnected."""
        self.is_disconnected = True
        self.cancel()
        self._wake(True)

    async def aclose(self) -> None:
        """Cancel, and wait until the flow's cleanup has run."""
        self.cancel()
        subscription, self._subscription = self._subscription, None
        if isinstance(subscription, FlowSubscription):
            await subscription.aclose()

    def _wake(self, has_news: bool) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(has_news)

    # -- the flow's side ---------------------------------------------------------------------------
    def on_subscribe(self, subscription: "Subscription", /) -> None:
        self._subscription = subscription
        if self.is_disconnected:
            subscription.cancel()

    def on_next(self, element: Any, /) -> None:
        self.elements.append(element)
        self._wake(True)

    @property
    def container(self) -> list[Any]:
        return self.elements

    def flush(self) -> None:
        if self.elements:
            self._wake(True)

    def on_error(self, error: BaseException, /) -> None:
        self.error = error
        self.on_complete()

    def on_complete(self) -> None:
        self.is_done = True
        self._wake(True)
