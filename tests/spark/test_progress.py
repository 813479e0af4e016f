"""Progress: exact counts, reported at a limited rate."""

import asyncio
from math import inf
from typing import TYPE_CHECKING, Any, cast

import pytest

from reactive_aio._core.demand import UNBOUNDED
from reactive_aio._core.loop import LoopHandle
from reactive_aio._shared.progress_bars import REPORT_EVERY
from reactive_aio.spark import Progress, from_dataframe
from reactive_aio.spark.progress import OnProgress, ProgressMeter
from reactive_aio.testing.probes import SubscriberProbe
from tests.harness.leftover_checks import Context

from .conftest import wait_for_elements, wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reactive_aio import Flow
    from reactive_aio.spark.read_mode import ReadMode

pytestmark = pytest.mark.spark


class Reports(list[Progress]):
    """The reports of a flow."""

    async def wait_until(self, **figures: object) -> Progress:
        """Wait for a report with these values."""

        def there() -> bool:
            return any(
                all(getattr(each, name) == value for name, value in figures.items())
                for each in self
            )

        await wait_until(there)
        return self[-1]


async def reading(spark: "SparkSession", on_progress: OnProgress, **options: Any) -> "Flow[Any]":
    """40 rows in 4 partitions."""

    def build() -> "Flow[Any]":
        flow: Any = from_dataframe(spark.range(0, 40, 1, 4), progress=on_progress, **options)  # pyright: ignore[reportUnknownVariableType]
        return cast("Flow[Any]", flow)

    return await asyncio.to_thread(build)


async def test_the_last_report_counts_everything(spark: "SparkSession", mode: "ReadMode") -> None:
    reports = Reports()
    flow = await reading(spark, reports.append, mode=mode)
    assert await flow.count() == 40
    last = reports[-1]
    assert (last.state, last.is_done) == ("completed", True)
    assert (last.partitions, last.launched, last.computed, last.done) == (4, 4, 4, 4)
    assert last.rows == 40
    assert last.bytes > 40
    assert last.rows_per_second == pytest.approx(40 / last.seconds)
    assert [each.state for each in reports].count("completed") == 1
    assert len({each.number for each in reports}) == 1


async def test_the_last_report_has_every_count_of_the_thread() -> None:
    """A thread counts and then ends; the loop may see the end before the posted callback."""
    reports = Reports()
    meter = ProgressMeter(reports.append, LoopHandle("from_dataframe()"))
    meter.on_request(1)
    meter.add_from_thread("done", 1)
    meter.add_from_thread("bytes", 30)
    meter.add_from_thread("bytes", 12)
    meter.finish("completed")
    await asyncio.sleep(2 * REPORT_EVERY)
    (last,) = reports
    assert (last.state, last.done, last.bytes) == ("completed", 1, 42)


async def test_a_count_of_a_thread_is_reported_without_any_other_event() -> None:
    reports = Reports()
    meter = ProgressMeter(reports.append, LoopHandle("from_dataframe()"))
    meter.on_request(1)
    await reports.wait_until(demand=1)
    for more in (30, 12):
        await asyncio.to_thread(meter.add_from_thread, "bytes", more)
    await reports.wait_until(bytes=42)


async def test_the_last_report_precedes_the_terminal_signal(
    spark: "SparkSession", mode: "ReadMode"
) -> None:
    seen = list[str]()

    def record(progress: Progress) -> None:
        seen.append(progress.state)

    flow = await reading(spark, record, mode=mode)
    probe = SubscriberProbe[Any](UNBOUNDED).subscribed_to(
        flow.do_on_complete(lambda: seen.append("|"))
    )
    await probe.end()
    assert seen[-2:] == ["completed", "|"]


async def test_demand_is_reported(spark: "SparkSession") -> None:
    reports = Reports()
    flow = await reading(spark, reports.append, mode="arrow")
    probe = SubscriberProbe[Any](5).subscribed_to(flow)
    paused = await reports.wait_until(state="waiting", rows=5)
    assert (paused.partitions, paused.launched, paused.computed, paused.done) == (4, 1, 1, 0)
    assert paused.demand == 0
    probe.request(12)
    paused = await reports.wait_until(state="waiting", rows=17)
    assert (paused.launched, paused.done) == (2, 1)
    probe.request(UNBOUNDED)
    await probe.end()
    assert reports[-1].demand == inf


async def test_nothing_is_reported_without_an_event(
    spark: "SparkSession", mode: "ReadMode"
) -> None:
    reports = Reports()
    flow = await reading(spark, reports.append, mode=mode)
    probe = SubscriberProbe[Any]().subscribed_to(flow)
    await asyncio.sleep(2 * REPORT_EVERY)
    assert reports == []
    probe.request(5)
    await reports.wait_until(rows=5)
    await asyncio.sleep(2 * REPORT_EVERY)
    before = len(reports)
    await asyncio.sleep(3 * REPORT_EVERY)
    assert len(reports) == before
    probe.cancel()


async def test_reports_are_limited_in_rate(spark: "SparkSession", mode: "ReadMode") -> None:
    """Each row is requested and delivered on its own; most of them are not reported."""
    reports = Reports()
    flow = await reading(spark, reports.append, mode=mode)
    probe = SubscriberProbe[Any](1, again=1).subscribed_to(flow)
    await probe.end()
    began, ended = reports[0].seconds, reports[-1].seconds
    assert len(reports) <= 2 + (ended - began) / REPORT_EVERY


