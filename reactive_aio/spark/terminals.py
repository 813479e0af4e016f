"""to_dataframe, write_parquet, append_table: terminal operators that end a flow in Spark."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from .._core.arguments import Duration, require_int, to_seconds
from ..errors import TooManyElements
from .errors import (
    explained,
    require_flow,
    require_java_int,
    require_option,
    require_path,
    require_session,
    require_text,
)
from .rejected_rows import fit_batch, require_converter, table_of
from .rows import has_user_defined_type, row_converter
from .schemas import parse_with, parsed_schema, require_schema
from .tagged_jobs import SparkCalls

if TYPE_CHECKING:
    from os import PathLike

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from ..flow import Flow

DEFAULT_LIMIT: Final = 1_000_000
_CHUNK: Final = 10_000  # rows that are converted to Arrow at a time
SaveMode = Literal["append", "overwrite", "error"]
_SAVE_MODES: Final = ("append", "overwrite", "error")
Save = Callable[["DataFrame", str], object]
"""Writes a DataFrame in a mode of ``df.write.mode``."""


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The result of `write_parquet` and `append_table`."""

    rows: int
    commits: int

    def __str__(self) -> str:
        return f"{self.rows:,} rows in {self.commits:,} commits"


async def to_dataframe(
    flow: "Flow[Any]",
    spark: "SparkSession",
    schema: "StructType | str",
    *,
    limit: int = DEFAULT_LIMIT,
) -> "DataFrame":
    """Collect the elements, and return them as a DataFrame of *spark*.

    Elements are rows (tuples, Rows or dicts, with values as ``createDataFrame`` takes them), or
    ``pyarrow.RecordBatch``. *schema* is a ``StructType`` or its text, ``"id long, name string"``.
    They are kept as Arrow in this process, so more than *limit* rows raise `TooManyElements`: write
    those with `write_parquet`, and read them with Spark.

    Demand: unbounded; the flow waits while 10,000 elements are converted to Arrow, on a thread.
    Completes: returns when the flow completes.
    Fails: raises what the flow failed with, `RowRejected` for a row that does not fit the schema,
        with its number and the column, or `TooManyElements`.
    Cancels: when its task is cancelled, and at more than *limit* rows.
    Holds: *limit* rows.
    Rules: 2.1
    """
    require_flow("to_dataframe", flow)
    require_session("to_dataframe", spark)
    require_converter("to_dataframe")
    require_int("to_dataframe", "limit", limit)
    dataframes = _DataFrames("to_dataframe", spark, schema)
    parts = list[Any]()

    async with SparkCalls("to_dataframe", spark) as calls:

        async def collect(elements: list[Any]) -> None:
            first = sum(map(len, parts))
            parts.append(await calls.call(partial(dataframes.part, elements, first)))
            if sum(map(len, parts)) > limit:
                raise TooManyElements(
                    f"to_dataframe: the flow has more than limit={limit} rows; give a larger "
                    "limit, or use write_parquet, and read what it has written"
                )

        await flow.buffer(min(_CHUNK, limit + 1)).for_each(collect)
        return await calls.call(partial(dataframes.dataframe, parts))


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
) -> WriteResult:
    """Write the elements as Parquet files into the directory *path*, wherever Spark can write.

    They are written in commits of *batch* elements, or of the elements that arrive *within* a
    time; a commit takes about a quarter of a second, so make it large. Each is atomic, as Spark's
    writes are. Elements and *schema* are as in `to_dataframe`; a ``RecordBatch`` counts as one
    element. *mode* applies to the first commit, and the following ones append: ``"append"``,
    ``"overwrite"``, or ``"error"`` if the directory exists. *partition_by* names columns that
    become directories; each commit writes at most that many *files* into each.

    Demand: *batch* elements ahead of what is written; the flow waits while Spark writes.
    Completes: returns a `WriteResult` when the flow completes.
    Fails: raises what the flow failed with, Spark's error, or `RowRejected` for a row that does not
        fit the schema. Commits that are done stay, later elements are not written; a note on the
        error reports how much is committed.
    Cancels: when its task is cancelled: the running commit is undone, those before stay, and the
        note is on the ``CancelledError``.
    Holds: 2 × *batch* elements.
    Rules: 2.1
    """
    require_java_int("write_parquet", "files", files)
    location = require_path("write_parquet", "path", path)
    columns: Any = _column_names(partition_by)

    def save(df: "DataFrame", mode: str) -> None:
        df.coalesce(files).write.mode(mode).partitionBy(*columns).parquet(location)

    return await _write(
        flow, "write_parquet", spark, schema, save, batch=batch, within=within, mode=mode
    )


def _column_names(partition_by: Sequence[object]) -> list[object]:
    if isinstance(partition_by, str) or not all(isinstance(name, str) for name in partition_by):
        raise TypeError(
            "write_parquet: partition_by must be a list of names, such as ['day'], not "
            f"{partition_by!r}"
        )
    return [*partition_by]


