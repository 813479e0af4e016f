"""What does an element cost that is delivered to 10 subscribers?"""

import asyncio

from reactive_aio import MulticastProcessor, range as flow_range

from ..runner.peers import peer
from ..runner.question import Question
from ..subscribers import Batches, Summing

SUBSCRIBERS = 10

question = Question("Multicast to 10 subscribers", 100_000, counted=256)


@question.handwritten("a for loop over 10 `on_next`")
async def handwritten(count: int) -> int:
    subscribers = [Summing() for _ in range(SUBSCRIBERS)]
    signals = [each.on_next for each in subscribers]
    for element in range(count):
        for on_next in signals:
            on_next(element)
    return sum(each.total for each in subscribers)


async def _multicast(count: int, kind: type[Batches] | type[Summing]) -> int:
    processor = MulticastProcessor[int]()
    subscribers = [kind() for _ in range(SUBSCRIBERS)]
    for each in subscribers:
        processor.subscribe(each)
    flow_range(count).subscribe(processor)
    await asyncio.gather(*(each.done for each in subscribers))
    return sum(each.total for each in subscribers)


@question.ours("`MulticastProcessor` to 10 subscribers, unbounded", goal=1.5)
async def unbounded(count: int) -> int:
    return await _multicast(count, Summing)


@question.ours("`MulticastProcessor` to 10 subscribers, `request(256)` each", goal=2)
async def batches(count: int) -> int:
    return await _multicast(count, Batches)


@question.peer("reactivex `Subject`", "reactivex")
async def reactivex(count: int) -> int:
    subject = peer("reactivex.subject").Subject()
    subscribers = [Summing() for _ in range(SUBSCRIBERS)]
    for each in subscribers:
        subject.subscribe(each.on_next)
    for element in range(count):
        subject.on_next(element)
    return sum(each.total for each in subscribers)


@question.peer("reactivex `publish`", "reactivex")
async def reactivex_publish(count: int) -> int:
    rx, operators = peer("reactivex"), peer("reactivex.operators")
    published = rx.from_iterable(range(count)).pipe(operators.publish())
    subscribers = [Summing() for _ in range(SUBSCRIBERS)]
    for each in subscribers:
        published.subscribe(each.on_next)
    published.connect()
    return sum(each.total for each in subscribers)


@question.peer("10 `asyncio.Queue(256)`", share=0.1)
async def queues(count: int) -> int:
    subscribers = [Summing() for _ in range(SUBSCRIBERS)]
    elements = [asyncio.Queue[int](256) for _ in subscribers]

    async def read(queue: "asyncio.Queue[int]", subscriber: Summing) -> None:
        for _ in range(count):
            subscriber.on_next(await queue.get())

    pairs = zip(elements, subscribers, strict=True)
    tasks = [asyncio.create_task(read(*pair)) for pair in pairs]
    for element in range(count):
        for queue in elements:
            await queue.put(element)
    await asyncio.gather(*tasks)
    return sum(each.total for each in subscribers)
