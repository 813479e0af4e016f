"""to_dataframe, write_parquet, append_table: terminals that end in Spark."""

from collections.abc import Callable, Sequence
from functools import partial
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Final, Literal

from ..._core.arguments import require_int
from ..._core.duration import Duration, to_seconds
from ...errors import TooManyElements
from ..aside import Aside
from ..failures import require_pyspark, telling
from .tables import Tables
from .written import Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from ...flow import Flow

__all__ = ("append_table", "to_dataframe", "write_parquet")

LIMIT: Final = 1_000_000
"""The most rows that are gathered in memory, unless another limit is given."""
_PIECE: Final = 10_000  # rows that are turned into Arrow at a time
SaveMode = Literal["append", "overwrite", "error"]
_SAVE_MODES: Final = ("append", "overwrite", "error")
Save = Callable[["DataFrame", str], object]
"""Writes a DataFrame in a mode of ``df.write.mode``."""


async def to_dataframe(
    flow: "Flow[Any]",
    spark: "SparkSession",
    schema: "StructType | str",
    *,
    limit: int = LIMIT,
) -> "DataFrame":
    """Gather the elements, and return them as a DataFrame of *spark*.

    Elements are rows (tuples, Rows or dicts, with values as ``createDataFrame`` takes them), or
    ``pyarrow.RecordBatch``. *schema* is a ``StructType`` or its text, ``"id long, name string"``.
    They are kept as Arrow, which is compact, and here, so more than *limit* rows raise
    `TooManyElements`: write those with `write_parquet`, and read them with Spark.

    Demand: unbounded; the flow waits while 10,000 elements are turned into Arrow, on a thread.
    Completes: returns when the flow completes.
    Fails: raises what the flow failed with, PySpark's error for a row that does not fit the
        schema, or `TooManyElements`.
    Cancels: when its task is cancelled, and at more than *limit* rows.
    Holds: *limit* rows.
    Rules: 2.1
    """
    require_pyspark()
    require_int("to_dataframe", "limit", limit)
    tables = Tables(spark, schema)
    parts = list[Any]()

    async with Aside("to_dataframe", spark) as aside:

        async def gather(elements: list[Any]) -> None:
            parts.append(await aside.call(partial(tables.table, elements)))
            if sum(part.num_rows for part in parts) > limit:
                raise TooManyElements(
                    f"to_dataframe: the flow has more than limit={limit} rows; give a larger "
                    "limit, or use write_parquet, and read what it has written"
                )

        await flow.buffer(min(_PIECE, limit + 1)).for_each(gather)
        return await aside.call(partial(tables.concatenated, parts))


async def write_parquet(
    flow: "Flow[Any]",
    spark: "SparkSession",
    path: "str | PathLike[str]",
    schema: "StructType | str",
    *,
    batch: int = 100_000,
    within: Duration | None = None,
    mode: SaveMode = "append",
    partition_by: Sequence[str] = (),
    files: int = 1,
) -> Written:
    """Write the elements as Parquet files into the directory *path*, wherever Spark can write.

    They are written in commits of *batch* elements, or of what has come *within* a time; a commit
    costs about a quarter of a second, so make it large. Each is Spark's own: all of its rows can be
    seen afterwards, or none. Elements and *schema* are as in `to_dataframe`; a ``RecordBatch``
    counts as one element. *mode* is for the first commit, those behind it append: ``"append"``,
    ``"overwrite"``, or ``"error"`` if there is anything. *partition_by* names columns that become
    directories; each commit has that many *files* at most, in each.

    Demand: *batch* elements ahead of what is written; the flow waits while Spark writes.
    Completes: returns how much was `Written`, when the flow completes.
    Fails: raises what the flow failed with, or Spark. What had been committed stays, the rest is
        not written; a note on the error says how much that is.
    Cancels: when its task is cancelled: the commit under way is undone, those before stay.
    Holds: 2 × *batch* elements.
    Rules: 2.1
    """
    require_int("write_parquet", "files", files, least=1)
    location = fspath(path)

    def save(df: "DataFrame", mode: str) -> None:
        df.coalesce(files).write.mode(mode).partitionBy(*partition_by).parquet(location)

    return await _write(
        flow,
        "write_parquet",
        spark,
        Tables(spark, schema),
        save,
        batch=batch,
        within=within,
        mode=mode,
    )


async def append_table(
    flow: "Flow[Any]",
    spark: "SparkSession",
    table: str,
    schema: "StructType | str",
    *,
    batch: int = 100_000,
    within: Duration | None = None,
    files: int = 1,
) -> Written:
    """Append the elements to a table of *spark*'s catalog, which is made if there is none.

    As `write_parquet` does: in commits of *batch* elements, or of what has come *within* a time.

    Demand: *batch* elements ahead of what is written; the flow waits while Spark writes.
    Completes: returns how much was `Written`, when the flow completes.
    Fails: raises what the flow failed with, or Spark. What had been committed stays, the rest is
        not written; a note on the error says how much that is.
    Cancels: when its task is cancelled: the commit under way is undone, those before stay.
    Holds: 2 × *batch* elements.
    Rules: 2.1
    """
    require_int("append_table", "files", files, least=1)

    def save(df: "DataFrame", mode: str) -> None:
        df.coalesce(files).write.mode(mode).saveAsTable(table)

    return await _write(
        flow, "append_table", spark, Tables(spark, schema), save, batch=batch, within=within,
        mode="append",
    )  # fmt: skip


async def _write(
    flow: "Flow[Any]",
    name: str,
    spark: "SparkSession",
    tables: Tables,
    save: Save,
    *,
    batch: int,
    within: Duration | None,
    mode: SaveMode,
) -> Written:
    require_pyspark()
    require_int(name, "batch", batch, least=1)
    if mode not in _SAVE_MODES:
        raise ValueError(f"{name}: mode must be one of {', '.join(_SAVE_MODES)}, not {mode!r}.")
    limit = None if within is None else to_seconds(within, f"{name}: within")
    batches = flow.buffer(batch) if limit is None else flow.buffer_timeout(batch, limit)
    done = Written(0, 0)

    async with Aside(name, spark) as aside:

        async def commit(elements: list[Any]) -> None:
            nonlocal done
            modes = "append" if done.commits else mode
            rows = await aside.call(partial(_commit, tables, save, elements, modes))
            done = Written(done.rows + rows, done.commits + 1)

        try:
            await batches.for_each(commit)
            if not done.commits and mode != "append":
                await aside.call(lambda: save(tables.empty(), mode))  # what was there is gone
        except Exception as error:
            error.add_note(f"{name} had committed {done}; what came behind them is not written")
            raise
    return done


def _commit(tables: Tables, save: Save, elements: list[Any], mode: str) -> int:
    table = tables.table(elements)
    df = tables.dataframe(table)
    with telling(df):
        save(df, mode)
    rows: int = table.num_rows
    return rows
