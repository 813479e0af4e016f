"""What does it cost to call a function on threads and in processes, beside an executor's ``map``?

The executors are given the chunk size that was the best of several for the function; the operators
find theirs. Their processes are started before the first round.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache
from multiprocessing import get_context
from typing import Any

import reactive_aio as rx
from reactive_aio import Flow

from ..functions import total
from ..runner.question import Question

GOAL = 1.5
WORKERS = 2
COUNT_SHORT = 100_000
COUNT = 10_000
COUNT_LONG = 200


def short(element: int) -> int:
    """About a microsecond."""
    return element + sum(range(50)) - 1225


def middle(element: int) -> int:
    """About a hundred microseconds."""
    return element + sum(range(5000)) - 12_497_500


def long(element: int) -> int:
    """Ten milliseconds, without using the processor."""
    time.sleep(0.01)
    return element


@cache
def executor() -> ProcessPoolExecutor:
    pool = ProcessPoolExecutor(WORKERS, get_context("spawn"))
    assert [*pool.map(short, range(WORKERS))]
    return pool


@cache
def processes() -> rx.ProcessPool:
    pool = rx.ProcessPool(WORKERS)
    assert [*pool.map(short, range(WORKERS))]
    return pool


@cache
def threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(4)


def question(
    text: str,
    count: int,
    name: str,
    by_executor: Callable[[int], Iterator[int]],
    flow_of: Callable[[int], Flow[Any]],
    prepare: Callable[[], object],
) -> Question:
    made = Question(text, count, clock=time.perf_counter, counted=0, prepare=prepare)

    @made.handwritten(name)
    async def handwritten(count: int) -> int:
        results: Iterable[int] = by_executor(count)
        return sum(results)

    @made.ours(f"{text} (× {name})", goal=GOAL)
    async def ours(count: int) -> int:
        return await total(aiter(flow_of(count)))

    return made


def in_process(text: str, count: int, function: Callable[[int], int], chunk: int) -> Question:
    return question(
        f"`map_in_process(f)`, f takes {text}",
        count,
        f"`ProcessPoolExecutor.map(chunksize={chunk})`",
        lambda count: executor().map(function, range(count), chunksize=chunk),
        lambda count: rx.range(count).map_in_process(function, pool=processes()),
        lambda: (executor(), processes()),
    )


def in_thread(text: str, count: int, function: Callable[[int], int]) -> Question:
    return question(
        f"`map_in_thread(f)`, f takes {text}",
        count,
        "`ThreadPoolExecutor.map`",
        lambda count: threads().map(function, range(count)),
        lambda count: rx.range(count).map_in_thread(function, concurrency=4),
        threads,
    )


process_short = in_process("1 µs", COUNT_SHORT, short, 5000)
process_middle = in_process("100 µs", COUNT, middle, 100)
process_long = in_process("10 ms", COUNT_LONG, long, 1)
thread_short = in_thread("1 µs", COUNT, short)
thread_middle = in_thread("100 µs", COUNT, middle)
thread_long = in_thread("10 ms", COUNT_LONG, long)
