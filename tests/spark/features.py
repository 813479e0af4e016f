"""What works with which version of Spark: the table in docs/spark.md, and a check of each row."""

import asyncio
import warnings
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import reactive_aio as rx
from reactive_aio.delivery import deliveries
from reactive_aio.spark import (
    Progress,
    activate,
    append_table,
    from_dataframe,
    from_micro_batches,
    from_stream,
    register,
    serve_flow,
    serve_writes,
    to_dataframe,
    write_parquet,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VERSIONS: Final = ((3, 5), (4, 0), (4, 1), (4, 2), (4, 3))
Check = Callable[["SparkSession", Path], Coroutine[Any, Any, None]]


@dataclass(frozen=True)
class Feature:
    """Something that works since a version."""

    text: str
    """As in the table."""
    since: tuple[int, int]
    check: Check
    """Raises if it does not work."""


FEATURES: Final[dict[str, Feature]] = {}


def feature(text: str, since: tuple[int, int] = VERSIONS[0]) -> Callable[[Check], Check]:
    def add(check: Check) -> Check:
        FEATURES[check.__name__] = Feature(text, since, check)
        return check

    return add


def table() -> str:
    """Return the table of docs/spark.md."""
    heads = [".".join(map(str, version)) for version in VERSIONS]
    lines = [f"| | {' | '.join(heads)} |", f"|---|{':-:|' * len(heads)}"]
    for each in FEATURES.values():
        cells = ["yes" if version >= each.since else "no" for version in VERSIONS]
        lines.append(f"| {each.text} | {' | '.join(cells)} |")
    return "\n".join(lines)


# -- reading ---------------------------------------------------------------------------------------
def mixed(spark: "SparkSession") -> "DataFrame":
    return spark.range(0, 500, 1, 20).selectExpr(
        "id", "id / 7 as ratio", "if(id % 3 = 0, null, cast(id as string)) as text",
        "timestamp_seconds(id * 86400) as moment", "date_add(date'2000-01-01', int(id)) as day",
        "cast(id as decimal(9, 2)) as amount", "array(id, null) as list",
        "named_struct('a', id, 'a', id + 1) as pair", "map('k', id) as dict", "array() as nothing",
    )  # fmt: skip


async def rows_equal(spark: "SparkSession", mode: Any) -> None:
    def build() -> tuple[Any, list[Any]]:
        df = mixed(spark)
        return from_dataframe(df, mode=mode), df.collect()

    flow, expected = await asyncio.to_thread(build)
    assert flow.mode.mode == mode
    assert await flow.to_list(limit=500) == expected


@feature('`from_dataframe`, `mode="arrow"`')
async def arrow(spark: "SparkSession", _: Path) -> None:
    await rows_equal(spark, "arrow")


@feature('`rows="batch"`')
async def batches(spark: "SparkSession", _: Path) -> None:
    def build() -> Any:
        return from_dataframe(spark.range(0, 10, 1, 2), rows="batch", batch=3)

    sizes = [each.num_rows for each in await (await asyncio.to_thread(build)).to_list()]
    assert sizes == [3, 2, 3, 2]


@feature('`from_dataframe`, `mode="rows"`')
async def rows(spark: "SparkSession", _: Path) -> None:
    await rows_equal(spark, "rows")


@feature("`where`, `select`, `take`")
async def push_down(spark: "SparkSession", _: Path) -> None:
    def build() -> Any:
        flow = from_dataframe(spark.range(0, 100, 1, 5), rows="tuple")
        return flow.where("id % 7 = 0").select("id", "id * id as square").take(4)

    found = await (await asyncio.to_thread(build)).to_list()
    assert found == [(0, 0), (7, 49), (14, 196), (21, 441)]


@feature("`progress=`")
async def progress(spark: "SparkSession", _: Path) -> None:
    found = list[Progress]()

    def build() -> Any:
        return from_dataframe(spark.range(0, 10, 1, 5), progress=found.append)

    await (await asyncio.to_thread(build)).run()
    assert (found[-1].rows, found[-1].done) == (10, 5)


@feature("`checkpoint=`")
async def resume(spark: "SparkSession", folder: Path) -> None:
    def build() -> Any:
        df = spark.range(0, 40, 1, 4)
        return from_dataframe(df, rows="tuple", checkpoint=folder / "checkpoint")

    found = list[int]()

    async def write(row: tuple[int]) -> None:
        if row[0] == 25 and 25 not in found:
            found.append(25)
            raise OSError("a crash")
        found.append(row[0])

    flow = await asyncio.to_thread(build)
    failed = False
    try:
        await deliveries(flow).ack_after(write).run()
    except OSError:
        failed = True
    await deliveries(flow).ack_after(write).run()
    assert failed
    assert sorted(set(found)) == [*range(40)]
    assert found.count(7) == 1


# -- streaming -------------------------------------------------------------------------------------
def ticking(spark: "SparkSession") -> Any:
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 4).load()
    return source.select("value")


