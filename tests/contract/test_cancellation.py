"""Cancel at every point: silence, cleanup before the next statement, nothing left behind."""

import asyncio
import gc
import itertools
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from reactive_aio import Flow, from_aiter, from_thread, just, merge, range as range_of
from reactive_aio.stage import FlowSubscription, InlineStage, from_async, from_pull, from_push
from reactive_aio.testing import SubscriberProbe
from reactive_aio.testing.probes import pass_time
from reactive_aio.testing.virtual_time import VirtualTimeLoop
from tests.contract.subscribers import (
    BOTH,
    SHAPES,
    UNBOUNDED,
    Acting,
    AsyncActing,
    Source,
    flow,
    forever,
    itself,
    pushed,
    tasks,
    turns,
)
from tests.harness.one_run import in_one_run
from tests.recipes.waiting import until

Shape = Callable[[Source], Flow[int]]
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
both = pytest.mark.parametrize("kind", BOTH)
AHEAD = InlineStage("ahead", params=("elements",), before="emit each $elements")


# -- cancel() called in a test -------------------------------------------------------------------
@in_one_run
@every_shape
@both
@pytest.mark.parametrize("at", range(6))
async def test_cancel_inside_a_signal_stops_signals_and_cleans_up(
    shape: Shape, kind: type[Acting], at: int
) -> None:
    """1.8, 3.12: in on_subscribe (0), and in each on_next."""

    def act(self: Acting) -> None:
        if len(self.signals) == at:
            self.cancel()

    source = Source()
    subscriber = kind(UNBOUNDED, on_subscribe=act, on_next=act)
    shape(source).subscribe(subscriber)
    await turns(60)
    assert subscriber.signals == list(range(at))
    assert source.closed == source.opened
    assert tasks() == set()


@in_one_run
@every_shape
@both
async def test_cancel_after_any_number_of_turns(shape: Shape, kind: type[Acting]) -> None:
    """1.8, 3.13: whatever is under way at that moment."""
    for number in range(1, 25):
        source = Source(8)
        subscriber = kind(3, again=1)
        shape(source).subscribe(subscriber)
        await turns(number)
        subscriber.cancel()
        seen = list(subscriber.signals)
        await turns(40)
        # A coroutine on_complete may have been called, and begin after the cancellation.
        assert subscriber.signals in (seen, [*seen, *"|" * (kind is AsyncActing)])
        assert source.closed == source.opened
        assert tasks() == set()


def nothing(_loop: asyncio.AbstractEventLoop, _context: dict[str, Any]) -> None:
    """Ignore the argument."""


@settings(max_examples=80)
@given(
    st.sampled_from(sorted(SHAPES)),
    st.booleans(),
    st.lists(st.tuples(st.sampled_from(["request", "cancel", "turn", "wrong"]), st.integers(1, 3))),
)
def test_any_sequence_of_calls_keeps_the_contract(
    name: str, asynchronous: bool, steps: list[tuple[str, int]]
) -> None:
    """1.1, 1.3, 1.7, 1.8, 3.6, 3.7, 3.9: the signals are those of the calls made so far."""

    async def main() -> None:
        source = Source(6)
        subscriber = BOTH[asynchronous]()
        SHAPES[name](source).subscribe(subscriber)
        await turns(3)
        requested, cancelled_at, wrong = 0, None, False
        for step, n in steps:
            if step == "request":
                subscriber.request(n)
                requested += n
            elif step == "wrong":
                subscriber.request(0)
                wrong = True
            elif step == "cancel":
                subscriber.cancel()
                if cancelled_at is None:
                    cancelled_at = len(subscriber.signals)
            else:
                await turns(n)
            assert len(subscriber.elements) <= requested
        await turns(150)
        signals = subscriber.signals
        if cancelled_at is not None:
            # A coroutine on_error may have been called, and begin after the cancellation.
            assert len(signals) - cancelled_at in ({0, 1} if wrong and asynchronous else {0})
        elif wrong:
            assert subscriber.is_terminated
        else:
            assert subscriber.elements == list(range(min(6, requested)))
        assert sum(isinstance(each, Exception) or each == "|" for each in signals) <= 1
        if subscriber.is_terminated or cancelled_at is not None:
            assert source.closed == source.opened
            assert not tasks()
        subscriber.cancel()
        await turns(30)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.get_loop().set_exception_handler(nothing)  # what came after a cancel
        runner.run(main())


