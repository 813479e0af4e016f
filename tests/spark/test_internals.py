"""The private names of classic PySpark have the expected behavior.

When one of these tests fails, a new Spark has changed a name: `from_dataframe` then falls back to
mode "rows", and reactive_aio/spark/_internals needs an update.
"""

import inspect
import socket
from struct import unpack
from typing import TYPE_CHECKING, Any

import pytest

from reactive_aio.spark._internals import (
    arrow_schema,
    call_plainly,
    limit_partitions,
    missing_arrow_call,
    release,
)
from reactive_aio.spark._internals.partition_jobs import marking_job_runner, missing_marking_call
from reactive_aio.spark.arrow.jvm_socket import END, PARTITION_END, connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def batches_of(df: "DataFrame", rows: int) -> Any:
    untyped: Any = df
    return untyped._jdf.toArrowBatchRdd(rows, "UTC", False, False).toJavaRDD()


def run(spark: "SparkSession", rdd: Any, *partitions: int) -> tuple[Any, Any, Any]:
    context: Any = spark.sparkContext
    numbers = context._gateway.jvm.java.util.ArrayList()
    for each in partitions:
        numbers.add(each)
    address, secret, server = context._jvm.PythonRDD.runJob(context._jsc.sc(), rdd, numbers)
    return address, secret, server


def frames_of(address: Any, secret: Any) -> list[bytes]:
    frames, found = connect(address, secret), list[bytes]()
    frames.connection.setblocking(True)
    while (frame := frames.read()) is not END:
        assert frame is not None
        found.append(bytes(frame))
    frames.close()
    return found


def test_the_probe_finds_everything(spark: "SparkSession") -> None:
    assert missing_arrow_call(spark.sparkContext) is None


