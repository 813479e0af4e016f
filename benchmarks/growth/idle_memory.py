"""Do elements leave anything behind in memory, beside 10,000 idle inner flows or timers?"""

import asyncio
import gc
import tracemalloc
from contextlib import ExitStack

from reactive_aio import Flow, UnicastProcessor, from_iterable, never

from ..memory.idle import Waiting
from ..runner.question import Question
from ..subscribers import Summing

IDLE = 10_000
MOST = 16
"""KiB that may remain: caches, and what a queue keeps for its next elements."""

question = Question(
    f"Memory after {IDLE:,} elements, beside {IDLE:,} idle flows",
    IDLE,
    unit="KiB",
    is_goal_a_figure=True,
    rounds=1,
    is_scaled=False,
)


@question.ours(f"memory after {IDLE:,} elements, beside as many idle inner flows", goal=MOST)
async def inner_flows(count: int) -> float:
    processor = UnicastProcessor[int]()
    flows: list[Flow[int]] = [*(never() for _ in range(count)), processor]
    merged = from_iterable(flows).flat_map(_itself, concurrency=count + 1)
    return await _remaining(processor, merged, count)


@question.ours(f"memory after {IDLE:,} elements with a timeout, beside as many timers", goal=MOST)
async def timers(count: int) -> float:
    processor = UnicastProcessor[int]()
    with ExitStack() as stack:
        for _ in range(count):
            waiting = Waiting()
            never().timeout(3600).subscribe(waiting)
            stack.callback(waiting.close)
        return await _remaining(processor, processor.timeout(60), count)


def _itself(flow: Flow[int]) -> Flow[int]:
    return flow


async def _remaining(processor: UnicastProcessor[int], flow: Flow[int], count: int) -> float:
    """Emit *count* elements; return the KiB that the last nine tenths of them leave behind."""
    subscriber = Summing()
    flow.subscribe(subscriber)
    await processor.wait_for_subscribers()  # it is the last to be subscribed to
    await _emit(processor, count // 10)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        await _emit(processor, count - count // 10)
        gc.collect()
        return (tracemalloc.get_traced_memory()[0] - before) / 1024
    finally:
        tracemalloc.stop()
        subscriber.subscription.cancel()


async def _emit(processor: UnicastProcessor[int], count: int) -> None:
    for element in range(count):
        await processor.emit(element)
    await asyncio.sleep(0)
