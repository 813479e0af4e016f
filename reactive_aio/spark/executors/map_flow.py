"""map_flow: a flow in each of Spark's tasks, as a DataFrame."""

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, overload

from ...errors import MissingExtra
from ...stage import require_sync_callable
from ..errors import (
    LARGEST_INT,
    UnsupportedDataFrame,
    explained,
    require_dataframe_type,
    require_option,
    require_pyspark,
    require_unique_names,
)
from ..rows import (
    ROW_KINDS,
    RowKind,
    read_schema,
    rows_per_batch,
    unreadable,
    with_a_column,
)
from ..schemas import parse_with, parsed_schema, repeated_name, require_schema
from .resources import Manager, WorkerResource
from .shipping import pickle_pipeline, worker_function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.types import StructType

    from ...flow import Flow

T = TypeVar("T")
FUNCTION: Final = "map_flow"
_TIME_ZONE: Final = "spark.sql.session.timeZone"


class MapFlow:
    """Run a flow over each partition of a DataFrame, in Spark's Python workers.

    ::

        def enriched(rows: Flow[Row]) -> Flow[tuple[Any, ...]]:
            return rows.map_async(look_up, concurrency=64, retry=3)

        map_flow(df, enriched, "id long, price double").write.parquet(path)

    *pipeline* is a function of a flow that returns a flow. It is called once for each partition, in
    a Python worker, with the flow of the partition's rows, and returns the flow of the rows of the
    result: tuples or Rows by position, dicts by name, or ``pyarrow.RecordBatch``. They have to fit
    *schema*, a ``StructType`` or its text. What *rows* the pipeline gets is as in `from_dataframe`.
    So ``pipeline(from_dataframe(df))`` is the same on one loop.

    It returns a DataFrame, lazily: nothing runs until Spark computes it. *df* may be that of a
    classic session, of Spark Connect, or of a streaming query.

    The flow runs on an event loop (uvloop where it is installed), which goes on between the batches
    and the tasks of a worker. The pipeline is pickled with what it refers to: `map_flow.resources`
    is for what cannot be, such as a client. The workers need this package.

    Demand: begins with Spark, which takes a batch of the result when it can send one. The flow
        receives a request for the rows of that batch, and Spark's next batch is read when one of
        its rows is requested.
    Completes: the partition, with the flow.
    Fails: the task, with the flow's error; its notes name the partition, the attempt, the operator
        and the element, and are in the message that Spark raises on the driver. Spark runs the task
        again (``spark.task.maxFailures``, on a cluster). A row that does not fit *schema* is a
        `RowMismatch`, which names the row and the column.
    Cancels: within a quarter of a second when the query needs no more rows (``limit``), or when the
        synchronous function that runs has returned; the cleanup of the flow runs. When the job is
        cancelled, or fails in another task, Spark kills the worker (two to four seconds later, by
        ``spark.python.task.killTimeout``), and the flow ends with its process.
    Holds: in each task, besides what the flow holds (``pipeline(...).bound()``), one Arrow batch of
        Spark's (``spark.sql.execution.arrow.maxRecordsPerBatch`` rows), and one of the result: of
        as many rows at most, of 4 MB by the size of the rows before, and of those of a second.
    Rules: 1.1, 1.11, 3.13

    Raises `PipelineNotPicklable`, which names the variable that cannot be sent to the workers, and
    `UnsupportedDataFrame` for a column that PySpark has no Python value for. Like most methods of a
    DataFrame, it calls the JVM, or the server, and blocks for some milliseconds.
    """

    @overload
    def __call__(
        self, df: "DataFrame", pipeline: "Callable[[Flow[Row]], Flow[Any]]",
        schema: "StructType | str", *, rows: Literal["row"] = ...,
    ) -> "DataFrame": ...  # fmt: skip
    @overload
    def __call__(
        self, df: "DataFrame", pipeline: "Callable[[Flow[tuple[Any, ...]]], Flow[Any]]",
        schema: "StructType | str", *, rows: Literal["tuple"],
    ) -> "DataFrame": ...  # fmt: skip
    @overload
    def __call__(
        self, df: "DataFrame", pipeline: "Callable[[Flow[dict[str, Any]]], Flow[Any]]",
        schema: "StructType | str", *, rows: Literal["dict"],
    ) -> "DataFrame": ...  # fmt: skip
    @overload
    def __call__(
        self, df: "DataFrame", pipeline: "Callable[[Flow[Any]], Flow[Any]]",
        schema: "StructType | str", *, rows: RowKind,
    ) -> "DataFrame": ...  # fmt: skip
    def __call__(
        self,
        df: "DataFrame",
        pipeline: "Callable[[Flow[Any]], Flow[Any]]",
        schema: "StructType | str",
        *,
        rows: RowKind = "row",
    ) -> "DataFrame":
        """Run *pipeline* over each partition of *df*."""
        remedy = "give a function of a flow that returns a flow; map_async awaits in it"
        require_sync_callable(FUNCTION, "pipeline", pipeline, remedy, takes=1)
        return map_partitions(FUNCTION, df, pipeline, schema, rows)

    @staticmethod
    def resources(open: Callable[[], Manager[T]]) -> WorkerResource[T]:
        """Make a resource that each of Spark's Python workers opens once.

        ::

            client = map_flow.resources(httpx.AsyncClient)

            async def look_up(row: Row) -> tuple[Any, ...]:
                http = await client()
                return (row.id, (await http.get(f"{URL}/{row.id}")).text)

        *open* is called without arguments, on the event loop of a worker, and returns a context
        manager; ``async with`` is preferred over ``with``. `WorkerResource` says when it is closed.
        An *open* that fails fails those who wait for it; the next call tries again.
        """
        return WorkerResource(open)


