"""What a law has at hand: connections to the server, and a peer that keeps the books of each."""

import asyncio
import itertools
import ssl
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from ...errors import RuleViolation
from ...testing.journal import Entry, Journal, Kind
from ..law import NotJudged
from ..terms import Terms
from . import frames
from .frames import KEEPALIVE, RESPOND, Codes, Seen
from .links import Link, Place, dial
from .offer import Offer, Routing
from .stream import Books

__all__ = ("Peer", "Talk", "Unreachable")

# What it asks for itself is counted here.
_pings = itertools.count(1)


class Unreachable(Exception):
    """There is no server, or none that answers."""


class Talk:
    """One law at work: it opens connections, and says what is wrong."""

    def __init__(
        self, place: Place, offer: Offer, terms: Terms, trusted: ssl.SSLContext | None = None
    ) -> None:
        self.place = place
        self.offer = offer
        self.terms = terms
        self.waited_in_vain = False
        self.journals: list[Journal] = []
        self._trusted = trusted
        self._peers: list[Peer] = []

    async def stranger(self) -> "Peer":
        """A connection on which nothing has been said."""
        journal = Journal(f"connection {len(self._peers) + 1}")
        self.journals.append(journal)
        try:
            link = await asyncio.wait_for(dial(self.place, self._trusted), self.terms.come)
        except (OSError, EOFError, TimeoutError) as error:
            raise Unreachable(f"no connection: {str(error) or 'it took too long'}") from error
        peer = Peer(self, link, journal)
        self._peers.append(peer)
        return peer

    async def connect(self, **options: Any) -> "Peer":
        """A connection after its SETUP, which the server has taken."""
        peer = await self.stranger()
        await peer.send(self.setup(**options))
        if not await peer.ping():
            error = peer.last_error()
            raise Unreachable(f"SETUP was not taken: {error or 'KEEPALIVE was not answered'}")
        return peer

    def setup(self, *, user: tuple[str, str] | None = None, **options: Any) -> bytes:
        """SETUP, with the credentials that the server lets in, or those of *user*."""
        user = user or self.offer.user
        if user is not None:
            options.setdefault("metadata", frames.composite(frames.simple_auth(*user)))
        elif self.offer.routing == Routing.PLAIN:
            options.setdefault("metadata_mime", b"message/x.rsocket.routing.v0")
        return frames.setup(**options)

    def metadata(self, name: str, length: int = 0) -> bytes:
        """The metadata of a request for what is offered as *name*."""
        route = self.offer.route(name)
        if not route:
            raise NotJudged(f"the server does not offer {name}")
        route = route.replace("{n}", str(length))
        number, item = frames.routing(route)
        if self.offer.routing == Routing.PLAIN:
            return item
        return frames.composite((number, item))

    async def close(self) -> None:
        for peer in self._peers:
            await peer.close()

    def first_fault(self) -> RuleViolation | None:
        """What a peer did wrong, whatever the law was about."""
        return next((fault for peer in self._peers for fault in peer.faults), None)


