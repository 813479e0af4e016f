"""The call threads of one subscription."""

import threading
from collections.abc import Iterator

import pytest

from reactive_aio._core.loop import LoopHandle
from reactive_aio.spark.call_threads import CallThreads

from .conftest import wait_until


@pytest.fixture
def held() -> Iterator[threading.Event]:
    """An event that a call waits for."""
    event = threading.Event()
    yield event
    event.set()


def threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if "reactive_aio-test" in each.name]


def ignore(result: object, error: Exception | None) -> None:
    """Ignore the result."""


def make(size: int) -> CallThreads:
    return CallThreads(LoopHandle("test"), "test", size=size, interrupt=lambda: None)


@pytest.mark.parametrize("size", [1, 2, 3])
async def test_the_last_call_follows_all_others(held: threading.Event, size: int) -> None:
    """It releases what the others use, and may run on an idle thread."""
    order = list[str]()

    def slow() -> None:
        held.wait(10)
        order.append("slow")

    call_threads = make(size)
    for work in (slow, *[lambda: order.append("quick")] * 4):
        call_threads.call(work, ignore)
    if size > 1:
        await wait_until(lambda: len(order) == 4)
    call_threads.stop(lambda: order.append("last"))
    await wait_until(lambda: len(threads()) == 1)  # idle threads end meanwhile
    held.set()
    await wait_until(lambda: not threads())
    assert sorted(order[:-1]) == ["quick"] * 4 + ["slow"]
    assert order[-1] == "last"


async def test_threads_end_although_the_last_call_raises() -> None:
    call_threads = make(2)
    for _ in range(2):
        call_threads.call(lambda: None, ignore)

    def fail() -> None:
        raise OSError("the JVM is gone")

    call_threads.stop(fail)
    await wait_until(lambda: not threads())


async def test_without_threads_the_last_call_is_not_made() -> None:
    called = list[int]()
    make(2).stop(lambda: called.append(1))
    assert not threads()
    assert not called
