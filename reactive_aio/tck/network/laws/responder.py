"""Laws about who answers: demand, order, ends and failures of streams."""

from .. import frames
from ..frames import FNF, REQUEST_RESPONSE, REQUEST_STREAM
from ..law import wire
from ..stream import Books, stream_code
from ..talk import Peer, Talk

__all__ = ()


def _texts(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


async def _complete(peer: Peer, books: Books, count: int, rule: str) -> None:
    """A stream of *count* elements has come whole."""
    if not await peer.over(books):
        what = f"{len(books.elements)} of {count} elements came, and no end"
        raise peer.violation(rule, what)
    if books.ended != "complete":
        raise peer.violation(rule, f"it ended by the error 0x{books.code:X}")
    if books.elements != _texts(count):
        raise peer.violation(rule, f"of the elements 0 to {count - 1} came {books.elements[:20]}")


# -- demand ----------------------------------------------------------------------------------------
@wire("endless")
async def wire14_sends_no_more_than_the_first_request(talk: Talk) -> None:
    """REQUEST_STREAM with n of 1, of 3 and of 100, and then nothing."""
    peer = await talk.connect()
    for n in (1, 3, 100):
        books = await peer.request(REQUEST_STREAM, "endless", n=n)
        if not await peer.came(books, n):
            raise peer.violation("N.15", f"{n} were requested, {len(books.elements)} came")
        await peer.quiet()


@wire("stream")
async def wire14_sends_one_for_one(talk: Talk) -> None:
    """A stream of 5 with requests of 1: after each, silence."""
    peer = await talk.connect()
    books = await peer.request(REQUEST_STREAM, "stream", n=1, length=5)
    for count in range(1, 5):
        if not await peer.came(books, count):
            what = f"{count} were requested in all, {len(books.elements)} came"
            raise peer.violation("N.15", what)
        await peer.quiet()
        await peer.more(books, 1)
    await _complete(peer, books, 5, "N.15")


@wire("stream")
async def wire15_completes_without_further_demand(talk: Talk) -> None:
    """Streams of 0, 1 and 3 elements, of which just as many are requested, or more."""
    peer = await talk.connect()
    for length, n in ((0, 1), (1, 1), (3, 3), (3, 10)):
        books = await peer.request(REQUEST_STREAM, "stream", n=n, length=length)
        await _complete(peer, books, length, "N.15")


@wire("stream")
async def wire15_sends_a_long_stream_in_order(talk: Talk) -> None:
    """A stream of 2000 elements, requested by 7 at first and by 100 later."""
    peer = await talk.connect()
    books = await peer.request(REQUEST_STREAM, "stream", n=7, length=2000)
    while not books.ended:
        if not await peer.came(books, min(books.credit, 2000)):
            break
        await peer.more(books, 100)
    await _complete(peer, books, 2000, "N.15")


@wire("stream")
async def wire16_adds_requests_up(talk: Talk) -> None:
    """A stream of 20, by 1 and nineteen requests of 1 at once."""
    peer = await talk.connect()
    books = await peer.request(REQUEST_STREAM, "stream", n=1, length=20)
    for _ in range(19):
        await peer.more(books, 1)
    await _complete(peer, books, 20, "N.16")


@wire("stream")
async def wire16_takes_the_largest_requests(talk: Talk) -> None:
    """A stream of 5000, by the largest n there is, again and again."""
    peer = await talk.connect()
    for first in (frames.MAX_31, 1):
        books = await peer.request(REQUEST_STREAM, "stream", n=first, length=5000)
        await peer.more(books, frames.MAX_31)
        await peer.more(books, frames.MAX_31)
        await _complete(peer, books, 5000, "N.16")


@wire("stream")
async def wire17_answers_a_first_request_for_nothing_by_an_error(talk: Talk) -> None:
    """REQUEST_STREAM with n of 0."""
    peer = await talk.connect()
    books = await peer.request(REQUEST_STREAM, "stream", n=0, length=5)
    await peer.until(lambda: bool(books.ended) or bool(books.elements))
    if books.elements:
        raise peer.violation("N.17", "0 were requested, and an element came")
    if books.ended != "error":
        raise peer.violation("N.17", "REQUEST_STREAM with n of 0 was not answered by an error")
    await peer.lives("N.17", "REQUEST_STREAM with n of 0")


@wire("stream")
async def wire17_sends_nothing_for_a_request_for_nothing(talk: Talk) -> None:
    """REQUEST_N with n of 0 on a stream that waits for demand."""
    peer = await talk.connect()
    books = await peer.request(REQUEST_STREAM, "stream", n=1, length=5)
    await peer.came(books, 1)
    await peer.more(books, 0)
    if not await peer.quiet():
        raise peer.violation("N.17", "after REQUEST_N with n of 0 the connection did not go on")


# -- cancelling ------------------------------------------------------------------------------------
@wire("endless")
async def wire18_stops_after_cancel(talk: Talk) -> None:
    """An endless stream with much demand is cancelled."""
    peer = await talk.connect()
    books = await peer.request(REQUEST_STREAM, "endless", n=1_000_000)
    await peer.came(books, 10)
    await peer.cancel(books)
    await peer.quiet()
    for _ in range(3):
        late = books.late
        await peer.quiet()
        if books.late == late:
            return
    raise peer.violation("N.18", f"{books.late} elements have come since CANCEL, and more come")


@wire("stream", "never")
async def wire18_sends_nothing_for_what_was_cancelled(talk: Talk) -> None:
    """CANCEL to a stream that waits for demand and to a response; then more demand."""
    peer = await talk.connect()
    one = await peer.request(REQUEST_STREAM, "stream", n=2, length=5)
    two = await peer.request(REQUEST_RESPONSE, "never")
    await peer.came(one, 2)
    if not await peer.ping():
        raise peer.violation("N.29", "behind a request that waits KEEPALIVE goes unheard")
    for books in (one, two):
        await peer.cancel(books)
    await peer.more(one, 5)
    await peer.lives("N.18", "CANCEL, and REQUEST_N behind it")
    if one.late or two.late:
        raise peer.violation("N.18", "a stream that waited was answered after its CANCEL")


@wire("stream", "fail")
async def wire19_is_silent_after_the_end(talk: Talk) -> None:
    """REQUEST_N and CANCEL to streams that have completed or failed."""
    peer = await talk.connect()
    one = await peer.request(REQUEST_STREAM, "stream", n=5, length=2)
    two = await peer.request(REQUEST_STREAM, "fail", n=5)
    for books in (one, two):
        if not await peer.over(books):
            raise peer.violation("N.15", f"stream {books.id} has not ended")
        await peer.more(books, 5)
        await peer.send(frames.cancel(books.id))
    await peer.lives("N.19", "REQUEST_N and CANCEL behind the end")


# -- one for one -----------------------------------------------------------------------------------
@wire("echo")
async def wire20_answers_once(talk: Talk) -> None:
    """Ten requests, one after another, and ten at once."""
    peer = await talk.connect()
    asked: list[tuple[bytes, Books]] = []
    for number in range(20):
        data = b"%d" % number
        books = await peer.request(REQUEST_RESPONSE, "echo", data=data)
        asked.append((data, books))
        if number < 10:
            await peer.over(books)
    for data, books in asked:
        if not await peer.over(books) or books.elements != [data]:
            raise peer.violation("N.20", f"{data!r} was answered by {books.elements}")
    await peer.quiet()


@wire("echo")
async def wire21_carries_any_bytes(talk: Talk) -> None:
    """Zeros, all bytes there are, and 50 000 of them."""
    peer = await talk.connect()
    for data in (b"\0", bytes(range(256)), bytes(range(250)) * 200):
        books = await peer.request(REQUEST_RESPONSE, "echo", data=data)
        if not await peer.over(books) or books.elements != [data]:
            raise peer.violation("N.21", f"{len(data)} bytes came back as others")


@wire("echo")
async def wire21_answers_an_empty_element_by_an_element(talk: Talk) -> None:
    """The data of a request is empty, and so is the answer: an element all the same."""
    peer = await talk.connect()
    books = await peer.request(REQUEST_RESPONSE, "echo", data=b"")
    if not await peer.over(books) or books.elements != [b""]:
        raise peer.violation("N.21", f"an empty element was answered by {books.elements}")


@wire("echo")
async def wire22_does_not_answer_fire_and_forget(talk: Talk) -> None:
    """REQUEST_FNF for what there is, and for what there is not."""
    peer = await talk.connect()
    await peer.request(FNF, "echo", data=b"forget")
    stranger = peer.new(FNF)
    await peer.send(frames.request(FNF, stranger.id, metadata=None, data=b"forget"))
    await peer.quiet()
    for stream in peer.streams.values():
        if stream.elements or stream.ended:
            raise peer.violation("N.22", "REQUEST_FNF was answered")
    await peer.lives("N.22", "REQUEST_FNF")


# -- failures --------------------------------------------------------------------------------------
@wire("fail", "echo")
async def wire26_fails_a_request_by_an_error(talk: Talk) -> None:
    """A response and a stream that fail; then a response that does not."""
    peer = await talk.connect()
    one = await peer.request(REQUEST_RESPONSE, "fail")
    two = await peer.request(REQUEST_STREAM, "fail", n=10)
    for books in (one, two):
        await peer.over(books)
        if books.ended == "error" and not stream_code(books.code):
            raise peer.violation("N.26", f"0x{books.code:X} is no code of a stream")
        if books.ended != "error":
            how = f"by {books.ended}" if books.ended else "by nothing"
            raise peer.violation("N.26", f"a failure was told {how}, not by ERROR on its stream")
    after = await peer.request(REQUEST_RESPONSE, "echo", data=b"on")
    if not await peer.came(after, 1):
        raise peer.violation("N.26", "after failures the connection did not go on")


@wire("echo")
async def wire26_refuses_an_unknown_route(talk: Talk) -> None:
    """A request for a route that nobody has heard of."""
    peer = await talk.connect()
    number, item = frames.routing("tck.there.is.no.such.route")
    metadata = item if talk.offer.routing == "plain" else frames.composite((number, item))
    books = peer.new(REQUEST_RESPONSE)
    await peer.send(frames.request(REQUEST_RESPONSE, books.id, metadata=metadata))
    if not await peer.over(books) or books.ended != "error":
        raise peer.violation("N.26", "a request for an unknown route was not answered by ERROR")
    await peer.lives("N.26", "a request for an unknown route")


# -- streams ---------------------------------------------------------------------------------------
@wire("stream")
async def wire27_passes_over_a_request_on_a_stream_in_use(talk: Talk) -> None:
    """REQUEST_STREAM twice on one stream, which goes on as it was."""
    peer = await talk.connect()
    books = await peer.request(REQUEST_STREAM, "stream", n=2, length=4)
    await peer.came(books, 2)
    metadata = talk.metadata("stream", 9)
    await peer.send(frames.request(REQUEST_STREAM, books.id, n=9, metadata=metadata))
    await peer.quiet()
    if len(books.elements) > 2 or books.ended:
        raise peer.violation("N.27", "a second request on a stream was not passed over")
    await peer.more(books, 5)
    await _complete(peer, books, 4, "N.27")


@wire("echo")
async def wire28_does_not_serve_streams_of_its_own(talk: Talk) -> None:
    """A client's request comes on stream 2, which is the server's."""
    peer = await talk.connect()
    metadata = talk.metadata("echo")
    await peer.send(frames.request(REQUEST_RESPONSE, 2, data=b"x", metadata=metadata))
    await peer.quiet()
    if any(seen.kind == frames.PAYLOAD for seen in peer.theirs.get(2, [])):
        raise peer.violation("N.28", "a request on stream 2, from a client, was served")


@wire("never", "echo")
async def wire29_serves_while_another_waits(talk: Talk) -> None:
    """A response behind one that is never given."""
    peer = await talk.connect()
    await peer.request(REQUEST_RESPONSE, "never")
    books = await peer.request(REQUEST_RESPONSE, "echo", data=b"x")
    if not await peer.came(books, 1):
        raise peer.violation("N.29", "behind a request that waits, another is not served")


@wire("endless", "stream", "echo")
async def wire29_serves_streams_side_by_side(talk: Talk) -> None:
    """A short stream and a response beside an endless one with much demand."""
    much = 50_000  # of 1000 bytes: far more than is under way before the others are asked for
    peer = await talk.connect()
    hog = await peer.request(REQUEST_STREAM, "endless", n=much)
    await peer.came(hog, 1)
    one = await peer.request(REQUEST_STREAM, "stream", n=10, length=10)
    two = await peer.request(REQUEST_RESPONSE, "echo", data=b"x")
    await _complete(peer, one, 10, "N.29")
    if not await peer.came(two, 1):
        raise peer.violation("N.29", "beside an endless stream a response is not given")
    if len(hog.elements) >= much:
        raise peer.violation("N.29", f"all {much} elements came of an endless stream first")
