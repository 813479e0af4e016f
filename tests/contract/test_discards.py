"""`do_on_discard` is exact: each element that a source hands out is delivered or discarded, once.

Or it was left out or dropped by an operator that does so, or made into something else: the ledger
has one entry for each token. A failure names its seed: ``SEED=7`` runs that one alone.
"""

import asyncio
import os
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import suppress
from importlib import import_module
from pkgutil import iter_modules
from random import Random
from typing import Any, cast

import pytest

import reactive_aio as r
import reactive_aio._operators as operators
from reactive_aio import Flow
from reactive_aio.errors import Overflow, TimedOut
from reactive_aio.testing import Ledger, Token

from ..cases import identities, names
from ..harness.effort import scaled
from ..reference.docstrings import Docstring

COUNT = 30
PIPELINES = 10_000
"""In a run of normal effort less than that."""

pytestmark = pytest.mark.virtual_time


class Broken(Exception):
    """A function of the flow fails."""


class Pipeline:
    """A random flow of tokens, and their ledger."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.ledger = Ledger()
        flow = self.source()
        self.names: set[str] = set()
        """The operators, as they are called in the table."""
        for _ in range(self.random.randrange(1, 5)):
            name = self.random.choice([*OPERATORS, *WITHOUT_ROW])
            self.names.add(name)
            flow = WITHOUT_ROW[name](flow) if name in WITHOUT_ROW else OPERATORS[name](self, flow)
        self.flow = flow.do_on_discard(self.discard)
        self.discards: Counter[type] = Counter()
        """What was given to `do_on_discard`."""

    @property
    def small(self) -> int:
        return self.random.choice((1, 2, 3, 5))

    def source(self) -> Flow[Any]:
        kind = self.random.randrange(4)
        if kind == 0:
            return r.from_iterable(self.ledger.tokens(COUNT))
        if kind == 1:
            return r.from_aiter(self.ledger.tokens_async(COUNT))
        if kind == 2:
            return r.from_publisher(self.ledger.publisher(COUNT))
        return r.from_aiter(self.ticking())

    async def ticking(self) -> AsyncIterator[Token]:
        for _ in range(COUNT):
            await asyncio.sleep(0.1)
            yield self.ledger.issue()

    # -- functions of the flow --------------------------------------------------------------------
    def discard(self, element: object) -> None:
        self.discards[type(element)] += 1
        self.enter(element, "discarded")

    def enter(self, element: object, entry: str) -> None:
        for token in tokens_in(element):
            self.ledger.drop(token, entry)

    def remade(self, element: object) -> Iterator[Token]:
        """Some tokens in place of *element*, which is used up when the first one is made."""
        count = self.random.choice((0, 1, 1, 3))
        for i in range(count):
            if not i:
                self.enter(element, "remade")
            yield self.ledger.issue()
        if not count:
            self.enter(element, "remade")

    def remade_later(self, element: object) -> Flow[Token]:
        async def issue() -> AsyncIterator[Token]:
            for i in range(count := self.random.choice((0, 1, 1, 3))):
                await asyncio.sleep(self.random.choice((0, 0.05)))
                if not i:
                    self.enter(element, "remade")
                yield self.ledger.issue()
            if not count:
                self.enter(element, "remade")

        return r.from_aiter(issue)

    def awaited(self, element: object) -> Flow[Token]:
        async def issue() -> Token:
            await asyncio.sleep(self.random.choice((0, 0.05)))
            self.enter(element, "remade")
            return self.ledger.issue()

        return r.from_awaitable(issue)

    async def soon(self, element: Any) -> Any:
        await asyncio.sleep(self.random.choice((0, 0, 0.05)))
        return element

    async def sometimes(self, element: Any) -> bool:
        await asyncio.sleep(0)
        return self.passes(element)

    def passes(self, element: Any) -> bool:
        passes = self.random.random() < 0.7
        if not passes:
            self.enter(element, "filtered")
        return passes

    def made_of(self, _: object) -> Iterator[Token]:
        """A few tokens more."""
        return (self.ledger.issue() for _ in range(self.random.choice((0, 0, 1))))

    def skips(self, count: int) -> Callable[[object], object]:
        """Enter the first *count* elements as skipped."""
        remaining = iter(range(count))

        def enter(element: object) -> None:
            if next(remaining, None) is not None:
                self.enter(element, "skipped")

        return enter

    def is_last(self, _: object) -> bool:
        return self.random.random() < 0.3

    def breaks(self, element: Any) -> Any:
        if self.random.random() < 0.1:
            raise Broken
        return element

    async def breaks_later(self, element: Any) -> Any:
        await asyncio.sleep(0)
        return self.breaks(element)


def tokens_in(element: object) -> Iterable[Token]:
    if isinstance(element, Token):
        yield element
    elif isinstance(element, (list, tuple)):
        for each in cast("list[object]", element):
            yield from tokens_in(each)


OPERATORS: dict[str, Callable[[Pipeline, Flow[Any]], Flow[Any]]] = {
    "boundary": lambda p, flow: flow.boundary(p.small),
    "buffer": lambda p, flow: flow.buffer(p.small),
    "buffer_timeout": lambda p, flow: flow.buffer_timeout(p.small, 0.2),
    "buffer_until": lambda p, flow: flow.buffer_until(p.is_last, limit=5),
    "concat_map": lambda p, flow: flow.concat_map(p.remade_later, prefetch=p.small),
    "concat_with": lambda p, flow: flow.concat_with(p.source()),
    "debounce": lambda p, flow: flow.debounce(0.05, on_drop=lambda x: p.enter(x, "dropped")),
    "delay": lambda p, flow: flow.delay(0.3, capacity=p.small),
    "delay_subscription": lambda _, flow: flow.delay_subscription(0.1),
    "enumerate": lambda _, flow: flow.enumerate(),
    "expand": lambda p, flow: flow.expand(
        lambda x: r.from_iterable(p.made_of(x)).boundary(2), capacity=9
    ),
    "filter": lambda p, flow: flow.filter(p.passes),
    "filter_async": lambda p, flow: flow.filter_async(p.sometimes, concurrency=p.small),
    "flat_map": lambda p, flow: flow.flat_map(p.remade, concurrency=p.small),
    "flat_map: of awaitables": lambda p, flow: flow.flat_map(p.awaited, concurrency=p.small),
    "flat_map: of what pushes": lambda p, flow: flow.flat_map(
        lambda x: r.from_iterable(p.remade(x)).boundary(2), concurrency=p.small, prefetch=p.small
    ),
    "group_by": lambda p, flow: flow.group_by(
        lambda _: p.random.randrange(3), on_drop=lambda x: p.enter(x, "dropped")
    ).flat_map(lambda group: group.map(lambda x: x), prefetch=p.small),
    "limit_rate": lambda p, flow: flow.limit_rate(p.small),
    "map": lambda p, flow: flow.map(lambda x: x),
    "map: fails": lambda p, flow: flow.map(p.breaks),
    "map_async": lambda p, flow: flow.map_async(p.soon),
    "map_async: fails": lambda p, flow: flow.map_async(p.breaks_later),
    "merge_with": lambda p, flow: flow.merge_with(p.source(), prefetch=p.small),
    "on_backpressure_buffer": lambda p, flow: flow.on_backpressure_buffer(
        p.small, overflow="drop_oldest", on_drop=lambda x: p.enter(x, "dropped")
    ),
    "on_backpressure_buffer: fails": lambda p, flow: flow.on_backpressure_buffer(
        p.small, on_drop=lambda x: p.enter(x, "dropped")
    ),
    "on_backpressure_drop": lambda p, flow: flow.on_backpressure_drop(
        on_drop=lambda x: p.enter(x, "dropped")
    ),
    "on_backpressure_error": lambda _, flow: flow.on_backpressure_error(),
    "on_backpressure_latest": lambda p, flow: flow.on_backpressure_latest(
        on_drop=lambda x: p.enter(x, "dropped")
    ),
    "on_error_complete": lambda _, flow: flow.on_error_complete(),
    "on_error_resume": lambda p, flow: flow.on_error_resume(p.source()),
    "race": lambda p, flow: r.race(flow, p.source()),
    "rate_limit": lambda p, flow: flow.rate_limit(p.small, 0.1),
    "repeat": lambda _, flow: flow.repeat(1),
    "restart": lambda _, flow: flow.restart(1),
    "retry": lambda _, flow: flow.retry(1),
    "sample": lambda p, flow: flow.sample(0.15, on_drop=lambda x: p.enter(x, "dropped")),
    "scan": lambda _, flow: flow.scan(lambda _, x: x),
    "share": lambda _, flow: flow.share(),
    "skip": lambda p, flow: flow.do_on_next(p.skips(2)).skip(2),
    "skip_last": lambda p, flow: flow.skip_last(p.small),
    "start_with": lambda _, flow: flow.start_with("first", "second"),
    "switch_if_empty": lambda p, flow: flow.switch_if_empty(p.source()),
    "switch_map": lambda p, flow: flow.switch_map(p.remade_later),
    "take": lambda p, flow: flow.take(p.random.randrange(1, 9)),
    "take_last": lambda p, flow: flow.take_last(20 * COUNT),
    "take_until": lambda p, flow: flow.take_until(r.timer(0.5)),
    "take_while": lambda p, flow: flow.take_while(p.passes),
    "throttle_first": lambda p, flow: flow.throttle_first(
        0.15, on_drop=lambda x: p.enter(x, "dropped")
    ),
    "throttle_latest": lambda p, flow: flow.throttle_latest(
        0.15, on_drop=lambda x: p.enter(x, "dropped")
    ),
    "timeout": lambda p, flow: flow.timeout(0.2),
    "window": lambda p, flow: flow.window(p.small).flat_map(
        lambda window: window.take(p.random.randrange(1, 4)), prefetch=p.small
    ),
    "window_timeout": lambda p, flow: flow.window_timeout(p.small, 0.2).flat_map(
        lambda window: window.map(lambda x: x), prefetch=p.small
    ),
    "with_latest_from": lambda _, flow: flow.with_latest_from(r.just("latest")),
    "map_async: in workers": lambda p, flow: flow.map_async(p.soon, concurrency=p.small),
    "map_async: in workers that fail": lambda p, flow: flow.map_async(
        p.breaks_later, concurrency=p.small
    ),
    "map_async: one for each key": lambda p, flow: flow.map_async(
        p.soon, concurrency=p.small, key=lambda _: p.random.randrange(2)
    ),
    "map_async: unordered": lambda p, flow: flow.map_async(
        p.soon, concurrency=p.small, ordered=False
    ),
    "zip_with": lambda p, flow: flow.zip_with(p.source(), prefetch=p.small),
}


# -- the ways to leave -----------------------------------------------------------------------------
async def subscribe(p: Pipeline) -> None:
    await p.ledger.settle(
        p.flow,
        request=p.random.choice((1, 2, 2**63 - 1)),
        again=1,
        turns=p.random.choice((None, 1, 4)),
        cancel_after=p.random.choice((None, 1, 2, 5)),
        discards=True,
        within=1000,
        repeats=True,
    )


async def leave_the_loop(p: Pipeline) -> None:
    left = p.random.randrange(1, 12)
    async for element in p.flow:
        p.enter(element, "delivered")
        await asyncio.sleep(p.random.choice((0, 0.1)))
        left -= 1
        if not left:
            break


async def close_the_stream(p: Pipeline) -> None:
    left = p.random.randrange(1, 12)
    async with p.flow.stream(prefetch=p.random.choice((None, 1, 7))) as elements:
        async for element in elements:
            p.enter(element, "delivered")
            left -= 1
            if not left:
                break


async def cancel_the_task(p: Pipeline) -> None:
    async with asyncio.timeout(p.random.choice((0.01, 0.3, 1.1))):
        async for element in p.flow:
            p.enter(element, "delivered")
            await asyncio.sleep(p.random.choice((0, 0.1)))


async def want_the_first(p: Pipeline) -> None:
    p.enter(await p.flow.first(default=None), "delivered")


async def handle_each(p: Pipeline) -> None:
    async def handle(element: Any) -> None:
        p.enter(element, "delivered")
        await p.breaks_later(None)

    async with asyncio.timeout(5):
        await p.flow.for_each(handle, concurrency=p.small, ordered=p.random.random() < 0.5)


async def drain_the_run(p: Pipeline) -> None:
    """The report has the figures of the ledger, if each element is one token."""
    passed = 0

    def enter(element: object) -> None:
        nonlocal passed
        passed += 1
        p.enter(element, "delivered")

    async with p.flow.do_on_next(enter).running() as run:
        await asyncio.sleep(p.random.choice((0, 0.01, 0.3, 1.1)))
        report = await run.drain(p.random.choice((0, 0.05, 0.4, 60)))
    assert report.delivered == passed, f"{report}; {passed} were delivered"
    discarded = p.discards.total() - p.discards[Flow]
    assert report.in_flight + report.discarded == discarded, f"{report}; {discarded} were given"


async def drain_the_calls(p: Pipeline) -> None:
    async def handle(element: Any) -> None:
        p.enter(element, "delivered")
        handled.append(element)
        await asyncio.sleep(p.random.choice((0, 0.05, 0.5)))
        returned.append(element)

    handled, returned = list[object](), list[object]()
    options: dict[str, Any] = {}
    if p.random.random() < 0.7:
        options = {"concurrency": p.random.choice((2, 3)), "ordered": p.random.random() < 0.5}
    async with p.flow.running(handle, **options) as run:
        await asyncio.sleep(p.random.choice((0, 0.01, 0.3, 1.1)))
        report = await run.drain(p.random.choice((0, 0.05, 0.4, 60)))
    assert report.delivered == len(returned), f"{report}; {len(returned)} calls have returned"
    lost = len(handled) - len(returned) + p.discards.total() - p.discards[Flow]
    assert report.in_flight + report.discarded == lost, f"{report}; {lost} were lost"


async def collect(p: Pipeline) -> None:
    ways: list[Callable[[Flow[Any]], Awaitable[list[Any] | dict[int, Any]]]] = [
        lambda flow: flow.to_list(),
        lambda flow: flow.to_dict(id),
    ]
    collect = p.random.choice(ways)
    async with asyncio.timeout(p.random.choice((0.01, 0.3, 1.1, 5))):
        found = await collect(p.flow)
        p.enter(found if isinstance(found, list) else [*found.values()], "delivered")


WAYS: list[Callable[[Pipeline], Awaitable[None]]] = [
    drain_the_run,
    drain_the_calls,
    collect,
    subscribe,
    leave_the_loop,
    close_the_stream,
    cancel_the_task,
    want_the_first,
    handle_each,
]


def seeds() -> Iterable[int]:
    only = os.environ.get("SEED")
    return range(scaled(PIPELINES)) if only is None else (int(only),)


OTHERS = {
    # composed of the others, or other ways to call them
    *("concat", "merge", "on_error_return", "zip"),
    # they need real threads and processes, or hold elements for several subscribers
    *("map_in_process", "map_in_thread", "replay", "cache"),
    # an element is in several tuples
    *("combine_latest", "pairwise", "sliding_window"),
    # they need elements with a hash, bytes or JSON
    *("distinct", "distinct_until_changed", "delimited", "lines", "json_lines"),
    # they are reports
    *("bound", "explain", "graph", "stats"),
}
"""The operators that are not in random pipelines."""


WITHOUT_ROW = identities(besides={*OPERATORS, *OTHERS})
"""The other operators join in the form that passes their elements on unchanged."""
ADD = """\
Elements that {name} holds may be lost. Add it to OPERATORS in tests/contract/test_discards.py, with
a way to account for its elements, or to OTHERS there, with the reason. (An operator with a form in
IDENTITIES of its test file needs neither, nor does one whose docstring says "Holds: nothing.".)"""
ADD_ROW = """\
{name} is in this pipeline in the form that IDENTITIES in its test file has. If that form does not
pass on each token, and each list of tokens, add {name} to OPERATORS in
tests/contract/test_discards.py, with a way to account for its elements, or to OTHERS there."""


def operators_by_name() -> dict[str, Callable[..., Any]]:
    modules = [
        import_module(f"{operators.__name__}.{each.name}")
        for each in iter_modules(operators.__path__)
    ]
    return {
        name: getattr(module, name)
        for module in modules
        for name in module.__all__
        if name.islower()
    }


def missing(every: Mapping[str, Callable[..., Any]], known: Collection[str]) -> str:
    """What to add for each operator of *every* that holds elements and is not *known*."""
    return "\n".join(
        ADD.format(name=name)
        for name, function in every.items()
        if name not in known and not Docstring.of(function).holds_nothing
    )


def test_every_operator_that_holds_elements_is_in_random_pipelines_or_has_a_reason() -> None:
    every = operators_by_name()
    known = OTHERS | names({*OPERATORS, *WITHOUT_ROW})
    assert not (lines := missing(every, known)), lines
    assert known <= every.keys()


def test_a_missing_row_is_reported_with_what_to_add_where() -> None:
    message = missing(operators_by_name(), {*operators_by_name()} - {"delay", "do_on_next"})
    assert message.startswith("Elements that delay holds may be lost. Add it to OPERATORS in")
    assert "do_on_next" not in message, "it holds nothing"


async def test_each_element_of_a_random_pipeline_is_delivered_or_discarded_once() -> None:
    for seed in seeds():
        pipeline = Pipeline(seed)
        way = pipeline.random.choice(WAYS)
        try:
            with suppress(Broken, Overflow, TimedOut, TimeoutError, BaseExceptionGroup):
                await way(pipeline)
            await asyncio.sleep(1)
            pipeline.ledger.check()
        except BaseException as error:
            error.add_note(f"SEED={seed}: {way.__name__}, {pipeline.flow!r}")
            for name in sorted(pipeline.names & WITHOUT_ROW.keys()):
                error.add_note(ADD_ROW.format(name=name))
            raise
