"""A ledger of elements: nothing is lost, doubled, held beyond the bound, or held after the end.

::

    ledger = Ledger()
    flow = from_iterable(ledger.tokens(100)).boundary(8)
    await ledger.settle(flow, bound=8)

Its elements are numbered tokens. Each that was issued must be delivered, or accounted for by a
reason (`filtered`, `dropped`), or be held by somebody, or have been discarded: and that only by a
cancellation or an error. The ledger refers to its tokens weakly, so it sees at once when one
vanishes that nobody has accounted for. A flow may make lists, tuples and dictionaries of them.
"""

import asyncio
import gc
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, Final, cast

from ..spec import Publisher, Subscriber, Subscription
from ._holders import holder_of, stack_of
from .drawing import draw
from .journal import Journal, Kind
from .probes import TURNS, WITHIN, pass_time

__all__ = ("Ledger", "Taker", "Token")

UNBOUNDED: Final = 2**63 - 1
DELIVERED: Final = "delivered"


class Token:
    """An element with a number."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number: int = number

    def __repr__(self) -> str:
        return f"<{self.number}>"


class Ledger:
    """What became of every token."""

    def __init__(self) -> None:
        self.issued: int = 0
        self.highest: int = 0
        """The most that was held: issued, not accounted for, and not the one just issued."""
        self._alive: dict[int, weakref.ref[Token]] = {}
        """Tokens that are not accounted for."""
        self._fates: dict[int, list[str]] = {}
        self._vanished: list[int] = []

    # -- elements ----------------------------------------------------------------------------------
    def issue(self) -> Token:
        """Make a token, for who emits by hand."""
        number = self.issued = self.issued + 1
        token = Token(number)
        # It may vanish in any thread; a dict and a list can take that.
        self._alive[number] = weakref.ref(token, lambda _: self._vanishes(number))
        self.highest = max(self.highest, len(self._alive) - 1)
        return token

    def tokens(self, count: int) -> Iterator[Token]:
        """Issue *count* tokens, one whenever it is asked for one."""
        for _ in range(count):
            yield self.issue()  # without a name: nothing here may keep it

    async def tokens_async(self, count: int) -> AsyncIterator[Token]:
        """The same, each after a turn of the loop."""
        for _ in range(count):
            await asyncio.sleep(0)
            yield self.issue()

    def publisher(self, count: int) -> Publisher[Token]:
        """A publisher of *count* tokens, each issued when it was requested."""
        return _Issuer(self, count)

    # -- what becomes of them ----------------------------------------------------------------------
    def delivered(self, element: object) -> None:
        """*element*, with all tokens in it, has arrived."""
        for token in _inside(element):
            self._account(token, DELIVERED)

    def filtered(self, token: Token, why: str = "filtered") -> None:
        """A function of the test wants it no more."""
        self._account(token, why)

    def dropped(self, token: Token, why: str = "dropped") -> None:
        """The flow says that it drops it: give this to ``on_drop``."""
        self._account(token, why)

    def filtering(self, predicate: Callable[[Token], object]) -> Callable[[Token], bool]:
        """*predicate*, writing down what it refuses."""

        def decide(token: Token) -> bool:
            if predicate(token):
                return True
            self.filtered(token)
            return False

        return decide

    def _account(self, token: Token, fate: str) -> None:
        self._fates.setdefault(token.number, []).append(fate)
        self._alive.pop(token.number, None)

    def _vanishes(self, number: int) -> None:
        if self._alive.pop(number, None) is not None:
            self._vanished.append(number)

    @property
    def held(self) -> int:
        """How many tokens are alive and not accounted for."""
        return len(self._alive)

    @property
    def vanished(self) -> list[int]:
        """The numbers of those that nobody has accounted for, and nobody refers to."""
        return sorted(self._vanished)

    def __str__(self) -> str:
        fates = Counter(fate for fates in self._fates.values() for fate in dict.fromkeys(fates))
        fates += Counter({"held": self.held, "vanished": len(self._vanished)})
        parts = [f"{count} {fate}" for fate, count in fates.items()]
        return f"{self.issued} issued: {', '.join(parts) or 'nothing became of them'}"

    # -- the law -----------------------------------------------------------------------------------
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

        *request* is asked for at first, *again* after each element. With *turns*, the subscriber's
        methods are ``async def``, and take so many turns of the loop.
        """
        taker = Taker(self, request, again, cancel_after)
        flow.subscribe(taker if turns is None else _AsyncTaker(taker, turns))
        try:
            async with asyncio.timeout(within):
                await taker.over.wait()
        except TimeoutError:
            taker.journal.note(Kind.OFFENCE, f"the end did not come within {within:g} s")
            raise AssertionError(f"{self}\n\n{draw(taker.journal)}") from None
        await pass_time(TURNS)
        discards = discards or taker.cut_short
        self.check(bound=bound, discards=discards, repeats=repeats, journal=taker.journal)

    def check(
        self,
        *,
        bound: int | None = None,
        discards: bool = False,
        repeats: bool = False,
        journal: Journal | None = None,
    ) -> None:
        """After the end: fail unless everything is accounted for.

        *discards* allows that tokens vanish: the flow was cancelled, has failed, or means to.
        *repeats* allows that one is delivered again. *bound* is the most that may be held.
        """
        if self._alive:
            gc.collect()
        complaints = list(self._complaints(bound, discards, repeats))
        if complaints:
            lines = [f"{self}", *complaints]
            raise AssertionError("\n".join(lines + (["", draw(journal)] if journal else [])))

    def _complaints(self, bound: int | None, discards: bool, repeats: bool) -> Iterator[str]:
        if self._vanished and not discards:
            yield f"lost: {_listed(self.vanished)}: neither delivered nor accounted for"
        for number, fates in self._fates.items():
            if len(set(fates)) > 1:
                yield f"token {number} was {' and '.join(dict.fromkeys(fates))}"
            elif len(fates) > 1 and not repeats:
                yield f"token {number} was {fates[0]} {len(fates)} times"
        if bound is not None and self.highest > bound:
            yield f"{self.highest} tokens were held at a time, the bound is {bound}"
        for number, token in list(self._alive.items()):
            if (left := token()) is not None:
                stack = stack_of(asyncio.current_task())
                yield f"token {number} is held after the end, by {holder_of(left, stack, set())}"