class Peer:
    """One connection: the kit at this end, who is judged at the other."""

    def __init__(self, talk: Talk, link: Link, journal: Journal) -> None:
        self.talk = talk
        self.link = link
        self.journal = journal
        self.faults: list[RuleViolation] = []
        self.streams: dict[int, Books] = {}
        self.zero: list[Seen] = []
        """What came on stream 0, answers to `ping` excepted."""
        self.theirs: dict[int, list[Seen]] = {}
        """What came on streams that the other end opened, by their ids."""
        self.ended: bool = False
        self._pongs: set[bytes] = set()
        self._next_id = 1
        self._news = asyncio.Event()
        self._reader = asyncio.create_task(self._read(), name="tck: reads a connection")

    # -- sending -----------------------------------------------------------------------------------
    async def send(self, *sent: bytes) -> None:
        """Send frames; what the other end has closed takes none, and that is no error here."""
        for each in sent:
            self.note(f"-> {Seen.of(each)}")
        await self.flood(sent)

    async def flood(self, sent: Iterable[bytes]) -> None:
        """Send many frames, without writing them down; stops when nobody takes them."""
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(self.talk.terms.longest / 2):
                for number, each in enumerate(sent):
                    if self.ended:
                        return
                    await self.link.send(each)
                    if number % 64 == 63:
                        await asyncio.sleep(0)  # drain() does not wait where there is room

    async def send_bytes(self, data: bytes) -> None:
        """Send what is no frame."""
        self.note(f"-> {data[:40]!r}{'…' if len(data) > 40 else ''}")
        with suppress(OSError):
            await self.link.send_bytes(data)

    def note(self, words: str) -> Entry:
        return self.journal.note(Kind.NOTE, words)

    # -- requests ----------------------------------------------------------------------------------
    def new(self, kind: int, credit: int = 1) -> Books:
        """Books for a stream that is about to be opened."""
        books = Books(self._next_id, kind, credit)
        self._next_id += 2
        self.streams[books.id] = books
        return books

    async def request(
        self,
        kind: int,
        name: str,
        *,
        n: int = 1,
        data: bytes = b"",
        flags: int = 0,
        length: int = 0,
    ) -> Books:
        """Ask for what is offered as *name*; *length* is that of a stream."""
        metadata = self.talk.metadata(name, length)
        books = self.new(kind, n)
        await self.send(
            frames.request(kind, books.id, n=n, data=data, metadata=metadata, flags=flags)
        )
        return books

    async def ask(self, script: str) -> Books:
        """Have the other end ask for something; what it asks is seen in `theirs`."""
        return await self.request(frames.REQUEST_RESPONSE, "ask", data=script.encode())

    async def more(self, books: Books, n: int) -> None:
        books.credit += n
        await self.send(frames.request_n(books.id, n))

    async def cancel(self, books: Books) -> None:
        books.cancelled = True
        await self.send(frames.cancel(books.id))

    # -- waiting -----------------------------------------------------------------------------------
    async def until(self, condition: Callable[[], bool], within: float | None = None) -> bool:
        """Wait for *condition*; False if it has not come about, or the connection has ended."""
        limit = self.talk.terms.come if within is None else within
        try:
            async with asyncio.timeout(limit):
                while not condition():
                    if self.ended:
                        return False
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            self.talk.waited_in_vain = self.talk.waited_in_vain or within is None
            return False
        return True

    async def over(self, books: Books) -> bool:
        """Wait for the end of a stream, as long as there is something new of it."""
        known = -1

        def moved() -> bool:
            return bool(books.ended) or len(books.elements) > known

        while not books.ended:
            known = len(books.elements)
            if not await self.until(moved):
                return False
        return True

    async def came(self, books: Books, count: int) -> bool:
        """Wait for *count* elements in all."""
        return await self.until(lambda: len(books.elements) >= count or bool(books.ended)) and (
            len(books.elements) >= count
        )

    async def wanted(self, books: Books, count: int) -> bool:
        """Wait until the other end of a channel has asked for *count* elements in all."""
        await self.until(lambda: books.asked >= count or bool(books.ended))
        return books.asked >= count

    async def asks(self, count: int) -> bool:
        """Wait until the other end has opened *count* streams."""
        return await self.until(lambda: len(self.theirs) >= count)

    async def ping(self) -> bool:
        """Ask for a sign of life: what the other end has read before, it has seen to."""
        data = b"tck %d" % next(_pings)
        await self.send(frames.keepalive(data))
        return await self.until(lambda: data in self._pongs)

    async def quiet(self) -> bool:
        """Wait until nothing comes any more that is still under way; False if it has ended."""
        alive = await self.ping()
        await asyncio.sleep(self.talk.terms.quiet)
        return alive and await self.ping()

    async def leaves(self, within: float | None = None) -> bool:
        """Wait for the other end to close the connection."""
        await self.until(lambda: False, within)
        return self.ended

    # -- what must be ------------------------------------------------------------------------------
    def violation(self, rule: str, what: str) -> RuleViolation:
        """What was wrong with what came last."""
        last = self.journal.entries[-1] if self.journal.entries else self.note("nothing happened")
        self.journal.mark(last, f"{rule}: {what}")
        return RuleViolation(rule, what)

    async def lives(self, rule: str, after: str) -> None:
        """The connection goes on."""
        if not await self.quiet():
            why = self.last_error() or ("it was closed" if self.ended else "KEEPALIVE went unheard")
            raise self.violation(rule, f"after {after} the connection did not go on: {why}")

    async def ends(self, rule: str, after: str, *codes: int) -> None:
        """An ERROR of one of *codes* on stream 0, and the end."""
        left = await self.leaves()
        errors = [seen for seen in self.zero if seen.kind == frames.ERROR]
        if not errors:
            how = "the connection was closed without a word" if left else "nothing came"
            raise self.violation(rule, f"after {after} {how}; {_named(codes)} was due")
        if errors[0].number not in codes:
            raise self.violation(rule, f"{after} was answered by {errors[0]}, not {_named(codes)}")
        if not left:
            what = f"{after} was answered by {errors[0]}, and the connection left open"
            raise self.violation(rule, what)

    def last_error(self) -> Seen | None:
        """The last ERROR on stream 0."""
        return next((each for each in reversed(self.zero) if each.kind == frames.ERROR), None)

    # -- receiving ---------------------------------------------------------------------------------
    async def _read(self) -> None:
        while (raw := await self.link.receive()) is not None:
            seen = Seen.of(raw)
            entry = self.note(f"<- {seen}")
            wrong = ("N.12", f"{seen}") if seen.wrong else self._sort(seen)
            if wrong is not None:
                rule, what = wrong
                if not self.faults:
                    self.journal.mark(entry, f"{rule}: {what}")
                self.faults.append(RuleViolation(rule, what))
            if seen.kind == KEEPALIVE and seen.flags & RESPOND:
                await self.flood([frames.keepalive(seen.data, respond=False)])
            self._news.set()
        self.note(f"<- the end {self.link.ended}".rstrip())
        self.ended = True
        self._news.set()

    def _sort(self, seen: Seen) -> tuple[str, str] | None:
        if seen.stream == 0:
            if seen.kind == KEEPALIVE and not seen.flags & RESPOND and seen.data[:4] == b"tck ":
                self._pongs.add(seen.data)
            else:
                self.zero.append(seen)
            return None
        if seen.stream % 2 == 0:
            return self._their(seen)
        books = self.streams.get(seen.stream)
        if books is None:
            return "N.19", f"on a stream that nobody has opened came {seen}"
        return books.take(seen)

    def _their(self, seen: Seen) -> tuple[str, str] | None:
        first = seen.stream not in self.theirs
        self.theirs.setdefault(seen.stream, []).append(seen)
        if first and seen.kind in (frames.REQUEST_N, frames.CANCEL, frames.PAYLOAD):
            return "N.39", f"the first frame of a stream is {seen}"
        return None

    async def stop_reading(self) -> None:
        """Read no more: the other end will find that its bytes go nowhere."""
        self._reader.cancel()
        with suppress(asyncio.CancelledError):
            await self._reader

    async def close(self) -> None:
        self.link.close()
        self._reader.cancel()
        with suppress(asyncio.CancelledError):
            await self._reader


def _named(codes: tuple[int, ...]) -> str:
    names = {value: name for name, value in vars(Codes).items() if isinstance(value, int)}
    return " or ".join(names[code] for code in codes)
