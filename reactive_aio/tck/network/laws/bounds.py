"""Laws about bounds: fragments, open streams, silence, floods, memory, WebSocket messages."""

import asyncio
from pathlib import Path

from ...law import NotJudged, law
from .. import frames
from ..frames import FOLLOWS, NEXT, REQUEST_RESPONSE, REQUEST_STREAM
from ..transports import BINARY, CONTINUATION, TEXT, message
from ..wire_context import PeerConnection, WireContext, connected_law

MIB = 1024 * 1024
MAX_GROWTH = 16
"""MiB; a process also grows for reasons that are unrelated to its peer."""


# -- fragments -------------------------------------------------------------------------------------
@connected_law("echo")
async def wire30_reassembles_data(peer: PeerConnection) -> None:
    """The data of a request comes in fragments, one of them empty."""
    record = await peer.request(REQUEST_RESPONSE, "echo", data=b"a", flags=FOLLOWS)
    await peer.send(
        frames.payload(record.id, b"b", flags=NEXT | FOLLOWS),
        frames.payload(record.id, b"", flags=NEXT | FOLLOWS),
        frames.payload(record.id, b"cd", flags=NEXT),
    )
    if not await peer.wait_for_end(record) or record.elements != [b"abcd"]:
        raise peer.violation(f"'abcd' in fragments came back as {record.elements or 'nothing'}")


@connected_law("echo")
async def wire30_reassembles_metadata(peer: PeerConnection) -> None:
    """The metadata of a request comes in two fragments, the second with the first data."""
    metadata = peer.context.metadata("echo")
    record = peer.new_stream(REQUEST_RESPONSE)
    first, rest = metadata[:2], metadata[2:]
    await peer.send(
        frames.request(REQUEST_RESPONSE, record.id, metadata=first, flags=FOLLOWS),
        frames.payload(record.id, b"a", rest, NEXT | FOLLOWS),
        frames.payload(record.id, b"b", flags=NEXT),
    )
    if not await peer.wait_for_end(record) or record.elements != [b"ab"]:
        what = f"a request with its metadata in two fragments came back as {record.elements}"
        raise peer.violation(what)


@connected_law("echo")
async def wire30_keeps_fragments_of_streams_apart(peer: PeerConnection) -> None:
    """The fragments of two requests alternate, and a third is cancelled when incomplete."""
    records = [await peer.request(REQUEST_RESPONSE, "echo", flags=FOLLOWS) for _ in range(3)]
    await peer.cancel(records[2])
    for piece in (b"a", b"b", b"c"):
        flags = NEXT if piece == b"c" else NEXT | FOLLOWS
        for record in records:
            data = piece if record is records[0] else piece.upper()
            await peer.send(frames.payload(record.id, data, flags=flags))
    for record, whole in zip(records, (b"abc", b"ABC"), strict=False):
        if not await peer.wait_for_end(record) or record.elements != [whole]:
            raise peer.violation(f"{whole!r} in fragments came back as {record.elements}")
    await peer.require_alive("a cancelled incomplete request")
    if records[2].frames_after_cancel:
        raise peer.violation("a cancelled incomplete request was served")


