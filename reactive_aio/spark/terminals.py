"""to_dataframe, write_parquet, append_table: terminal operators that end a flow in Spark."""

from collections.abc import Sequence
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final

from .._core.arguments import Duration, require_int
from ..delivery import DeliveryFlow
from ..errors import TooManyElements
from .errors import require_flow, require_java_int, require_text
from .files import FileWriter
from .gathering import Gathering
from .tables import TableWriter
from .tagged_jobs import SparkCalls
from .writing import (
    DEFAULT_BYTES,
    DEFAULT_ROWS,
    CommitOptions,
    SaveMode,
    Writer,
    WriteResult,
    converted,
    write,
    write_deliveries,
)

if TYPE_CHECKING:
    from os import PathLike

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from ..flow import Flow

DEFAULT_LIMIT: Final = 1_000_000


async def to_dataframe(
    flow: "Flow[Any]",
    spark: "SparkSession",
    schema: "StructType | str",
    *,
    limit: int = DEFAULT_LIMIT,
) -> "DataFrame":
    """Collect the elements, and return them as a DataFrame of *spark*.

    Elements are rows: tuples, lists and Rows by position, dicts by name (without a key, the value
    is null; a key that the schema does not have is refused), objects by their attributes, or
    ``pyarrow.RecordBatch``. A value means what it means for ``createDataFrame``, at any depth, and
    one that a column would hold with a loss is refused. *schema* is a ``StructType`` or its text,
    ``"id long, name string"``. The rows are kept as Arrow in this process, so more than *limit*
    raise `TooManyElements`: write those with `write_parquet`, and read them with Spark.

    Demand: as many elements as are converted to Arrow at a time, on a thread: one at first, and up
        to 10,000 of 4 MB.
    Completes: returns when the flow completes.
    Fails: raises what the flow failed with, `RowRejected` for a row that does not fit the schema,
        with its number and the column, or `TooManyElements`; `ValueError` for a schema that cannot
        be written, before anything is requested.
    Cancels: when its task is cancelled, and at more than *limit* rows.
    Holds: *limit* rows.
    Rules: 2.1
    """
    require_flow("to_dataframe", flow)
    require_int("to_dataframe", "limit", limit)
    writer = Writer("to_dataframe", spark, schema)
    batches = list[Any]()
    async with SparkCalls("to_dataframe", spark) as calls:
        await calls.call(writer.open)
        async with Gathering("to_dataframe", flow, limit + 1) as gathering:
            while (elements := await gathering.next(inf)) is not None:
                batches += await converted(writer, calls, gathering, elements)
                if writer.conversion.rows > limit:
                    raise TooManyElements(
                        f"to_dataframe: the flow has more than limit={limit} rows; give a larger "
                        "limit, or use write_parquet, and read what it has written"
                    )
        return await calls.call(partial(writer.collected, batches))


async def write_parquet(
    flow: "Flow[Any] | DeliveryFlow[Any]",
    spark: "SparkSession",
    path: "str | PathLike[str]",
    schema: "StructType | str",
    *,
    batch: int = DEFAULT_ROWS,
    batch_bytes: int = DEFAULT_BYTES,
    within: Duration | None = None,
    mode: SaveMode = "append",
    partition_by: Sequence[str] = (),
    files: int = 1,
) -> WriteResult:
    """Write the elements as Parquet files into the directory *path*, wherever Spark can write.

    They are written in commits: of *batch* rows or about *batch_bytes* (64 MiB), whichever comes
    first, or of what has arrived when *within* has passed. A commit takes about a quarter of a
    second, so make it large. Each is atomic, as Spark's writes are. Elements and *schema* are as in
    `to_dataframe`. *mode* applies to the first commit, and the following ones append: ``"append"``,
    ``"overwrite"``, or ``"error"`` if the directory exists. *partition_by* names columns that
    become directories; each commit writes at most that many *files* into each.

    The elements of a `DeliveryFlow` are acknowledged when their rows are written. If its source is
    ``from_dataframe(df, checkpoint=…)``, the rows of each partition of *df* are in a directory of
    their own, ``source_partition=N``, which begins anew when the partition is computed again: so
    after a crash no row is missing, and none is there twice.

    Demand: as many elements as are converted to Arrow at a time, as in `to_dataframe`, and as many
        ahead; the flow waits while Spark writes. That of a `DeliveryFlow` is its own.
    Completes: returns a `WriteResult` when the flow completes.
    Fails: before anything is requested, with `ValueError` for columns that files cannot have, and
        with `FileExistsError` for mode ``"error"``. Later it raises what the flow failed with,
        Spark's error, or `RowRejected` for a row that does not fit the schema. Commits that are
        done stay, later elements are not written; a note on the error reports how much is
        committed.
    Cancels: when its task is cancelled: the running commit is undone, those before stay, and the
        note is on the ``CancelledError``.
    Holds: the rows of a commit, and of two parts that become one; or what the `DeliveryFlow` holds.
    Rules: 2.1
    """
    if not isinstance(flow, DeliveryFlow):
        require_flow("write_parquet", flow)
    options = CommitOptions.checked("write_parquet", batch, batch_bytes, within, mode)
    writer = FileWriter(spark, path, schema, partition_by, files, mode)
    if isinstance(flow, DeliveryFlow):
        return await write_deliveries(flow, writer, options)
    return await write(flow, writer, options)


async def append_table(
    flow: "Flow[Any]",
    spark: "SparkSession",
    table: str,
    schema: "StructType | str",
    *,
    batch: int = DEFAULT_ROWS,
    batch_bytes: int = DEFAULT_BYTES,
    within: Duration | None = None,
    files: int = 1,
) -> WriteResult:
    """Append the elements to a table in the catalog of *spark*.

    A table that exists is appended to as ``INSERT`` does, by its own definition: its format, its
    partitions and its buckets. Its columns are found by name; if they are not those of *schema*,
    with the same types, or if *table* names a view, it raises `ValueError` before anything is
    requested. The first commit creates a table that is missing; a flow without elements has no
    commit.

    Commits, demand, failures and cancellation are those of `write_parquet`.
    """
    require_java_int("append_table", "files", files)
    require_text("append_table", "table", table)
    require_flow("append_table", flow)
    writer = TableWriter(spark, table, schema, files)
    options = CommitOptions.checked("append_table", batch, batch_bytes, within, "append")
    return await write(flow, writer, options)
