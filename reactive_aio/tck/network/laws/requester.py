"""Laws about who asks: the other end is told by `ask` what to ask for, and the kit answers it.

A script is read word by word. ``response`` asks for one element, ``stream`` for a stream, of
whatever the kit answers; ``twice`` subscribes two to one and the same stream. The numbers behind
``stream`` are requested one after another, the next when all that was requested has come;
``cancel`` cancels. What came of it is the answer to `ask`: ``3 12 complete`` for 3 elements of 12
bytes together, ``… cancel``, or ``… error 513``.
"""

from collections.abc import Callable

from .. import frames
from ..frames import CANCEL, COMPLETE, FOLLOWS, NEXT, REQUEST_N, REQUEST_STREAM, Seen
from ..law import wire
from ..stream import Books
from ..talk import Peer, Talk

__all__ = ()


async def _asked(talk: Talk, script: str) -> tuple[Peer, Books, list[Seen]]:
    """What the other end asks for when it follows *script*."""
    peer = await talk.connect()
    books = await peer.ask(script)
    if not await peer.until(lambda: bool(peer.theirs) or bool(books.ended)) or not peer.theirs:
        raise peer.violation("N.39", f"it was to ask for {script!r}, and has asked for nothing")
    return peer, books, next(iter(peer.theirs.values()))


async def _told(peer: Peer, books: Books, due: str, rule: str = "N.43") -> None:
    """What has come of it, as the subject tells."""
    await peer.over(books)
    told = books.elements[0].decode("utf-8", "replace") if books.elements else "nothing"
    if told != due:
        raise peer.violation(rule, f"its subscriber should have got '{due}', and tells '{told}'")


async def _wanted(peer: Peer, seen: list[Seen], total: int) -> None:
    """*total* have been requested in all, no more and no less."""
    if not await peer.until(lambda: _sum(seen) >= total):
        raise peer.violation("N.40", f"{total} were requested; the wire says {_sum(seen)}")
    await peer.quiet()
    if _sum(seen) != total:
        raise peer.violation("N.40", f"{total} were requested; the wire says {_sum(seen)}")


def _sum(seen: list[Seen]) -> int:
    return sum(each.number for each in seen if each.kind in (REQUEST_STREAM, REQUEST_N))


async def _send(peer: Peer, stream: int, *data: bytes, last: int = NEXT) -> None:
    for at, each in enumerate(data, 1):
        await peer.send(frames.payload(stream, each, flags=last if at == len(data) else NEXT))


@wire("ask")
async def wire38_counts_its_streams_by_two(talk: Talk) -> None:
    """Three requests of the server, one after another."""
    peer = await talk.connect()
    for _ in range(3):
        known = len(peer.theirs)
        await peer.ask("response")
        await peer.asks(known + 1)
    if list(peer.theirs) != [2, 4, 6]:
        what = f"three streams of a server should be 2, 4 and 6; they are {list(peer.theirs)}"
        raise peer.violation("N.38", what)


@wire("ask")
async def wire39_carries_what_was_requested_first(talk: Talk) -> None:
    """A subscriber requests 3 elements at first."""
    peer, _, seen = await _asked(talk, "stream 3 cancel")
    await peer.quiet()
    if seen[0].kind != REQUEST_STREAM or seen[0].number != 3:
        raise peer.violation("N.39", f"3 were requested at first, and the wire says {seen[0]}")
    if len(seen) > 1:
        raise peer.violation("N.39", f"behind its request came {seen[1]}, for which nobody asked")


@wire("ask")
async def wire39_asks_anew_for_each_subscription(talk: Talk) -> None:
    """Two subscribe to one publisher: there are two streams."""
    peer = await talk.connect()
    await peer.ask("twice 1 cancel")
    await peer.asks(2)
    asked = [seen.stream for each in peer.theirs.values() for seen in each
             if seen.kind == REQUEST_STREAM]  # fmt: skip
    if len(asked) != 2 or len(set(asked)) != 2:
        raise peer.violation("N.39", f"for two subscriptions came requests on the streams {asked}")


@wire("ask")
async def wire40_sends_on_each_request(talk: Talk) -> None:
    """A subscriber requests 3, and when they have come 2, and then 1."""
    peer, books, seen = await _asked(talk, "stream 3 2 1")
    stream = seen[0].stream
    await _wanted(peer, seen, 3)
    await _send(peer, stream, b"a", b"b", b"c")
    await _wanted(peer, seen, 5)
    await _send(peer, stream, b"d", b"e")
    await _wanted(peer, seen, 6)
    await _send(peer, stream, b"f", last=NEXT | COMPLETE)
    await _told(peer, books, "6 6 complete")


@wire("ask")
async def wire40_sends_on_the_largest_request(talk: Talk) -> None:
    """A subscriber requests 2**63-1 elements."""
    peer, books, seen = await _asked(talk, f"stream {2**63 - 1}")
    await peer.quiet()
    if seen[0].number < 2**20:
        raise peer.violation("N.40", f"2**63-1 were requested, and the wire says {seen[0]}")
    await _send(peer, seen[0].stream, b"a", b"b", last=NEXT | COMPLETE)
    await _told(peer, books, "2 2 complete", "N.40")


