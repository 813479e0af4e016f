"""Requests that wait for a lease of the responder."""

from functools import partial
from typing import TYPE_CHECKING, Any

from .protocol.errors import NoLease

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._core.loop import Future
    from .driver import Driver
    from .stream_adapters import InboundStream

__all__ = ("open_stream", "wait_for_lease", "when_leased")


async def wait_for_lease(driver: "Driver", response: "Future[Any] | None" = None) -> None:
    """Wait for a lease, or until *response* is done; raise the error of *response*."""
    driver.require_open()
    waiter = driver.loop_handle.create_future()

    def wake(_: object = None) -> None:
        if not waiter.done():
            waiter.set_result(None)

    driver.add_lease_callback(wake)
    if response is not None:
        response.add_done_callback(wake)
    try:
        await waiter
    finally:
        driver.remove_lease_callback(wake)
    if response is not None and response.done():
        response.result()
    driver.require_open()


def open_stream(
    send_request: "Callable[[InboundStream, int], int]", stream: "InboundStream", n: int
) -> None:
    """Send the request that opens *stream*, as soon as there is a lease for it."""
    try:
        stream_id = send_request(stream, n)
    except NoLease:
        _retry_with_lease(stream, partial(open_stream, send_request))
        return
    stream.bind(stream_id)


def when_leased(begin: "Callable[[InboundStream], None]", stream: "InboundStream", n: int) -> None:
    """Call *begin* with *stream*, as soon as there is a lease for its request."""
    del n
    stream.driver.require_open()
    if _has_lease(stream.driver):
        begin(stream)
    else:
        _retry_with_lease(stream, partial(when_leased, begin))


def _has_lease(driver: "Driver") -> bool:
    held = driver.connection.received_lease
    return held is None or (held.requests > 0 and driver.loop_handle.time() < held.expires)


def _retry_with_lease(
    stream: "InboundStream", begin: "Callable[[InboundStream, int], None]"
) -> None:
    """Call *begin* when there is a lease; fail *stream* if the connection is closed first."""

    def retry() -> None:
        stream.on_early_cancel = None
        try:
            stream.driver.require_open()
            begin(stream, stream.early_demand)
        except Exception as error:
            stream.fail(error)

    def cancel() -> None:
        stream.driver.remove_lease_callback(retry)

    stream.driver.add_lease_callback(retry)
    stream.on_early_cancel = cancel
