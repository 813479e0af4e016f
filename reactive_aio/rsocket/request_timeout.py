"""The timeout of a request on the side of the requester."""

from typing import TYPE_CHECKING, Any

from ..errors import TimedOut
from .protocol.errors import RequestCanceled, StreamFailed
from .request_metadata import DEADLINE_PASSED
from .stream_adapters import InboundStream

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._core.loop import TimerHandle
    from ..stage import Downstream
    from .driver import Driver

__all__ = ("TimedInboundStream", "is_deadline_error", "timeout_error")


def timeout_error(limit: float, problem: str = "no answer") -> TimedOut:
    return TimedOut(f"{problem} within {limit:g} s")


def is_deadline_error(error: BaseException) -> bool:
    """Whether the responder failed the request because its deadline has passed."""
    return isinstance(error, RequestCanceled) and error.data == DEADLINE_PASSED


class TimedInboundStream(InboundStream):
    """A stream that fails unless it ends within *limit* seconds from its first request."""

    def __init__(
        self,
        driver: "Driver",
        downstream: "Downstream[Any]",
        decode: "Callable[[bytes], Any]",
        begin: "Callable[[InboundStream, int], None]",
        limit: float,
    ) -> None:
        super().__init__(driver, downstream, decode, begin)
        self._limit = limit
        self._timer: TimerHandle | None = None

    def request(self, n: int, /) -> None:
        if self._timer is None and not self.is_done:
            self._timer = self.driver.loop_handle.call_later(self._limit, self._time_out)
        super().request(n)

    def _time_out(self) -> None:
        if not self.is_done:
            self.cancel()
            self._downstream.fail(self._timeout_error())

    def _timeout_error(self) -> TimedOut:
        return timeout_error(self._limit, "the stream did not end")

    def cancel(self) -> None:
        super().cancel()
        self._stop_timer()

    def completed(self) -> None:
        super().completed()
        self._stop_timer()

    def failed(self, error: StreamFailed) -> None:
        self.fail(self._timeout_error() if is_deadline_error(error) else error)

    def fail(self, error: BaseException) -> None:
        super().fail(error)
        self._stop_timer()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
