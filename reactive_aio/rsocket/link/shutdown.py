"""The end of connections: waiting for it, and a server that ends them in good order."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from anyio import move_on_after

from ..._core.loop import wait_settled
from ..protocol.connection import Phase
from ..protocol.errors import ConnectionLost, StreamFailed
from ..protocol.frames import ErrorCode
from .callbacks import notify
from .driver import Driver

CLOSING: Final = "the server is closing"
"""The reason that clients receive."""


def end_reason(driver: Driver) -> StreamFailed:
    """Why the connection of *driver*, which has ended, has ended."""
    return driver.ending.reason or ConnectionLost(ErrorCode.CONNECTION_CLOSE, b"it was closed")


async def wait_closed(driver: Driver) -> StreamFailed:
    """Wait until nothing of a connection is left; return why it has ended."""
    waiter = driver.loop_handle.create_future()

    def wake(_: Driver) -> None:
        if not waiter.done():
            waiter.set_result(None)

    driver.add_close_callback(wake)
    try:
        await waiter
    finally:
        driver.remove_close_callback(wake)
    return end_reason(driver)


def report_end(driver: Driver, on_close: Callable[..., object], *arguments: Any) -> None:
    """Call *on_close* with *arguments* and the reason when a connection that began has ended."""

    def report(ended: Driver) -> None:
        if not ended.connection.is_confirmed:
            return  # the client was refused, or the connection was never made
        notify(ended.loop_handle, "on_close", on_close, *arguments, end_reason(ended))

    driver.add_close_callback(report)


async def end_all(drivers: Iterable[Driver], grace: float) -> None:
    """End the connections of a server: new requests are refused, open streams may end.

    After *grace* seconds, the streams and handlers that are left are cancelled. If the caller is
    cancelled, this happens at once.
    """
    ending = [(each, each.loop_handle) for each in drivers]
    tasks = [
        loop_handle.create_task(_end(each, grace), "rsocket: ends a connection")
        for each, loop_handle in ending
    ]
    try:
        await wait_settled(*tasks)
    finally:
        for task, (driver, _) in zip(tasks, ending, strict=True):
            if not task.done():  # the caller is cancelled
                task.cancel()
                driver.ending.abort(CLOSING)


async def _end(driver: Driver, grace: float) -> None:
    # Only a client that is served knows of the connection; a suspended session has no transport.
    if grace > 0 and driver.connection.phase is Phase.OPEN:
        driver.ending.announce(CLOSING, grace)
        with move_on_after(grace):
            await wait_closed(driver)
        if driver.ending.reason is not None:
            driver.ending.abort()  # its streams have ended, and the peer has not closed it
    await driver.aclose(CLOSING)
