"""from_dataframe satisfies the laws of a publisher in every mode."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from blockbuster import BlockBuster

from reactive_aio.spark import from_dataframe
from reactive_aio.tck import Candidate, Outcome, Timeouts, check
from tests.conformance.test_library import LOOPS

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
MODES_AND_LOOPS = [
    ("rows", "asyncio"),
    # It polls while a thread runs: minutes, if the JVM has to share the processors.
    ("rows", "virtual"),
    ("connect", "asyncio"),
    *[("arrow", name) for name in REAL],
]
# Each law starts some queries, so in a short run only those about demand and the end judge.
SOME_RULES = ("1.1", "1.4", "1.5", "1.8", "3.12", "3.13", "L.1", "L.6")


@pytest.mark.thorough
@pytest.mark.usefixtures("may_block")
@pytest.mark.parametrize(("mode", "loop"), MODES_AND_LOOPS)
def test_from_dataframe_conforms(session: "SparkSession", loop: str, mode: "ReadMode") -> None:
    judge(replace(candidate(session, mode), **LOOPS[loop]))


@pytest.mark.usefixtures("may_block")
@pytest.mark.parametrize(
    "mode",
    ["arrow", *(pytest.param(mode, marks=pytest.mark.thorough) for mode in ("rows", "connect"))],
)
def test_from_dataframe_conforms_to_some_rules(session: "SparkSession", mode: "ReadMode") -> None:
    judge(replace(candidate(session, mode), **LOOPS["asyncio"]), SOME_RULES)


def judge(candidate: Candidate, rules: Iterable[str] = ()) -> None:
    report = check(candidate, rules=rules, timeouts=TIMEOUTS)
    assert not report.having(Outcome.FAIL), str(report)
    assert report.having(Outcome.PASS)