@feature("`from_stream`, `from_micro_batches`")
async def streams(spark: "SparkSession", folder: Path) -> None:
    def build() -> tuple[Any, Any]:
        return (
            from_stream(ticking(spark), checkpoint=folder / "stream", rows="tuple"),
            from_micro_batches(ticking(spark), checkpoint=folder / "batches", rows="tuple"),
        )

    stream, micro_batches = await asyncio.to_thread(build)
    found = await stream.take(6).to_list()
    assert [batch for batch, _ in found] == [0, 0, 0, 0, 1, 1]
    batch = await micro_batches.first()
    assert batch.id == 0


# -- Spark Connect ---------------------------------------------------------------------------------
@feature("`from_dataframe` of Spark Connect", (4, 0))
async def connect(spark: "SparkSession", _: Path) -> None:
    def build() -> tuple[Any, Any]:
        jvm: Any = spark.sparkContext._jvm
        service = getattr(jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
        port = getattr(service, "MODULE$").localPort()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PySpark about pandas
            from pyspark.sql.connect.session import SparkSession

            session: Any = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
        return session, from_dataframe(session.range(0, 50, 1, 5), rows="tuple")

    session, flow = await asyncio.to_thread(build)
    try:
        assert flow.mode.mode == "connect"
        assert await flow.to_list() == [(number,) for number in range(50)]
    finally:
        await asyncio.to_thread(session.stop)


# -- writing ---------------------------------------------------------------------------------------
@feature("`to_dataframe`, `write_parquet`, `append_table`", (4, 0))
async def writing(spark: "SparkSession", folder: Path) -> None:
    flow = rx.range(10).map(lambda number: (number, f"n{number}"))
    schema = "id long, name string"
    df = await to_dataframe(flow, spark, schema)
    assert await asyncio.to_thread(df.count) == 10
    await write_parquet(flow, spark, folder / "rows", schema)
    assert await asyncio.to_thread(lambda: spark.read.parquet(str(folder / "rows")).count()) == 10
    table = f"written_{folder.name.replace('-', '_')}"
    await append_table(flow, spark, table, schema)
    found = await asyncio.to_thread(lambda: spark.table(table).count())
    await asyncio.to_thread(spark.sql, f"drop table {table}")
    assert found == 10


@feature('`format("reactive")`: `serve_flow`, `serve_writes`', (4, 2))
async def data_source(spark: "SparkSession", _: Path) -> None:
    await asyncio.to_thread(register, spark)

    def count(options: dict[str, str]) -> int:
        activate(spark)
        return spark.read.format("reactive").options(**options).load().count()

    async with serve_flow(rx.range(9).map(lambda number: (number,)), "n long") as served:
        assert await asyncio.to_thread(count, served.options) == 9
    async with serve_writes(rows="tuple") as written:
        writing = asyncio.create_task(written.write(await asyncio.to_thread(spark.range, 9)))
        assert len(await written.rows.to_list()) == 9
        await writing


if __name__ == "__main__":
    print(table())  # noqa: T201
