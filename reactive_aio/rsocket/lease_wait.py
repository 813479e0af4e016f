"""Requests that wait: for a lease of the other end, or for an answer, and not longer than so."""

from functools import partial
from typing import TYPE_CHECKING, Any

from ..errors import TimedOut
from .driver import lost_error
from .protocol.errors import NoLease, RequestCanceled, StreamFailed
from .request_metadata import DEADLINE_PASSED
from .stream_adapters import InboundStream

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._core.loop import Future, TimerHandle
    from ..stage import Downstream
    from .driver import Driver

__all__ = (
    "TimedInboundStream",
    "begin_stream",
    "deadline_passed",
    "fail",
    "late",
    "leased",
    "may_request",
    "when_leased",
)


def may_request(driver: "Driver") -> bool:
    """Whether the other end allows a request now."""
    held = driver.connection.requests.held
    return held is None or (held.requests > 0 and driver.loop_handle.time() < held.expires)


async def leased(driver: "Driver", until: "Future[Any] | None" = None) -> None:
    """Wait for a lease; or for the end of *until*, whose error it raises."""
    if driver.close_reason is not None:
        raise lost_error(driver)
    waiter = driver.loop_handle.create_future()

    def wake(_: object = None) -> None:
        if not waiter.done():
            waiter.set_result(None)

    driver.waiting.append(wake)
    if until is not None:
        until.add_done_callback(wake)
    try:
        await waiter
    finally:
        if wake in driver.waiting:
            driver.waiting.remove(wake)
    if until is not None and until.done():
        until.result()
    if driver.close_reason is not None:
        raise lost_error(driver)


def begin_stream(
    start: "Callable[[InboundStream, int], int]", inflow: "InboundStream", n: int
) -> None:
    """Open the stream of *inflow*, as soon as there is a lease for it."""
    try:
        stream_id = start(inflow, n)
    except NoLease:
        _later(inflow, partial(begin_stream, start))
        return
    inflow.bind(stream_id)


def when_leased(begin: "Callable[[InboundStream], None]", inflow: "InboundStream", n: int) -> None:
    """Begin what leads to a request, as soon as there is a lease for it."""
    del n
    if inflow.driver.close_reason is not None:
        raise lost_error(inflow.driver)
    if may_request(inflow.driver):
        begin(inflow)
    else:
        _later(inflow, partial(when_leased, begin))


def _later(inflow: "InboundStream", begin: "Callable[[InboundStream, int], None]") -> None:
    """Do so when there is a lease, or none will come."""
    waiting = inflow.driver.waiting

    def again() -> None:
        inflow.left = None
        try:
            if inflow.driver.close_reason is not None:
                raise lost_error(inflow.driver)
            begin(inflow, inflow.wanted)
        except Exception as error:
            inflow.fail(error)

    def forget() -> None:
        if again in inflow.driver.waiting:
            inflow.driver.waiting.remove(again)

    waiting.append(again)
    inflow.left = forget


def late(limit: float, what: str = "no answer") -> TimedOut:
    return TimedOut(f"{what} within {limit:g} s")


def deadline_passed(error: BaseException) -> bool:
    """Whether the other end gave up because of the time that it was told."""
    return isinstance(error, RequestCanceled) and error.data == DEADLINE_PASSED


def fail(future: "Future[Any]", error: Exception) -> None:
    """Have who waits for *future* get *error*, if it still does."""
    if not future.done():
        future.set_exception(error)


class TimedInboundStream(InboundStream):
    """One that must have come to its end in time."""

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
        if self._timer is None and not self.over:
            self._timer = self.driver.loop_handle.call_later(self._limit, self._too_late)
        super().request(n)

    def _too_late(self) -> None:
        if not self.over:
            self.cancel()
            self._downstream.fail(late(self._limit, "the stream did not end"))

    def cancel(self) -> None:
        super().cancel()
        self._stop()

    def completed(self) -> None:
        super().completed()
        self._stop()

    def failed(self, error: StreamFailed) -> None:
        if deadline_passed(error):
            self.fail(late(self._limit, "the stream did not end"))
        else:
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        super().fail(error)
        self._stop()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
