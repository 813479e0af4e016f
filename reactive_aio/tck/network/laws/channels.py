"""Laws about channels: demand and ends in both directions."""

from .. import frames
from ..frames import COMPLETE, NEXT, REQUEST_CHANNEL, Codes
from ..law import connected_law
from ..stream_record import StreamRecord
from ..wire_context import PeerConnection


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
    if not await peer.wait_for_end(record) or record.elements != [
        b"%d" % each for each in range(5)
    ]:
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
        what = (
            f"{record.requested_by_peer} elements were requested, {many} sent, and none was refused"
        )
        raise peer.violation(what)
