"""What does a row of a Spark job cost over Spark Connect? The limit is ``df.toArrow()``.

Server and driver are one JVM on this machine; rows are sent by gRPC over loopback.
"""

from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING, Any

from reactive_aio.spark import local_session

from ..runner.question import Question
from .tables import CONNECT, OPTIONS, connected, flow, numbers, size

if TYPE_CHECKING:
    from reactive_aio.spark.read_mode import ReadMode
    from reactive_aio.spark.rows import RowKind

question = Question("Rows of a Spark job, over Spark Connect", 2_000_000, clock=perf_counter)


@cache
def remote() -> Any:
    return connected(local_session("benchmark", cores=2, config={**OPTIONS, **CONNECT}))


def table(count: int) -> Any:
    return numbers(count, remote)


@question.handwritten("`df.toArrow()`")
async def to_arrow(count: int) -> int:
    return int(table(count).toArrow().num_rows)


@question.peer("`df.toLocalIterator()`, on the loop")
async def to_local_iterator(count: int) -> int:
    return sum(1 for _ in table(count).toLocalIterator())


def case(name: str, kind: "RowKind", mode: "ReadMode" = "connect") -> None:
    """Measure a flow that is read in this way."""

    async def rows(count: int) -> int:
        return await flow(table(count), kind, mode).count()

    async def batches(count: int) -> int:
        read: Any = flow(table(count), kind, mode).map(size)
        return int(await read.sum())

    question.ours(name)(batches if kind == "batch" else rows)


case("Spark Connect: mode='rows', tuples", "tuple", "rows")
case("Spark Connect: rows", "row")
case("Spark Connect: tuples", "tuple")
case("Spark Connect: batches", "batch")
