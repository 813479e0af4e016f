"""Laws about a connection: its setup, KEEPALIVE, frames out of context, and its end."""

from typing import Any

from ...law import NotJudged, law
from .. import frames
from ..frames import Codes
from ..wire_context import PeerConnection, WireContext, connected_law

_OF_SETUP = (Codes.INVALID_SETUP, Codes.UNSUPPORTED_SETUP, Codes.REJECTED_SETUP)


async def _require_nothing_served(peer: PeerConnection, after: str) -> None:
    served = [each for each in peer.streams.values() if each.elements or each.end == "complete"]
    if served:
        raise peer.violation(f"after {after} a request was served")


# -- setup -----------------------------------------------------------------------------------------
@law("echo")
async def wire1_serves_nothing_before_setup(context: WireContext) -> None:
    """The first frame is a request."""
    peer = await context.connect_without_setup()
    record = await peer.request(frames.REQUEST_RESPONSE, "echo", data=b"secret")
    await peer.wait_until(lambda: bool(record.elements), context.timeouts.quiet_period)
    await _require_nothing_served(peer, "a request instead of SETUP")
    await peer.require_error_and_close("a request instead of SETUP", Codes.INVALID_SETUP)


@law()
async def wire1_requires_setup_first(context: WireContext) -> None:
    """The first frame is KEEPALIVE, METADATA_PUSH or an extension."""
    firsts = (
        frames.keepalive(b"first"),
        frames.frame(0, frames.METADATA_PUSH, frames.METADATA, b"first"),
        frames.frame(0, frames.EXT, frames.IGNORE, b"\0\0\0\1"),
    )
    for first in firsts:
        peer = await context.connect_without_setup()
        await peer.send(first)
        await peer.require_error_and_close(str(frames.ParsedFrame.of(first)), Codes.INVALID_SETUP)


@law()
async def wire1_requires_setup_on_stream_0(context: WireContext) -> None:
    """SETUP is sent on stream 1."""
    peer = await context.connect_without_setup()
    await peer.send(b"\0\0\0\1" + context.setup()[4:])
    await peer.require_error_and_close("SETUP on stream 1", Codes.INVALID_SETUP)


@law()
async def wire2_rejects_a_truncated_setup(context: WireContext) -> None:
    """SETUP is truncated within its intervals, or within its MIME types."""
    for length in (15, 22):
        peer = await context.connect_without_setup()
        await peer.send(context.setup()[:length])
        await peer.require_error_and_close(f"the first {length} bytes of a SETUP", *_OF_SETUP[:2])


@law()
async def wire2_rejects_another_version(context: WireContext) -> None:
    """SETUP has version 2.0."""
    peer = await context.connect_without_setup()
    await peer.send(context.setup(version=(2, 0)))
    await peer.require_error_and_close("SETUP of version 2.0", *_OF_SETUP)


@law()
async def wire2_rejects_zero_intervals(context: WireContext) -> None:
    """SETUP has a KEEPALIVE interval of 0, or a lifetime of 0."""
    for name in ("keepalive", "lifetime"):
        peer = await context.connect_without_setup()
        zero: dict[str, Any] = {name: 0}
        await peer.send(context.setup(**zero))
        await peer.require_error_and_close(f"SETUP with {name}=0", *_OF_SETUP)


@law("echo")
async def wire3_rejects_wrong_credentials_and_serves_nothing(context: WireContext) -> None:
    """Wrong credentials are followed by a request, and by another one after the answer."""
    if context.profile.rejected_user is None:
        raise NotJudged("no credentials are known that the server rejects: give --rejected-user")
    peer = await context.connect_without_setup()
    await peer.send(context.setup(user=context.profile.rejected_user))
    record = await peer.request(frames.REQUEST_RESPONSE, "echo", data=b"secret")
    await peer.wait_until(lambda: bool(peer.last_error()) or bool(record.elements))
    await peer.request(frames.REQUEST_RESPONSE, "echo", data=b"secret")
    await peer.wait_until(
        lambda: any(each.elements for each in peer.streams.values()), context.timeouts.quiet_period
    )
    await _require_nothing_served(peer, "rejected credentials")
    await peer.require_error_and_close("rejected credentials", Codes.REJECTED_SETUP)


