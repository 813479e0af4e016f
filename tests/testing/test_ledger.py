"""A ledger detects elements that a flow loses, duplicates, or holds too many of or too long."""

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

import pytest

import reactive_aio as r
from reactive_aio import to_flow
from reactive_aio.processors import UnicastProcessor
from reactive_aio.spec import Publisher, Subscriber, Subscription
from reactive_aio.testing.ledger import Ledger, Token

if TYPE_CHECKING:
    from reactive_aio._shared.coerce import Source

KEPT: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    KEPT.clear()


class Broken:
    """Breaks the delivery of a publisher as *kind* says."""

    def __init__(self, source: Publisher[Token], kind: str) -> None:
        self._source = source
        self._kind = kind

    def subscribe(self, subscriber: Subscriber[Token], /) -> None:
        self._source.subscribe(BrokenSubscriber(subscriber, self._kind))


class BrokenSubscriber:
    def __init__(self, subscriber: Subscriber[Token], kind: str) -> None:
        self._subscriber = subscriber
        self._kind = kind
        self._seen = 0
        self._queue: deque[Token] = deque()

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._subscriber.on_subscribe(subscription)

    def on_next(self, element: Token, /) -> None:
        self._seen += 1
        if self._kind == "hoard":
            self._queue.append(element)
            return
        if self._kind == "keep" and self._seen == 2:
            KEPT.append(element)
            return
        if self._kind == "lose" and self._seen == 2:
            return
        self._subscriber.on_next(element)
        if self._kind == "double" and self._seen == 2:
            self._subscriber.on_next(element)

    def on_error(self, error: BaseException, /) -> None:
        self._subscriber.on_error(error)

    def on_complete(self) -> None:
        while self._queue:
            self._subscriber.on_next(self._queue.popleft())
        self._subscriber.on_complete()


async def failure(kind: str, **options: Any) -> list[str]:
    ledger = Ledger()
    with pytest.raises(AssertionError) as caught:
        await ledger.settle(Broken(ledger.publisher(4), kind), **options)
    return str(caught.value).splitlines()


class TestFailures:
    async def test_a_lost_element(self) -> None:
        assert await failure("lose") == [
            "4 issued: 3 delivered, 1 lost",
            "lost: 2: neither delivered nor dropped",
            "",
            "demand     ∞---------",
            "signals  >---1-3-4-|",
            "         (>: subscribed; ∞: unbounded demand)",
        ]

    async def test_a_duplicated_element(self) -> None:
        assert "token 2 was delivered 2 times" in await failure("double")

    async def test_more_than_the_bound(self) -> None:
        lines = await failure("hoard", bound=2)
        assert lines[:2] == [
            "4 issued: 4 delivered",
            "3 tokens were held at a time, the bound is 2",
        ]

    @pytest.mark.usefixtures("unfrozen_objects")
    async def test_an_element_held_after_the_end_with_its_referrers(self) -> None:
        lines = await failure("keep")
        assert lines[0] == "4 issued: 3 delivered, 1 held"
        assert lines[1].startswith("token 2 is held after the end, by module ")
        assert lines[1].endswith("test_ledger -> <2>")

    async def test_an_element_with_two_entries(self) -> None:
        ledger = Ledger()
        token = ledger.issue()
        ledger.deliver(token)
        ledger.drop(token, "too old")
        with pytest.raises(AssertionError, match="token 1 was delivered and too old"):
            ledger.check()

    async def test_a_long_list_is_shortened(self) -> None:
        ledger = Ledger()
        for _ in range(10):
            ledger.issue()
        with pytest.raises(
            AssertionError, match="lost: 1, 2, 3, 4, 5, 6, 7, 8 and 2 more: neither"
        ):
            ledger.check()

    @pytest.mark.virtual_time
    async def test_a_missing_end(self) -> None:
        with pytest.raises(AssertionError) as caught:
            await Ledger().settle(r.never(), within=60)
        assert "no entries" in str(caught.value)
        assert "^-- the end did not come within 60 s" in str(caught.value)


class TestSuccesses:
    @pytest.mark.parametrize("turns", [None, 0, 3])
    async def test_all_kinds_of_sources(self, turns: int | None) -> None:
        ledger = Ledger()
        sources: list[Source[Token]] = [
            ledger.tokens(9),
            ledger.tokens_async(9),
            ledger.publisher(9),
        ]
        for source in sources:
            await ledger.settle(to_flow(source), turns=turns, bound=256)
        assert str(ledger) == "27 issued: 27 delivered"

    async def test_tokens_in_collections_are_found(self) -> None:
        ledger = Ledger()
        ledger.deliver([(ledger.issue(),), {"a": ledger.issue()}, 3])
        ledger.check(bound=2)

    async def test_filtered_elements_are_not_lost(self) -> None:
        ledger = Ledger()
        refuses = ledger.filter(lambda token: token.number > 3)
        await ledger.settle(r.from_iterable(ledger.tokens(9)).filter(refuses))
        assert str(ledger) == "9 issued: 3 filtered, 6 delivered"

    async def test_a_cancellation_discards(self) -> None:
        ledger = Ledger()
        flow = r.from_iterable(ledger.tokens(9)).boundary(4)
        await ledger.settle(flow, cancel_after=2, bound=4)
        assert ledger.held == 0
        assert ledger.lost

    async def test_an_error_discards(self) -> None:
        ledger = Ledger()

        def fail(token: Token) -> Token:
            if token.number == 3:
                raise ValueError
            return token

        await ledger.settle(r.from_iterable(ledger.tokens(9)).map(fail))
        assert ledger.lost == [3]

    async def test_repetitions_and_discards_have_to_be_allowed(self) -> None:
        ledger = Ledger()
        await ledger.settle(r.from_iterable(ledger.tokens(9)).pairwise(), repeats=True)
        ledger = Ledger()
        flow = r.from_iterable(ledger.tokens(9)).boundary(4).take(2)
        await ledger.settle(flow, discards=True)


async def test_tokens_can_be_emitted_explicitly() -> None:
    ledger = Ledger()
    queue = UnicastProcessor[Token](2)
    assert queue.try_emit(ledger.issue())
    assert ledger.held == 1
    asyncio.get_running_loop().call_soon(queue.complete)
    await ledger.settle(queue, bound=2)
