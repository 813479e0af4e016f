"""The end of the event loop waits for the threads of its flows, which may be cleaning up."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio._core import loop as loop_module
from reactive_aio.errors import TimedOut
from tests.harness.loops import REAL_LOOPS, LoopFactory
from tests.recipes.waiting import until

every_loop = pytest.mark.parametrize("make_loop", REAL_LOOPS.values(), ids=REAL_LOOPS)


class Work:
    """What runs on a thread; it can end only when the loop waits for it."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.log: list[str] = []
        self.began = threading.Event()
        self.may_end = threading.Event()
        join = loop_module._join

        def joins(users: Any) -> list[str]:
            self.may_end.set()
            return join(users)

        patch.setattr(loop_module, "_join", joins)

    def rows(self) -> Iterator[int]:
        try:
            yield 1
            yield 2
            yield 3
        finally:
            self.began.set()
            self.may_end.wait(10)
            self.log.append("committed")

    def call(self, x: int) -> int:
        if x == 1:
            self.began.wait(10)
        else:
            self.began.set()
            self.may_end.wait(10)
            self.log.append("committed")
        return x

    async def begun(self) -> None:
        await until(self.began.is_set)


async def leave(flow: r.Flow[int], work: Work) -> None:
    async for _ in flow:
        break
    await work.begun()


async def leave_a_task(flow: r.Flow[int], work: Work) -> None:
    async def consume(received: asyncio.Event) -> None:
        async for _ in flow:
            received.set()
            await asyncio.Event().wait()

    received = asyncio.Event()
    tasks.add(asyncio.ensure_future(consume(received)))
    await received.wait()


async def share(flow: r.Flow[int], work: Work) -> None:
    assert await flow.share(grace=10).first() == 1


tasks: set[asyncio.Future[None]] = set()
WAYS: dict[str, Callable[[r.Flow[int], Work], Awaitable[None]]] = {
    "break": leave,
    "a task that is left": leave_a_task,
    "share": share,
}
FLOWS: dict[str, Callable[[Work], r.Flow[int]]] = {
    "from_thread": lambda work: r.from_thread(work.rows),
    "from_thread, one by one": lambda work: r.from_thread(work.rows, chunk=1),
    "from_thread below a boundary": lambda work: r.from_thread(work.rows).take(2).boundary(1),
    "map_in_thread": lambda work: r.just(1, 2).map_in_thread(work.call, concurrency=2),
}


@every_loop
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("flow", FLOWS)
def test_a_thread_that_cleans_up_is_waited_for(
    flow: str, way: str, make_loop: LoopFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Work(monkeypatch)
    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(as_coroutine(WAYS[way](FLOWS[flow](work), work)))
    assert work.log == ["committed"]
    tasks.clear()


async def as_coroutine(work: Awaitable[None]) -> None:
    await work


@every_loop
def test_a_thread_that_does_not_end_is_reported(
    make_loop: LoopFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_module, "JOIN_TIME", 0.01)
    reports: list[dict[str, Any]] = []
    began, may_end = threading.Event(), threading.Event()

    def rows() -> Iterator[int]:
        yield 1
        began.set()
        may_end.wait(10)
        yield 2

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reports.append(context))
        async with asyncio.timeout(10):
            async for _ in r.from_thread(rows).stream(prefetch=2):
                await until(began.is_set)
                break

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(main())
    [report] = reports
    assert isinstance(report["exception"], TimedOut)
    assert "from_thread" in str(report["exception"])
    may_end.set()
    for thread in threading.enumerate():
        if "from_thread" in thread.name:
            thread.join(10)


@every_loop
def test_what_has_ended_is_forgotten_and_threads_that_flows_share_are_known_once(
    make_loop: LoopFactory,
) -> None:
    async def main() -> None:
        users = loop_module._users_of_threads
        loop = asyncio.get_running_loop()
        assert await r.from_thread([1, 2]).to_list() == [1, 2]
        await until(lambda: not users[loop])
        for _ in range(3):
            assert await r.range(4).map_in_thread(str).to_list() == ["0", "1", "2", "3"]
        await until(lambda: len(users[loop]) == 1)

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(main())
