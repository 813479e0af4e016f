"""What does ``map_async`` cost with 16 calls at a time?"""

import asyncio
from typing import Any

from reactive_aio import range as flow_range

from ..functions import double, suspend_once
from ..reactivex_calls import sum_of_calls
from ..runner.peers import peer
from ..runner.question import Question
from ..subscribers import Summing

CONCURRENCY = 16

suspending = Question("`map_async`, 16 at a time, suspending once", 100_000)
never_suspending = Question("`map_async`, 16 at a time, never suspending", 200_000)


@suspending.handwritten("16 tasks that share an iterator and call `on_next`")
async def handwritten(count: int) -> int:
    subscriber = Summing()
    on_next, f, elements = subscriber.on_next, suspend_once, iter(range(count))

    async def work() -> None:
        for element in elements:
            on_next(await f(element))

    await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
    return subscriber.total


@suspending.ours("`map_async(f, concurrency=16)` → `on_next`", goal=1.15)
async def concurrent(count: int) -> int:
    flow = flow_range(count).map_async(suspend_once, concurrency=CONCURRENCY)
    return await Summing().sum_of(flow)


@suspending.ours("the same with `ordered=False`")
async def unordered(count: int) -> int:
    flow = flow_range(count).map_async(suspend_once, concurrency=CONCURRENCY, ordered=False)
    return await Summing().sum_of(flow)


@suspending.other("the same 16 tasks, with the results in order, handed over once a turn")
async def in_order(count: int) -> int:
    subscriber, loop = Summing(), asyncio.get_running_loop()
    on_next, f, elements = subscriber.on_next, suspend_once, iter(range(count))
    early: dict[int, int] = {}
    ready: list[int] = []
    following, is_scheduled = 0, False

    def hand_over() -> None:
        nonlocal is_scheduled
        is_scheduled = False
        for result in ready:
            on_next(result)
        ready.clear()

    async def work() -> None:
        nonlocal following, is_scheduled
        for element in elements:
            early[element] = await f(element)
            while following in early:
                ready.append(early.pop(following))
                following += 1
            if not is_scheduled:
                is_scheduled = True
                loop.call_soon(hand_over)

    await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
    hand_over()
    return subscriber.total


@suspending.other("`asyncio.Semaphore(16)` and a task for each element", share=0.2)
async def semaphore(count: int) -> int:
    subscriber, free = Summing(), asyncio.Semaphore(CONCURRENCY)
    tasks = set[asyncio.Task[None]]()

    async def call(element: int) -> None:
        try:
            subscriber.on_next(await suspend_once(element))
        finally:
            free.release()

    for element in range(count):
        await free.acquire()
        task = asyncio.create_task(call(element))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    return subscriber.total


@suspending.peer("anyio, 16 tasks and a memory stream", "anyio", share=0.2)
async def anyio(count: int) -> int:
    library, subscriber = peer("anyio"), Summing()
    send, receive = library.create_memory_object_stream(CONCURRENCY)

    async def work(elements: Any) -> None:
        async with elements:
            async for element in elements:
                subscriber.on_next(await suspend_once(element))

    async with library.create_task_group() as group:
        for _ in range(CONCURRENCY):
            group.start_soon(work, receive.clone())
        receive.close()
        async with send:
            for element in range(count):
                await send.send(element)
    return subscriber.total


@suspending.peer("reactivex `merge(max_concurrent=16)`", "reactivex", share=0.1)
async def reactivex(count: int) -> int:
    return await sum_of_calls(count, suspend_once, concurrency=CONCURRENCY)


@never_suspending.handwritten("the sequential `map_async(f)`")
async def one_at_a_time(count: int) -> int:
    return await Summing().sum_of(flow_range(count).map_async(double))


@never_suspending.ours("`map_async(f, concurrency=16)`, never suspending (× sequential)", goal=2)
async def not_suspending(count: int) -> int:
    flow = flow_range(count).map_async(double, concurrency=CONCURRENCY)
    return await Summing().sum_of(flow)