async def append_table(
    flow: "Flow[Any]",
    spark: "SparkSession",
    table: str,
    schema: "StructType | str",
    *,
    batch: int = 100_000,
    within: Duration | None = None,
    files: int = 1,
) -> WriteResult:
    """Append the elements to a table in the catalog of *spark*.

    The first commit creates a table that is missing; a flow without elements has no commit.

    Commits, demand, failures and cancellation are those of `write_parquet`.
    """
    require_java_int("append_table", "files", files)
    require_text("append_table", "table", table)

    def save(df: "DataFrame", mode: str) -> None:
        df.coalesce(files).write.mode(mode).saveAsTable(table)

    return await _write(
        flow, "append_table", spark, schema, save, batch=batch, within=within, mode="append"
    )


async def _write(
    flow: "Flow[Any]",
    function: str,
    spark: "SparkSession",
    schema: "StructType | str",
    save: Save,
    *,
    batch: int,
    within: Duration | None,
    mode: SaveMode,
) -> WriteResult:
    require_flow(function, flow)
    require_session(function, spark)
    require_converter(function)
    require_int(function, "batch", batch, least=1)
    require_option(function, "mode", mode, _SAVE_MODES)
    limit = None if within is None else to_seconds(within, f"{function}: within")
    batches = flow.buffer(batch) if limit is None else flow.buffer_timeout(batch, limit)
    dataframes = _DataFrames(function, spark, schema)
    result = WriteResult(0, 0)

    async with SparkCalls(function, spark) as calls:

        async def commit(elements: list[Any]) -> None:
            nonlocal result
            mode_now = "append" if result.commits else mode
            rows = await calls.call(
                partial(dataframes.commit, elements, result.rows, save, mode_now)
            )
            result = WriteResult(result.rows + rows, result.commits + 1)

        try:
            await batches.for_each(commit)
            if not result.commits and mode != "append":
                # Which removes old files.
                await calls.call(lambda: save(dataframes.dataframe(()), mode))
        except BaseException as error:  # a cancellation as well
            error.add_note(f"{function} had committed {result}; later elements are not written")
            raise
    return result


class _DataFrames:
    """Makes parts of a DataFrame from elements, and DataFrames of parts. Called on a thread.

    A part is a ``pyarrow.Table``, or a list of rows where PySpark loses something of a table: the
    number of rows without columns, and the values of types that a program has defined.
    """

    def __init__(self, function: str, spark: "SparkSession", schema: "StructType | str") -> None:
        self._function = function
        self._spark: Any = spark
        require_schema(function, schema)
        self._given = schema

    @cached_property
    def schema(self) -> "StructType":
        """The columns; Spark parses a schema that is text."""
        return parsed_schema(self._function, self._given, parse_with(self._spark))

    @cached_property
    def _has_lists(self) -> bool:
        return not self.schema.fields or has_user_defined_type(self.schema)

    def part(self, elements: Sequence[Any], first: int) -> Any:
        """Return a part of rows (tuples, Rows, dicts …), of record batches, or of both.

        *first* is the number of the first row. Raises `RowRejected`.
        """
        import pyarrow

        untyped: Any = pyarrow
        kind = untyped.RecordBatch
        if not any(issubclass(each, kind) for each in set(map(type, elements))):
            table = table_of(elements, self.schema, function=self._function, first=first)
            return elements if self._has_lists else table
        parts = list[Any]()
        for is_batch, group in groupby(elements, lambda each: isinstance(each, kind)):
            for each in group if is_batch else ([*group],):
                part = self._part_of_batch(each, first) if is_batch else self.part(each, first)
                parts.append(part)
                first += len(part)
        return self._joined(parts)

    def _part_of_batch(self, batch: Any, first: int) -> Any:
        table = fit_batch(batch, self.schema, function=self._function, first=first)
        if not self._has_lists:
            return table
        convert = row_converter(self.schema, "tuple")
        return [row for each in table.to_batches() for row in convert(each)]

    def _joined(self, parts: Sequence[Any]) -> Any:
        """Return several parts as one."""
        if self._has_lists:
            return [*chain.from_iterable(parts)]
        import pyarrow

        return cast("Any", pyarrow).concat_tables(parts)

    def dataframe(self, parts: Sequence[Any]) -> "DataFrame":
        """Return a DataFrame of the rows of all *parts*; there may be none."""
        data: Any = self._joined(parts) if parts else []
        df: DataFrame = self._spark.createDataFrame(data, self.schema)
        return df

    def commit(self, elements: Sequence[Any], first: int, save: Save, mode: str) -> int:
        """Save *elements*, the first of which is row *first*; return the number of their rows."""
        part = self.part(elements, first)
        df = self.dataframe([part])
        with explained(df):
            save(df, mode)
        return len(part)
