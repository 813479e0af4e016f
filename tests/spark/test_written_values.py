"""A value becomes the same on each way into Spark: what ``createDataFrame`` makes of it."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

import reactive_aio as rx
from reactive_aio.spark import (
    RowMismatch,
    UnsupportedDataFrame,
    append_table,
    from_dataframe,
    map_flow,
    to_dataframe,
    write_parquet,
)
from reactive_aio.spark.conversion import RowConversion

from .written_values import TAKEN, differences

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.mark.usefixtures("spark")
def test_no_value_is_changed_to_fit() -> None:
    """At any depth, and also where PyArrow would take it."""
    for text, (taken, refused) in TAKEN.items():
        (kind,) = (field.dataType for field in cast("Any", StructType).fromDDL(f"v {text}"))
        inside = StructType([StructField("a", kind)])
        forms: list[tuple[DataType, Callable[[Any], Any]]] = [
            (kind, lambda value: value),
            (ArrayType(kind), lambda value: [None, value]),
            (MapType(StringType(), kind), lambda value: {"k": value}),
            (inside, lambda value: (value,)),
        ]
        for column, nest in forms:
            schema = StructType([StructField("n", LongType()), StructField("v", column)])
            given = [(1, None), *((2, nest(each)) for each in taken)]
            assert RowConversion("f", schema).batches(given)[0].num_rows == len(given)
            for value in refused:
                rows = [(1, None), (2, nest(value))]
                with pytest.raises(RowMismatch, match=r"f: row 1 .* column 'v'") as raised:
                    RowConversion("f", schema, rejected=RowMismatch).batches(rows)
                assert (raised.value.row, raised.value.column) == (1, "v"), (text, value)


@pytest.mark.thorough
def test_a_value_is_the_same_on_each_way(spark: "SparkSession", tmp_path: Path) -> None:
    assert differences(spark, spark, tmp_path) == []


@pytest.mark.thorough
def test_a_value_is_the_same_on_each_way_over_connect(
    spark: "SparkSession", remote: "SparkSession", tmp_path: Path
) -> None:
    assert differences(spark, remote, tmp_path) == []


@pytest.mark.thorough
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York"])
def test_every_type_is_the_same_on_each_way(zone: str) -> None:
    command = [sys.executable, "-m", f"{__package__}.written_values"]
    environment = {**os.environ, "TZ": zone}
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "", found.stdout


@pytest.mark.thorough
@pytest.mark.parametrize("session", ["classic", "connect"])
def test_bytearrays_are_read_where_collect_returns_them(
    spark: "SparkSession", remote: "SparkSession", session: str
) -> None:
    chosen = spark if session == "classic" else remote
    setting = "spark.sql.execution.pyspark.binaryAsBytes"
    try:
        chosen.conf.set(setting, "false")
        text = "X'00ff' b, array(X'aa', X'', null) a, struct(X'bb' as x) s, map('k', X'cc') m"
        df = chosen.sql(f"select {text}")
        assert repr(asyncio.run(from_dataframe(df).to_list())) == repr(df.collect())
        shown = map_flow(df, lambda rows: rows.map(lambda row: (repr(row),)), "text string")
        assert shown.collect()[0].text == repr(df.collect()[0])
    finally:
        chosen.conf.unset(setting)


TWICE = StructType([StructField("s", ArrayType(StructType([StructField("a", LongType())] * 2)))])


def test_two_fields_of_one_name_are_refused_at_once(spark: "SparkSession", tmp_path: Path) -> None:
    flow = rx.just(1).map(lambda _: pytest.fail("it was requested"))
    words = "two fields named 'a' in column 's'"
    with pytest.raises(ValueError, match=f"to_dataframe: .*{words}"):
        asyncio.run(to_dataframe(flow, spark, TWICE))
    with pytest.raises(ValueError, match=f"write_parquet: .*{words}"):
        asyncio.run(write_parquet(flow, spark, tmp_path / "x", TWICE))
    with pytest.raises(ValueError, match=f"append_table: .*{words}"):
        asyncio.run(append_table(flow, spark, "twice", TWICE))
    with pytest.raises(ValueError, match=f"map_flow: .*{words}"):
        map_flow(spark.range(1), lambda rows: rows, TWICE)
    df = cast("Any", spark).createDataFrame([([(1, 2)],)], TWICE)
    with pytest.raises(
        UnsupportedDataFrame, match=r"map_flow.* column 's': .* two fields named 'a'"
    ):
        map_flow(df, lambda rows: rows, "id long")


@pytest.mark.parametrize("most", ["0", "-1"])
def test_a_setting_of_zero_rows_is_no_limit(
    spark: "SparkSession", tmp_path: Path, most: str
) -> None:
    setting = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(setting)
    try:
        spark.conf.set(setting, most)
        numbers = rx.range(3).map(lambda number: (number,))
        df = asyncio.run(to_dataframe(numbers, spark, "n long"))
        assert df.count() == 3
        assert asyncio.run(write_parquet(numbers, spark, tmp_path / "x", "n long")).rows == 3
        same = map_flow(df, lambda rows: rows, "n long")
        assert same.count() == 3
    finally:
        spark.conf.set(setting, str(before))
