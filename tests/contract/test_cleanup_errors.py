"""Errors of a cleanup are raised to the consumer that awaits it, and are reported otherwise.

The first error wins: what a cleanup raises replaces neither the failure of the flow nor a
cancellation. A cleanup runs when the flow ends, however long its error is kept.
"""

import asyncio
import contextlib
import gc
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterator,
)
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.errors import show_elements
from reactive_aio.testing import SubscriberProbe

Reports = list[dict[str, Any]]
Use = Callable[[Flow[int]], Awaitable[Any]]


MANY = 1000
"""More elements than are read ahead."""


class CleanupError(Exception):
    """Of a ``finally`` clause."""


async def async_source() -> AsyncIterator[int]:
    try:
        for number in range(MANY):
            yield number
    finally:
        raise CleanupError


async def slow_source() -> AsyncIterator[int]:
    try:
        for number in range(MANY):
            await asyncio.sleep(0)
            yield number
    finally:
        await asyncio.sleep(0.01)
        raise CleanupError


class SyncSource:
    def __iter__(self) -> Iterator[int]:
        try:
            yield from range(MANY)
        finally:
            raise CleanupError


@contextlib.contextmanager
def plain_resource() -> Generator[int]:
    yield 1
    raise CleanupError


@contextlib.asynccontextmanager
async def async_resource() -> AsyncGenerator[int]:
    yield 1
    await asyncio.sleep(0)
    raise CleanupError


async def emitter(to: r.Emitter[int]) -> None:
    try:
        for number in range(MANY):
            await to.emit(number)
        await asyncio.Event().wait()
    finally:
        raise CleanupError


async def worker(number: int) -> int:
    try:
        await asyncio.sleep(0)  # so that the others have begun
        if number:
            await asyncio.Event().wait()
        return number
    finally:
        if number == 1:
            raise CleanupError


SOURCES: dict[str, Callable[[], Flow[int]]] = {
    "an asynchronous generator": lambda: r.from_aiter(async_source),
    "a slow one": lambda: r.from_aiter(slow_source),
    "a generator": lambda: r.from_iterable(SyncSource()),
    "a generator and a coroutine function": lambda: r.from_iterable(SyncSource()).map_async(
        lambda x: asyncio.sleep(0, x)
    ),
    "using": lambda: r.using(plain_resource, lambda _: range(MANY)),
    "using, asynchronously": lambda: r.using(async_resource, lambda _: range(MANY)),
    "create": lambda: r.create(emitter, capacity=1),
    "an awaited flow": lambda: r.range(MANY).flat_map(
        lambda x: r.from_awaitable(lambda: worker(x)), concurrency=3
    ),
    "a worker": lambda: r.range(MANY).map_async(worker, concurrency=3),
}
BETWEEN: dict[str, Callable[[Flow[int]], Flow[Any]]] = {
    "": lambda flow: flow,
    "boundary": lambda flow: flow.boundary(2),
    "boundary in a task": lambda flow: flow.boundary(2).map_async(lambda x: asyncio.sleep(0, x)),
    "merge": lambda flow: flow.merge_with(r.never(), prefetch=1),
    "concat": lambda flow: flow.concat_with(r.from_aiter(async_source)),
    "retry": lambda flow: flow.retry(2),
    "flat_map": lambda flow: r.just(0).flat_map(lambda _: flow),
    "using": lambda flow: r.using(lambda: contextlib.nullcontext(1), lambda _: flow),
}


async def first(flow: Flow[Any]) -> Any:
    return await flow.first()


async def take(flow: Flow[Any]) -> Any:
    return await flow.take(1).to_list()


async def streamed(flow: Flow[Any]) -> None:
    async with flow.stream() as elements:
        async for _ in elements:
            break


async def closed(flow: Flow[Any]) -> None:
    elements = flow.stream()
    await anext(elements)
    await elements.aclose()


AWAITING: dict[str, Use] = {"first": first, "take": take, "stream": streamed, "aclose": closed}


@pytest.mark.virtual_time
@pytest.mark.parametrize("way", AWAITING)
@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("source", SOURCES)
async def test_it_is_raised_to_the_consumer_that_awaits_the_cleanup(
    source: str, between: str, way: str
) -> None:
    with pytest.raises(CleanupError):
        await AWAITING[way](BETWEEN[between](SOURCES[source]()))


