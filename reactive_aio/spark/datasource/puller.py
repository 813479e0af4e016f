"""A subscriber that asks for what it is told to, and says when something has come."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import anyio

if TYPE_CHECKING:
    from ...flow import Flow
    from ...spec import Subscription

__all__ = ("Puller",)


class Puller:
    """One subscription, begun by the first `pull`."""

    def __init__(self, flow: "Flow[Any]", add: Callable[[Any], None]) -> None:
        self._flow = flow
        self._add = add
        self._subscription: Subscription | None = None
        self._left = False
        self._came = anyio.Event()
        self.ended: bool = False
        self.error: BaseException | None = None

    def pull(self, count: int) -> None:
        """Request *count* more elements."""
        if count <= 0 or self._left:
            return
        if self._subscription is None:
            self._flow.subscribe(self)
        if self._subscription is not None and not self.ended:
            self._subscription.request(count)

    async def news(self) -> None:
        """Wait until something comes, or the end."""
        await self._came.wait()

    async def aclose(self) -> None:
        """Cancel, and wait for the cleanup of the source."""
        self._left = True
        subscription, self._subscription = self._subscription, None
        if subscription is None:
            return
        if not self.ended:
            subscription.cancel()
        if hasattr(subscription, "aclose"):
            with anyio.CancelScope(shield=True):
                await cast("Any", subscription).aclose()

    # -- the subscriber -----------------------------------------------------------------------
    def on_subscribe(self, subscription: "Subscription") -> None:
        self._subscription = subscription

    def on_next(self, element: Any) -> None:
        self._add(element)
        self._tell()

    def on_error(self, error: BaseException) -> None:
        self.error = error
        self.on_complete()

    def on_complete(self) -> None:
        self.ended = True
        self._tell()

    def _tell(self) -> None:
        came, self._came = self._came, anyio.Event()
        came.set()
