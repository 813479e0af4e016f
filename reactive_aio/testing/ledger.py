"""A ledger of elements: none is lost, duplicated, held beyond the bound, or held after the end.

::

    ledger = Ledger()
    flow = from_iterable(ledger.tokens(100)).boundary(8)
    await ledger.settle(flow, bound=8)

Its elements are numbered tokens. Each must be delivered or dropped for a reason; only a
cancellation or an error may discard it. The ledger refers to its tokens weakly, so it detects at
once when one is freed that has no entry. A flow may put them into lists, tuples and dictionaries.
"""

import asyncio
import gc
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from ..spec import Publisher, Subscriber
from .drawing import draw
from .journal import UNBOUNDED, Journal, Kind
from .leaks import referrers_of, stack_of
from .probes import TURNS, WITHIN, AsyncSubscriberProbe, SubscriberProbe, pass_time

DELIVERED: Final = "delivered"


@dataclass(eq=False, slots=True, weakref_slot=True)
class Token:
    """An element with a number."""

    number: int

    def __repr__(self) -> str:
        return f"<{self.number}>"


class Ledger:
    """The entries of every token: delivered, or why it was dropped."""

    def __init__(self) -> None:
        self.issued: int = 0
        self.max_held: int = 0
        """The most tokens held at a time: without an entry, the latest not counted."""
        self._held: dict[int, weakref.ref[Token]] = {}
        self._entries: dict[int, list[str]] = {}
        self._lost: list[int] = []

    # -- elements ----------------------------------------------------------------------------------
    def issue(self) -> Token:
        """Create a token."""
        number = self.issued = self.issued + 1
        token = Token(number)
        # It may be freed in any thread; a dict and a list are safe for that.
        self._held[number] = weakref.ref(token, lambda _: self._freed(number))
        self.max_held = max(self.max_held, len(self._held) - 1)
        return token

    def tokens(self, count: int) -> Iterator[Token]:
        """Issue *count* tokens, each when it is requested."""
        for _ in range(count):
            yield self.issue()  # without a name: nothing here may keep it

    async def tokens_async(self, count: int) -> AsyncIterator[Token]:
        """The same, each after a turn of the loop."""
        for _ in range(count):
            await asyncio.sleep(0)
            yield self.issue()

    def publisher(self, count: int) -> Publisher[Token]:
        """A publisher of *count* tokens, each issued when it is requested."""
        return _TokenPublisher(self, count)

    # -- entries -----------------------------------------------------------------------------------
    def deliver(self, element: object) -> None:
        """Enter all tokens in *element* as delivered."""
        for token in _tokens_in(element):
            self.drop(token, DELIVERED)

    def drop(self, token: Token, reason: str = "dropped") -> None:
        """Enter *token* as dropped: pass this as ``on_drop``."""
        self._entries.setdefault(token.number, []).append(reason)
        self._held.pop(token.number, None)

    def filter(self, predicate: Callable[[Token], object]) -> Callable[[Token], bool]:
        """*predicate*, entering what it refuses as filtered."""

        def decide(token: Token) -> bool:
            if predicate(token):
                return True
            self.drop(token, "filtered")
            return False

        return decide

    def _freed(self, number: int) -> None:
        if self._held.pop(number, None) is not None:
            self._lost.append(number)

    @property
    def held(self) -> int:
        """How many tokens exist and have no entry."""
        return len(self._held)

    @property
    def lost(self) -> list[int]:
        """The numbers of the tokens that were freed without an entry."""
        return sorted(self._lost)

    def __str__(self) -> str:
        counts = Counter(
            each for entries in self._entries.values() for each in dict.fromkeys(entries)
        )
        counts += Counter({"held": self.held, "lost": len(self._lost)})
        parts = [f"{count} {entry}" for entry, count in counts.items()]
        return f"{self.issued} issued: {', '.join(parts) or 'no entries'}"

    # -- the check ---------------------------------------------------------------------------------
    async def settle(
        self,
        flow: Publisher[Any],
        *,
        request: int = UNBOUNDED,
        again: int = 0,
        turns: int | None = None,
        cancel_after: int | None = None,
        bound: int | None = None,
        discards: bool = False,
        repeats: bool = False,
        within: float = WITHIN,
    ) -> None:
        """Subscribe to *flow*, wait for its end or cancel after so many elements, and `check`.

        The subscriber requests *request* at first, and *again* after each element. With *turns*,
        its methods are ``async def``, and take so many turns of the loop.
        """
        first = 1 if cancel_after == 0 else request  # which is a cancellation instead
        probe = (
            _TokenProbe(first, again=again)
            if turns is None
            else _AsyncTokenProbe(first, again=again, turns=turns)
        )
        probe.ledger, probe.remaining = self, cancel_after
        flow.subscribe(probe)
        try:
            async with asyncio.timeout(within):
                await probe.end()
        except TimeoutError:
            probe.journal.note(Kind.OFFENCE, f"the end did not come within {within:g} s")
            raise AssertionError(f"{self}\n\n{draw(probe.journal)}") from None
        await pass_time(TURNS)
        discards = discards or probe.is_cancelled or probe.has_failed
        self.check(bound=bound, discards=discards, repeats=repeats, journal=probe.journal)

    def check(
        self,
        *,
        bound: int | None = None,
        discards: bool = False,
        repeats: bool = False,
        journal: Journal | None = None,
    ) -> None:
        """Fail unless every token has exactly one entry, and none is held.

        *discards* allows lost tokens: the flow was cancelled, has failed, or discards them.
        *repeats* allows repeated delivery. *bound* is the most tokens that may be held at a time.
        """
        if self._held:
            gc.collect()
        complaints = list(self._complaints(bound, discards, repeats))
        if complaints:
            lines = [f"{self}", *complaints]
            raise AssertionError("\n".join(lines + (["", draw(journal)] if journal else [])))

    def _complaints(self, bound: int | None, discards: bool, repeats: bool) -> Iterator[str]:
        if self._lost and not discards:
            yield f"lost: {_listed(self.lost)}: neither delivered nor dropped"
        for number, entries in self._entries.items():
            if len(set(entries)) > 1:
                yield f"token {number} was {' and '.join(dict.fromkeys(entries))}"
            elif len(entries) > 1 and not repeats:
                yield f"token {number} was {entries[0]} {len(entries)} times"
        if bound is not None and self.max_held > bound:
            yield f"{self.max_held} tokens were held at a time, the bound is {bound}"
        for number, reference in list(self._held.items()):
            if (token := reference()) is not None:
                chain = referrers_of(token, stack_of(asyncio.current_task()), set())
                yield f"token {number} is held after the end, by {chain}"


