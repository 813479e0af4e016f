"""from_thread: a blocking iterable on its own thread."""

import asyncio
import gc
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, closing
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

import reactive_aio as r
from reactive_aio._core.demand import UNBOUNDED
from reactive_aio._sources.thread import (
    ReentrantEvent,
    _PullState,
    _PullThread,
    _ThreadSubscription,
    from_thread,
)
from reactive_aio.errors import Interrupted
from reactive_aio.spec import Publisher
from reactive_aio.stage import LoopHandle
from reactive_aio.testing.probes import AsyncSubscriberProbe, SubscriberProbe
from tests.cases import Needs
from tests.harness.leftover_checks import Context

if TYPE_CHECKING:
    from reactive_aio.flow import Flow
    from reactive_aio.testing import Parkable


def failing() -> Iterator[int]:
    yield 1
    raise ValueError("the iterable fails")


OF_LENGTH: Mapping[str, Callable[[int], Publisher[Any]]] = {
    "from_thread": lambda n: from_thread(range(n)),
    "from_thread: in small chunks": lambda n: from_thread(range(n), chunk=2),
}
FAILING: Mapping[str, Callable[[], Publisher[Any]]] = {"from_thread": lambda: from_thread(failing)}
INFINITE: Mapping[str, Callable[[], Publisher[Any]]] = {
    "from_thread": lambda: from_thread(lambda: count())
}

BY_THREADS = {"from_thread", "from_thread: in small chunks"}

LONG_ENOUGH = 0.05  # seconds in which a forbidden effect would show


