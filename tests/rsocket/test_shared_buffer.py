"""All connections of a thread read into one buffer, and keep nothing of it."""

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

from reactive_aio.rsocket import Router, connect, serve
from reactive_aio.rsocket.link.transports.endpoints import BufferedDriverProtocol
from reactive_aio.rsocket.link.transports.sockets import SharedBuffer, fills_buffer_at_once

router = Router()


@router.default
def echo(payload: bytes) -> bytes:
    return payload


class Recording(SharedBuffer):
    def __init__(self) -> None:
        self.received: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        self.received.append(data)

    def read(self, data: bytes) -> None:
        """Do what a loop does that has received *data*."""
        buffer = self.get_buffer(-1)
        buffer[: len(data)] = data
        self.buffer_updated(len(data))


def test_what_was_received_does_not_change_with_the_buffer() -> None:
    one, other = Recording(), Recording()
    one.read(b"first")
    other.read(b"second")
    one.read(b"3")
    assert one.received == [b"first", b"3"]
    assert other.received == [b"second"]


def test_each_thread_has_a_buffer_of_its_own() -> None:
    found: list[memoryview] = []
    thread = threading.Thread(target=lambda: found.append(Recording().get_buffer(-1)))
    thread.start()
    thread.join()
    here = Recording().get_buffer(-1)
    assert Recording().get_buffer(-1) is here
    assert found[0] is not here


async def test_only_loops_that_fill_the_buffer_at_once_get_it() -> None:
    loop: Any = asyncio.get_running_loop()
    assert fills_buffer_at_once(loop) is (type(loop).__module__ != "uvloop")
    assert not fills_buffer_at_once(SimpleNamespace())  # type: ignore[arg-type]
    driver: Any = SimpleNamespace(data_received=print)
    assert isinstance(BufferedDriverProtocol(driver), asyncio.BufferedProtocol)


async def test_payloads_larger_than_the_buffer_arrive_whole() -> None:
    large = bytes(range(256)) * 2_000
    async with (
        await serve("tcp://127.0.0.1:0", router) as server,
        await connect(server.uri) as one,
        await connect(server.uri) as other,
    ):
        requests = [each.request_response(large[n:]) for n in range(3) for each in (one, other)]
        answers = await asyncio.gather(*requests)
    assert [len(each) for each in answers] == [len(large) - n for n in (0, 0, 1, 1, 2, 2)]
    assert answers[0] == answers[1] == large
