"""What the jobs of a flow, and their tasks, know of it: its name and its trace."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from reactive_aio.observe import otel
from reactive_aio.spark import from_dataframe

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

    from reactive_aio import Flow
    from reactive_aio.spark.read_mode import ReadMode

pytestmark = pytest.mark.spark
DESCRIPTION = "spark.job.description"


def reading_properties() -> Any:
    """Makes rows of the local properties of a task, as its Python function sees them."""

    def read(_: object) -> Iterator[tuple[str, str]]:
        from pyspark import TaskContext

        task: Any = TaskContext.get()
        for name in ("spark.job.description", "traceparent"):
            yield name, task.getLocalProperty(name) or ""

    return read  # a function inside another one is pickled by value


async def seen_by_tasks(
    spark: "SparkSession", mode: "ReadMode" = "arrow", description: str | None = None
) -> "Flow[Row]":
    """A flow of the properties of its task, made on a thread whose jobs have a *description*."""

    def make() -> "Flow[Row]":
        context: Any = spark.sparkContext
        set_property = context.setLocalProperty
        set_property(DESCRIPTION, description)
        try:
            rows = context.parallelize([0], 1).mapPartitions(reading_properties())
            create: Any = getattr(spark, "createDataFrame")  # noqa: B009 - its type is unknown
            df = create(rows, "name string, value string")
            return from_dataframe(df, mode=mode)
        finally:
            set_property(DESCRIPTION, None)

    return await asyncio.to_thread(make)


async def found(flow: "Flow[Row]") -> dict[str, str]:
    return {row.name: row.value for row in await flow.to_list()}


@pytest.fixture
async def spans() -> AsyncIterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with otel.trace(provider):
        yield exporter
    provider.shutdown()


async def test_tasks_of_a_named_flow_have_its_name_and_the_trace(
    spark: "SparkSession", mode: "ReadMode", spans: InMemorySpanExporter
) -> None:
    properties = await found((await seen_by_tasks(spark, mode)).name("flights"))
    [span] = spans.get_finished_spans()
    context = span.get_span_context()
    assert context is not None
    assert properties[DESCRIPTION] == "flights"
    trace_id, span_id = properties["traceparent"].split("-")[1:3]
    assert (int(trace_id, 16), int(span_id, 16)) == (context.trace_id, context.span_id)


@pytest.mark.thorough
async def test_without_a_name_or_a_trace_nothing_is_added(spark: "SparkSession") -> None:
    assert await found(await seen_by_tasks(spark)) == {DESCRIPTION: "", "traceparent": ""}


@pytest.mark.thorough
async def test_a_description_that_there_is_stays(spark: "SparkSession") -> None:
    flow = await seen_by_tasks(spark, description="the nightly job")
    properties = await found(flow.name("flights"))
    assert properties == {DESCRIPTION: "the nightly job", "traceparent": ""}