@law()
async def wire4_grants_or_refuses_to_resume(context: WireContext) -> None:
    """SETUP asks for resumption; if it is accepted, another connection resumes the session."""
    token = b"tck-resumes-this"
    peer = await context.connect_without_setup()
    await peer.send(context.setup(flags=frames.RESUMED, token=token))
    if not await peer.ping():
        codes = (Codes.REJECTED_SETUP, Codes.UNSUPPORTED_SETUP)
        await peer.require_error_and_close("SETUP with RESUME", *codes)
        return
    peer.transport.close()
    other = await context.connect_without_setup()
    await other.send(frames.resume(token))
    await other.wait_until(lambda: bool(other.connection_frames))
    if not other.connection_frames_of(frames.RESUME_OK):
        raise other.violation("SETUP with RESUME was accepted, and the session was not resumed")


@law()
async def wire4_rejects_an_unknown_session(context: WireContext) -> None:
    """RESUME names a session that never existed."""
    peer = await context.connect_without_setup()
    await peer.send(frames.resume(b"unknown-session", 100, 0))
    await peer.require_error_and_close("RESUME of an unknown session", Codes.REJECTED_RESUME)


@law("echo")
async def wire5_grants_a_lease_or_refuses(context: WireContext) -> None:
    """SETUP asks for leases; the server sends LEASE, or refuses SETUP."""
    peer = await context.connect_without_setup()
    await peer.send(context.setup(flags=frames.LEASED))
    if not await peer.ping():
        await peer.require_error_and_close("SETUP with LEASE", *_OF_SETUP)
        return
    if not await peer.wait_until(lambda: bool(peer.connection_frames_of(frames.LEASE))):
        raise peer.violation("SETUP with LEASE was accepted, and no LEASE has come")


@connected_law()
async def wire7_ignores_a_second_setup(peer: PeerConnection) -> None:
    """A client sends SETUP again, and errors of a setup."""
    await peer.send(peer.context.setup(), frames.error(0, Codes.INVALID_SETUP, b"mine"))
    await peer.send(frames.error(0, Codes.REJECTED_RESUME, b"mine"))
    await peer.require_alive("a second SETUP")


# -- KEEPALIVE -------------------------------------------------------------------------------------
@connected_law()
async def wire6_answers_keepalive_with_its_data(peer: PeerConnection) -> None:
    """KEEPALIVE is sent without data, with little and with much; and once without RESPOND."""
    for data in (b"", bytes(range(256)), b"k" * 5000):
        peer.connection_frames.clear()
        await peer.send(frames.keepalive(data))
        await peer.wait_until(lambda: bool(peer.connection_frames))
        answers = peer.connection_frames_of(frames.KEEPALIVE)
        if not answers or answers[0].data != data or answers[0].flags & frames.RESPOND:
            raise peer.violation(f"no answer to KEEPALIVE with {len(data)} bytes of data")
    before = len(peer.connection_frames)
    await peer.send(frames.keepalive(b"no answer", respond=False))
    await peer.settle()
    if any(received.data == b"no answer" for received in peer.connection_frames[before:]):
        raise peer.violation("it answered a KEEPALIVE without RESPOND")


# -- frames out of context -------------------------------------------------------------------------
OUT_OF_CONTEXT = {
    "CANCEL on an unknown stream": frames.cancel(99),
    "CANCEL on stream 0": frames.cancel(0),
    "REQUEST_N on an unknown stream": frames.request_n(99, 5),
    "PAYLOAD on an unknown stream": frames.payload(99, b"?"),
    "PAYLOAD on stream 0": frames.payload(0, b"?"),
    "ERROR on an unknown stream": frames.error(99, Codes.APPLICATION_ERROR),
    "LEASE that was not requested": frames.frame(0, frames.LEASE, 0, b"\0\0\1\0\0\0\0\5"),
    "RESUME_OK": frames.frame(0, frames.RESUME_OK, 0, bytes(8)),
    "METADATA_PUSH on a stream": frames.frame(99, frames.METADATA_PUSH, frames.METADATA, b"?"),
    "KEEPALIVE on a stream": frames.frame(99, frames.KEEPALIVE, 0, bytes(8)),
}


@connected_law()
async def wire7_ignores_frames_out_of_context(peer: PeerConnection) -> None:
    """Frames come on streams that were never opened, or on a wrong kind of stream."""
    for name, sent in OUT_OF_CONTEXT.items():
        await peer.send(sent)
        if not await peer.ping():
            raise peer.violation(f"after {name} the connection did not continue")


