"""A thread that hands over elements to the loop: hand-written, and by other means."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

from .runner.peers import peer

CHUNK = 1024
ROOM = 2
"""Lists that may wait for the loop."""


async def chunks(count: int) -> AsyncIterator[list[int]]:
    """Lists of 1024 that a thread fills; it waits while two of them wait for the loop."""
    loop, room = asyncio.get_running_loop(), threading.Semaphore(ROOM)
    handed: asyncio.Queue[list[int]] = asyncio.Queue()

    def hand_over(chunk: list[int]) -> None:
        room.acquire()
        loop.call_soon_threadsafe(handed.put_nowait, chunk)

    def work() -> None:
        chunk: list[int] = []
        for element in range(count):
            chunk.append(element)
            if len(chunk) == CHUNK:
                hand_over(chunk)
                chunk = []
        if chunk:
            hand_over(chunk)
        hand_over([])

    thread = threading.Thread(target=work)
    thread.start()
    while chunk := await handed.get():
        room.release()
        yield chunk
    thread.join()


async def by_coroutine(count: int, on_next: Callable[[int], object]) -> None:
    """The idiom: the thread puts each element into a queue of 256, and waits for that."""
    loop, elements = asyncio.get_running_loop(), asyncio.Queue[int](256)

    def work() -> None:
        for element in range(count):
            asyncio.run_coroutine_threadsafe(elements.put(element), loop).result()

    thread = threading.Thread(target=work)
    thread.start()
    for _ in range(count):
        on_next(await elements.get())
    await asyncio.to_thread(thread.join)


async def by_anyio(count: int, on_next: Callable[[int], object]) -> None:
    """The same with anyio."""
    anyio, threads, to_thread = peer("anyio"), peer("anyio.from_thread"), peer("anyio.to_thread")
    send, receive = anyio.create_memory_object_stream(256)

    def work() -> None:
        for element in range(count):
            threads.run(send.send, element)
        threads.run(send.aclose)

    async with anyio.create_task_group() as group:
        group.start_soon(to_thread.run_sync, work)
        async with receive:
            async for element in receive:
                on_next(element)


async def by_reactivex(count: int, on_next: Callable[[int], object]) -> None:
    """Each element is scheduled on the loop; nothing holds the thread back."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    schedulers: Any = peer("reactivex.scheduler.eventloop")
    subject = peer("reactivex.subject").Subject()
    on_loop = peer("reactivex.operators").observe_on(schedulers.AsyncIOThreadSafeScheduler(loop))
    subject.pipe(on_loop).subscribe(on_next, done.set_exception, lambda: done.set_result(None))

    def work() -> None:
        for element in range(count):
            subject.on_next(element)
        subject.on_completed()

    thread = threading.Thread(target=work)
    thread.start()
    await done
    thread.join()