async def until(condition: Callable[[], object], seconds: float = 5.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - of another thread's state
            await asyncio.sleep(0.001)


async def arrived(probe: SubscriberProbe[Any], count: int) -> None:
    await until(lambda: len(probe.elements) >= count)


def threads() -> list[str]:
    return [each.name for each in threading.enumerate() if "from_thread" in each.name]


async def no_thread() -> None:
    await until(lambda: not threads())


class Steps:
    """Yields 0, 1, 2 …, records the thread, and can be made to block or to fail."""

    def __init__(self, stop: int = 10) -> None:
        self.stop = stop
        self.pulled = 0
        self.threads = set[int]()
        self.closed_on: int | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.error: Exception | None = None

    def __call__(self) -> Iterator[int]:
        try:
            for number in range(self.stop):
                self.threads.add(threading.get_ident())
                self.gate.wait()
                if self.error is not None:
                    raise self.error
                self.pulled += 1
                yield number
        finally:
            self.closed_on = threading.get_ident()


async def test_the_iterable_is_iterated_on_one_other_thread() -> None:
    steps = Steps()
    await SubscriberProbe[int](UNBOUNDED).subscribed_to(from_thread(steps)).end()
    assert len(steps.threads) == 1
    assert threading.get_ident() not in steps.threads
    assert steps.closed_on in steps.threads


async def test_each_subscription_has_its_own_thread() -> None:
    steps = Steps(5)
    probes = [SubscriberProbe[int](2).subscribed_to(from_thread(steps)) for _ in range(2)]
    for probe in probes:
        await arrived(probe, 2)
    assert len(steps.threads) == 2
    for probe in probes:
        probe.cancel()
    await no_thread()


async def test_starts_nothing_before_demand() -> None:
    steps = Steps()
    probe = SubscriberProbe[int]().subscribed_to(from_thread(steps))
    await asyncio.sleep(LONG_ENOUGH)
    assert (steps.pulled, threads()) == (0, [])
    probe.cancel()
    await asyncio.sleep(LONG_ENOUGH)
    assert (steps.pulled, threads()) == (0, [])


async def test_pulls_exactly_what_was_requested() -> None:
    steps = Steps(100)
    probe = SubscriberProbe[int]().subscribed_to(from_thread(steps))
    for demand, total in [(1, 1), (7, 8)]:
        probe.request(demand)
        await arrived(probe, total)
        await asyncio.sleep(LONG_ENOUGH)
        assert steps.pulled == total
    probe.cancel()


async def test_a_slow_iterable_hands_over_each_element_at_once() -> None:
    gate = threading.Event()

    def numbers() -> Iterator[int]:
        yield 0
        gate.wait()
        yield 1

    probe = SubscriberProbe[int](UNBOUNDED).subscribed_to(from_thread(numbers))
    await until(lambda: probe.elements == [0])
    gate.set()
    assert await probe.end() == [0, 1, "|"]


async def test_a_slow_subscriber_slows_the_thread_down() -> None:
    steps = Steps(100_000)
    probe = AsyncSubscriberProbe[int](UNBOUNDED, turns=2)
    from_thread(steps, chunk=16).subscribe(probe)
    highest = 0
    for _ in range(300):
        await asyncio.sleep(0)
        highest = max(highest, steps.pulled - len(probe.elements))
    assert probe.elements
    assert highest <= 16 + 1  # the element that is being delivered
    probe.cancel()


async def test_fails_when_the_iterable_cannot_be_made() -> None:
    error = ValueError("no")

    def make() -> Iterable[int]:
        raise error

    signals = await SubscriberProbe[int](1).subscribed_to(from_thread(make)).end()
    assert signals == [error]


@pytest.mark.parametrize("error", [StopIteration("no"), SystemExit(3), KeyboardInterrupt()])
async def test_an_error_with_another_meaning_on_the_loop_is_wrapped(
    error: BaseException,
) -> None:
    def make() -> Iterable[int]:
        raise error

    signals = await SubscriberProbe[int](1).subscribed_to(from_thread(make)).end()
    assert isinstance(signals[0], (RuntimeError, Interrupted))
    assert signals[0].__cause__ is error


async def test_none_is_not_an_element() -> None:
    probe = SubscriberProbe[Any](9).subscribed_to(from_thread([1, None]))
    signals = await probe.end()
    assert signals[0] == 1
    assert isinstance(signals[1], TypeError)


async def test_cancelling_lets_a_sleeping_thread_close_the_generator() -> None:
    steps = Steps()
    probe = SubscriberProbe[int](2).subscribed_to(from_thread(steps))
    await until(lambda: len(probe.elements) == 2)
    probe.cancel()
    await no_thread()
    assert steps.closed_on in steps.threads


async def test_an_element_that_the_thread_adds_after_a_cancellation_is_discarded() -> None:
    pulls, gate, discarded = threading.Event(), threading.Event(), list[object]()

    def pulled() -> Iterator[int]:
        yield 0
        pulls.set()
        gate.wait(10)
        yield 1
        yield 2

    flow = from_thread(pulled).do_on_discard(discarded.append)
    async with flow.stream(prefetch=3) as elements:
        assert await anext(elements) == 0
        await until(pulls.is_set)  # else it may see the cancellation first
        asyncio.get_running_loop().call_later(0.01, gate.set)
    assert discarded == [1]


class Discarding:
    """A downstream that notes what is discarded."""

    cleanup = None

    def __init__(self) -> None:
        self.discarded: list[object] = []
        self.on_discard = self.discarded.append


async def test_elements_that_are_not_delivered_yet_are_discarded_by_a_cancellation() -> None:
    downstream: Any = Discarding()
    worker = _PullThread[int](lambda: ((), None), LoopHandle(), "test", False, downstream)
    subscription = _ThreadSubscription(downstream, worker)
    worker.state.ready.append(1)
    subscription.cancel()
    assert downstream.discarded == [1]
    del subscription
    worker.state.ready.append(2)
    worker._post()
    await asyncio.sleep(0)
    assert downstream.discarded == [1, 2]


async def test_cancelling_returns_at_once_while_a_call_blocks() -> None:
    steps = Steps()
    steps.gate.clear()
    probe = SubscriberProbe[int](1).subscribed_to(from_thread(steps))
    await until(lambda: steps.threads)
    probe.cancel()
    assert threads(), "the call blocks until the gate is opened, below"
    steps.gate.set()
    await no_thread()


async def test_interrupt_ends_a_call_that_blocks() -> None:
    steps = Steps()
    steps.gate.clear()
    given = list[Any]()

    def interrupt(iterable: Iterable[int]) -> None:
        given.append(iterable)
        if len(given) == 3:  # it is called again until the call has returned
            steps.error = OSError("interrupted")
            steps.gate.set()

    probe = SubscriberProbe[int](1).subscribed_to(from_thread(steps, interrupt=interrupt))
    await until(lambda: steps.threads)
    probe.cancel()
    await no_thread()
    assert len(given) >= 3  # once more if the thread gets no core for as long as an interval
    assert len(set(map(id, given))) == 1
    assert not probe.signals  # the error that the interruption causes is dropped


async def test_interrupt_reaches_an_iterable_that_is_still_being_made() -> None:
    made, interrupted = threading.Event(), threading.Event()

    def make() -> Iterator[int]:
        made.wait()
        interrupted.wait()
        return iter([1])

    flow = from_thread(make, interrupt=lambda _: interrupted.set())
    probe = SubscriberProbe[int](1).subscribed_to(flow)
    await until(threads)
    probe.cancel()
    made.set()
    interrupted.set()
    await no_thread()
    assert not probe.signals


async def test_a_sleeping_thread_is_not_interrupted() -> None:
    calls = list[object]()
    probe = SubscriberProbe[int](1).subscribed_to(from_thread([1, 2], interrupt=calls.append))
    await arrived(probe, 1)
    await asyncio.sleep(LONG_ENOUGH)
    probe.cancel()
    await no_thread()
    assert calls == []


async def test_an_interrupt_that_raises_is_reported(expects_loop_errors: list[Context]) -> None:
    steps = Steps()
    steps.gate.clear()

    def interrupt(_: Iterable[int]) -> None:
        raise RuntimeError("cannot")

    probe = SubscriberProbe[int](1).subscribed_to(from_thread(steps, interrupt=interrupt))
    await until(lambda: steps.threads)
    probe.cancel()
    await until(lambda: expects_loop_errors)
    steps.gate.set()
    await no_thread()
    assert "interrupting" in str(expects_loop_errors[0]["message"])


async def test_an_interrupt_that_raises_is_told_once_by_a_drain_that_ends_in_a_cancel() -> None:
    steps = Steps()
    steps.gate.clear()

    def interrupt(_: Iterable[int]) -> None:
        calls.append(None)
        if len(calls) > 1:
            steps.gate.set()
        raise RuntimeError("cannot")

    calls: list[None] = []
    released = asyncio.get_running_loop().call_later(LONG_ENOUGH, steps.gate.set)
    async with AsyncExitStack() as stack:
        run = await stack.enter_async_context(from_thread(steps, interrupt=interrupt).running())
        await until(lambda: steps.threads)
        with pytest.raises(RuntimeError, match="cannot"):
            await run.drain(timeout=0)
    released.cancel()
    assert len(calls) == 1


async def test_a_close_that_raises_is_reported(expects_loop_errors: list[Context]) -> None:
    def numbers() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            raise RuntimeError("cannot close")

    probe = SubscriberProbe[int](1).subscribed_to(from_thread(numbers))
    await arrived(probe, 1)
    probe.cancel()
    await until(lambda: expects_loop_errors)
    assert "closing" in str(expects_loop_errors[0]["message"])
    await no_thread()


async def test_a_close_that_raises_is_raised_to_the_consumer_that_awaits_it() -> None:
    def numbers() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            raise RuntimeError("cannot close")

    with pytest.raises(RuntimeError, match="cannot close"):
        await from_thread(numbers).first()
    await no_thread()


class Closable:
    """An iterable with a ``close``, like a file."""

    def __init__(self, *, fails: bool = False) -> None:
        self.closed_on: list[int] = []
        self.fails = fails

    def __iter__(self) -> Iterator[int]:
        return iter(range(9))

    def close(self) -> None:
        self.closed_on.append(threading.get_ident())
        if self.fails:
            raise OSError("cannot close")


async def test_what_a_function_has_made_is_closed_on_the_thread() -> None:
    made: list[Closable] = []

    def make() -> Closable:
        made.append(Closable())
        return made[-1]

    await from_thread(make).to_list()
    await from_thread(make).first()
    await no_thread()
    threads_that_closed = [each for one in made for each in one.closed_on]
    assert len(threads_that_closed) == 2
    assert threading.get_ident() not in threads_that_closed


async def test_it_is_closed_when_it_cannot_be_iterated(expects_loop_errors: list[Context]) -> None:
    class NotIterable(Closable):
        def __iter__(self) -> Iterator[int]:
            raise ValueError("cannot iterate")

    made = NotIterable(fails=True)
    with pytest.raises(ValueError, match="cannot iterate"):
        await from_thread(lambda: made).to_list()
    assert len(made.closed_on) == 1
    assert [str(each["exception"]) for each in expects_loop_errors] == ["cannot close"]


async def test_what_is_passed_directly_belongs_to_the_caller() -> None:
    mine = Closable()
    assert await from_thread(mine).count() == 9
    await no_thread()
    assert mine.closed_on == []


async def test_aclose_waits_until_the_generator_is_closed() -> None:
    steps = Steps(10**9)
    async with from_thread(steps).stream() as numbers:
        async for _ in numbers:
            break
    assert steps.closed_on in steps.threads


async def first_element_of(flow: "Flow[int]") -> None:
    """Take one element and drop every reference to the subscription."""
    probe = SubscriberProbe[int](1).subscribed_to(flow)
    await arrived(probe, 1)


async def test_a_collected_subscription_ends_its_thread() -> None:
    steps = Steps()
    await first_element_of(from_thread(steps))
    await until(lambda: not gc.collect() and not threads())
    assert steps.closed_on in steps.threads


async def test_the_thread_ends_after_its_loop_is_closed() -> None:
    steps = Steps(10**9)

    def other() -> None:
        asyncio.run(first_element_of(from_thread(steps)))

    await asyncio.to_thread(other)
    await until(lambda: not gc.collect() and not threads())


@pytest.mark.parametrize("chunk", [0, -1, True, "3"])
def test_a_chunk_has_at_least_one_element(chunk: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^from_thread: chunk must be"):
        from_thread([1], chunk=chunk)


def test_it_holds_nothing() -> None:
    assert from_thread([1], chunk=10).bound().total == 10


async def test_a_system_without_threads_fails_the_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    signals = await SubscriberProbe[int](1).subscribed_to(from_thread([1])).end()
    assert isinstance(signals[0], RuntimeError)


@pytest.mark.virtual_time
async def test_a_thread_without_demand_does_not_hold_a_virtual_clock() -> None:
    probe = SubscriberProbe[int](1).subscribed_to(from_thread(range(2)))
    await probe.wait_for_signals(1)
    await asyncio.sleep(3600)
    assert probe.signals == [0]
    probe.request(2)
    assert await probe.end() == [0, 1, "|"]


class TestState:
    """The state that the loop and the thread share: and the decisions of each."""

    def test_demand_is_what_was_requested_and_not_pulled(self) -> None:
        state = _PullState[int]()
        assert state.demand() == 0
        state.request(3)
        state.pulled += 1
        assert state.demand() == 2

    def test_there_is_no_demand_after_a_cancellation(self) -> None:
        state = _PullState[int]()
        state.request(3)
        state.cancel()
        assert state.demand() is None

    def test_one_callback_takes_all_elements_that_are_ready(self) -> None:
        state = _PullState[int]()
        state.ready += [1, 2]
        state.is_posted = True
        assert state.take() == ([1, 2], False)
        assert not state.is_posted

    def test_the_end_comes_with_the_last_elements(self) -> None:
        state = _PullState[int]()
        state.ready.append(1)
        state.finish(None)
        assert state.take() == ([1], True)

    def test_an_error_after_a_cancellation_is_dropped(self) -> None:
        state = _PullState[int]()
        state.cancel()
        state.finish(OSError())
        assert (state.error, state.is_finished) == (None, True)


class TestReentrantEvent:
    def test_a_set_after_clear_is_not_missed(self) -> None:
        event = ReentrantEvent()
        event.clear()
        event.set()
        event.set()
        event.wait()

    async def test_it_declares_when_its_thread_is_parked(self) -> None:
        event = ReentrantEvent()
        parkable: Parkable = event
        event.clear()
        assert not parkable.is_parked()
        thread = threading.Thread(target=event.wait)
        thread.start()
        await until(parkable.is_parked)
        event.set()
        assert not parkable.is_parked()
        thread.join()


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Make a flow": {
        "from an iterable that blocks, such as a file or a driver": "from_thread",
    },
}


async def example_from_thread() -> None:
    def rows() -> Iterator[tuple[str, int]]:
        with closing(sqlite3.connect(":memory:")) as database:
            yield from database.execute("values ('tea', 3), ('milk', 1)")

    print(await r.from_thread(rows).to_list())
