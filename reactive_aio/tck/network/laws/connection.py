"""Laws about a connection: how it begins, what keeps it alive, what it takes, how it ends."""

from typing import Any

from ...law import NotJudged
from .. import frames
from ..frames import Codes
from ..law import wire
from ..talk import Peer, Talk

__all__ = ()

_OF_SETUP = (Codes.INVALID_SETUP, Codes.UNSUPPORTED_SETUP, Codes.REJECTED_SETUP)


async def _nothing_is_served(peer: Peer, rule: str, after: str) -> None:
    served = [each for each in peer.streams.values() if each.elements or each.ended == "complete"]
    if served:
        raise peer.violation(rule, f"after {after} a request was served")


# -- setup -----------------------------------------------------------------------------------------
@wire("echo")
async def wire1_serves_nothing_before_setup(talk: Talk) -> None:
    """A request is the first frame."""
    peer = await talk.stranger()
    books = await peer.request(frames.REQUEST_RESPONSE, "echo", data=b"secret")
    await peer.until(lambda: bool(books.elements), talk.terms.quiet)
    await _nothing_is_served(peer, "N.1", "a request instead of SETUP")
    await peer.ends("N.1", "a request instead of SETUP", Codes.INVALID_SETUP)


@wire()
async def wire1_wants_setup_before_all_else(talk: Talk) -> None:
    """KEEPALIVE, METADATA_PUSH or an extension is the first frame."""
    firsts = (
        frames.keepalive(b"first"),
        frames.frame(0, frames.METADATA_PUSH, frames.METADATA, b"first"),
        frames.frame(0, frames.EXT, frames.IGNORE, b"\0\0\0\1"),
    )
    for first in firsts:
        peer = await talk.stranger()
        await peer.send(first)
        await peer.ends("N.1", str(frames.Seen.of(first)), Codes.INVALID_SETUP)


@wire()
async def wire1_wants_setup_on_stream_0(talk: Talk) -> None:
    """SETUP comes on stream 1."""
    peer = await talk.stranger()
    await peer.send(b"\0\0\0\1" + talk.setup()[4:])
    await peer.ends("N.1", "SETUP on stream 1", Codes.INVALID_SETUP)


@wire()
async def wire2_refuses_a_setup_that_is_cut_short(talk: Talk) -> None:
    """SETUP ends in the middle of its times, or of its types."""
    for length in (15, 22):
        peer = await talk.stranger()
        await peer.send(talk.setup()[:length])
        await peer.ends("N.2", f"the first {length} bytes of a SETUP", *_OF_SETUP[:2])


@wire()
async def wire2_refuses_another_version(talk: Talk) -> None:
    """SETUP is of version 2.0."""
    peer = await talk.stranger()
    await peer.send(talk.setup(version=(2, 0)))
    await peer.ends("N.2", "SETUP of version 2.0", *_OF_SETUP)


@wire()
async def wire2_refuses_times_of_0(talk: Talk) -> None:
    """SETUP gives 0 as the time between signs of life, or as the longest silence."""
    for name in ("keepalive", "lifetime"):
        peer = await talk.stranger()
        wrong: dict[str, Any] = {name: 0}
        await peer.send(talk.setup(**wrong))
        await peer.ends("N.2", f"SETUP with {name}=0", *_OF_SETUP)


@wire("echo")
async def wire3_refuses_wrong_credentials_and_serves_nothing(talk: Talk) -> None:
    """Wrong credentials, a request right behind them, and one after the answer."""
    if talk.offer.refused is None:
        raise NotJudged("no credentials are known that the server refuses: give --refused")
    peer = await talk.stranger()
    await peer.send(talk.setup(user=talk.offer.refused))
    books = await peer.request(frames.REQUEST_RESPONSE, "echo", data=b"secret")
    await peer.until(lambda: bool(peer.last_error()) or bool(books.elements))
    await peer.request(frames.REQUEST_RESPONSE, "echo", data=b"secret")
    await peer.until(lambda: any(each.elements for each in peer.streams.values()), talk.terms.quiet)
    await _nothing_is_served(peer, "N.3", "credentials that are refused")
    await peer.ends("N.3", "credentials that are refused", Codes.REJECTED_SETUP)


