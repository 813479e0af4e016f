"""What does ``async for`` over a blocking iterable cost, which another thread iterates?"""

from collections.abc import AsyncIterator

from reactive_aio import from_thread

from ..functions import total
from ..runner.question import Question
from ..threads import by_anyio, by_coroutine, by_reactivex, chunks

question = Question("A thread", 400_000, counted=0)


@question.handwritten("a thread that hands over lists of 1024")
async def handwritten(count: int) -> int:
    async def elements() -> AsyncIterator[int]:
        async for chunk in chunks(count):
            for element in chunk:
                yield element

    return await total(elements())


@question.ours("`async for` over `from_thread`", goal=2.5)
async def over(count: int) -> int:
    return await total(aiter(from_thread(range(count))))


class _Total:
    def __init__(self) -> None:
        self.value = 0

    def add(self, element: int) -> None:
        self.value += element


@question.peer("`run_coroutine_threadsafe(queue.put(x))`", share=0.01)
async def coroutine(count: int) -> int:
    found = _Total()
    await by_coroutine(count, found.add)
    return found.value


@question.peer("anyio `from_thread.run`", "anyio", share=0.01)
async def anyio(count: int) -> int:
    found = _Total()
    await by_anyio(count, found.add)
    return found.value


@question.peer("reactivex `observe_on`, unbounded", "reactivex", share=0.1)
async def reactivex(count: int) -> int:
    found = _Total()
    await by_reactivex(count, found.add)
    return found.value
