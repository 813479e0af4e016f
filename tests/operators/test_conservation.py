"""What goes into an operator comes out, is dropped for a reason, or is discarded by a cancellation.

Every operator that holds elements is fed with numbered tokens, from every kind of source and in
every way to ask, and the ledger is settled: nothing lost, nothing doubled, nothing held beyond what
``bound()`` says, nothing held after the end.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.coerce import to_flow
from reactive_aio.processors import MulticastProcessor, UnicastProcessor
from reactive_aio.testing.ledger import Ledger, Token

COUNT = 20
MANY = 2**63 - 1


async def same(token: Token) -> Token:
    await asyncio.sleep(0)
    return token


async def prompt(token: Token) -> Token:
    return token


async def even(token: Token) -> bool:
    await asyncio.sleep(0)
    return token.number % 2 == 0


@dataclass(frozen=True)
class Kept:
    """An operator, and what a ledger must know about it."""

    apply: Callable[[Flow[Token], Ledger], Flow[Any]]
    repeats: bool = False
    """It hands the same element on more than once."""
    discards: bool = False
    """It ends before its source, and forgets the rest."""
    goes_on: bool = False
    """Its source goes on when a subscriber leaves."""
    slack: int = 0
    """What may be pulled beyond the bound: the element that did not fit, and fails the flow."""


def merged(flow: Flow[Token], ledger: Ledger) -> Flow[Token]:
    return r.merge(flow, to_flow(ledger.tokens_async(3)), prefetch=2)


def with_drops(name: str, *bound: int, **options: Any) -> Kept:
    def apply(flow: Flow[Token], ledger: Ledger) -> Flow[Token]:
        operator: Callable[..., Flow[Token]] = getattr(flow, name)
        return operator(*bound, on_drop=ledger.drop, **options)

    return Kept(apply, slack=int(bound != () and not options))


def hot(make: Callable[[], Any], *, goes_on: bool = False) -> Kept:
    def apply(flow: Flow[Token], ledger: Ledger) -> Flow[Token]:
        def fed() -> Flow[Token]:
            processor: UnicastProcessor[Token] | MulticastProcessor[Token] = make()
            flow.subscribe(processor)
            return processor

        return r.defer(fed)

    return Kept(apply, goes_on=goes_on)


OPERATORS: dict[str, Kept] = {
    "map": Kept(lambda flow, _: flow.map(lambda token: token)),
    "filter": Kept(lambda flow, ledger: flow.filter(ledger.filter(lambda t: t.number % 3))),
    "scan": Kept(lambda flow, _: flow.scan(lambda _, token: token)),
    "pairwise": Kept(lambda flow, _: flow.pairwise(), repeats=True),
    "enumerate": Kept(lambda flow, _: flow.enumerate()),
    "take": Kept(lambda flow, _: flow.take(5), discards=True),
    "skip_last": Kept(lambda flow, _: flow.skip_last(2), discards=True),
    "take_last": Kept(lambda flow, _: flow.take_last(COUNT)),
    "sliding_window": Kept(lambda flow, _: flow.sliding_window(3), repeats=True),
    "buffer": Kept(lambda flow, _: flow.buffer(3)),
    "buffer: overlapping": Kept(lambda flow, _: flow.buffer(3, step=2), repeats=True),
    "buffer_timeout": Kept(lambda flow, _: flow.buffer_timeout(4, 0.01)),
    "boundary": Kept(lambda flow, _: flow.boundary(4)),
    "boundary: of one": Kept(lambda flow, _: flow.boundary(1)),
    "boundary: two": Kept(lambda flow, _: flow.boundary(3).map(lambda t: t).boundary(2)),
    "map_async": Kept(lambda flow, _: flow.map_async(same)),
    "map_async: prompt": Kept(lambda flow, _: flow.map_async(prompt, concurrency=3)),
    "map_async: ordered": Kept(lambda flow, _: flow.map_async(same, concurrency=3)),
    "map_async: unordered": Kept(
        lambda flow, _: flow.map_async(same, concurrency=3, ordered=False)
    ),
    "flat_map": Kept(lambda flow, _: flow.flat_map(lambda token: [token])),
    "flat_map: asynchronous": Kept(
        lambda flow, _: flow.flat_map(lambda t: r.just(t).boundary(1), concurrency=3, prefetch=2)
    ),
    "merge": Kept(merged),
    "concat_with": Kept(lambda flow, ledger: flow.concat_with(ledger.tokens(3))),
    "start_with": Kept(lambda flow, _: flow.start_with(Token(0))),
    "zip_with": Kept(lambda flow, ledger: flow.zip_with(ledger.tokens_async(COUNT), prefetch=3)),
    "timeout": Kept(lambda flow, _: flow.timeout(5)),
    "retry": Kept(lambda flow, _: flow.retry(2)),
    "on_error_resume": Kept(lambda flow, _: flow.on_error_resume([])),
    "on_backpressure_buffer: drop_oldest": with_drops(
        "on_backpressure_buffer", 3, overflow="drop_oldest"
    ),
    "on_backpressure_buffer: drop_newest": with_drops(
        "on_backpressure_buffer", 3, overflow="drop_newest"
    ),
    "on_backpressure_buffer: latest": with_drops("on_backpressure_buffer", 3, overflow="latest"),
    "on_backpressure_buffer: fail": with_drops("on_backpressure_buffer", 3),
    "on_backpressure_drop": with_drops("on_backpressure_drop"),
    "on_backpressure_latest": with_drops("on_backpressure_latest"),
    "UnicastProcessor": hot(lambda: UnicastProcessor[Token](4)),
    "MulticastProcessor": hot(lambda: MulticastProcessor[Token](4), goes_on=True),
}
SOURCES: dict[str, Callable[[Ledger], Flow[Token]]] = {
    "pulled": lambda ledger: r.from_iterable(ledger.tokens(COUNT)),
    "behind a boundary": lambda ledger: r.from_iterable(ledger.tokens(COUNT)).boundary(2),
    "asynchronous": lambda ledger: to_flow(ledger.tokens_async(COUNT)),
    "pushed": lambda ledger: to_flow(ledger.publisher(COUNT)),
}
ASKING: dict[str, dict[str, Any]] = {
    "unbounded": {"request": MANY},
    "one by one": {"request": 1, "again": 1},
    "coroutines": {"request": 3, "again": 1, "turns": 2},
    "cancelled": {"request": MANY, "cancel_after": 2},
    "cancelled between": {"request": 3, "again": 1, "turns": 1, "cancel_after": 3},
    "never asked": {"cancel_after": 0},
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("kept", OPERATORS.values(), ids=OPERATORS)
async def test_every_element_is_accounted_for(
    kept: Kept, source: Callable[[Ledger], Flow[Token]]
) -> None:
    for asking, options in ASKING.items():
        if kept.goes_on and options.get("cancel_after"):
            continue
        ledger = Ledger()
        flow = kept.apply(source(ledger), ledger)
        bound = flow.bound().total
        try:
            await ledger.settle(
                flow,
                bound=None if bound is None else bound + kept.slack,
                discards=kept.discards,
                repeats=kept.repeats,
                **options,
            )
        except AssertionError as error:
            error.add_note(f"asked: {asking}")
            raise
