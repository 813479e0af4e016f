"""Which mode is chosen, and the reason that is given."""

import logging
import sys
from typing import TYPE_CHECKING, Any

import pytest

from reactive_aio.spark import ModeUnavailable, SparkFlow, from_dataframe, read_mode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def no_x(_: object) -> str:
    return "this version of Spark has no x"


def found_nowhere(_: str) -> None:
    """Like `find_spec` for a module that is not installed."""


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Spark without the private methods for mode "arrow"."""
    monkeypatch.setattr(read_mode, "_missing_calls", {})
    monkeypatch.setattr(read_mode, "missing_arrow_call", no_x)


def test_arrow_is_chosen_where_it_is_possible(spark: "SparkSession") -> None:
    flow = from_dataframe(spark.range(3))
    assert flow.mode.mode == "arrow"
    assert str(flow.mode) == "arrow: Spark, PyArrow and every column allow it"


@pytest.mark.parametrize("mode", ["arrow", "rows"])
def test_a_requested_mode_is_chosen(spark: "SparkSession", mode: Any) -> None:
    assert str(from_dataframe(spark.range(3), mode=mode).mode) == f"{mode}: requested"


@pytest.mark.usefixtures("bare")
def test_the_log_gives_the_reason_for_mode_rows(
    spark: "SparkSession", caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "reactive_aio.spark"):
        flow = from_dataframe(spark.range(3))
    assert str(flow.mode) == "rows: this version of Spark has no x"
    assert "in mode 'rows': this version of Spark has no x." in caplog.text


@pytest.mark.usefixtures("bare")
def test_an_impossible_mode_is_refused(spark: "SparkSession") -> None:
    with pytest.raises(ModeUnavailable, match=r"no x\. Use mode='rows'"):
        from_dataframe(spark.range(3), mode="arrow")


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("mode", ["auto", "rows"])
def test_batches_need_arrow(spark: "SparkSession", mode: Any) -> None:
    with pytest.raises(ModeUnavailable, match="rows='batch' needs Arrow"):
        from_dataframe(spark.range(3), mode=mode, rows="batch")


def test_the_probe_runs_once_for_a_session(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts = list[object]()
    monkeypatch.setattr(read_mode, "_missing_calls", {})
    monkeypatch.setattr(read_mode, "missing_arrow_call", contexts.append)
    for _ in range(3):
        from_dataframe(spark.range(3))
    assert contexts == [spark.sparkContext]


def test_a_column_that_arrow_cannot_carry_is_read_as_rows(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise TypeError("no such type")

    monkeypatch.setattr(read_mode, "arrow_schema", refuse)
    flow = from_dataframe(spark.sql("select 1 as odd"))
    assert flow.mode.mode == "rows"
    assert (
        "column 'odd' of type int cannot become Arrow, or be read from it (no such type)"
        in flow.mode.why
    )


@pytest.mark.parametrize("value", ["array()", "map()", "array(array())", "map('k', map())"])
def test_columns_of_nothing_are_read_as_arrow(spark: "SparkSession", value: str) -> None:
    assert from_dataframe(spark.sql(f"select {value} as odd")).mode.mode == "arrow"


def test_windows_cannot_watch_the_sockets(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    df = spark.range(3)
    monkeypatch.setattr(sys, "platform", "win32")
    assert "Windows" in from_dataframe(df).mode.why


def test_without_pyarrow_the_reason_names_the_extra(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_mode, "find_spec", found_nowhere)
    assert "reactive-aio[spark]" in from_dataframe(spark.range(3)).mode.why


def test_the_flow_has_the_schema_of_the_dataframe(spark: "SparkSession") -> None:
    df = spark.range(3).selectExpr("id", "'x' as name")
    flow = from_dataframe(df)
    assert isinstance(flow, SparkFlow)
    assert flow.schema == df.schema
    assert not isinstance(flow.map(str), SparkFlow), "its elements are no longer rows"


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"mode": "pickle"}, ValueError, "mode must be one of auto, arrow, rows, connect"),
        ({"rows": "list"}, ValueError, "rows must be one of"),
        ({"window": 0}, ValueError, "window must be at least 1"),
        ({"batch": 0}, ValueError, "batch must be at least 1"),
        ({"batch": True}, TypeError, "batch must be an int"),
    ],
)
def test_wrong_options_are_refused(
    spark: "SparkSession", options: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        from_dataframe(spark.range(3), **options)
