"""What does an element of a blocking iterable cost, which another thread iterates?"""

from reactive_aio import from_thread

from ..runner.question import Question
from ..subscribers import Summing
from ..threads import by_anyio, by_coroutine, by_reactivex, chunks

question = Question("A thread", 400_000, counted=0)


@question.handwritten("a thread that hands over lists of 1024")
async def handwritten(count: int) -> int:
    subscriber = Summing()
    on_next = subscriber.on_next
    async for chunk in chunks(count):
        for element in chunk:
            on_next(element)
    return subscriber.total


@question.ours("`from_thread` → `on_next`", goal=2)
async def threaded(count: int) -> int:
    return await Summing().sum_of(from_thread(range(count)))


@question.peer("`run_coroutine_threadsafe(queue.put(x))`", share=0.01)
async def coroutine(count: int) -> int:
    subscriber = Summing()
    await by_coroutine(count, subscriber.on_next)
    return subscriber.total


@question.peer("anyio `from_thread.run`", "anyio", share=0.01)
async def anyio(count: int) -> int:
    subscriber = Summing()
    await by_anyio(count, subscriber.on_next)
    return subscriber.total


@question.peer("reactivex `observe_on`, unbounded", "reactivex", share=0.1)
async def reactivex(count: int) -> int:
    subscriber = Summing()
    await by_reactivex(count, subscriber.on_next)
    return subscriber.total