@wire()
async def wire4_grants_or_refuses_to_resume(talk: Talk) -> None:
    """SETUP wants to resume; if that is taken, the session is resumed on another connection."""
    token = b"tck-resumes-this"
    peer = await talk.stranger()
    await peer.send(talk.setup(flags=frames.RESUMED, token=token))
    if not await peer.ping():
        codes = (Codes.REJECTED_SETUP, Codes.UNSUPPORTED_SETUP)
        await peer.ends("N.4", "SETUP that wants to resume", *codes)
        return
    peer.link.close()
    other = await talk.stranger()
    await other.send(frames.resume(token))
    await other.until(lambda: bool(other.zero))
    if not any(seen.kind == frames.RESUME_OK for seen in other.zero):
        raise other.violation("N.4", "it took SETUP with RESUME, and did not resume the session")


@wire()
async def wire4_rejects_an_unknown_session(talk: Talk) -> None:
    """RESUME names a session that never was."""
    peer = await talk.stranger()
    await peer.send(frames.resume(b"nobody-knows-this", 100, 0))
    await peer.ends("N.4", "RESUME of an unknown session", Codes.REJECTED_RESUME)


@wire("echo")
async def wire5_gives_a_lease_or_refuses(talk: Talk) -> None:
    """SETUP wants leases; one is given before a request is served, or SETUP is refused."""
    peer = await talk.stranger()
    await peer.send(talk.setup(flags=frames.LEASED))
    if not await peer.ping():
        await peer.ends("N.5", "SETUP that wants leases", *_OF_SETUP)
        return
    await peer.until(lambda: any(seen.kind == frames.LEASE for seen in peer.zero))
    if not any(seen.kind == frames.LEASE for seen in peer.zero):
        raise peer.violation("N.5", "SETUP that wants leases was taken, and no LEASE has come")


@wire()
async def wire7_passes_over_a_second_setup(talk: Talk) -> None:
    """SETUP comes again, and errors of a setup come from a client."""
    peer = await talk.connect()
    await peer.send(talk.setup(), frames.error(0, Codes.INVALID_SETUP, b"mine"))
    await peer.send(frames.error(0, Codes.REJECTED_RESUME, b"mine"))
    await peer.lives("N.7", "a second SETUP")


# -- signs of life ---------------------------------------------------------------------------------
@wire()
async def wire6_answers_keepalive_with_its_data(talk: Talk) -> None:
    """KEEPALIVE with no data, some, and much; and one that wants no answer."""
    peer = await talk.connect()
    for data in (b"", bytes(range(256)), b"k" * 5000):
        peer.zero.clear()
        await peer.send(frames.keepalive(data))
        await peer.until(lambda: bool(peer.zero))
        answers = [seen for seen in peer.zero if seen.kind == frames.KEEPALIVE]
        if not answers or answers[0].data != data or answers[0].flags & frames.RESPOND:
            raise peer.violation("N.6", f"no answer to KEEPALIVE with {len(data)} bytes of data")
    before = len(peer.zero)
    await peer.send(frames.keepalive(b"no answer", respond=False))
    await peer.quiet()
    if any(seen.data == b"no answer" for seen in peer.zero[before:]):
        raise peer.violation("N.6", "it answered a KEEPALIVE that wants no answer")


# -- what makes no sense ---------------------------------------------------------------------------
SENSELESS = {
    "CANCEL on an unknown stream": frames.cancel(99),
    "CANCEL on stream 0": frames.cancel(0),
    "REQUEST_N on an unknown stream": frames.request_n(99, 5),
    "PAYLOAD on an unknown stream": frames.payload(99, b"?"),
    "PAYLOAD on stream 0": frames.payload(0, b"?"),
    "ERROR on an unknown stream": frames.error(99, Codes.APPLICATION_ERROR),
    "LEASE that nobody wanted": frames.frame(0, frames.LEASE, 0, b"\0\0\1\0\0\0\0\5"),
    "RESUME_OK": frames.frame(0, frames.RESUME_OK, 0, bytes(8)),
    "METADATA_PUSH on a stream": frames.frame(99, frames.METADATA_PUSH, frames.METADATA, b"?"),
    "KEEPALIVE on a stream": frames.frame(99, frames.KEEPALIVE, 0, bytes(8)),
}


@wire()
async def wire7_passes_over_frames_that_make_no_sense(talk: Talk) -> None:
    """Frames on streams that nobody has opened, and frames that belong elsewhere."""
    peer = await talk.connect()
    for name, sent in SENSELESS.items():
        await peer.send(sent)
        if not await peer.ping():
            raise peer.violation("N.7", f"after {name} the connection did not go on")


