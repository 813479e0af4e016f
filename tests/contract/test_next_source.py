"""The next source begins when the last one has cleaned up: a pool of one connection is enough.

In the model, sources use the only connection of a pool; so operators that replace a source are
tried there with every consumer and neighbour. Here are the kinds of sources that clean up, the
operators whose meaning has no place in the model, and what may happen during the wait.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator
from itertools import pairwise
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow, RetryPolicy, observe
from reactive_aio.errors import Overflow, TimedOut
from reactive_aio.stage import Downstream, FlowSubscription, from_push
from reactive_aio.testing import SubscriberProbe
from tests.harness.one_run import in_one_run

Make = Callable[[], Flow[Any]]
Reports = list[dict[str, Any]]

GOODBYE = 0.5
"""How long a cleanup takes, in virtual seconds."""
HOUR = 3600.0


class Exhausted(Exception):
    """The only connection is in use."""


class Failed(Exception):
    """Ends a run, so that the next one begins."""


class Pool:
    """A pool of one connection, which says good-bye before it is free again."""

    def __init__(self, fails: bool = False) -> None:
        self.opened = 0
        self.is_used = False
        self._fails = fails

    def take(self) -> None:
        if self.is_used:
            raise Exhausted
        self.is_used, self.opened = True, self.opened + 1

    def free(self) -> None:
        self.is_used = False

    async def say_goodbye(self) -> None:
        await asyncio.sleep(GOODBYE)
        self.free()
        if self._fails:
            raise OSError("the good-bye")

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncGenerator[str]:
        self.take()
        try:
            yield "row"
        finally:
            await self.say_goodbye()

    @contextlib.contextmanager
    def reservation(self) -> Generator[str]:
        self.take()
        try:
            yield "row"
        finally:
            self.free()


class Cursor:
    """An asynchronous iterator that is no generator."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._is_open = self._has_sent = False

    def __aiter__(self) -> "Cursor":
        return self

    async def __anext__(self) -> str:
        if self._has_sent:
            await asyncio.sleep(HOUR)
        self._has_sent = self._is_open = True
        self._pool.take()
        return "row"

    async def aclose(self) -> None:
        if self._is_open:
            self._is_open = False
            await self._pool.say_goodbye()


class Pushing(FlowSubscription):
    """A source that pushes, such as a connection, and closes asynchronously."""

    def __init__(self, pool: Pool, downstream: Downstream[str]) -> None:
        self._pool = pool
        self._downstream = downstream
        self._is_open = False

    def request(self, n: int, /) -> None:
        if not self._is_open:
            self._pool.take()
            self._is_open = True
            self._downstream.push(["row"])

    def cancel(self) -> None:
        pass

    @property
    def is_clean(self) -> bool:
        return not self._is_open

    async def aclose(self) -> None:
        if self._is_open:
            self._is_open = False
            await self._pool.say_goodbye()


def rows_of(pool: Pool) -> Callable[[], AsyncIterator[str]]:
    async def rows() -> AsyncIterator[str]:
        async with pool.connection() as row:
            yield row
            await asyncio.sleep(HOUR)

    return rows


def calls_of(pool: Pool) -> Callable[[int], Awaitable[str]]:
    """The first call returns at once, the second one holds the connection."""

    async def call(number: int) -> str:
        if not number:
            return "row"
        async with pool.connection():
            await asyncio.sleep(HOUR)
        return "late"

    return call


def emitter_of(pool: Pool) -> Callable[[r.Emitter[str]], Awaitable[None]]:
    async def emit(to: r.Emitter[str]) -> None:
        async with pool.connection() as row:
            await to.emit(row)
            await asyncio.sleep(HOUR)

    return emit


def one_then_silence(row: str) -> Flow[str]:
    return r.just(row).concat_with(r.never())


