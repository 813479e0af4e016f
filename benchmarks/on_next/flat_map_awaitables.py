"""What does ``flat_map`` of awaitables cost, compared with ``map_async``?"""

from reactive_aio import from_awaitable, range as flow_range

from ..functions import suspend_once
from ..runner.question import Question
from ..subscribers import Summing

question = Question("`flat_map` of awaitables, 16 at a time", 40_000, counted=128)


@question.handwritten("`map_async(f, concurrency=16)`")
async def mapped(count: int) -> int:
    return await Summing().sum_of(flow_range(count).map_async(suspend_once, concurrency=16))


@question.ours(
    "`flat_map(lambda x: from_awaitable(f(x)), concurrency=16)` (× `map_async`)", goal=2.5
)
async def flattened(count: int) -> int:
    flow = flow_range(count).flat_map(lambda x: from_awaitable(suspend_once(x)), concurrency=16)
    return await Summing().sum_of(flow)
