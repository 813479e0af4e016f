"""The subscriber of the command: it asks for more when what has come has been written."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from anyio import Event

if TYPE_CHECKING:
    from ...spec import Subscription
    from .terminal import Progress

__all__ = ("BatchSubscriber",)


class BatchSubscriber:
    """Holds what has come and has not been taken: never more than *n* elements."""

    def __init__(self, n: int, progress: "Progress") -> None:
        self._n = n
        self._progress = progress
        self._held: list[bytes] = []
        self._subscription: Subscription | None = None
        self._over = False
        self._error: BaseException | None = None
        self._news = Event()

    async def batches(self) -> AsyncIterator[list[bytes]]:
        """What has come, until the end; raises the error of a failure, behind what came before."""
        while True:
            await self._news.wait()
            self._news = Event()
            batch, self._held = self._held, []
            if batch:
                yield batch
                self._progress.came(len(batch))
                self._ask(len(batch))
            elif self._error is not None:
                raise self._error
            elif self._over:
                return
            if self._over:
                self._news.set()

    def cancel(self) -> None:
        if self._subscription is not None and not self._over:
            self._over = True
            self._subscription.cancel()

    def _ask(self, n: int) -> None:
        if self._subscription is not None and not self._over:
            self._progress.asked(n)
            self._subscription.request(n)

    # -- the publisher -----------------------------------------------------------------------------
    def on_subscribe(self, subscription: "Subscription", /) -> None:
        self._subscription = subscription
        self._ask(self._n)

    def on_next(self, element: bytes, /) -> None:
        self._held.append(element)
        self._news.set()

    def on_error(self, error: BaseException, /) -> None:
        self._over, self._error = True, error
        self._news.set()

    def on_complete(self) -> None:
        self._over = True
        self._news.set()