@pytest.mark.parametrize(("where", "expected"), [("on_subscribe", []), ("opening", ["opened"])])
async def test_what_is_cancelled_before_its_first_element_reads_nothing(
    where: str, expected: list[str]
) -> None:
    """3.12: nor is the source opened, if that is in on_subscribe."""
    seen: list[str] = []

    class Ahead:
        def __iter__(self) -> Iterator[int]:
            seen.append("read")
            return iter([0])

    def opened() -> Iterator[int]:
        seen.append("opened")
        if where == "opening":
            subscriber.cancel()
        return iter([1])

    def act(self: Acting) -> None:
        if where == "on_subscribe":
            self.cancel()

    subscriber = Acting(UNBOUNDED, on_subscribe=act)
    from_pull(opened, name="opened").via(AHEAD, Ahead()).subscribe(subscriber)
    assert (seen, subscriber.signals) == (expected, [])


@pytest.mark.parametrize("stage", ["in the caller", "in a task"])
async def test_cancel_inside_the_request_to_upstream_cleans_up(stage: str) -> None:
    """3.5, 3.12: a source may call what it likes in ``request``."""
    cancelled: list[bool] = []

    class Cancelling(FlowSubscription):
        def request(self, n: int, /) -> None:
            subscriber.cancel()

        def cancel(self) -> None:
            cancelled.append(True)

    subscriber = Acting()
    source = pushed(lambda _: Cancelling())
    (source if stage == "in the caller" else source.map_async(itself)).subscribe(subscriber)
    subscriber.request(1)
    await turns()
    assert cancelled == [True]
    assert tasks() == set()


async def test_closing_inside_a_signal_waits_for_the_loop_that_sends_it() -> None:
    """As a task does that runs at once, inside of what has started it."""
    source, closing = Source(), list[Coroutine[Any, Any, None]]()

    def act(self: Acting) -> None:
        assert isinstance(self.subscription, FlowSubscription)
        closing.append(self.subscription.aclose())
        closing[0].send(None)
        assert not source.closed

    subscriber = Acting(UNBOUNDED, on_next=act)
    source.pull().subscribe(subscriber)
    with pytest.raises(StopIteration):
        closing[0].send(None)
    assert (subscriber.signals, source.closed) == ([0], 1)


@every_shape
async def test_cancel_before_the_first_step(shape: Shape) -> None:
    """3.13: a task cancelled before its first step runs nothing, not even a finally."""
    source = Source()
    subscriber = Acting()
    shape(source).subscribe(subscriber)
    subscriber.request(1)
    subscriber.cancel()
    held, gone = subscriber.subscription, weakref.ref(subscriber)
    del subscriber
    await turns()
    gc.collect()
    assert gone() is None or SHAPES["pulled"] is shape
    assert source.closed == source.opened
    assert tasks() == set()
    del held


@every_shape
@both
async def test_a_cancelled_subscriber_is_freed_without_the_garbage_collector(
    shape: Shape, kind: type[Acting]
) -> None:
    """3.13: once it is cancelled or has ended, though its subscription is still held."""
    gc.disable()
    try:
        for ending in ("cancel", "complete"):
            subscriber = kind(1 if ending == "cancel" else 9)
            shape(Source(3)).subscribe(subscriber)
            await turns(30)
            if ending == "cancel":
                subscriber.cancel()
            await turns(10)
            held, gone = subscriber.subscriptions, weakref.ref(subscriber)
            del subscriber
            await turns(3)
            assert gone() is None, ending
            assert held
    finally:
        gc.enable()


@both
async def test_a_subscriber_is_freed_once_a_flow_of_values_has_completed(
    kind: type[Acting],
) -> None:
    """3.13: there is no source to be closed, so that such a flow ends with fewer steps."""
    gc.disable()
    try:
        subscriber = kind(9)
        just(1, 2, 3).map(lambda x: x).subscribe(subscriber)
        await turns(9)
        assert subscriber.is_completed
        held, gone = subscriber.subscriptions, weakref.ref(subscriber)
        del subscriber
        await turns(3)
        assert gone() is None
        assert held
    finally:
        gc.enable()


