"""Laws about what is large, much, slow or cut: fragments, floods, silence, memory, messages."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

from ...law import NotJudged
from .. import frames
from ..frames import FOLLOWS, NEXT, REQUEST_RESPONSE, REQUEST_STREAM
from ..law import wire
from ..talk import Talk
from ..websocket import BINARY, CONTINUATION, TEXT, message

__all__ = ()

MIB = 1024 * 1024
MOST_MEMORY = 16
"""In MiB; a process also grows by what has nothing to do with its peer."""


# -- fragments -------------------------------------------------------------------------------------
@wire("echo")
async def wire30_puts_data_together(talk: Talk) -> None:
    """The data of a request comes in pieces, one of them empty."""
    peer = await talk.connect()
    books = peer.new(REQUEST_RESPONSE)
    await peer.send(
        frames.request(
            REQUEST_RESPONSE, books.id, data=b"a", metadata=talk.metadata("echo"), flags=FOLLOWS
        ),
        frames.payload(books.id, b"b", flags=NEXT | FOLLOWS),
        frames.payload(books.id, b"", flags=NEXT | FOLLOWS),
        frames.payload(books.id, b"cd", flags=NEXT),
    )
    if not await peer.over(books) or books.elements != [b"abcd"]:
        what = f"'abcd' in fragments came back as {books.elements or 'nothing'}"
        raise peer.violation("N.30", what)


@wire("echo")
async def wire30_puts_metadata_together(talk: Talk) -> None:
    """The metadata of a request comes in two pieces, the second with the first piece of data."""
    peer = await talk.connect()
    metadata = talk.metadata("echo")
    books = peer.new(REQUEST_RESPONSE)
    first, rest = metadata[:2], metadata[2:]
    await peer.send(
        frames.request(REQUEST_RESPONSE, books.id, metadata=first, flags=FOLLOWS),
        frames.payload(books.id, b"a", rest, NEXT | FOLLOWS),
        frames.payload(books.id, b"b", flags=NEXT),
    )
    if not await peer.over(books) or books.elements != [b"ab"]:
        what = f"a request with its metadata in two pieces came back as {books.elements}"
        raise peer.violation("N.30", what)


@wire("echo")
async def wire30_keeps_fragments_of_streams_apart(talk: Talk) -> None:
    """Two requests in pieces that alternate, and a third that is cancelled half-way."""
    peer = await talk.connect()
    metadata = talk.metadata("echo")
    asked = [peer.new(REQUEST_RESPONSE) for _ in range(3)]
    for books in asked:
        one = frames.request(REQUEST_RESPONSE, books.id, metadata=metadata, flags=FOLLOWS)
        await peer.send(one)
    await peer.cancel(asked[2])
    for piece in (b"a", b"b", b"c"):
        flags = NEXT if piece == b"c" else NEXT | FOLLOWS
        for books in asked:
            data = piece if books is asked[0] else piece.upper()
            await peer.send(frames.payload(books.id, data, flags=flags))
    for books, whole in zip(asked, (b"abc", b"ABC"), strict=False):
        if not await peer.over(books) or books.elements != [whole]:
            raise peer.violation("N.30", f"{whole!r} in fragments came back as {books.elements}")
    await peer.lives("N.30", "a request that was cancelled half-way")
    if asked[2].late:
        raise peer.violation("N.30", "a request that was cancelled half-way was served")


@wire("echo")
async def wire31_carries_what_is_longer_than_a_frame(talk: Talk) -> None:
    """More than 16 MiB go there and back; or they are refused, and nothing is damaged."""
    if talk.offer.largest <= frames.LARGEST:
        raise NotJudged(f"no more than {talk.offer.largest} bytes are to be tried")
    peer = await talk.connect()
    block = bytes(range(251)) * 4001
    data = (block * (talk.offer.largest // len(block) + 1))[: talk.offer.largest]
    books = peer.new(REQUEST_RESPONSE)
    step = 256 * 1024
    pieces = [data[at : at + step] for at in range(0, len(data), step)]
    metadata = talk.metadata("echo")
    first = frames.request(
        REQUEST_RESPONSE, books.id, data=pieces[0], metadata=metadata, flags=FOLLOWS
    )
    await peer.flood([first])
    peer.note(f"-> {len(data)} bytes in {len(pieces)} fragments")
    last = len(pieces) - 1
    await peer.flood(
        frames.payload(books.id, piece, flags=NEXT if at == last else NEXT | FOLLOWS)
        for at, piece in enumerate(pieces)
        if at
    )
    within = max(talk.terms.come, 10.0)
    await peer.until(lambda: bool(books.ended), within)
    if books.ended == "error":
        await peer.lives("N.31", f"refusing {len(data)} bytes")
        raise NotJudged(f"{len(data)} bytes were refused by ERROR 0x{books.code:X}")
    if books.elements != [data]:
        came = f"{len(books.elements[0])} bytes" if books.elements else "nothing"
        raise peer.violation("N.31", f"{len(data)} bytes were sent there, and back came {came}")


@wire("echo")
async def wire32_bounds_what_fragments_hold(talk: Talk) -> None:
    """Fragments of one request without end: 160 MiB, or until it is refused."""
    peer = await talk.connect()
    books = peer.new(REQUEST_RESPONSE)
    metadata = talk.metadata("echo")
    await peer.send(frames.request(REQUEST_RESPONSE, books.id, metadata=metadata, flags=FOLLOWS))
    piece = frames.payload(books.id, bytes(MIB), flags=NEXT | FOLLOWS)
    for _ in range(160):
        await peer.flood([piece])
        await asyncio.sleep(0)
        if books.ended or peer.ended:
            return
    if not await peer.until(lambda: bool(books.ended) or peer.ended):
        raise peer.violation("N.32", "160 MiB of fragments of one request were taken")


@wire("echo")
async def wire32_bounds_fragments_that_bring_nothing(talk: Talk) -> None:
    """10 000 empty fragments of one request."""
    peer = await talk.connect()
    books = peer.new(REQUEST_RESPONSE)
    metadata = talk.metadata("echo")
    await peer.send(frames.request(REQUEST_RESPONSE, books.id, metadata=metadata, flags=FOLLOWS))
    empty = frames.payload(books.id, flags=NEXT | FOLLOWS)
    await peer.flood(empty for _ in range(10_000))
    if not await peer.until(lambda: bool(books.ended) or peer.ended):
        raise peer.violation("N.32", "10 000 empty fragments of one request were taken")


@wire("echo")
async def wire32_bounds_requests_that_are_half_sent(talk: Talk) -> None:
    """5000 requests, of each only the first fragment."""
    peer = await talk.connect()
    metadata = talk.metadata("echo")

    def halves() -> Iterator[bytes]:
        for _ in range(5000):
            books = peer.new(REQUEST_RESPONSE)
            yield frames.request(
                REQUEST_RESPONSE, books.id, data=b"x", metadata=metadata, flags=FOLLOWS
            )

    await peer.flood(halves())
    if not await peer.until(
        lambda: peer.ended or any(each.ended == "error" for each in peer.streams.values())
    ):
        raise peer.violation("N.32", "5000 half requests were taken")


@wire("never")
async def wire33_bounds_open_streams(talk: Talk) -> None:
    """20 000 requests that stay open."""
    peer = await talk.connect()
    metadata = talk.metadata("never")

    def requests() -> Iterator[bytes]:
        for _ in range(20_000):
            yield frames.request(REQUEST_RESPONSE, peer.new(REQUEST_RESPONSE).id, metadata=metadata)

    await peer.flood(requests())
    if not await peer.until(
        lambda: peer.ended or any(each.ended == "error" for each in peer.streams.values())
    ):
        raise peer.violation("N.33", "20 000 streams of one connection are open")


# -- silence and noise -----------------------------------------------------------------------------
@wire(slow=True)
async def wire34_wants_setup_soon(talk: Talk) -> None:
    """A connection on which nothing is ever said."""
    peer = await talk.stranger()
    if not await peer.leaves(talk.offer.patience):
        what = f"a connection without SETUP was kept for {talk.offer.patience:g} s"
        raise peer.violation("N.34", what)


@wire(slow=True)
async def wire34_wants_the_rest_of_a_frame_soon(talk: Talk) -> None:
    """Half a frame, and signs of life are owed behind it."""
    if talk.place.is_websocket:
        raise NotJudged("a message of a WebSocket has a length of its own")
    peer = await talk.connect()
    await peer.send_bytes(b"\0\x10\0half")
    if not await peer.leaves(talk.offer.patience):
        raise peer.violation("N.34", f"half a frame was kept for {talk.offer.patience:g} s")


@wire(slow=True)
async def wire34_lets_go_of_who_gives_no_sign_of_life(talk: Talk) -> None:
    """SETUP allows a silence of half a second; there is a longer one."""
    peer = await talk.connect(keepalive=200, lifetime=500)
    if not await peer.leaves(talk.offer.patience):
        what = f"of 0.5 s that were allowed, a silence of {talk.offer.patience:g} s was borne"
        raise peer.violation("N.34", what)


@wire()
async def wire35_bears_no_flood_of_useless_frames(talk: Talk) -> None:
    """100 000 frames that lead to nothing, as fast as they can be sent."""
    peer = await talk.connect()
    block = [frames.cancel(99), frames.keepalive(respond=False)] * 500
    for _ in range(100):
        await peer.flood(block)
        if peer.ended:
            return
    if not await peer.leaves(talk.terms.come):
        raise peer.violation("N.35", "100 000 frames that lead to nothing were borne")


@wire("endless")
async def wire36_costs_little_when_nobody_reads(talk: Talk) -> None:
    """An endless stream with all demand there is, and nobody who reads it, for three seconds."""
    pid = talk.offer.pid
    before = 0 if pid is None else await asyncio.to_thread(_resident, pid)
    if pid is None or not before:
        raise NotJudged("the memory of the server cannot be seen: give --pid of a process on Linux")
    peer = await talk.connect()
    await peer.quiet()
    await peer.stop_reading()
    await peer.request(REQUEST_STREAM, "endless", n=frames.MAX_31)
    # Looked at often: who hoards takes gigabytes in three seconds, and at last the machine's all.
    for tenths in range(1, 31):
        await asyncio.sleep(0.1)
        grown = (await asyncio.to_thread(_resident, pid) - before) / MIB
        if grown > MOST_MEMORY:
            what = f"the server has grown by {grown:.0f} MiB in {tenths / 10:g} s"
            raise peer.violation("N.36", what)


def _resident(pid: int) -> int:
    """The memory that a process holds, in bytes; 0 if that cannot be seen."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
    except OSError:
        return 0


# -- messages --------------------------------------------------------------------------------------
@wire("echo")
async def wire37_joins_the_pieces_of_a_message(talk: Talk) -> None:
    """A frame in a message of three pieces."""
    if not talk.place.is_websocket:
        raise NotJudged("there are no messages where there is no WebSocket")
    peer = await talk.connect()
    books = peer.new(REQUEST_RESPONSE)
    raw = frames.request(REQUEST_RESPONSE, books.id, data=b"pieces", metadata=talk.metadata("echo"))
    await peer.send_bytes(
        message(BINARY, raw[:4], last=False)
        + message(CONTINUATION, raw[4:9], last=False)
        + message(CONTINUATION, raw[9:])
    )
    if not await peer.over(books) or books.elements != [b"pieces"]:
        raise peer.violation("N.37", "a message in three pieces was not taken as one frame")


@wire()
async def wire37_refuses_text(talk: Talk) -> None:
    """A text comes, which is no frame."""
    if not talk.place.is_websocket:
        raise NotJudged("there are no messages where there is no WebSocket")
    peer = await talk.connect()
    await peer.send_bytes(message(TEXT, b"hello"))
    if not await peer.leaves():
        raise peer.violation("N.37", "a text was taken")
