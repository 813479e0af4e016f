"""A fuzzer that follows coverage: whatever a peer sends, a connection neither breaks nor grows.

``python -m tests.rsocket.fuzz [seconds] [seed]``. Inputs that reach a line, from another, as none
did before are kept, and changed again: bits, bytes, numbers at the edges, whole frames left out,
doubled, or taken from another input. What is found is printed as a literal for a test. Where
atheris is installed, libFuzzer does this instead.
"""

import inspect
import random
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType as Frame
from typing import Any

import reactive_aio.rsocket
from reactive_aio.rsocket.protocol.codec import add_length, encode
from reactive_aio.rsocket.protocol.connection import Connection
from reactive_aio.rsocket.protocol.events import (
    DemandReceived,
    Elements,
    Event,
    RequestReceived,
    ResponseRequests,
)
from reactive_aio.rsocket.protocol.frames import Payload, PayloadFrame, Resume, Setup
from reactive_aio.rsocket.protocol.limits import Limits
from reactive_aio.rsocket.protocol.resume import Resumption
from reactive_aio.rsocket.protocol.stream_states import InteractionModel

from .test_codec import GOLDEN

PACKAGE = "reactive_aio.rsocket"
ROOM = str(Path(reactive_aio.rsocket.__file__).parent)
LIMITS = Limits(
    mtu=64,
    watermark=500,
    chunk=4,
    max_streams=3,
    max_frame=2000,
    max_setup=300,
    max_early=500,
    max_payload=300,
    max_partial=500,
    max_partials=2,
    max_empty_fragments=2,
    max_useless=20,
    max_zero_requests=2,
    max_backlog=3000,
)
MOST_WAITING = 12_000
"""Of all queues together, in bytes: answers, what was sent of portions, a store."""


# -- what is attacked ------------------------------------------------------------------------------
def attack(data: bytes) -> None:
    """One connection: the first two bytes say which and how, the rest is what its peer sends."""
    kind, pace = (*data[:2], 0, 0)[:2]
    resumption = Resumption(max_store=500) if kind & 2 else None
    options: dict[str, Any] = {"limits": LIMITS, "resumption": resumption}
    if kind & 1:
        connection = Connection(Setup(lease=bool(kind & 4)), 0.0, **options)
        if not kind & 4:
            connection.request_stream(Payload(b"s"), 3)
            connection.request_channel(Payload(b"c"), 2)
            connection.request_response(Payload(b"r" * (kind & 0xF0)))
    else:
        connection = Connection(None, 0.0, lease=True, **options)
    now, at = 0.0, 2
    step = 1 + (pace & 0x3F) * 4
    while at < len(data):
        now += 0.01
        react(connection, connection.receive(data[at : at + step], now), now)
        react(connection, connection.flush(now), now)
        if not pace & 0x40:  # else the peer does not read
            connection.data_to_send(500)
        check(connection)
        at += step
    finish(connection, pace, now)


def finish(connection: Connection, pace: int, now: float) -> None:
    for _ in range(3):
        deadline = connection.next_deadline()
        if deadline is not None:
            react(connection, connection.tick(max(now, deadline)), now)
        connection.data_to_send()
        check(connection)
    if (
        pace & 0x80
        and connection.transport_lost(now)
        and not connection.is_closed
        and connection.is_client
    ):
        connection.transport_replaced(now)
        connection.data_to_send()
    connection.transport_lost(now)
    connection.close_gracefully()
    connection.close()
    check(connection)


def react(connection: Connection, events: list[Event], now: float) -> None:
    """What a friendly application does."""
    for event in events:
        if isinstance(event, Setup):
            connection.accept(now)
            if event.lease:
                connection.grant_lease(3, 1000)
        elif isinstance(event, Resume):
            if not connection.resume(event, now):
                connection.reject()
        elif isinstance(event, ResponseRequests):
            for stream_id, data, _ in event.requests:
                connection.respond_all([(stream_id, data)])
        elif isinstance(event, RequestReceived):
            if event.model is InteractionModel.RESPONSE:
                connection.send(event.stream_id, event.payload)
            elif event.model is InteractionModel.CHANNEL:
                connection.request(event.stream_id, 2)
        elif isinstance(event, DemandReceived):
            for _ in range(event.n):
                connection.send(event.stream_id, Payload(b"e" * (event.stream_id % 90)))
        elif isinstance(event, Elements):
            connection.request(event.stream_id, len(event.payloads))


def check(connection: Connection) -> None:
    exchanges = connection
    assert 0 <= connection.queued_bytes <= MOST_WAITING, connection.queued_bytes
    assert 0 <= exchanges.reassemblies.size <= LIMITS.max_partial + LIMITS.max_frame
    assert 0 <= exchanges.reassemblies.count <= LIMITS.max_partials + 1
    assert exchanges.streams.remote_count <= LIMITS.max_streams
    assert len(exchanges.streams.by_id) <= LIMITS.max_streams + 3