class _TokenProbe(SubscriberProbe[Any]):
    """A probe that delivers its elements to the ledger, and keeps none of them."""

    ledger: Ledger
    remaining: int | None
    """How many elements come before it cancels."""
    has_failed: bool = False

    def request(self, n: int) -> None:
        if self.remaining == 0:
            self.cancel()
        elif self.subscriptions:
            super().request(n)

    def cancel(self) -> None:
        """Cancel, and forget the subscription."""
        self.is_cancelled = True
        if self.subscriptions:
            super().cancel()
            self.subscriptions.clear()
        self._terminated.set()

    def _record(self, kind: Kind, value: object, signal: object) -> None:
        if kind is Kind.ON_NEXT:
            self.journal.note(kind, _numbers(value))
            self.ledger.deliver(value)
            if self.remaining is not None:
                self.remaining -= 1
                if self.remaining <= 0:
                    self.cancel()
            return
        self.journal.note(kind, repr(value))  # an error itself may refer to tokens
        self.has_failed |= kind is Kind.ON_ERROR
        self._terminated.set()


class _AsyncTokenProbe(_TokenProbe, AsyncSubscriberProbe[Any]):
    async def on_next(self, element: object, /) -> None:  # type: ignore[override]
        # Delivered at once: during the turns, it is not held by the flow.
        super(AsyncSubscriberProbe, self).on_next(element)
        await self._take_time()


@dataclass(eq=False)
class _TokenPublisher:
    """A publisher that issues a token for each requested element; a copy is a subscription."""

    ledger: Ledger
    remaining: int
    subscriber: Subscriber[Token] | None = None
    requested: int = 0
    is_sending: bool = False

    def subscribe(self, subscriber: Subscriber[Token], /) -> None:
        subscriber.on_subscribe(replace(self, subscriber=subscriber))

    def request(self, n: int, /) -> None:
        self.requested += n
        if self.is_sending:
            return
        self.is_sending = True
        while self.subscriber is not None and self.remaining and self.requested:
            self.remaining -= 1
            self.requested -= 1
            self.subscriber.on_next(self.ledger.issue())
        self.is_sending = False
        if not self.remaining and (subscriber := self.subscriber) is not None:
            self.subscriber = None
            subscriber.on_complete()

    def cancel(self) -> None:
        self.subscriber = None


def _tokens_in(element: object) -> Iterator[Token]:
    if isinstance(element, Token):
        yield element
    elif isinstance(element, (list, tuple, set, frozenset)):
        for each in cast("list[object]", element):
            yield from _tokens_in(each)
    elif isinstance(element, Mapping):
        for each in cast("Mapping[object, object]", element).values():
            yield from _tokens_in(each)


def _numbers(element: object) -> object:
    """A journal keeps numbers instead of tokens."""
    if isinstance(element, Token):
        return element.number
    if isinstance(element, (list, tuple)):
        return [_numbers(each) for each in cast("list[object]", element)]
    return type(element).__name__


def _listed(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:8]))
    return f"{shown} and {len(numbers) - 8} more" if len(numbers) > 8 else shown
