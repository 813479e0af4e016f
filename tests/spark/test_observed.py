"""df.observe(): an Observation gets right figures, or there is a clear error, and no wait."""

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from reactive_aio._core.demand import UNBOUNDED
from reactive_aio.spark import UnsupportedDataFrame, from_dataframe
from reactive_aio.spark.batches import Batches
from reactive_aio.testing.probes import SubscriberProbe

from .conftest import arrived, until

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, Observation, SparkSession

    from reactive_aio import Flow
    from reactive_aio.spark.mode import Mode

pytestmark = [pytest.mark.spark, pytest.mark.asyncio(loop_factories=["asyncio"])]


def observed(
    spark: "SparkSession", value: str = "id", partitions: int = 7
) -> "tuple[Observation, DataFrame]":
    """100 rows, counted and summed up while they are read; in several windows."""
    from pyspark.sql import Observation, functions

    observation = Observation()
    rows = spark.range(0, 100, 1, partitions).selectExpr(f"{value} as value")
    figures = (functions.count(functions.lit(1)), functions.sum("value").alias("sum"))
    return observation, rows.observe(observation, figures[0].alias("count"), figures[1])


async def figures(observation: "Observation") -> dict[str, Any]:
    """What it says. It waits, in the JVM, until there is something to say."""

    def told() -> bool:
        untyped: Any = observation
        return bool(untyped._jo.future().isCompleted())

    await until(lambda: asyncio.to_thread(told))
    return await asyncio.to_thread(lambda: observation.get)


async def test_the_figures_are_of_all_windows(spark: "SparkSession", mode: "Mode") -> None:
    def build() -> "tuple[Observation, Flow[Any]]":
        observation, df = observed(spark)
        return observation, from_dataframe(df.where("value > 90"), mode=mode)

    observation, flow = await asyncio.to_thread(build)
    assert await flow.count() == 9
    assert await figures(observation) == {"count": 100, "sum": 4950}
    assert await flow.count() == 9
    assert await figures(observation) == {"count": 100, "sum": 4950}, "of the first reading"


async def test_a_shuffle_behind_it_counts_once(spark: "SparkSession", mode: "Mode") -> None:
    def build() -> "tuple[Observation, Flow[Any]]":
        observation, df = observed(spark)
        return observation, from_dataframe(df.repartition(5), mode=mode)

    observation, flow = await asyncio.to_thread(build)
    assert await flow.count() == 100
    assert await figures(observation) == {"count": 100, "sum": 4950}


async def test_leaving_tells_what_was_computed(spark: "SparkSession", mode: "Mode") -> None:
    def build() -> "tuple[Observation, Flow[Any]]":
        observation, df = observed(spark, partitions=10)
        return observation, from_dataframe(df, mode=mode)

    observation, flow = await asyncio.to_thread(build)
    probe = SubscriberProbe[Any](11).subscribed_to(flow)
    await arrived(probe, 11)
    probe.cancel()
    assert await figures(observation) == {"count": 20, "sum": 190}, "two partitions"


@pytest.mark.parametrize("slow", ["plan", "prepare"])
async def test_leaving_before_anything_was_computed_tells_that(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    """Two threads begin, and either may still be at it when nobody wants to know any more."""
    begun, ended = threading.Event(), threading.Event()
    both: dict[str, Callable[[Batches], Any]] = {"plan": Batches.plan, "prepare": Batches.prepare}
    forget = Batches.forget

    def late(batches: Batches) -> Any:
        begun.set()
        ended.wait(0.3)  # a forgetting that would not wait
        return both[slow](batches)

    def forgotten(batches: Batches) -> None:
        forget(batches)
        ended.set()

    monkeypatch.setattr(Batches, slow, late)
    monkeypatch.setattr(Batches, "forget", forgotten)

    def build() -> "tuple[Observation, Flow[Any]]":
        observation, df = observed(spark)
        return observation, from_dataframe(df, mode="arrow")

    observation, flow = await asyncio.to_thread(build)
    monkeypatch.setattr(Batches, "_refuse", bool)  # as if it had begun before
    probe = SubscriberProbe[Any](1).subscribed_to(flow)
    await until(begun.is_set)
    probe.cancel()
    assert (await figures(observation))["count"] == 0


async def test_a_failure_tells_what_was_computed(spark: "SparkSession", mode: "Mode") -> None:
    def build() -> "tuple[Observation, Flow[Any]]":
        observation, df = observed(spark, "if(id = 60, 1 / (id - 60), id)", 10)
        return observation, from_dataframe(df, mode=mode, window=1)

    observation, flow = await asyncio.to_thread(build)
    probe = SubscriberProbe[Any](UNBOUNDED).subscribed_to(flow)
    await probe.end()
    assert "DIVIDE_BY_ZERO" in str(probe.error)
    assert (await figures(observation))["count"] % 10 == 0


async def test_where_spark_has_no_way_to_tell_it_there_is_an_error(
    spark: "SparkSession", mode: "Mode", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reactive_aio.spark.observed._TELL", "missing")

    def build(named: bool) -> "Flow[Any]":
        return from_dataframe(observed(spark)[1] if named else spark.range(9), mode=mode)

    flow = await asyncio.to_thread(build, True)
    with pytest.raises(UnsupportedDataFrame, match=r"Observation\.get would wait for ever"):
        await flow.count()
    assert await (await asyncio.to_thread(build, False)).count() == 9, "others are read"
