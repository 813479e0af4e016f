"""The attackers: ``python -m benchmarks.siege.attacks NAME PORT SECONDS``."""

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from reactive_aio.rsocket.protocol.codec import add_length, encode
from reactive_aio.rsocket.protocol.frames import (
    Cancel,
    Frame,
    KeepAlive,
    MetadataPush,
    Payload,
    RequestChannel,
    RequestResponse,
    RequestStream,
    Setup,
)
from reactive_aio.rsocket.protocol.metadata import (
    COMPOSITE_METADATA,
    OCTET_STREAM,
    ROUTING,
    write_composite,
    write_routing,
)

HOUR: Final = 3_600_000
MANY: Final = 5000
_AT_ONCE: Final = 50
"""So many connections are opened at the same time."""


def framed(*frames: Frame) -> bytes:
    """*frames* as they are sent."""
    return b"".join(add_length(encode(each)) for each in frames)


def setup(token: bytes | None = None) -> bytes:
    """A SETUP without credentials."""
    return framed(Setup(HOUR, HOUR, COMPOSITE_METADATA, OCTET_STREAM, token=token))


def requested(route: str, data: bytes = b"") -> Payload:
    """The payload of a request."""
    return Payload(data, write_composite([(ROUTING, write_routing(route))]))


class Attacker:
    """One connection, from an address of its own in 127.0.0.0/8."""

    def __init__(self, number: int, port: int) -> None:
        self.number = number
        self._address = f"127.0.{1 + number // 200 % 20}.{1 + number % 200}"
        self._port = port

    async def open(self, *first: bytes) -> "Attacker":
        """Connect, and send *first*."""
        self.reader, self.writer = await asyncio.open_connection(
            "127.0.0.1", self._port, local_addr=(self._address, 0)
        )
        self.writer.write(b"".join(first))
        return self

    async def send(self, data: bytes) -> None:
        """Send *data*; waits while the server does not read."""
        self.writer.write(data)
        await self.writer.drain()

    async def discard(self) -> None:
        """Read all that comes."""
        while await self.reader.read(1 << 18):
            pass


Attack = Callable[[Attacker], Awaitable[object]]


# -- connections that are held ---------------------------------------------------------------------
async def idle(attacker: Attacker) -> None:
    await (await attacker.open(setup())).discard()


async def half_open(attacker: Attacker) -> None:
    await (await attacker.open()).discard()


async def dripping(attacker: Attacker) -> None:
    """A frame of a mebibyte, a byte at a time."""
    await attacker.open(setup(), (1 << 20).to_bytes(3, "big"))
    while True:
        await attacker.send(b"\0")
        await asyncio.sleep(0.5)


async def reconnecting(attacker: Attacker) -> None:
    while True:
        await attacker.open(setup(), framed(RequestResponse(1, requested("echo", b"x"))))
        await attacker.reader.read(100)
        attacker.writer.transport.abort()


async def sessions(attacker: Attacker) -> None:
    """Sessions that nobody resumes."""
    for number in range(10**9):
        token = b"%d.%d" % (attacker.number, number)
        await attacker.open(setup(token), framed(RequestResponse(1, requested("large"))))
        await attacker.reader.read(100)
        attacker.writer.transport.abort()


# -- clients that do not read ----------------------------------------------------------------------
async def unread_stream(attacker: Attacker) -> None:
    await attacker.open(setup(), framed(RequestStream(1, 2**31 - 1, requested("endless"))))
    await asyncio.Event().wait()


async def unread_responses(attacker: Attacker) -> None:
    requests = [RequestResponse(each, requested("large")) for each in range(1, 2048, 2)]
    await attacker.open(setup(), framed(*requests))
    await asyncio.Event().wait()


# -- floods ----------------------------------------------------------------------------------------
async def flood(attacker: Attacker, make: Callable[[range], bytes]) -> None:
    """Send what *make* makes of stream ids, again and again, and read the answers."""
    await attacker.open(setup())

    async def send() -> None:
        for first in range(1, 10**9, 400):
            await attacker.send(make(range(first, first + 400, 2)))
            await asyncio.sleep(0)

    both = [asyncio.ensure_future(each) for each in (send(), attacker.discard())]
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in both:
            each.cancel()
        await asyncio.gather(*both, return_exceptions=True)
        attacker.writer.transport.abort()


def requests(ids: range) -> bytes:
    return framed(*(RequestResponse(each, requested("echo", b"x")) for each in ids))


def resets(ids: range) -> bytes:
    before = [Cancel(each - 400) for each in ids if each > 400]
    return framed(*before, *(RequestResponse(each, requested("slow")) for each in ids))


def keepalives(ids: range) -> bytes:
    return framed(KeepAlive(respond=True)) * 10


def pushes(ids: range) -> bytes:
    return framed(MetadataPush(bytes(50_000)))


def fragments(ids: range) -> bytes:
    return framed(*(RequestResponse(each, Payload(bytes(1 << 16)), follows=True) for each in ids))


def channels(ids: range) -> bytes:
    return framed(*(RequestChannel(each, 2**31 - 1, requested("endless")) for each in ids))


ATTACKS: Final[dict[str, tuple[str, int, Attack]]] = {
    "idle": (f"{MANY:,} clients that do nothing", MANY, idle),
    "half-open": (f"{MANY:,} connections that send nothing", MANY, half_open),
    "dripping": ("500 clients that send a frame a byte at a time", 500, dripping),
    "reconnecting": ("20 clients that connect, request and leave", 20, reconnecting),
    "sessions": ("20 clients that leave sessions behind", 20, sessions),
    "unread streams": ("500 clients that read no element of a stream", 500, unread_stream),
    "unread responses": ("50 clients that read none of 1,024 responses", 50, unread_responses),
    "requests": ("10 clients with as many requests as they can", 10,
                 partial(flood, make=requests)),
    "resets": ("10 clients that cancel what they request", 10, partial(flood, make=resets)),
    "keepalives": ("50 clients with as many keepalives as they can", 50,
                   partial(flood, make=keepalives)),
    "metadata pushes": ("10 clients that push large metadata", 10, partial(flood, make=pushes)),
    "fragments": ("20 clients that begin payloads", 20, partial(flood, make=fragments)),
    "channels": ("10 clients that open channels", 10, partial(flood, make=channels)),
}  # fmt: skip
"""What each attack is, how many connections it has, and what each of them does."""


async def run(name: str, port: int, seconds: float) -> None:
    """Attack for so many seconds, and connect again when the server has closed a connection."""
    _, count, attack = ATTACKS[name]
    opening = asyncio.Semaphore(_AT_ONCE)

    async def keep(number: int) -> None:
        async with opening:
            await asyncio.sleep(0.01)
        while True:
            with contextlib.suppress(OSError):
                await attack(Attacker(number, port))
            await asyncio.sleep(1)

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(keep(number))


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