@pytest.mark.virtual_time
@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("source", SOURCES)
async def test_it_is_reported_if_nothing_awaits_the_cleanup(
    source: str, between: str, expects_loop_errors: Reports
) -> None:
    flow = BETWEEN[between](SOURCES[source]())
    async for _ in flow:
        break
    probe = SubscriberProbe[Any](1).subscribed_to(flow)
    await probe.wait_until(lambda: bool(probe.signals))
    probe.cancel()
    await asyncio.sleep(1)
    assert [type(each["exception"]) for each in expects_loop_errors] == [CleanupError] * 2


async def test_the_error_has_the_result_in_a_note() -> None:
    for flow in (r.from_aiter(async_source), r.from_iterable(SyncSource())):
        with pytest.raises(CleanupError) as caught:
            await flow.skip(3).first()
        assert "the flow had a result: 3" in "\n".join(caught.value.__notes__)


async def test_the_note_leaves_the_result_out_like_an_element() -> None:
    show_elements(False)
    try:
        with pytest.raises(CleanupError) as caught:
            await r.from_aiter(async_source).map(lambda _: "sec" + "ret").first()
        assert "secret" not in "\n".join(caught.value.__notes__)
    finally:
        show_elements(True)


async def test_several_are_raised_as_a_group() -> None:
    flow = r.merge(r.from_aiter(async_source), r.from_aiter(slow_source), prefetch=1)
    with pytest.raises(ExceptionGroup) as caught:
        await flow.first()
    assert [type(each) for each in caught.value.exceptions] == [CleanupError] * 2


# -- the first error wins --------------------------------------------------------------------------
async def fail_in_the_body(flow: Flow[Any]) -> None:
    async with flow.stream() as elements:
        async for _ in elements:
            raise KeyError("the body")


def fails_at_once(_: object) -> int:
    raise KeyError("a stage")


FAILING: dict[str, Use] = {
    "a stage": lambda flow: flow.map(fails_at_once).to_list(),
    "a later stage": lambda flow: flow.boundary(2).map(fails_at_once).to_list(),
    "the body of async with": fail_in_the_body,
}


@pytest.mark.virtual_time
@pytest.mark.parametrize("way", FAILING)
@pytest.mark.parametrize("source", SOURCES)
async def test_it_does_not_replace_another_error(
    source: str, way: str, expects_loop_errors: Reports
) -> None:
    with pytest.raises(KeyError):
        await FAILING[way](SOURCES[source]())
    await asyncio.sleep(1)
    assert CleanupError in [type(each["exception"]) for each in expects_loop_errors]


async def cancelled_after(seconds: float, consuming: Coroutine[Any, Any, object]) -> None:
    consumer = asyncio.ensure_future(consuming)
    await asyncio.sleep(seconds)
    consumer.cancel()
    await asyncio.wait([consumer])
    assert consumer.cancelled()
    await asyncio.sleep(1)


@pytest.mark.virtual_time
@pytest.mark.parametrize("between", ["", "boundary", "merge"])
@pytest.mark.parametrize("source", SOURCES)
async def test_it_does_not_replace_a_cancellation(
    source: str, between: str, expects_loop_errors: Reports
) -> None:
    async def wait(_: int) -> None:
        await asyncio.Event().wait()

    flow = BETWEEN[between](SOURCES[source]())
    await cancelled_after(1, flow.for_each(wait))
    assert [type(each["exception"]) for each in expects_loop_errors] == [CleanupError]


@pytest.mark.virtual_time
async def test_it_is_reported_if_the_wait_for_it_is_cancelled(expects_loop_errors: Reports) -> None:
    await cancelled_after(0.001, r.from_aiter(slow_source).first())
    assert [type(each["exception"]) for each in expects_loop_errors] == [CleanupError]


# -- when the cleanup runs -------------------------------------------------------------------------
@pytest.mark.virtual_time
@pytest.mark.parametrize("way", ["to_list", "for_each", "first", "count"])
async def test_a_cancelled_terminal_operator_waits_for_the_cleanup(way: str) -> None:
    log: list[str] = []

    async def source() -> AsyncIterator[int]:
        try:
            await asyncio.Event().wait()
            yield 1
        finally:
            await asyncio.sleep(0.01)
            log.append("closed")

    uses: dict[str, Use] = {
        "to_list": lambda flow: flow.to_list(),
        "for_each": lambda flow: flow.for_each(print),
        "first": lambda flow: flow.first(),
        "count": lambda flow: flow.boundary(2).count(),
    }
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await uses[way](r.from_aiter(source))
    assert log == ["closed"]
    assert asyncio.all_tasks() == {asyncio.current_task()}


