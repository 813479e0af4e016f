"""What does a source of ``merge`` cost, of n synchronous sources of 10 elements each?"""

from reactive_aio import merge, range as flow_range

from ..subscribers import Summing
from .sizes import growth, nanoseconds

EACH = 10


async def measure(sources: int, _: int) -> float:
    merged = merge(*(flow_range(EACH) for _ in range(sources)))
    return await nanoseconds(Summing().sum_of(merged), sources * EACH)


question = growth(
    "Synchronous sources of `merge`",
    "`merge` of {n} synchronous sources",
    (100, 1_000, 10_000, 100_000),
    measure,
)
