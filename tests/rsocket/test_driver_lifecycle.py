"""How the transport of a driver ends, whatever it is that ends the connection."""

from collections.abc import Callable
from typing import Any

import pytest
from anyio import sleep

from reactive_aio.rsocket.link.driver import Driver
from reactive_aio.rsocket.protocol.connection import Connection
from reactive_aio.rsocket.protocol.frames import Error, ErrorCode, Setup
from reactive_aio.rsocket.protocol.resume import Resumption

from .wire import wire

pytestmark = pytest.mark.virtual_time


class RecordingTransport:
    """A transport that ends when its driver says so; it records how."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.ends = list[str]()
        self.written = b""
        driver.attach(self)

    def write(self, data: bytes, /) -> None:
        self.written += data

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.ends.append("half")

    def close(self) -> None:
        self.ends.append("close")

    def abort(self) -> None:
        self.ends.append("abort")

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str) -> Any:
        del name


def serving(resumption: Resumption | None = None) -> Driver:
    """A driver without a transport yet."""
    return Driver(lambda now: Connection(None, now, resumption=resumption))


def accepted(driver: Driver) -> RecordingTransport:
    """The transport of a client that is accepted."""
    transport = RecordingTransport(driver)
    token = None if driver.connection._resumption is None else b"token"
    driver.data_received(wire(Setup(token=token)))
    driver.accept()
    return transport


ENDS: dict[str, tuple[Callable[[Driver], object], str]] = {
    "this side closes": (
        lambda driver: driver.ending.give_up(ErrorCode.CONNECTION_ERROR, "enough"),
        "close",
    ),
    "the peer breaks a rule": (lambda driver: driver.data_received(b"\0\0\1"), "close"),
    "this side has announced it": (lambda driver: driver.ending.announce("bye", 1.0), "half"),
    "the peer has announced it": (
        lambda driver: driver.data_received(wire(Error(0, ErrorCode.CONNECTION_CLOSE))),
        "close",
    ),
}


@pytest.mark.parametrize("cause", ENDS)
async def test_the_transport_ends_by_what_ends_the_connection(cause: str) -> None:
    act, end = ENDS[cause]
    driver, closed = serving(), list[Driver]()
    driver.add_close_callback(closed.append)
    transport = accepted(driver)
    await sleep(0.1)
    act(driver)
    await sleep(3)  # a peer to which the end was announced has had its time
    assert transport.ends[:1] == [end]
    driver.connection_lost()
    assert driver.ending.is_over
    driver.connection_lost()
    assert closed == [driver], "once"


async def test_a_client_that_is_rejected_may_read_why() -> None:
    driver = serving()
    transport = RecordingTransport(driver)
    driver.data_received(wire(Setup()))
    driver.reject("no")
    await sleep(0.1)
    assert transport.ends == ["half"]
    driver.connection_lost()
    assert driver.ending.is_over


async def test_a_transport_that_comes_after_an_abort_or_the_end_is_aborted() -> None:
    driver = serving()
    driver.ending.abort()
    assert RecordingTransport(driver).ends == ["abort"]
    driver.connection_lost()
    assert driver.ending.is_over
    assert RecordingTransport(driver).ends == ["abort"]


async def test_a_session_waits_for_a_transport_and_an_abort_ends_that_as_well() -> None:
    driver, suspended = serving(Resumption()), list[Driver]()
    driver.on_suspended = suspended.append
    accepted(driver)
    await sleep(0.1)
    driver.connection_lost()
    assert (suspended, driver.ending.is_over) == ([driver], False)
    driver.ending.abort()
    await sleep(0.1)
    assert driver.ending.is_over
    assert RecordingTransport(driver).ends == ["abort"]


async def test_a_session_that_is_aborted_does_not_wait_for_a_transport() -> None:
    driver, suspended = serving(Resumption()), list[Driver]()
    driver.on_suspended = suspended.append
    transport = accepted(driver)
    await sleep(0.1)
    driver.ending.abort()
    assert transport.ends == ["abort"]
    driver.connection_lost()
    assert (suspended, driver.ending.is_over) == ([], True)


async def test_a_transport_that_does_not_end_is_aborted() -> None:
    driver = serving()
    transport = accepted(driver)
    driver.ending.give_up(ErrorCode.CONNECTION_ERROR, "enough")
    await sleep(10)
    assert transport.ends == ["close", "abort"]
    driver.connection_lost()
