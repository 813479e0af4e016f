"""df.observe(): an Observation gets the right metrics, or a clear error, and never blocks."""

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from reactive_aio._core.demand import UNBOUNDED
from reactive_aio.spark import UnsupportedDataFrame, from_dataframe
from reactive_aio.spark.arrow.subscription import WindowJobs
from reactive_aio.testing.probes import SubscriberProbe

from .conftest import wait_for_elements, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, Observation, SparkSession

    from reactive_aio import Flow
    from reactive_aio.spark.read_mode import ReadMode

pytestmark = [pytest.mark.spark, pytest.mark.asyncio(loop_factories=["asyncio"])]


def observed(
    spark: "SparkSession", value: str = "id", partitions: int = 7
) -> "tuple[Observation, DataFrame]":
    """100 rows in several windows, counted and summed while they are read."""
    from pyspark.sql import Observation, functions

    observation = Observation()
    rows = spark.range(0, 100, 1, partitions).selectExpr(f"{value} as value")
    figures = (functions.count(functions.lit(1)), functions.sum("value").alias("sum"))
    return observation, rows.observe(observation, figures[0].alias("count"), figures[1])


async def figures(observation: "Observation") -> dict[str, Any]:
    """Return its metrics; it waits in the JVM until they are complete."""

    def is_complete() -> bool:
        untyped: Any = observation
        return bool(untyped._jo.future().isCompleted())

    await wait_until(lambda: asyncio.to_thread(is_complete))
    return await asyncio.to_thread(lambda: observation.get)


@pytest.mark.thorough
async def test_the_metrics_cover_all_windows(spark: "SparkSession", mode: "ReadMode") -> None:
    def build() -> "tuple[Observation, Flow[Any]]":
        observation, df = observed(spark)
        return observation, from_dataframe(df.where("value > 90"), mode=mode)

    observation, flow = await asyncio.to_thread(build)
    assert await flow.count() == 9
    assert await figures(observation) == {"count": 100, "sum": 4950}
    assert await flow.count() == 9
    assert await figures(observation) == {"count": 100, "sum": 4950}, "of the first subscription"


async def test_rows_before_a_shuffle_count_once(spark: "SparkSession", mode: "ReadMode") -> None:
    def build() -> "tuple[Observation, Flow[Any]]":
        observation, df = observed(spark)
        return observation, from_dataframe(df.repartition(5), mode=mode)

    observation, flow = await asyncio.to_thread(build)
    assert await flow.count() == 100
    assert await figures(observation) == {"count": 100, "sum": 4950}


async def test_a_cancellation_publishes_the_metrics_so_far(
    spark: "SparkSession", mode: "ReadMode"
) -> None:
    def build() -> "tuple[Observation, Flow[Any]]":
        observation, df = observed(spark, partitions=10)
        return observation, from_dataframe(df, mode=mode)

    observation, flow = await asyncio.to_thread(build)
    probe = SubscriberProbe[Any](11).subscribed_to(flow)
    await wait_for_elements(probe, 11)
    probe.cancel()
    assert await figures(observation) == {"count": 20, "sum": 190}, "two partitions"


@pytest.mark.parametrize("slow", ["plan", "prepare"])
async def test_a_cancellation_before_the_first_job_publishes_zero(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    """Two threads begin, and either may still run when the subscription is cancelled."""
    begun, ended = threading.Event(), threading.Event()
    both: dict[str, Callable[[WindowJobs], Any]] = {
        "plan": WindowJobs.plan,
        "prepare": WindowJobs.prepare,
    }
    close = WindowJobs.close

    def late(jobs: WindowJobs) -> Any:
        begun.set()
        ended.wait(0.3)  # a `close` that did not wait would run now
        return both[slow](jobs)

    def forgotten(jobs: WindowJobs) -> None:
        close(jobs)
        ended.set()

    monkeypatch.setattr(WindowJobs, slow, late)
    monkeypatch.setattr(WindowJobs, "close", forgotten)

    def build() -> "tuple[Observation, Flow[Any]]":
        observation, df = observed(spark)
        return observation, from_dataframe(df, mode="arrow")

    observation, flow = await asyncio.to_thread(build)
    monkeypatch.setattr(
        WindowJobs, "_require_active", bool
    )  # as if the call had begun before the cancellation
    probe = SubscriberProbe[Any](1).subscribed_to(flow)
    await wait_until(begun.is_set)
    probe.cancel()
    assert (await figures(observation))["count"] == 0


async def test_a_failure_publishes_the_metrics_so_far(
    spark: "SparkSession", mode: "ReadMode"
) -> None:
    def build() -> "tuple[Observation, Flow[Any]]":
        observation, df = observed(spark, "if(id = 60, 1 / (id - 60), id)", 10)
        return observation, from_dataframe(df, mode=mode, window=1)

    observation, flow = await asyncio.to_thread(build)
    probe = SubscriberProbe[Any](UNBOUNDED).subscribed_to(flow)
    await probe.end()
    assert "DIVIDE_BY_ZERO" in str(probe.error)
    assert (await figures(observation))["count"] % 10 == 0


async def test_an_observation_that_cannot_be_completed_is_refused(
    spark: "SparkSession", mode: "ReadMode", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reactive_aio.spark._internals._PUBLISH", "missing")

    def build(named: bool) -> "Flow[Any]":
        return from_dataframe(observed(spark)[1] if named else spark.range(9), mode=mode)

    flow = await asyncio.to_thread(build, True)
    with pytest.raises(UnsupportedDataFrame, match=r"Observation\.get would wait for ever"):
        await flow.count()
    assert await (await asyncio.to_thread(build, False)).count() == 9, "other DataFrames are read"