async def test_cancel_does_not_interrupt_a_suspended_on_next() -> None:
    """DESIGN: what the subscriber does is the subscriber's; it runs to its end."""
    for made in (flow(9), flow(9).map_async(itself), flow(9).boundary(2)):
        ended: list[str] = []
        go = asyncio.Event()

        async def slow(_: Acting, go: asyncio.Event = go, ended: list[str] = ended) -> None:
            try:
                await go.wait()
                ended.append("to its end")
            except asyncio.CancelledError:
                ended.append("cut")
                raise

        for kind in BOTH:
            subscriber = kind(3, on_next=slow)
            made.subscribe(subscriber)
            await turns(15)
            assert subscriber.signals == [0]
            subscriber.cancel()
            await turns()
            go.set()
            await turns()
            assert ended == ["to its end"]
            assert subscriber.signals == [0]
            ended.clear()
            go.clear()


async def test_upstream_is_cancelled_while_on_next_is_suspended() -> None:
    """3.12: cancel() does not wait for the subscriber."""
    for shape in ("pulled", "boundary"):
        go = asyncio.Event()
        source = Source()

        def rest(_: Acting, go: asyncio.Event = go) -> Any:
            return go.wait()

        subscriber = Acting(3, on_next=rest)
        SHAPES[shape](source).subscribe(subscriber)
        await turns(15)
        subscriber.cancel()
        assert source.closed == 1
        go.set()
        await turns()
        assert subscriber.signals == [0]


async def test_upstream_is_cancelled_while_a_mapper_is_being_cancelled() -> None:
    """3.12: a stage may take its time over its cancellation."""
    for chain in (Source.pull, Source.push):
        source = Source()
        subscriber = SubscriberProbe[int](3).subscribed_to(chain(source).map_async(forever))
        await turns()
        subscriber.cancel()
        assert source.closed == 1
        await turns()
        assert tasks() == set()


async def test_a_suspended_drain_ends_at_once() -> None:
    """3.12, cleanup: between two turns, no task waits for the next one."""
    source = Source()
    subscriber = SubscriberProbe[int]()
    source.pull().subscribe(subscriber)
    subscriber.request(UNBOUNDED)
    subscriber.cancel()
    assert source.closed == 1


async def test_a_mapper_that_swallows_its_cancellation_sends_no_signal() -> None:
    """1.8."""

    async def stubborn(x: int) -> int:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass
        return x

    for kind in BOTH:
        subscriber = kind(5)
        flow(5).map_async(stubborn).subscribe(subscriber)
        await turns(5)
        subscriber.cancel()
        await turns()
        assert subscriber.signals == []
        assert tasks() == set()


async def test_a_source_that_swallows_its_cancellation_sends_no_signal() -> None:
    """1.8."""

    async def stubborn() -> AsyncIterator[int]:
        for number in itertools.count():
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                pass
            yield number

    for kind in BOTH:
        subscriber = kind(5)
        from_async(stubborn, name="stubborn").subscribe(subscriber)
        await turns(5)
        subscriber.cancel()
        await turns()
        assert subscriber.signals == []
        assert tasks() == set()


async def test_an_error_in_the_cleanup_of_a_source_is_reported(
    expects_loop_errors: list[Any],
) -> None:
    """3.15: cancel() returns normally, and the error is not lost."""

    def numbers() -> Iterator[int]:
        try:
            yield from itertools.count()
        finally:
            raise ValueError("cleanup")

    subscriber = SubscriberProbe[int](2).subscribed_to(from_pull(numbers, name="numbers"))
    subscriber.cancel()
    assert [str(each["exception"]) for each in expects_loop_errors] == ["cleanup"]
    assert subscriber.signals == [0, 1]


async def test_a_task_island_cancelled_twice_releases_once() -> None:
    """3.7: and aclose waits for asynchronous cleanup."""
    cleaned: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0)
            cleaned.append("cleaned")

    for chain in (
        from_async(numbers, name="numbers"),
        from_async(numbers, name="numbers").boundary(2),
    ):
        subscriber = SubscriberProbe[int](5).subscribed_to(chain)
        await subscriber.wait_for_signals(1)
        subscription: Any = subscriber.subscription
        subscription.cancel()
        subscription.cancel()
        await subscription.aclose()
        assert cleaned == ["cleaned"]
        await subscription.aclose()
        cleaned.clear()