SOURCES: dict[str, Callable[[Pool], Flow[Any]]] = {
    "a generator": lambda pool: r.from_aiter(rows_of(pool)),
    "a generator, boundary": lambda pool: r.from_aiter(rows_of(pool)).boundary(2),
    "an iterator": lambda pool: r.from_aiter(lambda: Cursor(pool)),
    "using": lambda pool: r.using(pool.connection, one_then_silence),
    "using, of a slow source": lambda pool: r.using(
        pool.reservation, lambda _: r.from_aiter(rows_of(Pool()))
    ),
    "map_async": lambda pool: r.range(2).map_async(calls_of(pool)),
    "map_async, concurrency": lambda pool: r.range(2).map_async(calls_of(pool), concurrency=2),
    "flat_map of awaitables": lambda pool: r.range(2).flat_map(
        lambda x: r.from_awaitable(lambda: calls_of(pool)(x))
    ),
    "flat_map": lambda pool: r.just(1).flat_map(lambda _: r.from_aiter(rows_of(pool))),
    "create": lambda pool: r.create(emitter_of(pool)),
    "from_push": lambda pool: from_push(lambda down: Pushing(pool, down), name="pushing"),
    "merge": lambda pool: r.from_aiter(rows_of(pool)).merge_with(r.never()),
    "share": lambda pool: r.from_aiter(rows_of(pool)).share(),
    "group_by": lambda pool: (
        r.from_aiter(rows_of(pool)).group_by(len, max_groups=4).flat_map(lambda group: group)
    ),
    "window": lambda pool: r.from_aiter(rows_of(pool)).window(2).flat_map(lambda window: window),
}


LATE = ("map_async", "map_async, concurrency", "flat_map of awaitables")
"""They may be left before their second call has begun, which opens the connection."""


def fail(_: object) -> Any:
    raise Failed


async def fail_later(_: object) -> Any:
    await asyncio.sleep(0)
    raise Failed


def deep(first: Any, times: int) -> Callable[[Any], list[Any] | Flow[Any]]:
    """Of each element of *first*, *first* again, *times* deep."""
    left = iter(range(times))
    return lambda _: first if next(left, None) is not None else []


OPERATORS: dict[str, tuple[int, Callable[[Flow[Any]], Flow[Any]]]] = {
    "take, boundary, repeat": (3, lambda rows: rows.take(1).boundary(2).repeat(3)),
    "boundary, take, repeat": (3, lambda rows: rows.boundary(2).take(1).repeat(3)),
    "map, retry": (3, lambda rows: rows.map(fail).retry(3)),
    "map_async, concurrency, retry": (
        3,
        lambda rows: rows.map_async(fail_later, concurrency=2).retry(3),
    ),
    "timeout, retry with delays": (
        3,
        lambda rows: rows.timeout(5).retry(RetryPolicy(attempts=3, delay=0.1)),
    ),
    "timeout with a fallback": (2, lambda rows: rows.timeout(5, fallback=rows.take(1))),
    "concat": (2, lambda rows: r.concat(rows.boundary(2).take(1), rows.take(1))),
    "flat_map, one at a time": (
        3,
        lambda rows: r.range(3).flat_map(lambda _: rows.boundary(2).take(1), concurrency=1),
    ),
    "flat_map of a slow source, one at a time": (
        3,
        lambda rows: (
            r.interval(0.1).take(3).flat_map(lambda _: rows.boundary(2).take(1), concurrency=1)
        ),
    ),
    "expand": (3, lambda rows: rows.take(1).expand(deep(rows.boundary(2).take(1), 2))),
    "using that ends": (
        3,
        lambda rows: r.using(contextlib.nullcontext, lambda _: rows.boundary(2).map(fail)).retry(3),
    ),
    "race that is lost": (3, lambda rows: r.race(rows.skip(1), r.timer(5)).repeat(3)),
    "merge": (3, lambda rows: rows.merge_with(r.never()).take(1).repeat(3)),
    "zip": (3, lambda rows: rows.zip_with(r.just(1)).repeat(3)),
    "with_latest_from": (3, lambda rows: r.timer(1).with_latest_from(rows).repeat(3)),
    "share that fails": (3, lambda rows: rows.boundary(2).map(fail).share().retry(3)),
    "replay that fails": (3, lambda rows: rows.boundary(2).map(fail).replay(1).retry(3)),
    "cache that fails": (3, lambda rows: rows.boundary(2).map(fail).cache().retry(3)),
    "buffer_timeout": (3, lambda rows: rows.buffer_timeout(2, 1).take(1).repeat(3)),
    "on_backpressure_buffer that overflows": (
        3,
        lambda rows: (
            rows.flat_map(lambda row: [row] * 9)
            .on_backpressure_buffer(1)
            .map_async(lambda row: asyncio.sleep(1, row))
            .retry(3)
        ),
    ),
    "group_by": (
        3,
        lambda rows: (
            rows.group_by(len, max_groups=4).flat_map(lambda group: group).take(1).repeat(3)
        ),
    ),
}