@law("echo")
async def wire31_carries_payloads_longer_than_a_frame(context: WireContext) -> None:
    """An echo of more than 16 MiB arrives unchanged, or is refused by an error."""
    if context.profile.largest <= frames.LARGEST:
        raise NotJudged(f"at most {context.profile.largest} bytes may be sent")
    peer = await context.connect()
    block = bytes(range(251)) * 4001
    data = (block * (context.profile.largest // len(block) + 1))[: context.profile.largest]
    step = 256 * 1024
    pieces = [data[at : at + step] for at in range(0, len(data), step)]
    record = await peer.request(REQUEST_RESPONSE, "echo", data=pieces[0], flags=FOLLOWS)
    peer.note(f"-> {len(data)} bytes in {len(pieces)} fragments")
    more = NEXT | FOLLOWS
    await peer.flood(frames.payload(record.id, piece, flags=more) for piece in pieces[1:-1])
    await peer.flood([frames.payload(record.id, pieces[-1])])
    within = max(context.timeouts.response, 10.0)
    await peer.wait_until(lambda: bool(record.end), within)
    if record.end == "error":
        await peer.require_alive(f"refusing {len(data)} bytes")
        raise NotJudged(f"{len(data)} bytes were refused by ERROR 0x{record.code:X}")
    if record.elements != [data]:
        came = f"{len(record.elements[0])} bytes" if record.elements else "nothing"
        raise peer.violation(f"{len(data)} bytes were sent, and {came} came back")


@connected_law("echo")
async def wire32_bounds_the_size_of_reassembly(peer: PeerConnection) -> None:
    """The fragments of one request amount to 160 MiB, unless it is refused."""
    record = await peer.request(REQUEST_RESPONSE, "echo", flags=FOLLOWS)
    piece = frames.payload(record.id, bytes(MIB), flags=NEXT | FOLLOWS)
    for _ in range(160):
        await peer.flood([piece])
        await asyncio.sleep(0)
        if record.end or peer.is_closed:
            return
    if not await peer.wait_until(lambda: bool(record.end) or peer.is_closed):
        raise peer.violation("160 MiB of fragments of one request were accepted")


@connected_law("echo")
async def wire32_bounds_empty_fragments(peer: PeerConnection) -> None:
    """One request has 10 000 empty fragments."""
    record = await peer.request(REQUEST_RESPONSE, "echo", flags=FOLLOWS)
    empty = frames.payload(record.id, flags=NEXT | FOLLOWS)
    await peer.flood(empty for _ in range(10_000))
    if not await peer.wait_until(lambda: bool(record.end) or peer.is_closed):
        raise peer.violation("10 000 empty fragments of one request were accepted")


@connected_law("echo")
async def wire32_bounds_incomplete_requests(peer: PeerConnection) -> None:
    """Only the first fragments of 5000 requests are sent."""
    if not await _is_refused(peer, 5000, "echo", FOLLOWS):
        raise peer.violation("5000 incomplete requests were accepted")


@connected_law("never")
async def wire33_bounds_open_streams(peer: PeerConnection) -> None:
    """20 000 requests remain open."""
    if not await _is_refused(peer, 20_000, "never", 0):
        raise peer.violation("20 000 streams of one connection are open")


async def _is_refused(peer: PeerConnection, count: int, route: str, flags: int) -> bool:
    """Whether one of many requests fails, or the connection is closed."""
    metadata, kind = peer.context.metadata(route), REQUEST_RESPONSE
    await peer.flood(
        frames.request(kind, peer.new_stream(kind).id, data=b"x", metadata=metadata, flags=flags)
        for _ in range(count)
    )
    return await peer.wait_until(
        lambda: peer.is_closed or any(each.end == "error" for each in peer.streams.values())
    )


# -- silence and floods ----------------------------------------------------------------------------
@law(is_slow=True)
async def wire34_closes_without_setup(context: WireContext) -> None:
    """Nothing is sent on a connection."""
    peer = await context.connect_without_setup()
    if not await peer.wait_for_close(context.profile.patience):
        what = f"a connection without SETUP was kept for {context.profile.patience:g} s"
        raise peer.violation(what)


@law(is_slow=True)
async def wire34_closes_on_half_a_frame(context: WireContext) -> None:
    """Half a frame is sent, and nothing after it."""
    if context.address.is_websocket:
        raise NotJudged("a WebSocket message has its own length")
    peer = await context.connect()
    await peer.send_bytes(b"\0\x10\0half")
    if not await peer.wait_for_close(context.profile.patience):
        raise peer.violation(f"half a frame was kept for {context.profile.patience:g} s")


@law(is_slow=True)
async def wire34_closes_without_keepalive(context: WireContext) -> None:
    """SETUP declares a lifetime of half a second; the silence is longer."""
    peer = await context.connect(keepalive=200, lifetime=500)
    if not await peer.wait_for_close(context.profile.patience):
        what = f"a silence of {context.profile.patience:g} s was tolerated; SETUP allows 0.5 s"
        raise peer.violation(what)


@connected_law()
async def wire35_closes_on_a_flood_of_useless_frames(peer: PeerConnection) -> None:
    """100 000 frames without effect are sent as fast as possible."""
    block = [frames.cancel(99), frames.keepalive(respond=False)] * 500
    for _ in range(100):
        await peer.flood(block)
        if peer.is_closed:
            return
    if not await peer.wait_for_close(peer.context.timeouts.response):
        raise peer.violation("100 000 frames without effect were tolerated")


@law("endless")
async def wire36_bounds_memory_of_an_unread_stream(context: WireContext) -> None:
    """For three seconds, the client does not read an endless stream with the largest demand."""
    pid = context.profile.pid
    before = 0 if pid is None else await asyncio.to_thread(_resident, pid)
    if pid is None or not before:
        raise NotJudged("the memory of the server is unknown: give --pid of a process on Linux")
    peer = await context.connect()
    await peer.settle()
    await peer.stop_reading()
    await peer.request(REQUEST_STREAM, "endless", n=frames.MAX_31)
    # Measured often: without a bound the server would take gigabytes in three seconds.
    for tenths in range(1, 31):
        await asyncio.sleep(0.1)
        grown = (await asyncio.to_thread(_resident, pid) - before) / MIB
        if grown > MAX_GROWTH:
            raise peer.violation(f"the server has grown by {grown:.0f} MiB in {tenths / 10:g} s")


def _resident(pid: int) -> int:
    """The resident memory of a process in bytes; 0 if it is unknown."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
    except OSError:
        return 0


# -- messages --------------------------------------------------------------------------------------
async def _connect_websocket(context: WireContext) -> PeerConnection:
    if not context.address.is_websocket:
        raise NotJudged("the transport is not a WebSocket")
    return await context.connect()


@law("echo")
async def wire37_joins_message_fragments(context: WireContext) -> None:
    """A frame comes in a message of three fragments."""
    peer = await _connect_websocket(context)
    record = peer.new_stream(REQUEST_RESPONSE)
    metadata = context.metadata("echo")
    raw = frames.request(REQUEST_RESPONSE, record.id, data=b"pieces", metadata=metadata)
    await peer.send_bytes(
        message(BINARY, raw[:4], last=False)
        + message(CONTINUATION, raw[4:9], last=False)
        + message(CONTINUATION, raw[9:])
    )
    if not await peer.wait_for_end(record) or record.elements != [b"pieces"]:
        raise peer.violation("a message of three fragments was not read as one frame")


@law()
async def wire37_rejects_text_messages(context: WireContext) -> None:
    """A text message is sent, which is not a frame."""
    peer = await _connect_websocket(context)
    await peer.send_bytes(message(TEXT, b"hello"))
    if not await peer.wait_for_close():
        raise peer.violation("a text message was accepted")
