"""The threads of one subscription: what they are given is done, and the last of it at last."""

import threading
from collections.abc import Iterator

import pytest

from reactive_aio._core.loop import LoopHandle
from reactive_aio.spark.crew import Crew

from .conftest import until


@pytest.fixture
def held() -> Iterator[threading.Event]:
    """What a call waits for."""
    event = threading.Event()
    yield event
    event.set()


def threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if "reactive_aio-crew" in each.name]


def told(result: object, error: Exception | None) -> None:
    """Nobody wants to know."""


def crew(size: int) -> Crew:
    return Crew(LoopHandle("crew"), "crew", size=size, interrupt=lambda: None)


@pytest.mark.parametrize("size", [1, 2, 3])
async def test_the_last_call_comes_behind_all_others(held: threading.Event, size: int) -> None:
    """It drops what they use, and may be on a thread that has nothing else to do."""
    order = list[str]()

    def slow() -> None:
        held.wait(10)
        order.append("slow")

    ours = crew(size)
    for work in (slow, *[lambda: order.append("quick")] * 4):
        ours.call(work, told)
    if size > 1:
        await until(lambda: len(order) == 4)
    ours.dismiss(lambda: order.append("last"))
    await until(lambda: len(threads()) == 1)  # those that have nothing to do end meanwhile
    held.set()
    await until(lambda: not threads())
    assert sorted(order[:-1]) == ["quick"] * 4 + ["slow"]
    assert order[-1] == "last"


async def test_a_last_call_that_raises_ends_the_threads_all_the_same() -> None:
    ours = crew(2)
    for _ in range(2):
        ours.call(lambda: None, told)

    def fail() -> None:
        raise OSError("the JVM is gone")

    ours.dismiss(fail)
    await until(lambda: not threads())


async def test_who_was_given_nothing_makes_no_last_call() -> None:
    called = list[int]()
    crew(2).dismiss(lambda: called.append(1))
    assert not threads()
    assert not called
