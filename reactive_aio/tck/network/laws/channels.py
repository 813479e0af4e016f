"""Laws about channels: demand and ends in both directions."""

from .. import frames
from ..frames import COMPLETE, NEXT, REQUEST_CHANNEL, Codes
from ..law import wire
from ..stream import Books
from ..talk import Peer, Talk

__all__ = ()


async def _open(talk: Talk, n: int = 10, flags: int = 0) -> tuple[Peer, Books]:
    peer = await talk.connect()
    books = await peer.request(REQUEST_CHANNEL, "channel", n=n, data=b"0", flags=flags)
    return peer, books


async def _asked(peer: Peer, books: Books) -> None:
    if not await peer.wanted(books, 1):
        raise peer.violation("N.23", "no REQUEST_N asks for what follows the first element")


@wire("channel")
async def wire23_asks_for_what_follows_the_first_element(talk: Talk) -> None:
    """A channel is opened; elements are sent as they are asked for, and come back."""
    peer, books = await _open(talk)
    for number in range(1, 5):
        if not await peer.wanted(books, number):
            what = f"{number} elements wait to be sent, {books.asked} were asked for"
            raise peer.violation("N.23", what)
        await peer.send(frames.payload(books.id, b"%d" % number))
    await peer.send(frames.payload(books.id, flags=COMPLETE))
    if not await peer.over(books) or books.elements != [b"%d" % each for each in range(5)]:
        raise peer.violation("N.23", f"of the elements 0 to 4 came back {books.elements}")


@wire("channel")
async def wire14_sends_no_more_on_a_channel(talk: Talk) -> None:
    """3 elements are wanted back; as many go in as are asked for, but 10 at most."""
    peer, books = await _open(talk, n=3)
    await _asked(peer, books)
    await peer.quiet()
    sent = min(books.asked, 10)
    for number in range(1, sent + 1):
        await peer.send(frames.payload(books.id, b"%d" % number))
    await peer.quiet()
    if sent >= 3:
        await peer.more(books, 1)
    due = min(sent + 1, books.credit)
    if not await peer.came(books, due):
        what = f"{books.credit} were requested on a channel, {len(books.elements)} came"
        raise peer.violation("N.15", what)


@wire("channel")
async def wire23_goes_on_after_the_requester_has_completed(talk: Talk) -> None:
    """The request completes its own direction; the other one still brings what is due."""
    peer, books = await _open(talk, n=5, flags=COMPLETE)
    if not await peer.over(books) or books.ended != "complete" or books.elements != [b"0"]:
        what = f"it was complete from the beginning; back came {books.elements or 'nothing'}"
        raise peer.violation("N.23", f"{what}{', and no end' if not books.ended else ''}")
    peer, books = await _open(talk, n=2)
    await _asked(peer, books)
    await peer.send(frames.payload(books.id, b"1", flags=NEXT | COMPLETE))
    await peer.came(books, 2)
    await peer.more(books, 5)
    if not await peer.over(books) or books.elements != [b"0", b"1"]:
        what = f"the requester has completed; of two elements came {len(books.elements)}"
        raise peer.violation("N.23", what)


@wire("channel")
async def wire24_ends_both_ways_after_cancel(talk: Talk) -> None:
    """The requester cancels a channel: nothing comes, and nothing is asked for."""
    peer, books = await _open(talk)
    await _asked(peer, books)
    await peer.cancel(books)
    await peer.quiet()
    asked, books.late = books.asked, 0  # what was under way has come
    await peer.send(frames.payload(books.id, b"late"))
    await peer.lives("N.24", "CANCEL of a channel, and an element behind it")
    if books.asked > asked:
        raise peer.violation("N.24", "a channel that was cancelled asked for more")
    if books.late:
        raise peer.violation("N.24", "a channel that was cancelled went on")


@wire("channel")
async def wire24_ends_both_ways_after_an_error(talk: Talk) -> None:
    """The requester fails a channel."""
    peer, books = await _open(talk)
    await _asked(peer, books)
    await peer.send(frames.error(books.id, Codes.APPLICATION_ERROR, b"mine"))
    await peer.quiet()
    books.cancelled, books.late = True, 0
    await peer.send(frames.payload(books.id, b"late"))
    await peer.lives("N.24", "ERROR on a channel, and an element behind it")
    if books.late:
        raise peer.violation("N.24", "a channel that its requester has failed went on")


@wire("channel")
async def wire25_refuses_elements_that_nobody_asked_for(talk: Talk) -> None:
    """Far more elements than the responder has asked for."""
    peer, books = await _open(talk, n=3)
    await _asked(peer, books)
    await peer.quiet()
    # What is granted while they are under way is theirs; nobody asks for so much at once.
    many = books.asked + 5000
    if many > 2_000_000:
        return
    sent = frames.payload(books.id, b"much")
    await peer.flood(sent for _ in range(many))
    if not await peer.until(lambda: books.stopped or bool(books.ended) or peer.ended):
        what = f"{books.asked} elements were asked for, {many} sent, and nothing was said"
        raise peer.violation("N.25", what)
