"""The blocking calls of a subscription, and the threads that all subscriptions share."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import pytest

from reactive_aio._core.loop import LoopHandle
from reactive_aio.spark.call_threads import CallThreads
from reactive_aio.spark.thread_pool import IDLE_NAME, NEW_THREADS, ThreadPool, pool_of
from tests.harness import leftover_checks

from .conftest import wait_until


@pytest.fixture
def held() -> Iterator[threading.Event]:
    """An event that a call waits for."""
    event = threading.Event()
    yield event
    event.set()


def threads(name: str = "reactive_aio-test") -> list[threading.Thread]:
    return [each for each in threading.enumerate() if name in each.name]


def ignore(result: object, error: Exception | None) -> None:
    """Ignore the result."""


def make(interrupt: Callable[[], object] = lambda: None) -> CallThreads:
    return CallThreads(LoopHandle("test"), "test", interrupt=interrupt)


async def test_the_last_call_follows_all_others(held: threading.Event) -> None:
    """It releases what the others use."""
    order = list[str]()

    def slow() -> None:
        held.wait(10)
        order.append("slow")

    call_threads = make()
    for work in (slow, *[lambda: order.append("quick")] * 4):
        call_threads.call(work, ignore)
    await wait_until(lambda: len(order) == 4)
    call_threads.stop(lambda: order.append("last"))
    await wait_until(lambda: len(threads()) == 1)
    assert len(order) == 4
    held.set()
    await wait_until(lambda: not threads())
    assert order == ["quick"] * 4 + ["slow", "last"]


async def test_the_last_call_is_made_once_although_nothing_runs() -> None:
    order = list[str]()
    call_threads = make()
    call_threads.call(lambda: order.append("first"), ignore)
    await call_threads.wait_done()
    await wait_until(lambda: not threads())
    for _ in range(2):
        call_threads.stop(lambda: order.append("last"))
    await wait_until(lambda: len(order) == 2)
    assert order == ["first", "last"]


async def test_a_last_call_that_raises_is_the_end_as_well() -> None:
    call_threads = make()
    for _ in range(2):
        call_threads.call(lambda: None, ignore)

    def fail() -> None:
        raise OSError("the JVM is gone")

    call_threads.stop(fail)
    await wait_until(lambda: not threads())


async def test_without_a_call_the_last_call_is_not_made() -> None:
    called = list[int]()
    make().stop(lambda: called.append(1))
    assert not threads()
    assert not called


async def test_calls_that_wait_for_each_other_end() -> None:
    """Each has a thread at once, however many there are: a limit would be a deadlock."""
    barrier = threading.Barrier(50)
    call_threads = make()
    for _ in range(50):
        call_threads.call(lambda: barrier.wait(30), ignore)
    await call_threads.wait_done()


async def test_a_thread_is_held_during_a_call_only(held: threading.Event) -> None:
    idle = len(threads(IDLE_NAME))
    flows = [make() for _ in range(200)]
    for flow in flows:
        flow.call(lambda: None, ignore)
        await flow.wait_done()
        await wait_until(lambda: not threads())  # after it has posted the result
    # The thread is in the pool a moment after it has its idle name.
    assert len(threads(IDLE_NAME)) <= idle + 5


async def test_calls_are_interrupted_until_they_return(held: threading.Event) -> None:
    interruptions = list[float]()

    def interrupt() -> None:
        interruptions.append(time.monotonic())
        if len(interruptions) == 3:
            held.set()

    call_threads = make(interrupt)
    for _ in range(3):
        call_threads.call(lambda: held.wait(30), ignore)
    call_threads.interrupt()
    await call_threads.wait_done()
    await wait_until(lambda: not threads())
    assert len(interruptions) == 3
    call_threads.interrupt()
    assert not threads(), "nothing is left to interrupt"


async def test_the_context_of_the_subscriber_is_in_force() -> None:
    names = list[str]()
    call_threads = make()
    call_threads.call(lambda: names.append(threading.current_thread().name), ignore)
    await call_threads.wait_done()
    assert names[0].startswith("reactive_aio-test-")


# -- the pool --------------------------------------------------------------------------------------
def test_an_idle_thread_ends() -> None:
    pool, thread_of = ThreadPool(idle_seconds=0.001), SimpleQueue[threading.Thread]()

    def work() -> None:
        thread_of.put(threading.current_thread())

    pool.run(work, "quick")
    first = thread_of.get(timeout=30)
    first.join(30)
    assert not first.is_alive()
    pool.run(work, "quick")
    assert thread_of.get(timeout=30) is not first


def test_a_call_that_comes_when_its_thread_ends_is_made() -> None:
    pool, made = ThreadPool(idle_seconds=0.0), list[int]()
    for number in range(300):
        done = threading.Event()

        def work(number: int = number, done: threading.Event = done) -> None:
            made.append(number)
            done.set()

        pool.run(work, "quick")
        assert done.wait(30)
    assert made == [*range(300)]


def test_a_finalizer_may_interrupt_a_thread_that_holds_the_lock() -> None:
    pool, ran = ThreadPool(), threading.Event()
    with pool._lock, threading._active_limbo_lock:  # type: ignore[attr-defined]
        pool.run_from_finalizer(ran.set, "last")
    assert ran.wait(30)


async def test_a_loop_has_a_pool_of_its_own() -> None:
    """A loop with virtual time waits only for threads that are younger than it."""
    here = asyncio.get_running_loop()
    assert pool_of(here) is pool_of(here)
    other = asyncio.new_event_loop()
    assert pool_of(other) is not pool_of(here)
    other.close()


@pytest.mark.virtual_time
async def test_virtual_time_waits_for_a_call_and_not_for_an_idle_thread() -> None:
    call_threads, clock = make(), asyncio.get_running_loop().time
    began = clock()
    for _ in range(3):
        call_threads.call(lambda: time.sleep(0.02), ignore)
        await call_threads.wait_done()
        assert clock() == began
        await asyncio.sleep(3600)  # as soon as the thread is idle
        began += 3600


def test_the_harness_knows_the_name_of_idle_threads() -> None:
    assert IDLE_NAME in leftover_checks.SHARED_NAMES


def test_a_new_thread_makes_one_call() -> None:
    found = list[threading.Thread]()
    NEW_THREADS.run(lambda: found.append(threading.current_thread()), "one call")
    [thread] = found if found else (threads("one call") or found)
    thread.join(30)
    assert not thread.is_alive()