@connected_law("echo")
async def wire7_ignores_unknown_flags_and_bits(peer: PeerConnection) -> None:
    """A request has unknown flags, and the reserved first bit of its stream id."""
    record = peer.new_stream(frames.REQUEST_RESPONSE)
    metadata = peer.context.metadata("echo")
    sent = frames.request(frames.REQUEST_RESPONSE, record.id, data=b"x", metadata=metadata)
    await peer.send(b"\x80" + sent[1:5] + bytes((sent[5] | 0x1F,)) + sent[6:])
    if not await peer.wait_for_elements(record, 1):
        raise peer.violation("a request with unknown flags was not served")


@connected_law()
async def wire8_ignores_frames_marked_ignore(peer: PeerConnection) -> None:
    """A frame of an unknown type and an unknown extension have the flag IGNORE."""
    await peer.send(frames.frame(0, 0x1F, frames.IGNORE, b"?"))
    await peer.require_alive("a frame of an unknown type with IGNORE")
    await peer.send(frames.frame(0, frames.EXT, frames.IGNORE, b"\0\0\0\x7f?"))
    await peer.require_alive("an unknown extension with IGNORE")


@law()
async def wire8_survives_unknown_frames(context: WireContext) -> None:
    """A frame of an unknown type, or an unknown extension, lacks the flag IGNORE."""
    for kind in (0x1F, frames.EXT):
        peer = await context.connect()
        await peer.send(frames.frame(0, kind, 0, b"\0\0\0\x7f?"))
        if not await peer.settle() or peer.last_error() is not None:
            what = f"a frame of the type 0x{kind:02X}"
            await peer.require_error_and_close(what, Codes.CONNECTION_ERROR)


@connected_law()
async def wire9_rejects_metadata_longer_than_its_frame(peer: PeerConnection) -> None:
    """The metadata of a request is longer than the frame."""
    peer.new_stream(frames.REQUEST_RESPONSE)
    await peer.send(frames.frame(1, frames.REQUEST_RESPONSE, frames.METADATA, b"\0\xff\xffshort"))
    await peer.require_error_and_close("metadata longer than its frame", Codes.CONNECTION_ERROR)


@law()
async def wire10_rejects_malformed_frames(context: WireContext) -> None:
    """A frame has 3 bytes, or none."""
    for raw in (b"abc", b""):
        peer = await context.connect()
        await peer.send(raw)
        await peer.require_error_and_close(f"a frame of {len(raw)} bytes", Codes.CONNECTION_ERROR)


@connected_law()
async def wire10_rejects_a_request_on_stream_0(peer: PeerConnection) -> None:
    """REQUEST_RESPONSE is sent on stream 0."""
    await peer.send(frames.request(frames.REQUEST_RESPONSE, 0, data=b"?"))
    await peer.require_error_and_close("a request on stream 0", Codes.CONNECTION_ERROR)


# -- the end ---------------------------------------------------------------------------------------
@connected_law()
async def wire11_closes_after_connection_error(peer: PeerConnection) -> None:
    """The client sends CONNECTION_ERROR."""
    await peer.send(frames.error(0, Codes.CONNECTION_ERROR, b"enough"))
    if not await peer.wait_for_close():
        raise peer.violation("after CONNECTION_ERROR the connection remains open")


@connected_law("stream")
async def wire11_closes_with_its_last_stream_after_connection_close(peer: PeerConnection) -> None:
    """The client sends CONNECTION_CLOSE while a stream is open."""
    record = await peer.request(frames.REQUEST_STREAM, "stream", n=2, length=5)
    await peer.wait_for_elements(record, 2)
    await peer.send(frames.error(0, Codes.CONNECTION_CLOSE, b"later"))
    await peer.wait_for_close(peer.context.timeouts.quiet_period)
    if peer.is_closed and not record.end:
        raise peer.violation("after CONNECTION_CLOSE an open stream was cut off")
    await peer.cancel(record)
    if not await peer.wait_for_close():
        raise peer.violation("after CONNECTION_CLOSE and its last stream it remains open")


@connected_law("echo", "stream", "channel", "fail")
async def wire12_sends_well_formed_frames(peer: PeerConnection) -> None:
    """Every received frame is checked, in one interaction of each model."""
    one = await peer.request(frames.REQUEST_RESPONSE, "echo", data=b"x")
    two = await peer.request(frames.REQUEST_STREAM, "stream", n=5, length=3)
    three = await peer.request(frames.REQUEST_CHANNEL, "channel", n=5, flags=frames.COMPLETE)
    four = await peer.request(frames.REQUEST_RESPONSE, "fail")
    for record in (one, two, three, four):
        if not await peer.wait_for_end(record):
            raise peer.violation(f"stream {record.id} has not ended")
