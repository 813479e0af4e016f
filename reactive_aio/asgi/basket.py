"""Basket: the subscriber between a flow and a coroutine that sends what it finds there."""

from typing import TYPE_CHECKING, Any, cast

from .._core.loop import Future, LoopHandle
from .._core.subscription.bulk_subscriber import BulkSubscriber
from .tally import Tally

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..spec import Subscription
    from ..stage import Fluent

__all__ = ("Basket",)


class Basket(BulkSubscriber):
    """Keeps the elements that have come until they are fetched; never more than were asked for."""

    __slots__ = (
        "_loop_handle",
        "_subscription",
        "_tally",
        "_waiter",
        "append",
        "asked",
        "elements",
        "ended",
        "error",
        "is_notified",
        "left",
    )  # fmt: skip

    def __init__(self, loop_handle: LoopHandle, tally: Tally) -> None:
        self.elements: list[Any] = []
        self.append: Callable[[Any], None] = self.elements.append
        self.is_notified: bool = False
        self.ended: bool = False
        self.error: BaseException | None = None
        self.left: bool = False
        """Whether the client has gone."""
        self.asked: int = 0
        """Asked for, and not fetched yet."""
        self._loop_handle = loop_handle
        self._tally = tally
        self._subscription: Subscription | None = None
        self._waiter: Future[Any] | None = None

    # -- the side of the client --------------------------------------------------------------------
    def begin(self, flow: "Fluent[Any]", n: int) -> None:
        """Subscribe, and ask for the first *n*."""
        flow.subscribe(self)
        self.request(n)

    def request(self, n: int) -> None:
        if self._subscription is not None and not self.ended and not self.left:
            self.asked += n
            self._tally.outstanding += n
            self._subscription.request(n)

    def fetch(self) -> list[Any]:
        """Take out what has come."""
        elements = self.elements[:]
        self.elements.clear()
        self.asked -= len(elements)
        self._tally.outstanding -= len(elements)
        return elements

    async def wait(self, seconds: float | None) -> bool:
        """Wait until there is something to look at, for *seconds* at most; return whether so."""
        if self.elements or self.ended or self.left:
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

    def stop(self) -> None:
        """No more is wanted: cancel upstream, now."""
        self._tally.outstanding -= self.asked
        self.asked = 0
        self.elements.clear()
        over, self.ended = self.ended, True
        if self._subscription is not None and not over:
            self._subscription.cancel()

    def leave(self) -> None:
        """The client has gone."""
        self.left = True
        self.stop()
        self._wake(True)

    async def aclose(self) -> None:
        """Stop, and wait until the flow has cleaned up after itself."""
        self.stop()
        subscription, self._subscription = self._subscription, None
        if hasattr(subscription, "aclose"):
            await cast("Any", subscription).aclose()

    def _wake(self, something: bool) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(something)

    # -- the side of the flow ----------------------------------------------------------------------
    def on_subscribe(self, subscription: "Subscription", /) -> None:
        self._subscription = subscription
        if self.left:
            subscription.cancel()

    def on_next(self, element: Any, /) -> None:
        self.elements.append(element)
        self._wake(True)

    def flush(self) -> None:
        if self.elements:
            self._wake(True)

    def on_error(self, error: BaseException, /) -> None:
        self.error = error
        self.on_complete()

    def on_complete(self) -> None:
        self.ended = True
        self._wake(True)
