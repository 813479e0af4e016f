"""Laws about requesters: the server executes a script of requests, which the kit answers.

The words of a script: ``response`` requests one element, ``stream`` a stream, and ``twice``
subscribes two subscribers to one publisher. Each number after ``stream`` is requested when all
elements of the previous request have come; ``cancel`` cancels. The server reports the outcome in
its answer: ``3 12 complete`` for 3 elements of 12 bytes in all, ``… cancel``, or ``… error 513``.
"""

from ...law import law
from .. import frames
from ..frames import CANCEL, COMPLETE, FOLLOWS, NEXT, REQUEST_N, REQUEST_STREAM, ParsedFrame
from ..wire_context import PeerConnection, StreamRecord, WireContext, connected_law


async def _run_script(
    context: WireContext, script: str
) -> tuple[PeerConnection, StreamRecord, list[ParsedFrame]]:
    """Make the server execute *script*; return the record of the script and its frames."""
    peer = await context.connect()
    record = await peer.run_script(script)
    await peer.wait_until(lambda: bool(peer.peer_streams) or bool(record.end))
    if not peer.peer_streams:
        raise peer.violation(f"the script {script!r} led to no request", "N.39")
    return peer, record, next(iter(peer.peer_streams.values()))


async def _require_outcome(
    peer: PeerConnection, record: StreamRecord, expected: str, rule: str = "N.43"
) -> None:
    """Require the outcome that the server reports."""
    reported = await _outcome(peer, record)
    if reported != expected:
        raise peer.violation(f"the outcome should be '{expected}', and is '{reported}'", rule)


async def _outcome(peer: PeerConnection, record: StreamRecord) -> str:
    await peer.wait_for_end(record)
    return record.elements[0].decode("utf-8", "replace") if record.elements else "nothing"


async def _require_demand(peer: PeerConnection, received: list[ParsedFrame], total: int) -> None:
    """Require that exactly *total* elements have been requested."""
    if await peer.wait_until(lambda: _sum(received) >= total):
        await peer.settle()
    if _sum(received) != total:
        raise peer.violation(f"{total} were requested; the wire says {_sum(received)}")


def _sum(received: list[ParsedFrame]) -> int:
    return sum(each.number for each in received if each.kind in (REQUEST_STREAM, REQUEST_N))


def _is_cancelled(received: list[ParsedFrame]) -> bool:
    return any(each.kind == CANCEL for each in received)


async def _send(peer: PeerConnection, stream: int, *data: bytes, last: int = NEXT) -> None:
    for at, each in enumerate(data, 1):
        await peer.send(frames.payload(stream, each, flags=last if at == len(data) else NEXT))


@connected_law("ask")
async def wire38_uses_every_second_stream_id(peer: PeerConnection) -> None:
    """The server sends three requests, one after another."""
    for _ in range(3):
        known = len(peer.peer_streams)
        await peer.run_script("response")
        await peer.wait_for_peer_streams(known + 1)
    if list(peer.peer_streams) != [2, 4, 6]:
        what = f"three streams of a server should be 2, 4 and 6; they are {list(peer.peer_streams)}"
        raise peer.violation(what)


@law("ask")
async def wire39_carries_the_initial_request(context: WireContext) -> None:
    """A subscriber initially requests 3 elements."""
    peer, _, received = await _run_script(context, "stream 3 cancel")
    await peer.settle()
    if received[0].kind != REQUEST_STREAM or received[0].number != 3:
        raise peer.violation(f"3 were requested at first, and the wire says {received[0]}")
    if len(received) > 1:
        raise peer.violation(f"{received[1]} came after the request, without further demand")


@connected_law("ask")
async def wire39_opens_a_stream_for_each_subscription(peer: PeerConnection) -> None:
    """Two subscribers to one publisher lead to two streams."""
    await peer.run_script("twice 1 cancel")
    await peer.wait_for_peer_streams(2)
    opened = [received.stream for each in peer.peer_streams.values() for received in each
             if received.kind == REQUEST_STREAM]  # fmt: skip
    if len(opened) != 2 or len(set(opened)) != 2:
        raise peer.violation(f"two subscriptions sent requests on the streams {opened}")


@law("ask")
async def wire40_forwards_each_request(context: WireContext) -> None:
    """A subscriber requests 3 elements, then 2, and then 1."""
    peer, record, received = await _run_script(context, "stream 3 2 1")
    stream = received[0].stream
    await _require_demand(peer, received, 3)
    await _send(peer, stream, b"a", b"b", b"c")
    await _require_demand(peer, received, 5)
    await _send(peer, stream, b"d", b"e")
    await _require_demand(peer, received, 6)
    await _send(peer, stream, b"f", last=NEXT | COMPLETE)
    await _require_outcome(peer, record, "6 6 complete")