async def outcome(flow: Flow[Any]) -> list[Any]:
    """The elements; nothing if the flow fails as it should."""
    try:
        return await asyncio.wait_for(flow.to_list(), HOUR)
    except (Failed, Overflow, TimedOut):
        return []


@in_one_run
@pytest.mark.virtual_time
@pytest.mark.parametrize("operator", ["boundary, take, repeat", "map, retry"])
@pytest.mark.parametrize("source", SOURCES)
async def test_a_pool_of_one_connection_is_enough(source: str, operator: str) -> None:
    pool = Pool()
    runs, make = OPERATORS[operator]
    await outcome(make(SOURCES[source](pool)))
    assert pool.opened == runs or (source in LATE and pool.opened < runs)
    assert not pool.is_used


@in_one_run
@pytest.mark.virtual_time
@pytest.mark.parametrize("operator", OPERATORS)
async def test_every_operator_waits(operator: str) -> None:
    pool = Pool()
    runs, make = OPERATORS[operator]
    await outcome(make(r.from_aiter(rows_of(pool))))
    assert (pool.opened, pool.is_used) == (runs, False)


@in_one_run
@pytest.mark.virtual_time
@pytest.mark.parametrize("split", ["window", "group_by", "group_by of groups"])
async def test_it_is_enough_for_parts_that_are_left_or_fail(split: str) -> None:
    pool = Pool()
    parts = SPLITS[split](r.from_aiter(rows_of(pool)))
    left = parts.concat_map(lambda part: part.boundary(2).take(1)).take(1)
    assert await left.repeat(3).to_list() == ["row"] * 3
    with pytest.raises(Failed):
        await parts.flat_map(lambda part: part.map_async(fail_later)).retry(3).to_list()
    assert (pool.opened, pool.is_used) == (6, False)


@pytest.mark.virtual_time
async def test_a_consumer_cancelled_at_any_time_waits_for_the_cleanup() -> None:
    for tick in range(1, 12):
        pool = Pool()
        task = asyncio.ensure_future(waiting_flow(pool).to_list())
        await asyncio.sleep(tick * 0.23)
        opened, was_cancelled = pool.opened, task.cancel()
        await asyncio.wait([task])
        assert not pool.is_used
        assert pool.opened == opened or not was_cancelled


SPLITS: dict[str, Callable[[Flow[Any]], Flow[Flow[Any]]]] = {
    "window": lambda rows: rows.window(2),
    "window_timeout": lambda rows: rows.window_timeout(2, HOUR),
    "group_by": lambda rows: rows.group_by(len, max_groups=4),
    "group_by of groups": lambda rows: rows.group_by(len).flat_map(
        lambda group: group.group_by(len)
    ),
    "window, named": lambda rows: rows.window(2).name("windows"),
}


@pytest.mark.virtual_time
@pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS)
async def test_a_part_that_is_kept_is_not_waited_for(
    split: Callable[[Flow[Any]], Flow[Flow[Any]]],
) -> None:
    pool = Pool()
    (part,) = await split(r.from_aiter(rows_of(pool))).take(1).to_list()
    assert pool.is_used
    assert await part.first() == "row"
    assert not pool.is_used


