"""from_dataframe satisfies the laws of a publisher in every mode."""

from collections.abc import Iterable
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
    from reactive_aio.spark.read_mode import ReadMode

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

# A job starts slowly, which must not count as silence.
TIMEOUTS = Timeouts(response=60.0, stall=30.0, law=120.0)
QUIET = 0.1


def candidate(session: "SparkSession", mode: "ReadMode") -> Candidate:
    """The laws call these on their loop, where making a DataFrame blocks for a moment."""

    def of_length(n: int) -> "Flow[Any]":
        return from_dataframe(session.range(0, n, 1, 1), mode=mode)

    def failing() -> "Flow[Any]":
        return from_dataframe(session.sql("select raise_error('no') as x"), mode=mode)

    def infinite() -> "Flow[Any]":
        """Small partitions, and more of them than any law reads.

        A Spark Connect server computes and keeps all of them: 80 MB.
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


# On virtual time, another process has no time to answer. Mode "arrow" reads sockets of Spark, and
# its threads cannot be seen to wait for demand; the thread of mode "rows" can.
REAL = [name for name in LOOPS if name != "virtual"]
# Mode "rows" uses the loop only through `from_thread`, which is judged by all laws on all loops;
# here by those about demand and the end. The loop with virtual time polls while a thread runs:
# minutes, if the JVM has to share the processors.
CASES = [("connect", "asyncio"), ("arrow", REAL[-1])]
MORE = [("rows", "asyncio"), ("rows", "virtual"), *[("arrow", name) for name in REAL[:-1]]]
RULES_OF_ROWS = ("1.1", "1.4", "1.5", "1.8", "3.12", "3.13", "L.1", "L.6")


@pytest.mark.usefixtures("may_block")
@pytest.mark.parametrize(
    ("mode", "loop"),
    [
        *[pytest.param(mode, LOOPS[name], id=f"{mode}-{name}") for mode, name in CASES],
        *[
            pytest.param(mode, LOOPS[name], id=f"{mode}-{name}", marks=pytest.mark.thorough)
            for mode, name in MORE
        ],
    ],
)
def test_from_dataframe_conforms(session: "SparkSession", loop: Loop, mode: "ReadMode") -> None:
    judge(replace(candidate(session, mode), **loop))


@pytest.mark.usefixtures("may_block")
def test_mode_rows_conforms_to_what_from_thread_does_not_decide(spark: "SparkSession") -> None:
    judge(replace(candidate(spark, "rows"), **LOOPS["asyncio"]), RULES_OF_ROWS)


def judge(candidate: Candidate, rules: Iterable[str] = ()) -> None:
    report = check(candidate, rules=rules, timeouts=TIMEOUTS)
    assert not report.having(Outcome.FAIL), str(report)
    assert report.having(Outcome.PASS)
