"""Nothing of a flow remains after its end, however it ends, with the garbage collector off.

Each operator of the random pipelines runs over several sources, and ends in several ways: then
every source is closed, no task and no timer is left, and nothing refers to the source. An error
that is kept may refer to it: its traceback has the frames of the functions that it has passed.
"""

import asyncio
import builtins
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, TypeVar
from weakref import ref

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.testing import SubscriberProbe, Token
from tests.contract.pipelines.operators import OPERATORS
from tests.contract.pipelines.run import PipelineError, Run

pytestmark = pytest.mark.virtual_time

T = TypeVar("T")
COUNT = 12


class Sources:
    """The generators that were opened; each notes that it has begun, and that it is closed."""

    def __init__(self, run: Run, fails: bool) -> None:
        self.run = run
        self.fails = fails
        self.opened: list[ref[Any]] = []
        self.begun = self.closed = 0

    def _numbers(self) -> Iterator[Token]:
        self.begun += 1
        try:
            for number in range(COUNT):
                yield self.run.token(number)
            if self.fails:
                raise PipelineError
        finally:
            self.closed += 1

    async def _numbers_later(self) -> AsyncIterator[Token]:
        self.begun += 1
        try:
            for number in range(COUNT):
                await asyncio.sleep(0.01)
                yield self.run.token(number)
            if self.fails:
                raise PipelineError
        finally:
            self.closed += 1

    def __iter__(self) -> Iterator[Token]:
        return self._noted(self._numbers())

    def __aiter__(self) -> AsyncIterator[Token]:
        return self._noted(self._numbers_later())

    def _noted(self, opened: T) -> T:
        self.opened.append(ref(opened))
        return opened


async def completed(flow: Flow[Any]) -> None:
    await flow.to_list()


async def requested_one_by_one(flow: Flow[Any]) -> None:
    probe = SubscriberProbe[Any](1, again=1).subscribed_to(flow)
    del flow
    await probe.end()


async def left(flow: Flow[Any]) -> None:
    async for _ in flow:
        break


async def taken(flow: Flow[Any]) -> None:
    await flow.take(1).run()


async def cancelled(flow: Flow[Any]) -> None:
    probe = SubscriberProbe[Any](2).subscribed_to(flow)
    del flow
    await asyncio.sleep(0.055)
    probe.cancel()


async def cancelled_task(flow: Flow[Any]) -> None:
    task = asyncio.ensure_future(flow.run())
    del flow
    await asyncio.sleep(0.055)
    task.cancel()
    await asyncio.wait([task])


async def failed_below(flow: Flow[Any]) -> None:
    await flow.map(lambda _: 1 // 0).run()


async def failed_calls(flow: Flow[Any]) -> None:
    async def fails(_: Any) -> None:
        await asyncio.sleep(0.001)
        raise ZeroDivisionError

    await flow.for_each(fails, concurrency=2)


async def drained(flow: Flow[Any]) -> None:
    async with flow.running() as run:
        del flow
        await asyncio.sleep(0.055)
        await run.drain(5)


async def cut(flow: Flow[Any]) -> None:
    async with flow.running(lambda _: asyncio.sleep(10)) as run:
        del flow
        await asyncio.sleep(0.055)
        await run.drain(0.5)


ENDS = (completed, requested_one_by_one, left, taken, cancelled, cancelled_task, failed_below,
        failed_calls, drained, cut)  # fmt: skip
WHOLE = (completed, requested_one_by_one, drained)
SOURCES: dict[str, Callable[[Sources], Flow[Token]]] = {
    "an iterable": r.from_iterable,
    "an iterable behind a boundary": lambda sources: r.from_iterable(sources).boundary(3),
    "an asynchronous iterable": lambda sources: r.from_aiter(sources.__aiter__),
}


@pytest.fixture(autouse=True)
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def timers() -> list[asyncio.TimerHandle]:
    loop: Any = asyncio.get_running_loop()
    return [timer for timer in loop._scheduled if not timer.cancelled()]


async def what_remains(
    operator: str, source: str, end: Callable[[Flow[Any]], Awaitable[None]], fails: bool
) -> list[object]:
    run = Run()
    sources = Sources(run, fails)
    names = {"r": r, "run": run, "builtins": builtins, "Token": Token, "PipelineError":
             PipelineError, "asyncio": asyncio, "source": SOURCES[source](sources)}  # fmt: skip
    text = OPERATORS[operator].text.format(flow="source", n=2, m=2, k=1, v=10)
    ending = end(eval(text, names))
    del names
    error: Exception | None = None
    try:
        await ending
    except Exception as raised:
        error = raised
    del ending
    run.finished.set()
    for _ in range(10):
        await asyncio.sleep(0)
    remains: list[object] = [*timers(), *(asyncio.all_tasks() - {asyncio.current_task()})]
    if sources.closed < sources.begun:
        remains.append(f"{sources.begun - sources.closed} sources are open")
    if error is None and not fails and "failing" not in text:
        remains += [each() for each in sources.opened if each() is not None]
    return remains


@pytest.mark.thorough
@pytest.mark.parametrize("operator", OPERATORS)
async def test_nothing(operator: str) -> None:
    for source in SOURCES:
        for end in ENDS:
            remains = await what_remains(operator, source, end, fails=False)
            assert not remains, (source, end.__name__)
        for end in WHOLE:
            remains = await what_remains(operator, source, end, fails=True)
            assert not remains, (source, end.__name__, "fails")
