"""Wrong arguments of functions that write into Spark, or start it, are named at once."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

import pytest
from pyspark.errors import PySparkException

import reactive_aio as rx
from reactive_aio.spark import (
    ModeUnavailable,
    UnsupportedDataFrame,
    activate,
    append_table,
    for_each_partition,
    from_dataframe,
    from_micro_batches,
    from_stream,
    local_session,
    map_flow,
    register,
    serve_flow,
    serve_writes,
    to_dataframe,
    write_parquet,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SCHEMA = "day long, n long"
FLOW = rx.just((1, 2))


async def enter(manager: Any) -> None:
    async with manager:
        pass


Call = Callable[[Any], Awaitable[Any]]
WRONG: list[tuple[Call, str]] = [
    (lambda s: to_dataframe(cast("Any", [(1, 2)]), s, SCHEMA),
     r"to_dataframe takes a flow, .* not \[\(1, 2\)\] \(list\)\. rx\.from_iterable"),
    (lambda s: to_dataframe(s, cast("Any", FLOW), SCHEMA),
     r"to_dataframe takes a flow, and then a session and a schema; .* \(SparkSession\)"),
    (lambda _: to_dataframe(FLOW, cast("Any", None), SCHEMA),
     "to_dataframe: spark must be a SparkSession, not None"),
    (lambda s: append_table(cast("Any", [1]), s, "t", SCHEMA), "append_table takes a flow"),
    (lambda s: write_parquet(FLOW, s, "x", SCHEMA, partition_by="day"),
     r"partition_by must be a list of names, such as \['day'\], not 'day'"),
    (lambda s: write_parquet(FLOW, s, "x", SCHEMA, partition_by=cast("Any", [5])),
     r"partition_by must be a list of names, .* not \[5\]"),
    (lambda s: write_parquet(FLOW, s, cast("Any", 5), SCHEMA),
     r"write_parquet: path must be a path, not 5 \(int\)"),
    (lambda _: enter(serve_flow(cast("Any", [1]), SCHEMA)),
     r"serve_flow: a flow is needed, not \[1\]"),
    (lambda _: enter(serve_flow(FLOW, SCHEMA, name=cast("Any", 5))),
     "serve_flow: name must be a str"),
    (lambda _: enter(serve_flow(FLOW, SCHEMA, port=-5)), "port must be at least 0, not -5"),
    (lambda _: enter(serve_writes(port=70_000)), "serve_writes: port must be at most 65535"),
    (lambda _: enter(serve_writes(host=cast("Any", 5))), "serve_writes: host must be a str"),
    (lambda _: for_each_partition(cast("Any", None), lambda rows: rows),
     r"for_each_partition\(\) needs a pyspark\.sql\.DataFrame, got None"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "words"), WRONG)
def test_a_wrong_argument_of_a_call_is_named(spark: "SparkSession", call: Call, words: str) -> None:
    async def run() -> None:
        await call(spark)

    with pytest.raises((TypeError, ValueError), match=words):
        asyncio.run(run())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"cores": -1}, "cores must be at least 1, not -1"),
        ({"cores": "2"}, "cores must be an int"),
        ({"config": "a=b"}, r"config must be a dict of settings, not 'a=b' \(str\)"),
    ],
)
def test_a_wrong_argument_of_a_session_is_named(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"local_session: {words}"):
        local_session(**arguments)


def test_a_wrong_argument_instead_of_a_session_or_a_fraction_is_named(
    spark: "SparkSession",
) -> None:
    for function in (register, activate):
        words = rf"{function.__name__}: spark must be a SparkSession, not 5 \(int\)"
        with pytest.raises(TypeError, match=words):
            function(cast("Any", 5))
    flow = from_dataframe(spark.range(3))
    with pytest.raises(ValueError, match="sample_fraction: fraction must be from 0 to 1, not 2"):
        flow.sample_fraction(2)
    assert asyncio.run(flow.sample_fraction(1).count()) == 3


@pytest.fixture
def stream(spark: "SparkSession") -> "DataFrame":
    return spark.readStream.format("rate").load()


def test_a_wrong_argument_of_a_streaming_query_is_named(stream: "DataFrame") -> None:
    with pytest.raises(TypeError, match=r"from_stream: checkpoint must be a path, not 5 \(int\)"):
        from_stream(stream, checkpoint=cast("Any", 5))
    twice = stream.selectExpr("value", "value")
    with pytest.raises(TypeError, match=r"from_stream: name must be a str, not 5 \(int\)"):
        from_stream(stream, checkpoint=None, name=cast("Any", 5))
    with pytest.raises(ModeUnavailable, match=r"from_stream\(mode='connect'\) needs"):
        from_stream(stream, checkpoint=None, mode="connect")
    with pytest.raises(UnsupportedDataFrame, match=r"from_micro_batches\(rows='dict'\): there are"):
        from_micro_batches(twice, checkpoint=None, rows="dict")


def test_a_streaming_query_has_no_partitions_to_end(stream: "DataFrame") -> None:
    with pytest.raises(UnsupportedDataFrame, match="call it for each micro-batch"):
        asyncio.run(for_each_partition(stream, lambda rows: rows))
    assert map_flow(stream, lambda rows: rows, stream.schema).isStreaming


@pytest.mark.thorough
@pytest.mark.parametrize(("option", "value"), [("maxRows", "x"), ("maxRows", "0")])
def test_a_wrong_option_of_the_data_source_is_named(
    spark: "SparkSession", option: str, value: str
) -> None:
    register(spark)

    def load(options: dict[str, str]) -> None:
        reader = spark.read.format("reactive").options(**options)
        reader.option(option, value).load().collect()

    async def read() -> None:
        async with serve_flow(FLOW, SCHEMA) as served:
            await asyncio.to_thread(load, served.options)

    with pytest.raises(
        PySparkException, match=f"the option {option} must be a whole number.*{value!r}"
    ):
        asyncio.run(read())