def test_the_probe_names_a_missing_method(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = {"org.apache.spark.sql.classic.Dataset.head": "java.lang.String"}
    monkeypatch.setattr("reactive_aio.spark._internals._ARROW_CALLS", unknown)
    missing = missing_arrow_call(spark.sparkContext)
    assert missing == "this version of Spark has no Dataset.head(String)"


def test_each_element_is_a_record_batch_of_the_given_size(spark: "SparkSession") -> None:
    import pyarrow

    df = spark.range(0, 10, 1, 2)
    rdd = batches_of(df, 2)
    assert rdd.getNumPartitions() == 2
    address, secret, server = run(spark, rdd, 0, 1)
    schema = arrow_schema(df.schema)
    untyped: Any = pyarrow
    found = [untyped.ipc.read_record_batch(each, schema) for each in frames_of(address, secret)]
    server.getResult()
    assert [each.to_pydict()["id"] for each in found] == [[0, 1], [2, 3], [4], [5, 6], [7, 8], [9]]


def test_partitions_come_in_the_requested_order(spark: "SparkSession") -> None:
    rdd = batches_of(spark.range(0, 40, 1, 4), 100)
    several = frames_of(*run(spark, rdd, 3, 1)[:2])
    assert several == [*frames_of(*run(spark, rdd, 3)[:2]), *frames_of(*run(spark, rdd, 1)[:2])]


def test_a_null_marks_the_end_of_each_partition(spark: "SparkSession") -> None:
    df = spark.range(0, 40, 1, 4).where("id < 10 or id >= 20")
    rdd = batches_of(df, 6)
    address, secret, server = marking_job_runner(spark.sparkContext)(rdd, [3, 1, 0])
    several = frames_of(address, secret)
    server.getResult()
    three, zero = (frames_of(*run(spark, rdd, each)[:2]) for each in (3, 0))
    assert [len(three), len(zero)] == [2, 2]
    assert several == [*three, PARTITION_END, PARTITION_END, *zero, PARTITION_END]


def test_the_probe_names_what_marking_lacks(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    assert missing_marking_call(spark.sparkContext) is None
    unknown = {"org.apache.spark.api.python.PythonUtils.toNothing": "java.util.List"}
    monkeypatch.setattr("reactive_aio.spark._internals.partition_jobs._MARKING_CALLS", unknown)
    missing = missing_marking_call(spark.sparkContext)
    assert missing == "this version of Spark has no PythonUtils.toNothing"


def test_an_empty_partition_has_no_batch(spark: "SparkSession") -> None:
    nothing = spark.range(0, 9, 1, 1).where("id > 9")
    assert frames_of(*run(spark, batches_of(nothing, 9), 0)[:2]) == []


def test_the_server_reports_that_not_everything_was_read(spark: "SparkSession") -> None:
    from py4j.protocol import Py4JJavaError

    rdd = batches_of(spark.range(0, 3_000_000, 1, 1), 1000)
    address, secret, server = run(spark, rdd, 0)
    frames = connect(address, secret)
    frames.connection.setblocking(True)
    assert frames.read()
    frames.close()
    with pytest.raises(Py4JJavaError):
        server.getResult()


def test_a_wrong_secret_is_refused(spark: "SparkSession") -> None:
    address, _, _ = run(spark, batches_of(spark.range(9), 9), 0)
    with pytest.raises(ConnectionError):
        connect(address, "a guess")


def test_the_secret_is_answered_by_ok(spark: "SparkSession") -> None:
    address, secret, _ = run(spark, batches_of(spark.range(9), 9), 0)
    with socket.create_connection(("127.0.0.1", address)) as connection:
        connection.sendall(len(secret).to_bytes(4, "big") + secret.encode())
        assert connection.recv(6, socket.MSG_WAITALL) == b"\0\0\0\2ok"
        (length,) = unpack("!i", connection.recv(4, socket.MSG_WAITALL))
        assert length > 0


def test_a_released_object_is_gone_at_once(spark: "SparkSession") -> None:
    from py4j.protocol import Py4JError

    context: Any = spark.sparkContext
    handle = context._jvm.java.util.ArrayList()
    assert handle.size() == 0
    release(spark.sparkContext, handle)
    with pytest.raises(Py4JError, match="does not exist"):
        handle.size()


def test_a_plain_call_raises_the_exception_of_py4j(spark: "SparkSession") -> None:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import ArithmeticException

    untyped: Any = spark.sql("select 1 / 0")
    with pytest.raises(ArithmeticException):
        untyped._jdf.collectAsList()
    with pytest.raises(Py4JJavaError, match="DIVIDE_BY_ZERO"):
        call_plainly(untyped._jdf.collectAsList)
    assert call_plainly(untyped._jdf.limit, 0).count() == 0


def test_several_rdds_share_the_shuffles_of_one_plan(spark: "SparkSession") -> None:
    """A second RDD over the same plan does not compute its shuffles again."""
    df = spark.range(0, 10, 1, 2).repartition(2)
    untyped: Any = df
    dataset, jobs = untyped._jdf, spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("contract-shuffle", "")
    try:
        rdds = [dataset.toArrowBatchRdd(9, "UTC", False, False) for _ in range(3)]
        assert len({rdd.id() for rdd in rdds}) == 3
        assert len(jobs.getJobIdsForGroup("contract-shuffle")) == 1
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", "")


def test_the_arrow_schema_accepts_a_time_zone_and_duplicate_names() -> None:
    from pyspark.sql.pandas.types import to_arrow_schema  # pyright: ignore[reportUnknownVariableType]

    names = inspect.signature(to_arrow_schema).parameters  # pyright: ignore[reportUnknownArgumentType]
    assert {"timezone", "error_on_duplicated_field_names_in_struct"} <= names.keys()
    assert "prefers_large_types" in names


def test_a_limit_of_each_partition_keeps_their_order(spark: "SparkSession") -> None:
    df = limit_partitions(spark.range(0, 40, 1, 4).where("id >= 5"), 2)
    assert [row.id for row in df.collect()] == [5, 6, 10, 11, 20, 21, 30, 31]
    assert df.schema == spark.range(1).schema