# -- the wait for a cleanup ------------------------------------------------------------------------
def waiting_flow(pool: Pool) -> Flow[Any]:
    return r.from_aiter(rows_of(pool)).boundary(2).take(1).repeat(3)


@pytest.mark.virtual_time
async def test_a_subscriber_that_cancels_during_the_wait_starts_no_source() -> None:
    pool = Pool()
    probe = SubscriberProbe[Any](9).subscribed_to(waiting_flow(pool))
    await probe.wait_for_signals(1)
    await asyncio.sleep(GOODBYE / 2)
    assert pool.is_used
    probe.cancel()
    await asyncio.sleep(HOUR)
    assert (pool.opened, pool.is_used, probe.elements) == (1, False, ["row"])


@pytest.mark.virtual_time
async def test_a_subscriber_that_cancels_during_the_wait_is_asked_nothing_more() -> None:
    pool, errors = Pool(), list[BaseException]()

    def fallback(error: BaseException) -> Flow[Any]:
        errors.append(error)
        return r.never()

    rows = r.from_aiter(rows_of(pool)).boundary(2).map(fail).on_error_resume(fallback)
    probe = SubscriberProbe[Any](9).subscribed_to(rows)
    await asyncio.sleep(GOODBYE / 2)
    probe.cancel()
    await asyncio.sleep(HOUR)
    assert (pool.opened, pool.is_used, errors) == (1, False, [])


@pytest.mark.virtual_time
async def test_demand_during_the_wait_is_not_lost() -> None:
    pool = Pool()
    probe = SubscriberProbe[Any](1).subscribed_to(waiting_flow(pool))
    await probe.wait_for_signals(1)
    await asyncio.sleep(GOODBYE / 2)
    probe.request(1)
    probe.request(1)
    assert await probe.end() == ["row", "row", "row", "|"]
    await asyncio.sleep(GOODBYE)


@pytest.mark.virtual_time
async def test_a_drain_during_the_wait_completes() -> None:
    pool = Pool()
    async with SOURCES["from_push"](pool).take(1).repeat(3).running() as run:
        await asyncio.sleep(GOODBYE / 2)
        report = await run.drain()
    assert (report.is_complete, report.delivered, pool.opened, pool.is_used) == (True, 1, 1, False)


@pytest.mark.virtual_time
async def test_a_drain_during_the_wait_does_the_work_that_follows() -> None:
    rows = SOURCES["from_push"](Pool()).take(1)
    async with rows.expand(lambda row: ["more"] if row == "row" else []).running() as run:
        await asyncio.sleep(GOODBYE / 2)
        report = await run.drain()
    assert (report.is_complete, report.delivered) == (True, 2)


@in_one_run
@pytest.mark.virtual_time
@pytest.mark.parametrize("operator", OPERATORS)
async def test_what_a_cleanup_raises_does_not_stop_what_follows(
    operator: str, expects_loop_errors: Reports
) -> None:
    pool = Pool(fails=True)
    runs, make = OPERATORS[operator]
    raised: list[BaseException] = []
    try:
        await outcome(make(r.from_aiter(rows_of(pool))))
    except* OSError as group:
        raised.extend(group.exceptions)
    assert (pool.opened, pool.is_used) == (runs, False)
    assert len(raised) + len(expects_loop_errors) == runs