@pytest.mark.parametrize("mode", ["connect", "rows"])
async def test_everything_but_partitions_is_reported_over_connect(
    remote: "SparkSession", mode: "ReadMode"
) -> None:
    """The protocol of Spark Connect does not name the partition of a row."""
    reports = Reports()
    flow = await reading(remote, reports.append, mode=mode)
    probe = SubscriberProbe[Any](5).subscribed_to(flow)
    paused = await reports.wait_until(state="waiting", rows=5)
    assert paused.demand == 0
    probe.request(UNBOUNDED)
    await probe.end()
    last = reports[-1]
    assert (last.state, last.rows) == ("completed", 40)
    assert last.demand > 0, "the last request, which is for a batch at a time"
    assert (last.partitions, last.launched, last.computed, last.done) == (None, 0, 0, 0)
    assert last.rows_per_second == pytest.approx(40 / last.seconds)
    assert last.bytes >= 40 * 8 if mode == "connect" else last.bytes == 0
    assert await flow.take(3).count() == 3
    assert (reports[-1].state, reports[-1].rows) == ("cancelled", 3)


async def test_a_failure_over_connect_is_reported(remote: "SparkSession") -> None:
    reports = Reports()
    flow = await asyncio.to_thread(
        lambda: from_dataframe(
            remote.range(0, 30, 1, 3).selectExpr("1 / (id - 15)"), progress=reports.append
        )
    )
    probe = SubscriberProbe[Any](UNBOUNDED).subscribed_to(flow)
    await probe.end()
    assert probe.error is not None
    assert reports[-1].state == "failed"
    assert reports[-1].rows == len(probe.elements)


async def test_rows_in_batches_are_counted_as_rows(spark: "SparkSession") -> None:
    reports = Reports()
    flow = await reading(spark, reports.append, rows="batch", batch=7)
    probe = SubscriberProbe[Any](3).subscribed_to(flow)
    await reports.wait_until(rows=17)  # 7, 3, 7
    assert reports[-1].demand == 0
    probe.request(UNBOUNDED)
    await probe.end()
    assert reports[-1].rows == 40


async def test_a_cancellation_is_reported(spark: "SparkSession", mode: "ReadMode") -> None:
    reports = Reports()
    flow = await reading(spark, reports.append, mode=mode)
    assert len(await flow.take(3).to_list()) == 3
    assert reports[-1].state == "cancelled"
    assert reports[-1].rows == 3
    probe = SubscriberProbe[Any](1).subscribed_to(flow)
    await wait_for_elements(probe, 1)
    probe.cancel()
    assert reports[-1].state == "cancelled"
    assert reports[-1].number > reports[0].number, "of another subscription"


async def test_a_failure_is_reported(spark: "SparkSession", mode: "ReadMode") -> None:
    reports = Reports()
    flow = await asyncio.to_thread(
        lambda: from_dataframe(
            spark.range(0, 30, 1, 3).selectExpr("1 / (id - 15)"), mode=mode, progress=reports.append
        )
    )
    probe = SubscriberProbe[Any](UNBOUNDED).subscribed_to(flow)
    await probe.end()
    assert probe.error is not None
    assert (reports[-1].state, reports[-1].rows, reports[-1].done) == ("failed", 10, 1)


async def test_a_function_that_raises_does_not_fail_the_flow(
    spark: "SparkSession", mode: "ReadMode", expects_loop_errors: list[Context]
) -> None:
    calls = list[Progress]()

    def fail(progress: Progress) -> None:
        calls.append(progress)
        raise ValueError("no screen")

    flow = await reading(spark, fail, mode=mode)
    assert await flow.count() == 40
    (context,) = expects_loop_errors
    assert "progress" in context["message"]
    assert str(context["exception"]) == "no screen"
    assert len(calls) == 1


async def test_the_function_may_cancel_the_subscription(spark: "SparkSession") -> None:
    def leave(progress: Progress) -> None:
        if progress.rows:
            probe.cancel()

    flow = await reading(spark, leave, mode="arrow")
    probe = SubscriberProbe[Any](1, again=1).subscribed_to(flow)
    await wait_until(lambda: probe.elements)
    await asyncio.sleep(2 * REPORT_EVERY)
    assert not probe.is_terminated


async def test_it_is_called_in_the_context_of_the_subscriber(spark: "SparkSession") -> None:
    from contextvars import ContextVar

    name = ContextVar[str]("name", default="")
    seen = set[str]()
    flow = await reading(spark, lambda _: seen.add(name.get()))
    name.set("mine")
    await flow.count()
    assert seen == {"mine"}


async def test_rows_are_counted_where_partitions_cannot_be(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partitions are counted inside a private object of PySpark."""
    monkeypatch.setattr("reactive_aio.spark.local_iterator.LocalIteratorReader", lambda _: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    reports = Reports()
    flow = await reading(spark, reports.append, mode="rows")
    assert await flow.count() == 40
    assert (reports[-1].rows, reports[-1].partitions, reports[-1].done) == (40, None, 0)


async def test_an_error_while_partitions_are_counted_fails_the_flow(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the private object may be missing; the number of partitions is public."""
    from pyspark import RDD

    def fail(_: object) -> int:
        raise RuntimeError("no number")

    monkeypatch.setattr(RDD, "getNumPartitions", fail)
    flow = await reading(spark, Reports().append, mode="rows")
    with pytest.raises(RuntimeError, match="no number"):
        await flow.count()


@pytest.mark.parametrize("wrong", [3, "bar", None])
def test_a_progress_that_cannot_be_called_is_refused(spark: "SparkSession", wrong: Any) -> None:
    with pytest.raises(TypeError, match="progress must be True, for a bar, or a function"):
        from_dataframe(spark.range(1), progress=wrong)


def test_a_coroutine_function_is_refused(spark: "SparkSession") -> None:
    async def show(progress: Progress) -> None: ...

    with pytest.raises(TypeError, match="must be a plain function"):
        from_dataframe(spark.range(1), progress=show)