@wire("echo")
async def wire7_passes_over_flags_and_bits_without_meaning(talk: Talk) -> None:
    """A request with unknown flags, and with the reserved first bit of its stream id."""
    peer = await talk.connect()
    books = peer.new(frames.REQUEST_RESPONSE)
    metadata = talk.metadata("echo")
    sent = frames.request(frames.REQUEST_RESPONSE, books.id, data=b"x", metadata=metadata)
    await peer.send(b"\x80" + sent[1:5] + bytes((sent[5] | 0x1F,)) + sent[6:])
    if not await peer.came(books, 1):
        raise peer.violation("N.7", "a request with flags that have no meaning was not served")


@wire()
async def wire8_passes_over_what_may_be_ignored(talk: Talk) -> None:
    """An unknown type and an unknown extension, both with the flag IGNORE."""
    peer = await talk.connect()
    await peer.send(frames.frame(0, 0x1F, frames.IGNORE, b"?"))
    await peer.lives("N.8", "a frame of an unknown type that may be ignored")
    await peer.send(frames.frame(0, frames.EXT, frames.IGNORE, b"\0\0\0\x7f?"))
    await peer.lives("N.8", "an unknown extension that may be ignored")


@wire()
async def wire8_survives_what_may_not_be_ignored(talk: Talk) -> None:
    """An unknown type, and an unknown extension, without the flag IGNORE."""
    for kind in (0x1F, frames.EXT):
        peer = await talk.connect()
        await peer.send(frames.frame(0, kind, 0, b"\0\0\0\x7f?"))
        if not await peer.quiet() or peer.last_error() is not None:
            await peer.ends("N.8", f"a frame of the type 0x{kind:02X}", Codes.CONNECTION_ERROR)


@wire()
async def wire9_refuses_metadata_that_does_not_fit(talk: Talk) -> None:
    """The metadata of a request is longer than the frame."""
    peer = await talk.connect()
    peer.new(frames.REQUEST_RESPONSE)
    await peer.send(frames.frame(1, frames.REQUEST_RESPONSE, frames.METADATA, b"\0\xff\xffshort"))
    await peer.ends("N.9", "metadata longer than its frame", Codes.CONNECTION_ERROR)


@wire()
async def wire10_refuses_what_is_no_frame(talk: Talk) -> None:
    """A frame of 3 bytes, and one of none."""
    for raw in (b"abc", b""):
        peer = await talk.connect()
        await peer.send(raw)
        await peer.ends("N.10", f"a frame of {len(raw)} bytes", Codes.CONNECTION_ERROR)


@wire()
async def wire10_refuses_a_request_on_stream_0(talk: Talk) -> None:
    """REQUEST_RESPONSE comes on stream 0."""
    peer = await talk.connect()
    await peer.send(frames.request(frames.REQUEST_RESPONSE, 0, data=b"?"))
    await peer.ends("N.10", "a request on stream 0", Codes.CONNECTION_ERROR)


# -- the end ---------------------------------------------------------------------------------------
@wire()
async def wire11_ends_after_connection_error(talk: Talk) -> None:
    """The client says CONNECTION_ERROR."""
    peer = await talk.connect()
    await peer.send(frames.error(0, Codes.CONNECTION_ERROR, b"enough"))
    if not await peer.leaves():
        raise peer.violation("N.11", "after CONNECTION_ERROR the connection stays open")


@wire("stream")
async def wire11_ends_with_its_last_stream_after_connection_close(talk: Talk) -> None:
    """The client says CONNECTION_CLOSE while a stream is under way."""
    peer = await talk.connect()
    books = await peer.request(frames.REQUEST_STREAM, "stream", n=2, length=5)
    await peer.came(books, 2)
    await peer.send(frames.error(0, Codes.CONNECTION_CLOSE, b"later"))
    await peer.leaves(talk.terms.quiet)
    if peer.ended and not books.ended:
        raise peer.violation("N.11", "after CONNECTION_CLOSE an open stream was cut off")
    await peer.cancel(books)
    if not await peer.leaves():
        raise peer.violation("N.11", "after CONNECTION_CLOSE and its last stream it stays open")


@wire("echo", "stream", "channel", "fail")
async def wire12_sends_frames_that_can_be_read(talk: Talk) -> None:
    """Each model once; every frame that comes is looked at."""
    peer = await talk.connect()
    one = await peer.request(frames.REQUEST_RESPONSE, "echo", data=b"x")
    two = await peer.request(frames.REQUEST_STREAM, "stream", n=5, length=3)
    three = await peer.request(frames.REQUEST_CHANNEL, "channel", n=5, flags=frames.COMPLETE)
    four = await peer.request(frames.REQUEST_RESPONSE, "fail")
    for books in (one, two, three, four):
        if not await peer.over(books):
            raise peer.violation("N.12", f"stream {books.id} has not ended")