class Taker:
    """A subscriber that hands what it gets to the ledger, and keeps nothing."""

    def __init__(
        self, ledger: Ledger, request: int, again: int = 0, cancel_after: int | None = None
    ) -> None:
        self._ledger = ledger
        self._request = request
        self._again = again
        self._left = cancel_after
        self._subscription: Subscription | None = None
        self.journal: Journal = Journal()
        self.over: asyncio.Event = asyncio.Event()
        self.cut_short: bool = False
        """Whether it was cancelled, or failed."""

    def request(self, n: int) -> None:
        if self._subscription is not None:
            self.journal.note(Kind.REQUEST, n)
            self._subscription.request(n)

    def cancel(self) -> None:
        """Cancel, and forget the subscription."""
        self.cut_short = True
        if self._subscription is not None:
            self.journal.note(Kind.CANCEL)
            self._subscription.cancel()
            self._subscription = None
        self.over.set()

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.journal.note(Kind.ON_SUBSCRIBE)
        self._subscription = subscription
        if self._left == 0:
            self.cancel()
        elif self._request:
            self.request(self._request)

    def on_next(self, element: object, /) -> None:
        self.journal.note(Kind.ON_NEXT, _numbers(element))
        self._ledger.delivered(element)
        if self._left is not None:
            self._left -= 1
            if self._left <= 0:
                self.cancel()
        if self._again:
            self.request(self._again)

    def on_error(self, error: BaseException, /) -> None:
        self.journal.note(Kind.ON_ERROR, repr(error))  # the error itself may refer to tokens
        self.cut_short = True
        self.over.set()

    def on_complete(self) -> None:
        self.journal.note(Kind.ON_COMPLETE)
        self.over.set()


class _AsyncTaker:
    """The same with ``async def`` methods."""

    def __init__(self, taker: Taker, turns: int) -> None:
        self._taker = taker
        self._turns = turns

    async def on_subscribe(self, subscription: Subscription, /) -> None:
        await pass_time(self._turns)
        self._taker.on_subscribe(subscription)

    async def on_next(self, element: object, /) -> None:
        self._taker.on_next(element)
        await pass_time(self._turns)

    async def on_error(self, error: BaseException, /) -> None:
        self._taker.on_error(error)
        await pass_time(self._turns)

    async def on_complete(self) -> None:
        self._taker.on_complete()
        await pass_time(self._turns)


class _Issuer:
    """A publisher of tokens; the demand decides when each is issued."""

    def __init__(self, ledger: Ledger, count: int) -> None:
        self._ledger = ledger
        self._count = count

    def subscribe(self, subscriber: Subscriber[Token], /) -> None:
        subscriber.on_subscribe(_Issuing(self._ledger, self._count, subscriber))


class _Issuing:
    def __init__(self, ledger: Ledger, count: int, subscriber: Subscriber[Token]) -> None:
        self._ledger = ledger
        self._left = count
        self._subscriber: Subscriber[Token] | None = subscriber
        self._requested = 0
        self._sending = False

    def request(self, n: int, /) -> None:
        self._requested += n
        if self._sending:
            return
        self._sending = True
        while self._subscriber is not None and self._left and self._requested:
            self._left -= 1
            self._requested -= 1
            self._subscriber.on_next(self._ledger.issue())
        self._sending = False
        if not self._left and (subscriber := self._subscriber) is not None:
            self._subscriber = None
            subscriber.on_complete()

    def cancel(self) -> None:
        self._subscriber = None


def _inside(element: object) -> Iterator[Token]:
    if isinstance(element, Token):
        yield element
    elif isinstance(element, (list, tuple, set, frozenset)):
        for each in cast("list[object]", element):
            yield from _inside(each)
    elif isinstance(element, Mapping):
        for each in cast("Mapping[object, object]", element).values():
            yield from _inside(each)


def _numbers(element: object) -> object:
    """What a journal may keep: numbers instead of tokens."""
    if isinstance(element, Token):
        return element.number
    if isinstance(element, (list, tuple)):
        return [_numbers(each) for each in cast("list[object]", element)]
    return type(element).__name__


def _listed(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:8]))
    return f"{shown} and {len(numbers) - 8} more" if len(numbers) > 8 else shown