class Recording:
    """An iterable whose generator records that it was closed."""

    def __init__(self) -> None:
        self.closed = 0

    def __iter__(self) -> Iterator[int]:
        try:
            yield from range(5)
        finally:
            self.closed += 1


def fails(x: int) -> int:
    return 1 // (1 - x)


async def iterated(flow: Flow[Any]) -> None:
    async for _ in flow:
        pass


async def subscribed(flow: Flow[Any]) -> None:
    end = (await SubscriberProbe[Any](99).subscribed_to(flow).end())[-1]
    assert isinstance(end, BaseException)
    raise end


ENDING: dict[str, Callable[[Flow[int]], Flow[Any]]] = {
    "map": lambda flow: flow.map(fails),
    "before concat": lambda flow: flow.map(fails).concat_with([1]),
    "after concat": lambda flow: flow.concat_with([1]).map(fails),
    "merge": lambda flow: flow.merge_with([5, 1]).map(fails),
    "zip": lambda flow: flow.zip_with([5, 1]).map(lambda pair: fails(pair[0])),
    "flat_map": lambda flow: flow.map(fails).flat_map(lambda x: [x]),
    "in flat_map": lambda flow: r.range(2).flat_map(lambda _: flow.map(fails)),
    "boundary": lambda flow: flow.map(fails).boundary(2),
    "map_async": lambda flow: flow.map(fails).map_async(lambda x: asyncio.sleep(0, x)),
    "workers": lambda flow: flow.map(fails).map_async(lambda x: asyncio.sleep(0, x), concurrency=3),
    "from_aiter": lambda flow: r.from_aiter(flow.map(fails).stream()),
    "on_error_resume": lambda flow: (
        flow.map(fails).on_error_resume([0.5]).map(lambda x: 1 / (x - 0.5))
    ),
}
ENDS: dict[str, Use] = {
    "to_list": lambda flow: flow.to_list(),
    "async for": iterated,
    "subscribe": subscribed,
}


@pytest.mark.parametrize("way", ENDS)
@pytest.mark.parametrize("flow", ENDING)
async def test_a_generator_is_closed_while_the_error_that_ended_its_flow_is_kept(
    flow: str, way: str
) -> None:
    source = Recording()
    gc.disable()
    try:
        with pytest.raises(ZeroDivisionError) as caught:
            await ENDS[way](ENDING[flow](r.from_iterable(source)))
        await asyncio.sleep(0)
        assert source.closed == 1
        assert caught.value.__traceback__ is not None
    finally:
        gc.enable()


# -- an error of the cleanup is no failure of the work ---------------------------------------------
class Counted:
    """Sources whose cleanup fails, and how often one was opened."""

    def __init__(self) -> None:
        self.opened = 0

    def __iter__(self) -> Iterator[int]:
        self.opened += 1
        try:
            yield from range(MANY)
        finally:
            raise CleanupError

    async def iterate(self) -> AsyncIterator[int]:
        self.opened += 1
        try:
            for number in range(MANY):
                await asyncio.sleep(0)
                yield number
        finally:
            raise CleanupError