@wire("ask", "echo")
async def wire41_sends_no_request_that_is_not_positive(talk: Talk) -> None:
    """A subscriber requests -1, and another 0; the connection goes on."""
    for script in ("stream -1", "stream 0"):
        peer = await talk.connect()
        await peer.ask(script)
        await peer.quiet()
        for fault in peer.faults:
            raise peer.violation("N.41", f"{script!r} was sent on: {fault.what}")
        await peer.lives("N.41", f"{script!r} of its own")
        books = await peer.request(frames.REQUEST_RESPONSE, "echo", data=b"on")
        if not await peer.came(books, 1):
            raise peer.violation("N.41", f"after {script!r} of its own it serves nobody")


@wire("ask")
async def wire42_sends_cancel_once_and_then_nothing(talk: Talk) -> None:
    """A subscriber requests 2, cancels twice, and requests again."""
    peer, books, seen = await _asked(talk, "stream 2 cancel cancel 5")
    await _send(peer, seen[0].stream, b"a", b"b")
    await peer.over(books)
    if not await peer.until(lambda: any(each.kind == CANCEL for each in seen)):
        raise peer.violation("N.42", "a subscriber has cancelled, and no CANCEL has come")
    await _send(peer, seen[0].stream, b"late")
    await peer.lives("N.42", "CANCEL and an element that was under way")
    at = next(at for at, each in enumerate(seen) if each.kind == CANCEL)
    if seen[at + 1 :]:
        raise peer.violation("N.42", f"behind CANCEL came {seen[at + 1]}")


@wire("ask")
async def wire42_is_silent_after_the_end(talk: Talk) -> None:
    """The kit completes a stream; the subscriber requests and cancels behind that."""
    peer, books, seen = await _asked(talk, "stream 1 5 cancel")
    await _send(peer, seen[0].stream, b"a", last=NEXT | COMPLETE)
    await peer.over(books)
    count = len(seen)
    await peer.quiet()
    if seen[count:] or any(each.kind == CANCEL for each in seen):
        raise peer.violation("N.42", f"behind the end of a stream came {seen[-1]}")


async def _comes_of(
    talk: Talk, script: str, due: str, sent: Callable[[int], tuple[bytes, ...]]
) -> None:
    peer, books, seen = await _asked(talk, script)
    await peer.send(*sent(seen[0].stream))
    await _told(peer, books, due)


def _error(code: int) -> Callable[[int], tuple[bytes, ...]]:
    return lambda stream: (frames.error(stream, code, b"why"),)


@wire("ask")
async def wire43_passes_errors_on_with_their_codes(talk: Talk) -> None:
    """The kit fails streams and responses, by the protocol's codes and an application's own."""
    for script in ("stream 5", "response"):
        for code in (0x201, 0x202, 0x301, 0xFFFFFFFE):
            await _comes_of(talk, script, f"0 0 error {code}", _error(code))


@wire("ask")
async def wire43_passes_elements_on(talk: Talk) -> None:
    """An empty element, one in fragments, a completion alone, a response without COMPLETE."""
    end = NEXT | COMPLETE
    tries: tuple[tuple[str, str, Callable[[int], tuple[bytes, ...]]], ...] = (
        ("stream 5", "1 0 complete", lambda on: (frames.payload(on, flags=end),)),
        ("stream 5", "0 0 complete", lambda on: (frames.payload(on, flags=COMPLETE),)),
        ("response", "1 0 complete", lambda on: (frames.payload(on, flags=end),)),
        ("response", "0 0 complete", lambda on: (frames.payload(on, flags=COMPLETE),)),
        ("response", "1 2 complete", lambda on: (frames.payload(on, b"ab"),)),
        (
            "response",
            "1 5 complete",
            lambda on: (
                frames.payload(on, b"ab", flags=NEXT | FOLLOWS),
                frames.payload(on, b"cde", flags=end),
            ),
        ),
    )
    for script, due, sent in tries:
        await _comes_of(talk, script, due, sent)


@wire("ask")
async def wire44_keeps_what_was_not_requested_from_the_subscriber(talk: Talk) -> None:
    """2 elements are requested, 4 are sent."""
    peer, books, seen = await _asked(talk, "stream 2")
    await _send(peer, seen[0].stream, b"a", b"b", b"c", b"d")
    if not await peer.until(lambda: any(each.kind == CANCEL for each in seen) or peer.ended):
        what = "4 elements came for 2 that were requested, and it has not cancelled"
        raise peer.violation("N.44", what)
    await peer.over(books)
    told = books.elements[0].decode("utf-8", "replace") if books.elements else ""
    if told[:1] not in ("2", ""):
        raise peer.violation("N.44", f"2 elements were requested, and its subscriber got '{told}'")