def test_the_next_one_begins_at_once_where_there_is_nothing_to_wait_for() -> None:
    """Without a turn of the loop."""
    flows: dict[str, Flow[int]] = {
        "repeat": r.just(1).repeat(3),
        "retry": r.just(1).concat_with(r.error(Failed())).retry(3).on_error_complete(),
        "concat": r.concat(r.just(1), r.never().take(0), r.just(1), r.timer(0).take(0), r.just(1)),
        "switch_map": r.range(3).switch_map(lambda _: [1] * 3),
        "expand": r.just(1).expand(deep([1], 2)),
        "on_error_resume": r.never()
        .take(0)
        .concat_with(r.error(Failed()))
        .on_error_resume([1] * 3),
        "switch_if_empty": r.never().take(0).switch_if_empty([1] * 3),
        "then": r.just(1).then([1] * 3),
    }

    async def subscribe() -> dict[str, list[Any]]:
        return {
            name: SubscriberProbe[int](9).subscribed_to(flow).elements
            for name, flow in flows.items()
        }

    assert {*map(tuple, asyncio.run(subscribe()).values())} == {(1, 1, 1)}


@pytest.mark.virtual_time
async def test_switch_map_discards_the_elements_that_newer_ones_replace_during_the_wait() -> None:
    pool, discarded = Pool(), list[int]()
    made: list[int] = []

    def source_of(number: int) -> Flow[str]:
        made.append(number)
        return r.from_aiter(rows_of(pool))

    rows = r.interval(0.2).take(8).switch_map(source_of).do_on_discard(discarded.append)
    await rows.take_until(r.timer(10)).to_list()
    assert sorted(made + discarded) == [*range(8)]
    assert discarded
    assert made[-1] == 7


@pytest.mark.virtual_time
async def test_a_time_limit_begins_with_the_next_run() -> None:
    pool = Pool()
    loop, began = asyncio.get_running_loop(), list[float]()
    timed = r.from_aiter(rows_of(pool)).skip(1).timeout(GOODBYE / 2)

    def note() -> Flow[str]:
        began.append(loop.time())
        return timed

    noting = r.defer(note)
    with pytest.raises(TimedOut):
        await noting.retry(3).to_list()
    gaps = [after - before for before, after in pairwise(began)]
    assert gaps == pytest.approx([1.5 * GOODBYE] * 2)


@pytest.mark.virtual_time
async def test_two_readers_of_a_shared_flow_start_it_afresh_once() -> None:
    pool = Pool()
    shared = r.from_aiter(rows_of(pool)).share()
    before = SubscriberProbe[str](1).subscribed_to(shared)
    await before.wait_for_signals(1)
    before.cancel()
    assert [*await asyncio.gather(shared.first(), shared.first())] == ["row", "row"]
    assert (pool.opened, pool.is_used) == (2, False)


@pytest.mark.virtual_time
async def test_a_report_names_the_source_that_is_waited_for() -> None:
    pool = Pool()
    task = asyncio.ensure_future(waiting_flow(pool).name("orders").to_list())
    await asyncio.sleep(GOODBYE / 2)
    (stats,) = observe.snapshot().flows["orders"].subscriptions
    assert stats.cause.startswith("repeat(3), which waits for the cleanup of from_aiter(rows)")
    assert await task == ["row"] * 3


# -- sources that need a real clock ----------------------------------------------------------------
class Blocking:
    """An iterable whose cleanup blocks its thread."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def __iter__(self) -> Iterator[str]:
        self._pool.take()
        try:
            while True:
                yield "row"
        finally:
            time.sleep(0.02)
            self._pool.free()


REAL: dict[str, Callable[[Pool], Flow[Any]]] = {
    "from_thread": lambda pool: r.from_thread(Blocking(pool)),
    "a generator": lambda pool: r.from_aiter(rows_of(pool)),
    "map_in_thread": lambda pool: r.from_aiter(rows_of(pool)).map_in_thread(str),
}


@pytest.mark.parametrize("operator", ["boundary, take, repeat", "map, retry", "concat", "merge"])
@pytest.mark.parametrize("source", REAL)
async def test_it_is_so_on_every_loop(
    source: str, operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.GOODBYE", 0.0)
    pool = Pool()
    runs, make = OPERATORS[operator]
    await outcome(make(REAL[source](pool)))
    assert (pool.opened, pool.is_used) == (runs, False)
