"""What goes into an operator comes out, is dropped for a reason, or is discarded by a cancellation.

Every operator that holds elements is fed with numbered tokens, from every kind of source and in
every way to ask, and the ledger is settled: nothing lost, nothing doubled, nothing held beyond what
``bound()`` says, nothing held after the end.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow, to_flow
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


async def in_a_task_group(ledger: Ledger) -> AsyncIterator[Token]:
    async with asyncio.TaskGroup() as group:
        child = group.create_task(asyncio.sleep(60))
        for _ in range(COUNT):
            await asyncio.sleep(0)
            yield ledger.issue()
        child.cancel()


@dataclass(frozen=True)
class Accounted:
    """An operator, and the options of the ledger for it."""

    apply: Callable[[Flow[Token], Ledger], Flow[Any]]
    repeats: bool = False
    """It emits the same element more than once."""
    discards: bool = False
    """It ends before its source, and discards the rest."""
    continues: bool = False
    """Its source continues when a subscriber cancels."""
    slack: int = 0
    """Elements pulled beyond the bound: the one that overflows and fails the flow."""


def merged(flow: Flow[Token], ledger: Ledger) -> Flow[Token]:
    return r.merge(flow, to_flow(ledger.tokens_async(3)), prefetch=2)


def with_drops(name: str, *bound: int, **options: Any) -> Accounted:
    def apply(flow: Flow[Token], ledger: Ledger) -> Flow[Token]:
        operator: Callable[..., Flow[Token]] = getattr(flow, name)
        return operator(*bound, on_drop=ledger.drop, **options)

    return Accounted(apply, slack=int(bound != () and not options))


def hot(make: Callable[[], Any], *, continues: bool = False) -> Accounted:
    def apply(flow: Flow[Token], ledger: Ledger) -> Flow[Token]:
        def fed() -> Flow[Token]:
            processor: UnicastProcessor[Token] | MulticastProcessor[Token] = make()
            flow.subscribe(processor)
            return processor

        return r.defer(fed)

    return Accounted(apply, continues=continues)


OPERATORS: dict[str, Accounted] = {
    "map": Accounted(lambda flow, _: flow.map(lambda token: token)),
    "filter": Accounted(lambda flow, ledger: flow.filter(ledger.filter(lambda t: t.number % 3))),
    "scan": Accounted(lambda flow, _: flow.scan(lambda _, token: token)),
    "pairwise": Accounted(lambda flow, _: flow.pairwise(), repeats=True),
    "enumerate": Accounted(lambda flow, _: flow.enumerate()),
    "take": Accounted(lambda flow, _: flow.take(5), discards=True),
    "skip_last": Accounted(lambda flow, _: flow.skip_last(2), discards=True),
    "take_last": Accounted(lambda flow, _: flow.take_last(COUNT)),
    "sliding_window": Accounted(lambda flow, _: flow.sliding_window(3), repeats=True),
    "buffer": Accounted(lambda flow, _: flow.buffer(3)),
    "buffer: overlapping": Accounted(lambda flow, _: flow.buffer(3, step=2), repeats=True),
    "buffer_timeout": Accounted(lambda flow, _: flow.buffer_timeout(4, 0.01)),
    "boundary": Accounted(lambda flow, _: flow.boundary(4)),
    "boundary: of one": Accounted(lambda flow, _: flow.boundary(1)),
    "boundary: two": Accounted(lambda flow, _: flow.boundary(3).map(lambda t: t).boundary(2)),
    "map_async": Accounted(lambda flow, _: flow.map_async(same)),
    "map_async: prompt": Accounted(lambda flow, _: flow.map_async(prompt, concurrency=3)),
    "map_async: ordered": Accounted(lambda flow, _: flow.map_async(same, concurrency=3)),
    "map_async: unordered": Accounted(
        lambda flow, _: flow.map_async(same, concurrency=3, ordered=False)
    ),
    "flat_map": Accounted(lambda flow, _: flow.flat_map(lambda token: [token])),
    "flat_map: asynchronous": Accounted(
        lambda flow, _: flow.flat_map(lambda t: r.just(t).boundary(1), concurrency=3, prefetch=2)
    ),
    "merge": Accounted(merged),
    "concat_with": Accounted(lambda flow, ledger: flow.concat_with(ledger.tokens(3))),
    "start_with": Accounted(lambda flow, _: flow.start_with(Token(0))),
    "zip_with": Accounted(
        lambda flow, ledger: flow.zip_with(ledger.tokens_async(COUNT), prefetch=3)
    ),
    "timeout": Accounted(lambda flow, _: flow.timeout(5)),
    "retry": Accounted(lambda flow, _: flow.retry(2)),
    "on_error_resume": Accounted(lambda flow, _: flow.on_error_resume([])),
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
    "MulticastProcessor": hot(lambda: MulticastProcessor[Token](4)),
    "MulticastProcessor: without auto_cancel": hot(
        lambda: MulticastProcessor[Token](4, auto_cancel=False), continues=True
    ),
}
SOURCES: dict[str, Callable[[Ledger], Flow[Token]]] = {
    "pulled": lambda ledger: r.from_iterable(ledger.tokens(COUNT)),
    "after a boundary": lambda ledger: r.from_iterable(ledger.tokens(COUNT)).boundary(2),
    "asynchronous": lambda ledger: to_flow(ledger.tokens_async(COUNT)),
    "pushed": lambda ledger: to_flow(ledger.publisher(COUNT)),
    "in a task group": lambda ledger: r.from_aiter(lambda: in_a_task_group(ledger)),
}
DEMANDS: dict[str, dict[str, Any]] = {
    "unbounded": {"request": MANY},
    "one by one": {"request": 1, "again": 1},
    "coroutines": {"request": 3, "again": 1, "turns": 2},
    "cancelled": {"request": MANY, "cancel_after": 2},
    "cancelled between": {"request": 3, "again": 1, "turns": 1, "cancel_after": 3},
    "no demand": {"cancel_after": 0},
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("accounted", OPERATORS.values(), ids=OPERATORS)
async def test_every_element_is_accounted_for(
    accounted: Accounted, source: Callable[[Ledger], Flow[Token]]
) -> None:
    for demand, options in DEMANDS.items():
        if accounted.continues and options.get("cancel_after"):
            continue
        ledger = Ledger()
        flow = accounted.apply(source(ledger), ledger)
        bound = flow.bound().total
        try:
            await ledger.settle(
                flow,
                bound=None if bound is None else bound + accounted.slack,
                discards=accounted.discards,
                repeats=accounted.repeats,
                **options,
            )
        except AssertionError as error:
            error.add_note(f"demand: {demand}")
            raise
