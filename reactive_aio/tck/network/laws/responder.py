"""Laws about responders: demand, order, ends and failures of streams and of channels."""

from .. import frames
from ..frames import COMPLETE, FNF, NEXT, REQUEST_CHANNEL, REQUEST_RESPONSE, REQUEST_STREAM, Codes
from ..wire_context import PeerConnection, StreamRecord, connected_law, is_stream_code


def _texts(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


async def _require_complete(
    peer: PeerConnection, record: StreamRecord, count: int, rule: str = ""
) -> None:
    """Require all of *count* elements and a completion."""
    if not await peer.wait_for_end(record):
        raise peer.violation(f"{len(record.elements)} of {count} elements came, and no end", rule)
    if record.end != "complete":
        raise peer.violation(f"it ended by the error 0x{record.code:X}", rule)
    if record.elements != _texts(count):
        what = f"the elements should be 0 to {count - 1}, and are {record.elements[:20]}"
        raise peer.violation(what, rule)


# -- demand ----------------------------------------------------------------------------------------
@connected_law("endless")
async def wire14_sends_no_more_than_the_first_request(peer: PeerConnection) -> None:
    """Streams are requested with n = 1, 3 and 100, without further demand."""
    for n in (1, 3, 100):
        record = await peer.request(REQUEST_STREAM, "endless", n=n)
        if not await peer.wait_for_elements(record, n):
            raise peer.violation(f"{n} were requested, {len(record.elements)} came", "N.15")
        await peer.settle()


@connected_law("stream")
async def wire14_sends_one_for_one(peer: PeerConnection) -> None:
    """A stream of 5 is requested one by one: one element comes for each request."""
    record = await peer.request(REQUEST_STREAM, "stream", n=1, length=5)
    for count in range(1, 5):
        if not await peer.wait_for_elements(record, count):
            what = f"{count} were requested in all, {len(record.elements)} came"
            raise peer.violation(what, "N.15")
        await peer.settle()
        await peer.request_more(record, 1)
    await _require_complete(peer, record, 5, "N.15")


@connected_law("stream")
async def wire15_completes_without_further_demand(peer: PeerConnection) -> None:
    """Of streams of 0, 1 and 3 elements as many are requested, or more."""
    for length, n in ((0, 1), (1, 1), (3, 3), (3, 10)):
        record = await peer.request(REQUEST_STREAM, "stream", n=n, length=length)
        await _require_complete(peer, record, length)


@connected_law("stream")
async def wire15_sends_a_long_stream_in_order(peer: PeerConnection) -> None:
    """A stream of 2000 is requested by 7 initially, then by 100."""
    record = await peer.request(REQUEST_STREAM, "stream", n=7, length=2000)
    while record.requested < 2000:
        if not await peer.wait_for_elements(record, record.requested):
            break
        await peer.request_more(record, 100)
    await _require_complete(peer, record, 2000)


@connected_law("stream")
async def wire16_adds_up_requests(peer: PeerConnection) -> None:
    """A stream of 20 is requested by 1, and by nineteen immediate requests of 1."""
    record = await peer.request(REQUEST_STREAM, "stream", n=1, length=20)
    for _ in range(19):
        await peer.request_more(record, 1)
    await _require_complete(peer, record, 20)


@connected_law("stream")
async def wire16_accepts_the_largest_requests(peer: PeerConnection) -> None:
    """A stream of 5000 is requested by the largest n, repeatedly."""
    for first in (frames.MAX_31, 1):
        record = await peer.request(REQUEST_STREAM, "stream", n=first, length=5000)
        await peer.request_more(record, frames.MAX_31)
        await peer.request_more(record, frames.MAX_31)
        await _require_complete(peer, record, 5000)


@connected_law("stream")
async def wire17_rejects_an_initial_request_of_0(peer: PeerConnection) -> None:
    """A stream is requested with n = 0."""
    record = await peer.request(REQUEST_STREAM, "stream", n=0, length=5)
    await peer.wait_until(lambda: bool(record.end) or bool(record.elements))
    if record.elements:
        raise peer.violation("0 were requested, and an element came")
    if record.end != "error":
        raise peer.violation("REQUEST_STREAM with n = 0 was not answered by an error")
    await peer.require_alive("REQUEST_STREAM with n = 0")


@connected_law("stream")
async def wire17_sends_nothing_for_a_request_of_0(peer: PeerConnection) -> None:
    """A stream that waits for demand receives REQUEST_N with n = 0."""
    record = await peer.request(REQUEST_STREAM, "stream", n=1, length=5)
    await peer.wait_for_elements(record, 1)
    await peer.request_more(record, 0)
    if not await peer.settle():
        raise peer.violation("after REQUEST_N with n = 0 the connection did not continue")


# -- cancelling ------------------------------------------------------------------------------------
@connected_law("endless")
async def wire18_stops_after_cancel(peer: PeerConnection) -> None:
    """An endless stream with much demand left is cancelled."""
    record = await peer.request(REQUEST_STREAM, "endless", n=1_000_000)
    await peer.wait_for_elements(record, 10)
    await peer.cancel(record)
    await peer.settle()
    for _ in range(3):
        late = record.frames_after_cancel
        await peer.settle()
        if record.frames_after_cancel == late:
            return
    what = f"{record.frames_after_cancel} elements have come since CANCEL, and more come"
    raise peer.violation(what)


@connected_law("stream", "never")
async def wire18_sends_nothing_on_a_cancelled_stream(peer: PeerConnection) -> None:
    """A stream that waits for demand and a response are cancelled; then demand is sent."""
    one = await peer.request(REQUEST_STREAM, "stream", n=2, length=5)
    two = await peer.request(REQUEST_RESPONSE, "never")
    await peer.wait_for_elements(one, 2)
    if not await peer.ping():
        raise peer.violation("KEEPALIVE is not answered while a request waits", "N.29")
    for record in (one, two):
        await peer.cancel(record)
    await peer.request_more(one, 5)
    await peer.require_alive("CANCEL followed by REQUEST_N")
    if one.frames_after_cancel or two.frames_after_cancel:
        raise peer.violation("a stream that waited was answered after its CANCEL")


@connected_law("stream", "fail")
async def wire19_is_silent_after_the_end(peer: PeerConnection) -> None:
    """Streams that have completed or failed receive REQUEST_N and CANCEL."""
    one = await peer.request(REQUEST_STREAM, "stream", n=5, length=2)
    two = await peer.request(REQUEST_STREAM, "fail", n=5)
    for record in (one, two):
        if not await peer.wait_for_end(record):
            raise peer.violation(f"stream {record.id} has not ended", "N.15")
        await peer.request_more(record, 5)
        await peer.send(frames.cancel(record.id))
    await peer.require_alive("REQUEST_N and CANCEL after the end")


# -- one for one -----------------------------------------------------------------------------------
@connected_law("echo")
async def wire20_answers_once(peer: PeerConnection) -> None:
    """Ten requests are sent one after another, and ten at once."""
    sent: list[tuple[bytes, StreamRecord]] = []
    for number in range(20):
        data = b"%d" % number
        record = await peer.request(REQUEST_RESPONSE, "echo", data=data)
        sent.append((data, record))
        if number < 10:
            await peer.wait_for_end(record)
    for data, record in sent:
        if not await peer.wait_for_end(record) or record.elements != [data]:
            raise peer.violation(f"{data!r} was answered by {record.elements}")
    await peer.settle()


@connected_law("echo")
async def wire21_carries_any_bytes(peer: PeerConnection) -> None:
    """A zero byte, all byte values, and 50 000 bytes come back unchanged."""
    for data in (b"\0", bytes(range(256)), bytes(range(250)) * 200):
        record = await peer.request(REQUEST_RESPONSE, "echo", data=data)
        if not await peer.wait_for_end(record) or record.elements != [data]:
            raise peer.violation(f"{len(data)} bytes came back changed")


@connected_law("echo")
async def wire21_answers_an_empty_payload_with_an_element(peer: PeerConnection) -> None:
    """A request with empty data is answered by an empty element."""
    record = await peer.request(REQUEST_RESPONSE, "echo", data=b"")
    if not await peer.wait_for_end(record) or record.elements != [b""]:
        raise peer.violation(f"an empty payload was answered by {record.elements}")


@connected_law("echo")
async def wire22_does_not_answer_fire_and_forget(peer: PeerConnection) -> None:
    """REQUEST_FNF is sent to a known route and to an unknown one."""
    await peer.request(FNF, "echo", data=b"forget")
    unknown = peer.new_stream(FNF)
    await peer.send(frames.request(FNF, unknown.id, metadata=None, data=b"forget"))
    await peer.settle()
    for stream in peer.streams.values():
        if stream.elements or stream.end:
            raise peer.violation("REQUEST_FNF was answered")
    await peer.require_alive("REQUEST_FNF")


# -- failures --------------------------------------------------------------------------------------
@connected_law("fail", "echo")
async def wire26_fails_a_request_with_an_error(peer: PeerConnection) -> None:
    """A response and a stream fail; then a response does not."""
    one = await peer.request(REQUEST_RESPONSE, "fail")
    two = await peer.request(REQUEST_STREAM, "fail", n=10)
    for record in (one, two):
        await peer.wait_for_end(record)
        if record.end == "error" and not is_stream_code(record.code):
            raise peer.violation(f"0x{record.code:X} is not a code of streams")
        if record.end != "error":
            how = f"by {record.end}" if record.end else "by no frame"
            raise peer.violation(f"a failure was signaled {how}, not by ERROR on its stream")
    after = await peer.request(REQUEST_RESPONSE, "echo", data=b"on")
    if not await peer.wait_for_elements(after, 1):
        raise peer.violation("after failures the connection did not continue")


@connected_law("echo")
async def wire26_refuses_an_unknown_route(peer: PeerConnection) -> None:
    """A request names an unknown route."""
    metadata = peer.context.route_metadata("tck.there.is.no.such.route")
    record = peer.new_stream(REQUEST_RESPONSE)
    await peer.send(frames.request(REQUEST_RESPONSE, record.id, metadata=metadata))
    if not await peer.wait_for_end(record) or record.end != "error":
        raise peer.violation("a request for an unknown route was not answered by ERROR")
    await peer.require_alive("a request for an unknown route")


# -- streams ---------------------------------------------------------------------------------------
@connected_law("stream")
async def wire27_ignores_a_request_on_a_stream_in_use(peer: PeerConnection) -> None:
    """REQUEST_STREAM is repeated on an open stream, which continues."""
    record = await peer.request(REQUEST_STREAM, "stream", n=2, length=4)
    await peer.wait_for_elements(record, 2)
    metadata = peer.context.metadata("stream", 9)
    await peer.send(frames.request(REQUEST_STREAM, record.id, n=9, metadata=metadata))
    await peer.settle()
    if len(record.elements) > 2 or record.end:
        raise peer.violation("a second request on a stream was not ignored")
    await peer.request_more(record, 5)
    await _require_complete(peer, record, 4)


@connected_law("echo")
async def wire28_does_not_serve_requests_on_its_own_stream_ids(peer: PeerConnection) -> None:
    """A client sends a request on stream 2, an id of the server's."""
    metadata = peer.context.metadata("echo")
    await peer.send(frames.request(REQUEST_RESPONSE, 2, data=b"x", metadata=metadata))
    await peer.settle()
    if any(received.kind == frames.PAYLOAD for received in peer.peer_streams.get(2, [])):
        raise peer.violation("a request on stream 2, from a client, was served")


@connected_law("never", "echo")
async def wire29_serves_a_request_while_another_waits(peer: PeerConnection) -> None:
    """A response is requested while another one is never given."""
    await peer.request(REQUEST_RESPONSE, "never")
    record = await peer.request(REQUEST_RESPONSE, "echo", data=b"x")
    if not await peer.wait_for_elements(record, 1):
        raise peer.violation("while a request waits, another is not served")


@connected_law("endless", "stream", "echo")
async def wire29_serves_streams_concurrently(peer: PeerConnection) -> None:
    """A short stream and a response are requested beside an endless stream with much demand."""
    much = 50_000  # of 1000 bytes: far more than is sent before the others are requested
    endless = await peer.request(REQUEST_STREAM, "endless", n=much)
    await peer.wait_for_elements(endless, 1)
    one = await peer.request(REQUEST_STREAM, "stream", n=10, length=10)
    two = await peer.request(REQUEST_RESPONSE, "echo", data=b"x")
    await _require_complete(peer, one, 10)
    if not await peer.wait_for_elements(two, 1):
        raise peer.violation("beside an endless stream a response is not sent")
    if len(endless.elements) >= much:
        raise peer.violation(f"all {much} elements of an endless stream came first")


# -- channels --------------------------------------------------------------------------------------
async def _open(peer: PeerConnection, n: int = 10, flags: int = 0) -> StreamRecord:
    return await peer.request(REQUEST_CHANNEL, "channel", n=n, data=b"0", flags=flags)


async def _wait_for_demand(peer: PeerConnection, record: StreamRecord) -> None:
    if not await peer.wait_for_requested(record, 1):
        raise peer.violation("no REQUEST_N came for the elements after the first", "N.23")


@connected_law("channel")
async def wire23_requests_elements_after_the_first(peer: PeerConnection) -> None:
    """A channel echoes its elements, which are sent as they are requested."""
    record = await _open(peer)
    for number in range(1, 5):
        if not await peer.wait_for_requested(record, number):
            what = f"{number} elements wait to be sent, {record.requested_by_peer} were requested"
            raise peer.violation(what)
        await peer.send(frames.payload(record.id, b"%d" % number))
    await peer.send(frames.payload(record.id, flags=COMPLETE))
    if not await peer.wait_for_end(record) or record.elements != _texts(5):
        raise peer.violation(f"of the elements 0 to 4 came back {record.elements}")


@connected_law("channel")
async def wire14_sends_no_more_on_a_channel(peer: PeerConnection) -> None:
    """3 elements are requested; at most 10 are sent, as many as the responder requests."""
    record = await _open(peer, n=3)
    await _wait_for_demand(peer, record)
    await peer.settle()
    sent = min(record.requested_by_peer, 10)
    for number in range(1, sent + 1):
        await peer.send(frames.payload(record.id, b"%d" % number))
    await peer.settle()
    if sent >= 3:
        await peer.request_more(record, 1)
    due = min(sent + 1, record.requested)
    if not await peer.wait_for_elements(record, due):
        what = f"{record.requested} were requested on a channel, {len(record.elements)} came"
        raise peer.violation(what, "N.15")


@connected_law("channel")
async def wire23_continues_after_the_requester_completes(peer: PeerConnection) -> None:
    """The requester completes its direction; the other one still sends its elements."""
    record = await _open(peer, n=5, flags=COMPLETE)
    if not await peer.wait_for_end(record) or record.end != "complete" or record.elements != [b"0"]:
        what = f"the request was COMPLETE; its echo was {record.elements or 'nothing'}"
        raise peer.violation(f"{what}{', and no end' if not record.end else ''}")
    record = await _open(peer, n=2)
    await _wait_for_demand(peer, record)
    await peer.send(frames.payload(record.id, b"1", flags=NEXT | COMPLETE))
    await peer.wait_for_elements(record, 2)
    await peer.request_more(record, 5)
    if not await peer.wait_for_end(record) or record.elements != [b"0", b"1"]:
        what = f"the requester has completed; {len(record.elements)} of two elements came"
        raise peer.violation(what)


@connected_law("channel")
async def wire24_ends_both_directions_after_cancel(peer: PeerConnection) -> None:
    """After the requester cancels a channel, nothing is sent or requested."""
    record = await _open(peer)
    await _wait_for_demand(peer, record)
    await peer.cancel(record)
    await peer.settle()
    # Frames that were under way have arrived.
    requested, record.frames_after_cancel = record.requested_by_peer, 0
    await peer.send(frames.payload(record.id, b"late"))
    await peer.require_alive("CANCEL of a channel, and an element after it")
    if record.requested_by_peer > requested:
        raise peer.violation("a cancelled channel requested more")
    if record.frames_after_cancel:
        raise peer.violation("a cancelled channel continued")


@connected_law("channel")
async def wire24_ends_both_directions_after_an_error(peer: PeerConnection) -> None:
    """After the requester fails a channel, nothing is sent."""
    record = await _open(peer)
    await _wait_for_demand(peer, record)
    await peer.send(frames.error(record.id, Codes.APPLICATION_ERROR, b"mine"))
    await peer.settle()
    record.is_cancelled, record.frames_after_cancel = True, 0
    await peer.send(frames.payload(record.id, b"late"))
    await peer.require_alive("ERROR on a channel, and an element after it")
    if record.frames_after_cancel:
        raise peer.violation("a channel that its requester has failed continued")


@connected_law("channel")
async def wire25_refuses_elements_without_demand(peer: PeerConnection) -> None:
    """Far more elements are sent than the responder has requested."""
    record = await _open(peer, n=3)
    await _wait_for_demand(peer, record)
    await peer.settle()
    # Exceed the demand, including any REQUEST_N that comes in the meantime.
    many = record.requested_by_peer + 5000
    if many > 2_000_000:
        return
    sent = frames.payload(record.id, b"much")
    await peer.flood(sent for _ in range(many))
    if not await peer.wait_until(
        lambda: record.is_cancelled_by_peer or bool(record.end) or peer.is_closed
    ):
        requested = f"{record.requested_by_peer} elements were requested"
        raise peer.violation(f"{requested}, {many} sent, and none was refused")
