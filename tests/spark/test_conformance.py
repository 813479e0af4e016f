"""The bridge keeps the laws of a publisher, whatever runs at the other end of it."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from blockbuster import BlockBuster

from reactive_aio.spark import from_dataframe
from reactive_aio.tck import Candidate, Outcome, Timeouts, check
from tests.conformance.test_library import LOOPS, Loop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reactive_aio import Flow
    from reactive_aio.spark.mode import Mode

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

# A job takes its time to start, and must not be taken for silence.
TIMEOUTS = Timeouts(response=60.0, stall=30.0, law=120.0)
QUIET = 0.1


def bridge(session: "SparkSession", mode: "Mode") -> Candidate:
    """The kit calls these on its loop, where making a DataFrame blocks for a moment."""

    def of_length(n: int) -> "Flow[Any]":
        return from_dataframe(session.range(0, n, 1, 1), mode=mode)

    def failing() -> "Flow[Any]":
        return from_dataframe(session.sql("select raise_error('no') as x"), mode=mode)

    def infinite() -> "Flow[Any]":
        """Partitions small enough to be computed, and more of them than anybody reads.

        A server of Spark Connect computes all of it, and keeps it: 80 MB.
        """
        partitions = 10**2 if mode == "connect" else 10**4
        return from_dataframe(session.range(0, partitions * 10**5, 1, partitions), mode=mode)

    return Candidate(
        name=f"from_dataframe in mode {mode}",
        publisher=of_length,
        failing_publisher=failing,
        infinite_publisher=infinite,
        quiet_period=QUIET,
    )


@pytest.fixture
def may_block(blocking_calls_fail: BlockBuster) -> None:
    for function in blocking_calls_fail.functions.values():
        function.can_block_in("spark/test_conformance.py", {"of_length", "failing", "infinite"})


# Where the clock jumps, a program outside has no time to answer. Arrow's batches come from sockets
# of Spark's, and the thread that waits for a paused job looks as if it were at work for ever; rows
# come through a thread that can be seen to wait for demand.
REAL = [name for name in LOOPS if name != "virtual"]
# Rows do not see the loop themselves: `from_thread` does, which is judged on all of them.
CASES = [
    *[("rows", "virtual"), ("rows", "asyncio"), ("connect", "asyncio")],
    *[("arrow", name) for name in REAL],
]


@pytest.mark.usefixtures("may_block")
@pytest.mark.parametrize(("mode", "loop"), [(mode, LOOPS[name]) for mode, name in CASES],
                         ids=map("-".join, CASES))  # fmt: skip
def test_the_bridge_conforms(session: "SparkSession", loop: Loop, mode: "Mode") -> None:
    report = check(replace(bridge(session, mode), **loop), timeouts=TIMEOUTS)
    assert not report.having(Outcome.FAIL), str(report)
    assert report.having(Outcome.PASS)