COUNTED: dict[str, Callable[[Counted], Flow[int]]] = {
    "a generator": lambda source: r.from_iterable(source),
    "an asynchronous generator": lambda source: r.from_aiter(source.iterate),
    "boundary": lambda source: r.from_iterable(source).boundary(2),
    "flat_map": lambda source: r.from_iterable(source).flat_map(lambda x: [x]),
}
HANDLING: dict[str, Callable[[Flow[int]], Flow[Any]]] = {
    "retry": lambda flow: flow.retry(3),
    "restart": lambda flow: flow.restart(1),
    "on_error_resume": lambda flow: flow.on_error_resume([-1]),
    "on_error_resume, asynchronously": lambda flow: flow.on_error_resume(lambda _: [-1]),
    "on_error_return": lambda flow: flow.on_error_return(-1),
    "on_error_map": lambda flow: flow.on_error_map(lambda _: KeyError("mapped")),
    "on_error_complete": lambda flow: flow.on_error_complete(),
    "concat": lambda flow: flow.concat_with([1]),
    "zip": lambda flow: flow.zip_with([0, 1]).map(lambda pair: pair[0]),
    "merge": lambda flow: flow.merge_with([1]),
    "switch_if_empty": lambda flow: flow.filter(lambda _: False).switch_if_empty([0]),
    "flat_map": lambda flow: r.just(0).flat_map(lambda _: flow),
    "named": lambda flow: flow.name("cleanup"),
}
ENDING_EARLY: dict[str, Callable[[Flow[int]], Flow[int]]] = {
    "take": lambda flow: flow.take(1),
    "take_while": lambda flow: flow.take_while(lambda x: x < 1),
    "take_until": lambda flow: flow.take(1).take_until(r.never()),
    "zip": lambda flow: flow.zip_with([0]).map(lambda pair: pair[0]),
    "merge": lambda flow: flow.take(1).merge_with(r.empty()),
}


@pytest.mark.virtual_time
@pytest.mark.parametrize("early", ENDING_EARLY)
@pytest.mark.parametrize("handling", HANDLING)
@pytest.mark.parametrize("source", COUNTED)
async def test_nothing_handles_it_as_a_failure_of_the_flow(
    source: str, handling: str, early: str, expects_loop_errors: Reports
) -> None:
    counted = Counted()
    flow = HANDLING[handling](ENDING_EARLY[early](COUNTED[source](counted)))
    raised: list[BaseException] = []
    received: list[Any] = []
    try:
        await flow.do_on_next(received.append).run()
    except CleanupError as error:
        raised.append(error)
    await asyncio.sleep(1)
    assert sorted(received) in ([0], [0, 1])
    assert counted.opened == 1
    assert len(expects_loop_errors) + len(raised) == 1  # it is told once


LEAVING: dict[str, Callable[[Flow[int]], Flow[Any]]] = {
    **ENDING_EARLY,
    "nothing": lambda flow: flow,
    "take, do_finally": lambda flow: flow.take(1).do_finally(lambda _: None),
    "take, share": lambda flow: flow.take(1).share(),
    "share": lambda flow: flow.share(),
    "take, replay": lambda flow: flow.take(1).replay(1),
    "take, cache": lambda flow: flow.take(1).cache(),
    "take, boundary": lambda flow: flow.take(1).boundary(2),
    "zip": lambda flow: flow.zip_with([0]),
    "window": lambda flow: flow.window(2).take(1),
    "windows": lambda flow: flow.window(2).flat_map(lambda window: window).take(1),
    "group_by": lambda flow: (
        flow.group_by(lambda x: x % 2, max_groups=4).flat_map(lambda group: group).take(1)
    ),
    "flat_map": lambda flow: flow.flat_map(lambda x: [x]).take(1),
    "in flat_map": lambda flow: r.just(1).flat_map(lambda _: flow).take(1),
    "taken in flat_map": lambda flow: r.just(1).flat_map(lambda _: flow.take(1)),
    "concat_map": lambda flow: r.just(1).concat_map(lambda _: flow.take(1)),
    "switch_map": lambda flow: r.just(1).switch_map(lambda _: flow.take(1)),
    "merge": lambda flow: flow.take(1).merge_with([1]),
    "element_at": lambda flow: flow.take(2).skip(1),
    "first": lambda flow: r.from_awaitable(flow.first),
    "any": lambda flow: r.from_awaitable(lambda: flow.any(lambda x: x == 0)),
    "all": lambda flow: r.from_awaitable(lambda: flow.all(lambda x: x == 1)),
    "processor": lambda flow: flow.take(1).with_latest_from(r.just(1)),
}


@pytest.mark.virtual_time
@pytest.mark.parametrize("leaving", LEAVING)
@pytest.mark.parametrize("source", COUNTED)
async def test_it_is_told_when_a_flow_is_left_by_break(
    source: str, leaving: str, expects_loop_errors: Reports
) -> None:
    counted, told = Counted(), list[BaseException]()
    try:
        async for _ in LEAVING[leaving](COUNTED[source](counted)):
            break
    except CleanupError as error:
        told.append(error)
    await asyncio.sleep(1)
    told += [each["exception"] for each in expects_loop_errors]
    assert [type(each) for each in told] == [CleanupError] * counted.opened