# -- how inputs change -----------------------------------------------------------------------------
EDGES = [b"\0\0\0\0", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\0\0\0\1", b"\x80\0\0\0"]


def frames_of(data: bytes) -> list[bytes]:
    """*data* cut where its frames seem to end."""
    cuts, at = [data[:2]], 2
    while at < len(data):
        end = at + 3 + min(int.from_bytes(data[at : at + 3], "big"), 3000)
        cuts.append(data[at:end])
        at = end
    return cuts


def mutate(dice: random.Random, data: bytes, other: bytes) -> bytes:
    changed = bytearray(data)
    at = dice.randrange(len(changed) + 1)
    match dice.randrange(8):
        case 0 if at < len(changed):
            changed[at] ^= 1 << dice.randrange(8)
        case 1 if at < len(changed):
            changed[at] = dice.randrange(256)
        case 2:
            changed[at : at + 4] = dice.choice(EDGES)
        case 3:
            del changed[at : at + dice.randrange(1, 9)]
        case 4:
            changed[at:at] = dice.randbytes(dice.randrange(1, 9))
        case way:
            mine, others = frames_of(data), frames_of(other)
            place = dice.randrange(1, len(mine) + 1)
            if way == 5:
                mine.insert(place, dice.choice(others[1:] or [b""]))
            elif way == 6:
                mine[place:place] = [mine[place % len(mine)]] * dice.choice([1, 2, 30])
            else:
                del mine[place : place + 1]
            return b"".join(mine)[:4000]
    return bytes(changed[:4000])


def seeds(frames: list[Any]) -> Iterator[bytes]:
    """A conversation for each kind of connection, and each frame alone behind a setup."""
    written = [add_length(encode(frame)) for frame in frames]
    for kind in range(8):
        setup = b"" if kind & 1 else add_length(encode(Setup()))
        yield bytes((kind, 0x3F)) + setup + b"".join(written)
        for frame in written:
            yield bytes((kind, 0x07)) + setup + frame


# -- coverage --------------------------------------------------------------------------------------
@contextmanager
def watched(seen: set[tuple[int, int, int]]) -> Generator[None, None, None]:
    """Collect which line followed which, in each function of the room."""

    def enter(frame: Frame, event: str, arg: object) -> Callable[..., Any] | None:
        del event, arg
        code = frame.f_code
        if not code.co_filename.startswith(ROOM):
            return None
        last, name = 0, hash(code)

        def line(frame: Frame, event: str, arg: object) -> Callable[..., Any]:
            nonlocal last
            del event, arg
            seen.add((name, last, frame.f_lineno))
            last = frame.f_lineno
            return line

        return line

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        yield
    finally:
        sys.settrace(before)


def fuzz(frames: list[Any], dice: random.Random, runs: int, until: float = float("inf")) -> int:
    """Attack *runs* times, or *until* then; how much of the room was seen."""
    known: set[tuple[int, int, int]] = set()
    corpus: list[bytes] = []
    waiting = list(seeds(frames))
    for _ in range(runs):
        if time.monotonic() > until:
            break
        if waiting:
            data = waiting.pop()
        else:
            data = dice.choice(corpus)
            for _ in range(dice.choice([1, 1, 2, 4])):
                data = mutate(dice, data, dice.choice(corpus))
        seen: set[tuple[int, int, int]] = set()
        try:
            with watched(seen):
                attack(data)
        except Exception:
            print(f"found: attack({data!r})", file=sys.stderr)  # noqa: T201
            raise
        if not seen <= known:
            known |= seen
            corpus.append(data)
    return len(known)


def with_atheris(frames: list[Any], seconds: int, seed: int) -> None:
    """The same by libFuzzer, where atheris can be had."""
    atheris: Any = import_module("atheris")
    for name in [name for name in sys.modules if name.startswith(PACKAGE)]:
        for function in functions(sys.modules[name], name):
            atheris.instrument_func(function)
    with TemporaryDirectory() as corpus:
        for number, data in enumerate(seeds(frames)):
            Path(corpus, str(number)).write_bytes(data)
        options = [f"-max_total_time={seconds}", f"-seed={seed}", "-max_len=4000"]
        atheris.Setup([sys.argv[0], corpus, *options], attack)
        atheris.Fuzz()


def functions(owner: Any, module: str) -> Iterator[Any]:
    """All that is written in Python in *owner*, a module or a class of it."""
    for _, each in inspect.getmembers(owner):
        if getattr(each, "__module__", "") != module:
            continue
        if inspect.isfunction(each):
            yield each
        elif isinstance(each, type) and not isinstance(owner, type):
            yield from functions(each, module)


def main(seconds: str = "60", seed: str = "1") -> None:
    frames = [frame for frame, _ in GOLDEN.values()] + [PayloadFrame(1)] * 3
    if find_spec("atheris"):
        with_atheris(frames, int(seconds), int(seed))
        return
    until = time.monotonic() + int(seconds)
    seen = fuzz(frames, random.Random(int(seed)), sys.maxsize, until)
    print(f"{seen} pairs of lines seen, nothing found")  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
