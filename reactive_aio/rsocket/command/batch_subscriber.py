"""The subscriber of the command: it requests elements as it writes those received."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from anyio import Event

if TYPE_CHECKING:
    from ...spec import Subscription
    from .terminal import Progress

__all__ = ("BatchSubscriber",)


class BatchSubscriber:
    """Buffers the elements that are not written yet: never more than *request_n*."""

    def __init__(self, request_n: int, progress: "Progress") -> None:
        self._request_n = request_n
        self._progress = progress
        self._buffer: list[bytes] = []
        self._subscription: Subscription | None = None
        self._is_done = False
        self._error: BaseException | None = None
        self._changed = Event()

    async def batches(self) -> AsyncIterator[list[bytes]]:
        """Yield the elements as they come; at the end, raise the error of a failure."""
        while True:
            await self._changed.wait()
            self._changed = Event()
            batch, self._buffer = self._buffer, []
            if batch:
                yield batch
                self._progress.add_received(len(batch))
                self._request(len(batch))
            elif self._error is not None:
                raise self._error
            elif self._is_done:
                return
            if self._is_done:
                self._changed.set()

    def cancel(self) -> None:
        if self._subscription is not None and not self._is_done:
            self._is_done = True
            self._subscription.cancel()

    def _request(self, n: int) -> None:
        if self._subscription is not None and not self._is_done:
            self._progress.add_requested(n)
            self._subscription.request(n)

    # -- the subscriber ----------------------------------------------------------------------------
    def on_subscribe(self, subscription: "Subscription", /) -> None:
        self._subscription = subscription
        self._request(self._request_n)

    def on_next(self, element: bytes, /) -> None:
        self._buffer.append(element)
        self._changed.set()

    def on_error(self, error: BaseException, /) -> None:
        self._is_done, self._error = True, error
        self._changed.set()

    def on_complete(self) -> None:
        self._is_done = True
        self._changed.set()
