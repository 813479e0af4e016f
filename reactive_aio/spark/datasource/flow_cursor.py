"""A subscriber with explicit requests, which reports each arrival."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import anyio

from ..._core.flow_subscription import FlowSubscription

if TYPE_CHECKING:
    from ...flow import Flow
    from ...spec import Subscription

__all__ = ("FlowCursor",)


class FlowCursor:
    """One subscription, which begins with the first `fetch`."""

    def __init__(self, flow: "Flow[Any]", add: Callable[[Any], None]) -> None:
        self._flow = flow
        self._add = add
        self._subscription: Subscription | None = None
        self._is_closed = False
        self._arrival = anyio.Event()
        self.is_done: bool = False
        self.error: BaseException | None = None

    def fetch(self, count: int) -> None:
        """Request *count* more elements."""
        if count <= 0 or self._is_closed:
            return
        if self._subscription is None:
            self._flow.subscribe(self)
        if self._subscription is not None and not self.is_done:
            self._subscription.request(count)

    async def wait_for_arrival(self) -> None:
        """Wait for the next element, or the terminal signal."""
        await self._arrival.wait()

    async def aclose(self) -> None:
        """Cancel, and wait for the cleanup of the source."""
        self._is_closed = True
        subscription, self._subscription = self._subscription, None
        if subscription is None:
            return
        if not self.is_done:
            subscription.cancel()
        if isinstance(subscription, FlowSubscription):
            with anyio.CancelScope(shield=True):
                await subscription.aclose()

    # -- the subscriber ---------------------------------------------------------------------------
    def on_subscribe(self, subscription: "Subscription") -> None:
        self._subscription = subscription

    def on_next(self, element: Any) -> None:
        self._add(element)
        self._notify()

    def on_error(self, error: BaseException) -> None:
        self.error = error
        self.on_complete()

    def on_complete(self) -> None:
        self.is_done = True
        self._notify()

    def _notify(self) -> None:
        arrival, self._arrival = self._arrival, anyio.Event()
        arrival.set()