map_flow: Final = MapFlow()


def map_partitions(
    function: str,
    df: "DataFrame",
    pipeline: "Callable[[Flow[Any]], Flow[Any]]",
    schema: "StructType | str",
    rows: RowKind,
) -> "DataFrame":
    """Return the DataFrame of what *pipeline* makes of each partition of *df*."""
    _require_dataframe(function, df)
    require_option(function, "rows", rows, ROW_KINDS)
    require_schema(function, schema)
    with explained(df):
        given = df.schema
        _require_readable(function, given, rows)
        output = parsed_schema(function, schema, parse_with(df.sparkSession))
        options: dict[str, Any] = {
            "input_schema": read_schema(df), "output_schema": output, "rows": rows,
            "most": rows_per_batch(df.sparkSession) or LARGEST_INT,
            "zone": df.sparkSession.conf.get(_TIME_ZONE),
        }  # fmt: skip
        run = worker_function(function, pickle_pipeline(function, pipeline), options)
        untyped: Any = _unique_names(df)
        with warnings.catch_warnings():
            # PySpark requires pandas, and does not use it.
            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
            result: DataFrame = untyped.mapInArrow(run, output)
        return result


def _require_dataframe(function: str, df: object) -> None:
    require_pyspark()
    if find_spec("pyarrow") is None or find_spec("pandas") is None:
        raise MissingExtra(f"{function}()", "spark")
    require_dataframe_type(function, df)


def _require_readable(function: str, schema: "StructType", rows: RowKind) -> None:
    require_unique_names(schema, rows, function)
    for field in schema.fields:
        if (name := repeated_name(field.dataType)) is not None:
            raise UnsupportedDataFrame(
                f"{function}() cannot read column {field.name!r}: a struct in it has two fields "
                f"named {name!r}, which Spark does not send to its workers. Cast the column to a "
                "struct with other names."
            )
    if rows == "batch" or (reason := next(unreadable(schema), None)) is None:
        return
    raise UnsupportedDataFrame(
        f"{function}() cannot read {reason}: PySpark has no Python value for it. Cast it, or leave "
        "it out with df.select(...), or use rows='batch'."
    )


def _unique_names(df: "DataFrame") -> "DataFrame":
    """Return *df* with names by which Spark finds each column; the rows keep their own names."""
    df = with_a_column(df)
    names = df.columns
    if len({name.lower() for name in names}) == len(names):
        return df
    return df.toDF(*(f"column_{position}" for position in range(len(names))))