@law("ask")
async def wire40_forwards_the_largest_request(context: WireContext) -> None:
    """A subscriber requests 2**63-1 elements."""
    peer, record, received = await _run_script(context, f"stream {2**63 - 1}")
    await peer.settle()
    stream, count = received[0].stream, 0
    if received[0].number < 2**20:  # it may request them in parts
        count = received[0].number
        await _send(peer, stream, *[b"a"] * count)
        if not count or not await peer.wait_until(lambda: _sum(received) > count):
            what = f"2**63-1 were requested, and the wire says {received[0]}, and no more after it"
            raise peer.violation(what)
    await _send(peer, stream, b"a", b"b", last=NEXT | COMPLETE)
    await _require_outcome(peer, record, f"{count + 2} {count + 2} complete", "N.40")


@law("ask", "echo")
async def wire41_sends_no_non_positive_request(context: WireContext) -> None:
    """Subscribers request -1 and 0; the connection continues."""
    for script in ("stream -1", "stream 0"):
        peer = await context.connect()
        await peer.run_script(script)
        await peer.settle()
        for fault in peer.faults:
            raise peer.violation(f"{script!r} was sent: {fault.what}")
        await peer.require_alive(f"its own {script!r}")
        record = await peer.request(frames.REQUEST_RESPONSE, "echo", data=b"on")
        if not await peer.wait_for_elements(record, 1):
            raise peer.violation(f"after its own {script!r} it does not serve requests")


@law("ask")
async def wire42_sends_cancel_once_and_then_nothing(context: WireContext) -> None:
    """A subscriber requests 2 elements, cancels twice, and requests again."""
    peer, record, received = await _run_script(context, "stream 2 cancel cancel 5")
    await _send(peer, received[0].stream, b"a", b"b")
    await peer.wait_for_end(record)
    if not await peer.wait_until(lambda: _is_cancelled(received)):
        raise peer.violation("a subscriber has cancelled, and no CANCEL has come")
    await _send(peer, received[0].stream, b"late")
    await peer.require_alive("CANCEL and an element that was under way")
    at = next(at for at, each in enumerate(received) if each.kind == CANCEL)
    if received[at + 1 :]:
        raise peer.violation(f"{received[at + 1]} came after CANCEL")


@law("ask")
async def wire42_is_silent_after_the_end(context: WireContext) -> None:
    """The kit completes a stream; the subscriber then requests and cancels."""
    peer, record, received = await _run_script(context, "stream 1 5 cancel")
    await _send(peer, received[0].stream, b"a", last=NEXT | COMPLETE)
    await peer.wait_for_end(record)
    count = len(received)
    await peer.settle()
    if received[count:] or _is_cancelled(received):
        raise peer.violation(f"{received[-1]} came after the end of a stream")


@law("ask")
async def wire43_forwards_errors_with_their_codes(context: WireContext) -> None:
    """The kit fails streams and responses with codes of the protocol and of applications."""
    for script in ("stream 5", "response"):
        for code in (0x201, 0x202, 0x301, 0xFFFFFFFE):
            peer, record, received = await _run_script(context, script)
            await peer.send(frames.error(received[0].stream, code, b"why"))
            await _require_outcome(peer, record, f"0 0 error {code}")


@law("ask")
async def wire43_forwards_elements(context: WireContext) -> None:
    """The kit sends an empty element, fragments, only a completion, and an element only."""
    end = NEXT | COMPLETE
    tries = (
        ("stream 5", "1 0 complete", [(b"", end)]),
        ("stream 5", "0 0 complete", [(b"", COMPLETE)]),
        ("response", "1 0 complete", [(b"", end)]),
        ("response", "0 0 complete", [(b"", COMPLETE)]),
        ("response", "1 2 complete", [(b"ab", NEXT)]),
        ("response", "1 5 complete", [(b"ab", NEXT | FOLLOWS), (b"cde", end)]),
    )
    for script, expected, sent in tries:
        peer, record, received = await _run_script(context, script)
        for data, flags in sent:
            await peer.send(frames.payload(received[0].stream, data, flags=flags))
        await _require_outcome(peer, record, expected)


@law("ask")
async def wire44_cancels_a_stream_that_exceeds_its_demand(context: WireContext) -> None:
    """A subscriber requests 2 elements, and the kit sends 4."""
    peer, record, received = await _run_script(context, "stream 2")
    await _send(peer, received[0].stream, b"a", b"b", b"c", b"d")
    if not await peer.wait_until(lambda: _is_cancelled(received) or peer.is_closed):
        raise peer.violation("4 elements came for 2 that were requested, and it has not cancelled")
    reported = await _outcome(peer, record)
    if record.elements and reported[:1] not in ("2", ""):
        raise peer.violation(f"2 elements were requested, and its subscriber received '{reported}'")