class Closing(FlowSubscription):
    """A source of a user that cleans up in an ``aclose`` of its own."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error
        self.is_closed = False

    def request(self, n: int, /) -> None:
        pass

    def cancel(self) -> None:
        pass

    async def aclose(self) -> None:
        self.is_closed = True
        if self._error is not None:
            raise self._error


class SaysWhen(Closing):
    @property
    def is_clean(self) -> bool:
        return self.is_closed


def closing(source: Closing) -> Flow[int]:
    return from_push(lambda _: source, name="closing")


@pytest.mark.parametrize("kind", [Closing, SaysWhen])
async def test_a_source_with_an_aclose_of_its_own_says_when_it_is_clean(
    kind: type[Closing],
) -> None:
    """Without a word it never is, so that its ``aclose`` is awaited."""
    source = kind()
    subscription: Any = SubscriberProbe[int](1).subscribed_to(closing(source)).subscription
    subscription.cancel()
    assert (source.is_clean, subscription.is_clean) == (False, False)
    await subscription.aclose()
    says = kind is SaysWhen
    assert (source.is_clean, subscription.is_clean) == (says, says)


async def test_aclose_raises_what_the_cleanups_above_have_raised() -> None:
    """When all of them are over."""
    first, second, last = (Closing(OSError(1)), Closing(OSError(2)), Closing())
    sources = [closing(each) for each in (first, second, last)]
    one: Any = SubscriberProbe[int](1).subscribed_to(sources[0]).subscription
    with pytest.raises(OSError, match="1"):
        await one.aclose()
    three: Any = SubscriberProbe[int](1).subscribed_to(merge(*sources)).subscription
    with pytest.raises(ExceptionGroup, match="cleanups failed") as caught:
        await three.aclose()
    assert {str(each) for each in caught.value.exceptions} == {"1", "2"}
    assert last.is_closed


async def test_cancelling_the_wait_for_cleanup_does_not_cancel_the_cleanup() -> None:
    cleaned: list[str] = []
    go = asyncio.Event()

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.sleep(3600)
        finally:
            await go.wait()
            cleaned.append("cleaned")

    subscriber = SubscriberProbe[int](5).subscribed_to(from_async(numbers, name="numbers"))
    await subscriber.wait_for_signals(1)
    subscription: Any = subscriber.subscription
    closing = asyncio.create_task(subscription.aclose())
    await turns(3)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    go.set()
    await turns()
    assert cleaned == ["cleaned"]


# -- a consumer that is cancelled more than once ---------------------------------------------------
class Slow:
    """What runs, cleans up, or cannot be interrupted, until it `may_end`."""

    def __init__(self) -> None:
        self.has_begun, self.may_end = threading.Event(), asyncio.Event()
        self._may_return = threading.Event()
        self.log: list[str] = []

    def call(self, x: int) -> int:
        self.has_begun.set()
        self._may_return.wait(60)
        self.log.append("ended")
        return x

    def rows(self) -> Iterator[int]:
        yield self.call(1)

    async def call_async(self, x: int) -> int:
        try:
            self.has_begun.set()
            await asyncio.Event().wait()
        finally:
            await self.may_end.wait()
            self.log.append("ended")
        return x

    async def rows_async(self) -> AsyncIterator[int]:
        yield await self.call_async(1)

    async def rows_with_cleanup(self) -> AsyncIterator[int]:
        """Rows of which the last has been read when the cleanup begins."""
        try:
            yield 1
        finally:
            self.has_begun.set()
            await self.may_end.wait()
            self.log.append("ended")

    def rows_of_a_thread(self) -> Iterator[int]:
        """The same."""
        try:
            yield 1
            yield 2
        finally:
            self.call(1)

    async def __aenter__(self) -> "Slow":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.end()

    async def end(self) -> None:
        self.may_end.set()
        self._may_return.set()
        await until(lambda: self.log)


async def streamed(flow: Flow[int]) -> None:
    async with flow.stream() as stream:
        async for _ in stream:
            pass


CONSUMERS: dict[str, Callable[[Flow[int]], Coroutine[Any, Any, Any]]] = {
    "to_list": lambda flow: flow.to_list(),
    "for_each": lambda flow: flow.for_each(repr),
    "first": lambda flow: flow.first(),
    "stream": streamed,
}
READ: dict[str, Callable[[Slow], Flow[int]]] = {
    "map_in_thread": lambda slow: just(1).map_in_thread(slow.call),
    "from_thread": lambda slow: from_thread(slow.rows),
    "map_async": lambda slow: just(1).map_async(slow.call_async),
    "from_aiter": lambda slow: from_aiter(slow.rows_async),
}
LEFT: dict[str, Callable[[Slow], Flow[int]]] = {
    "from_thread": lambda slow: from_thread(slow.rows_of_a_thread, chunk=1).take(1),
    "from_aiter": lambda slow: from_aiter(slow.rows_with_cleanup).take(1),
}


async def cancelled(task: asyncio.Task[Any]) -> bool:
    """Cancel *task*; return whether that has ended it."""
    task.cancel()
    await pass_time(20)
    return task.done()


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("source", READ)
async def test_a_consumer_waits_for_the_cleanup_until_it_is_cancelled_a_second_time(
    source: str, consumer: str
) -> None:
    async with Slow() as slow:
        task = asyncio.create_task(CONSUMERS[consumer](READ[source](slow)))
        await until(slow.has_begun.is_set)
        assert not await cancelled(task)
        assert await cancelled(task)
        assert (task.cancelled(), slow.log) == (True, [])


@pytest.mark.parametrize("source", LEFT)
async def test_a_consumer_that_is_cancelled_while_it_waits_for_the_cleanup_waits_on(
    source: str,
) -> None:
    """It has its elements already; a second cancellation ends its wait here too."""
    for is_cancelled_again in (False, True):
        async with Slow() as slow:
            task = asyncio.create_task(LEFT[source](slow).to_list())
            await until(slow.has_begun.is_set)
            await pass_time(20)
            assert not await cancelled(task)
            if is_cancelled_again:
                assert await cancelled(task)
        await asyncio.wait([task])
        assert task.cancelled()


_CALLS = InlineStage("calls", params=("f",), each="await $f(x)\nemit x\nemit x")


@pytest.mark.parametrize("emits", [False, True])
async def test_what_a_call_has_made_after_the_cancellation_reaches_no_other_function(
    emits: bool,
) -> None:
    """The call was cleaning up, so that it was not cut."""
    called: list[int] = []
    back: list[int] = []
    is_cleaning_up, may_end = asyncio.Event(), asyncio.Event()

    async def call(x: int) -> int:
        try:
            return x
        finally:
            is_cleaning_up.set()
            await may_end.wait()

    calls = range_of(1).via(_CALLS, call) if emits else range_of(1).map_async(call)
    flow = calls.do_on_discard(back.append).map(abs).do_on_next(called.append)
    async with flow.running(called.append) as run:
        await is_cleaning_up.wait()
        draining = asyncio.create_task(run.drain(0))
        await pass_time(20)  # so that the drain has cut the call
        may_end.set()
        report = await draining
    assert (called, back, report.delivered, report.in_flight) == ([], [0], 0, 1)


@pytest.mark.parametrize("is_pulled", [True, False])
@pytest.mark.parametrize("kind", ["for_each", "filter_async"])
async def test_no_element_is_begun_after_a_call_that_was_cleaning_up(
    kind: str, is_pulled: bool
) -> None:
    """The cancellation came during the cleanup, which is not cut."""
    called: list[int] = []
    is_cleaning_up, may_end = asyncio.Event(), asyncio.Event()

    async def call(x: int) -> bool:
        called.append(x)
        try:
            return x < 0
        finally:
            is_cleaning_up.set()
            await may_end.wait()

    source = range_of(100) if is_pulled else range_of(100).boundary(100)
    sink = source.for_each(call) if kind == "for_each" else source.filter_async(call).count()
    task = asyncio.ensure_future(sink)
    await is_cleaning_up.wait()
    task.cancel()
    await pass_time(20)
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert called == [0]
