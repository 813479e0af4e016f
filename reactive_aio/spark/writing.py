"""How a flow is written with Spark: in commits that are bounded by rows and by bytes."""

import math
from dataclasses import dataclass, field
from functools import cached_property, partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import anyio

from .._core.arguments import Duration, require_int, to_seconds
from ..delivery import BatchFailed
from ..delivery.delivery_flow import paired_with_origins
from ._internals import dataframe_of_batches, local_relation
from .conversion import RowConversion, RowRejected
from .errors import explained, is_connect, require_option, require_session
from .gathering import Commits, Gathering
from .read_mode import ModeUnavailable
from .rows import cut, has_user_defined_type
from .schemas import parse_with, parsed_schema, require_schema
from .spark_version import pyspark_version
from .tagged_jobs import SparkCalls

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from ..delivery import DeliveryFlow
    from ..flow import Flow

DEFAULT_ROWS: Final = 100_000
DEFAULT_BYTES: Final = 64 << 20
LARGEST_COMMIT: Final = 1 << 30
"""Bytes of a commit, and of a row: Spark sends a task what it writes, and that must be less than
2 GiB."""
_PARTITION_ROWS: Final = 10_000
_TIME_ZONE: Final = "spark.sql.session.timeZone"
_FOLDERS: Final = "source_partition"
SaveMode = Literal["append", "overwrite", "error"]
SAVE_MODES: Final = ("append", "overwrite", "error")


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The result of `write_parquet` and `append_table`."""

    rows: int
    commits: int

    def __str__(self) -> str:
        return f"{self.rows:,} rows in {self.commits:,} commits"


@dataclass(frozen=True, slots=True)
class CommitOptions:
    """When a commit is complete, and what the first one does."""

    rows: int
    bytes: int
    within: float
    mode: SaveMode

    @classmethod
    def checked(
        cls, function: str, batch: int, batch_bytes: int, within: Duration | None, mode: SaveMode
    ) -> "CommitOptions":
        """Return the options. Raises for those that are not possible."""
        require_int(function, "batch", batch, least=1)
        require_int(function, "batch_bytes", batch_bytes, least=1)
        if batch_bytes > LARGEST_COMMIT:
            raise ValueError(
                f"{function}: batch_bytes must be at most {LARGEST_COMMIT} (1 GiB), not "
                f"{batch_bytes}: Spark sends a commit to its tasks, and a task gets less than 2 GiB"
            )
        require_option(function, "mode", mode, SAVE_MODES)
        limit = math.inf if within is None else to_seconds(within, f"{function}: within")
        return cls(batch, batch_bytes, limit, mode)


class Writer:
    """Makes DataFrames of what a flow delivers. What blocks is called on a thread."""

    def __init__(self, function: str, spark: "SparkSession", schema: "StructType | str") -> None:
        require_session(function, spark)
        if pyspark_version() < (4, 0):
            raise ModeUnavailable(
                f"{function}() needs PySpark 4.0 or newer, which takes Arrow batches: "
                "pip install 'pyspark>=4.0'"
            )
        require_schema(function, schema)
        self.function = function
        self.spark: Any = spark
        self._given = schema

    @cached_property
    def conversion(self) -> RowConversion:
        """Converts the elements; Spark parses a schema that is text. Blocks the first time."""
        schema = parsed_schema(self.function, self._given, parse_with(self.spark))
        return RowConversion(self.function, schema, self.spark.conf.get(_TIME_ZONE))

    def open(self) -> None:
        """Check the schema, before anything is requested. Blocks."""
        _ = self.conversion.arrow

    def dataframe(self, batches: list[Any]) -> "DataFrame":
        """Return a DataFrame of record batches. Blocks."""
        conversion = self.conversion
        if not is_connect(self.spark):
            return dataframe_of_batches(self.spark, batches, conversion.schema)
        import pyarrow

        table = cast("Any", pyarrow).Table.from_batches(batches, conversion.arrow)
        if not conversion.schema.fields or has_user_defined_type(conversion.schema):
            return local_relation(self.spark, table, conversion.schema)
        return cast("DataFrame", self.spark.createDataFrame(table, conversion.schema))

    def collected(self, batches: list[Any]) -> "DataFrame":
        """Return the same, of few partitions. Blocks."""
        if batches and self.conversion.schema.fields:
            import pyarrow

            whole = cast("Any", pyarrow).Table.from_batches(batches).combine_chunks()
            parts = (cut(each, _PARTITION_ROWS, DEFAULT_BYTES) for each in whole.to_batches())
            batches = [each for part in parts for each in part]
        return self.dataframe(batches)

    def save(self, df: "DataFrame", mode: str, folder: str) -> None:
        """Write *df* in a mode of ``df.write.mode``, in a folder of the place, or "". Blocks."""
        raise NotImplementedError(f"{self.function}() has no place to write to")

    def commit(self, batches: list[Any], first: int, mode: str, folder: str) -> None:
        """Write record batches, of which *first* is the number of the first row. Blocks."""
        for each in batches:
            if each.nbytes > LARGEST_COMMIT:
                raise self.conversion.rejected(
                    f"{self.function}: row {first:,} (counted from 0) has {each.nbytes:,} bytes, "
                    f"and a row may have at most {LARGEST_COMMIT:,} (1 GiB). Divide it in the flow",
                    first,
                    None,
                )
            first += each.num_rows
        df = self.dataframe(batches)
        with explained(df):
            self.save(df, mode, folder)


async def converted(
    writer: Writer, calls: SparkCalls, gathering: Gathering, elements: list[Any]
) -> list[Any]:
    """Return the record batches of *elements*, and let *gathering* know how large they are."""
    began = perf_counter()
    batches = await calls.call(partial(writer.conversion.batches, elements))
    size = sum(each.nbytes for each in batches)
    gathering.measure(len(elements), size, perf_counter() - began)
    return batches


class CommitLog:
    """Writes one commit after the other, and counts them."""

    def __init__(self, writer: Writer, calls: SparkCalls) -> None:
        self._writer = writer
        self._calls = calls
        self.result: WriteResult = WriteResult(0, 0)

    async def commit(self, batches: list[Any], mode: SaveMode, folder: str = "") -> None:
        """Write *batches*; without any, only what *mode* does."""
        first, rows = self.result.rows, sum(each.num_rows for each in batches)
        await self._calls.call(partial(self._writer.commit, batches, first, mode, folder))
        self.result = WriteResult(first + rows, self.result.commits + (1 if batches else 0))

    def note(self, error: BaseException) -> None:
        """Add to *error*, which may be a cancellation, how much was committed."""
        function = self._writer.function
        error.add_note(f"{function} had committed {self.result}; later elements are not written")


async def write(flow: "Flow[Any]", writer: Writer, options: CommitOptions) -> WriteResult:
    """Write the elements of *flow* in commits."""
    waiting = Commits(options.rows, options.bytes)
    async with SparkCalls(writer.function, writer.spark) as calls:
        log = CommitLog(writer, calls)

        async def commit(batches: list[Any]) -> None:
            await log.commit(batches, "append" if log.result.commits else options.mode)

        try:
            await calls.call(writer.open)
            async with Gathering(writer.function, flow, options.rows) as gathering:
                deadline = anyio.current_time() + options.within
                while (elements := await gathering.next(deadline)) is not None:
                    if elements:
                        waiting.add(await converted(writer, calls, gathering, elements))
                    while full := waiting.next():
                        await commit(full)
                        deadline = anyio.current_time() + options.within
                    if anyio.current_time() >= deadline:
                        if not waiting.is_empty:
                            await commit(waiting.rest())
                        deadline = anyio.current_time() + options.within
                if not waiting.is_empty:
                    await commit(waiting.rest())
            if not log.result.commits and options.mode != "append":
                await commit([])  # which removes old files
        except BaseException as error:
            log.note(error)
            raise
    return log.result


async def write_deliveries(
    flow: "DeliveryFlow[Any]", writer: Writer, options: CommitOptions
) -> WriteResult:
    """Write the elements of *flow* in commits, and acknowledge those of each one."""
    if options.mode != "append":
        raise ValueError(
            f"{writer.function}: a flow of deliveries continues what a crash has ended, so mode= "
            f"must be 'append', not {options.mode!r}"
        )
    async with SparkCalls(writer.function, writer.spark) as calls:
        log = CommitLog(writer, calls)
        try:
            await calls.call(writer.open)
            values = paired_with_origins(flow)
            if math.isinf(options.within):
                lists = values.buffer(options.rows)
            else:
                lists = values.buffer_timeout(options.rows, options.within)
            await lists.ack_after(_Folders(writer, calls, log, options.bytes).write).run()
        except BatchFailed as failed:
            error = next(iter(failed.errors.values()))
            log.note(error)
            raise error from failed
        except BaseException as error:
            log.note(error)
            raise
    return log.result


Item = tuple[int, Any]
"""A value, and its position in a list of deliveries."""


@dataclass(eq=False)
class _Folders:
    """Writes lists of values, those of each partition of a source into a folder of its own.

    The first commit of this run replaces the folder: a run before, which crashed before the
    partition was acknowledged, may have left some of its rows there.
    """

    writer: Writer
    calls: SparkCalls
    log: CommitLog
    bytes: int
    _begun: set[str] = field(default_factory=set[str], init=False)
    _errors: dict[int, Exception] = field(default_factory=dict[int, Exception], init=False)

    async def write(self, values: list[tuple[frozenset[object], Any]]) -> None:
        """Write a list. Raises `BatchFailed` with the errors of those that were not written."""
        self._errors = {}
        folders: dict[str, list[Item]] = {}
        for position, (origins, value) in enumerate(values):
            try:
                folders.setdefault(self._folder(origins), []).append((position, value))
            except ValueError as error:
                self._errors[position] = error
        for folder, items in folders.items():
            await self._write(folder, items)
        if self._errors:
            raise BatchFailed(self._errors)

    async def _write(self, folder: str, items: list[Item]) -> None:
        """Write *items* as one commit, or each half of them if they do not fit, or are too many."""
        convert = partial(self.writer.conversion.batches, [value for _, value in items])
        try:
            batches = await self.calls.call(convert)
            if sum(each.nbytes for each in batches) <= self.bytes or len(items) == 1:
                is_new = folder and folder not in self._begun
                await self.log.commit(batches, "overwrite" if is_new else "append", folder)
                self._begun.add(folder)
                return
        except RowRejected as error:
            if len(items) == 1:
                self._errors[items[0][0]] = error
                return
        except Exception as error:
            self._errors.update((position, error) for position, _ in items)
            return
        middle = len(items) // 2
        await self._write(folder, items[:middle])
        await self._write(folder, items[middle:])

    def _folder(self, origins: frozenset[object]) -> str:
        if len(origins) > 1:
            raise ValueError(
                f"{self.writer.function}: an element was made of several partitions of the source "
                f"({', '.join(sorted(map(str, origins)))}), so that none of them could be written "
                "again by itself; make each element of rows of one partition"
            )
        (origin,) = origins
        if origin is None:
            return ""
        if _FOLDERS in map(str.lower, self.writer.conversion.schema.names):
            raise ValueError(
                f"{self.writer.function}: the schema has a column {_FOLDERS!r}; the folders have "
                "that name, and their number would be read instead of its values. Rename the column"
            )
        return f"/{_FOLDERS}={origin}"
