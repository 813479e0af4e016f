"""from_dataframe: the rows of a DataFrame as a flow."""

from typing import TYPE_CHECKING, Any, Literal, overload

from .._core.arguments import require_int
from .connect import ConnectSession
from .dataframe_source import FUNCTION, DataFrameSource
from .errors import is_connect, require_dataframe, require_option, require_unique_names
from .progress import OnProgress, require_on_progress
from .read_mode import READ_MODES, ReadMode, choose_mode
from .rows import ROW_KINDS, RowKind
from .spark_flow import SparkFlow
from .tagged_jobs import inherit_properties

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

__all__ = ("from_dataframe",)


@overload
def from_dataframe(
    df: "DataFrame", *, rows: Literal["row"] = ..., mode: ReadMode = ..., window: int = ...,
    batch: int | None = ..., ordered: bool = ..., progress: "bool | OnProgress" = ...,
) -> "SparkFlow[Row]": ...  # fmt: skip
@overload
def from_dataframe(
    df: "DataFrame", *, rows: Literal["tuple"], mode: ReadMode = ..., window: int = ...,
    batch: int | None = ..., ordered: bool = ..., progress: "bool | OnProgress" = ...,
) -> SparkFlow[tuple[Any, ...]]: ...  # fmt: skip
@overload
def from_dataframe(
    df: "DataFrame", *, rows: Literal["dict"], mode: ReadMode = ..., window: int = ...,
    batch: int | None = ..., ordered: bool = ..., progress: "bool | OnProgress" = ...,
) -> SparkFlow[dict[str, Any]]: ...  # fmt: skip
@overload
def from_dataframe(
    df: "DataFrame", *, rows: RowKind, mode: ReadMode = ..., window: int = ...,
    batch: int | None = ..., ordered: bool = ..., progress: "bool | OnProgress" = ...,
) -> SparkFlow[Any]: ...  # fmt: skip
def from_dataframe(
    df: "DataFrame",
    *,
    rows: RowKind = "row",
    mode: ReadMode = "auto",
    window: int = 16,
    batch: int | None = None,
    ordered: bool = True,
    progress: "bool | OnProgress" = False,
) -> SparkFlow[Any]:
    """Emit the rows of *df*, in its order, computed under demand.

    Elements are ``"row"``: a ``pyspark.sql.Row`` as ``collect()`` returns it; ``"tuple"``: the same
    without names, faster; ``"dict"``; or ``"batch"``: a ``pyarrow.RecordBatch`` of up to *batch*
    rows. `SparkFlow.schema` describes the columns. By default *batch* is 4096 for a
    ``RecordBatch``; for rows it is 1024, or up to 4096 where rows are small and have few columns
    of simple types.

    *mode* ``"arrow"`` computes partitions in windows, one Spark job each: of 1, 1, 2, 4, … up to
    *window* partitions, if demand covers them, and of fewer at the end; their rows are read on the
    loop as Arrow batches. ``"rows"`` drains ``toLocalIterator`` on a thread, which is much slower
    and uses little but PySpark's public API. ``"connect"`` fetches the batches of a DataFrame of
    Spark Connect, on a thread; *window* and *ordered* have no effect there. ``"auto"`` takes the
    best mode that is possible; `SparkFlow.mode` reports it and the reason. With *ordered* false, a
    window whose job is done does not wait for the windows before it.

    *progress* is a function that receives a `Progress` of each subscription. It is called on the
    loop, outside of signals, after changes, at most ten times a second, and once before the
    terminal signal. If it raises, the loop's exception handler is called, and the flow continues
    without it. True means a `ProgressBar`.

    Each subscription runs jobs of its own, with the local properties (the scheduler pool, the job
    group, the job tags) that were set in the thread that called this.

    ::

        from_dataframe(df)
        r--r--r--|

    Demand: passed through. At demand 0 no job is started and nothing is read; a window is launched
        when demand reaches one of its rows, by the size of the partitions before. Spark itself
        computes whole partitions: they wait in the driver's JVM, so make partitions small where
        rows are large (``df.repartition(n)``). A server of Spark Connect computes everything as
        soon as one row is requested, and keeps what has not been fetched.
    Completes: after the last row, when Spark has confirmed that it sent everything; whether the
        remaining partitions are empty is known only when one more row is requested.
    Fails: when a job fails, with PySpark's exception for the cause and Spark's message (the Py4J
        error is its ``__cause__``), after the rows of the windows before; with `SparkSessionLost`
        when the session was stopped, its JVM died, or its server is gone.
    Cancels: returns at once. The running jobs are cancelled, their tasks are interrupted, and the
        threads that wait for them end.
    Holds: up to *batch* - 1 rows, the rest of a batch; nothing in mode ``"rows"``, or of batches.
        ``flow.bound()`` reports the number. In mode ``"connect"``, a batch has the size that the
        server gives it: ``spark.sql.execution.arrow.maxRecordsPerBatch`` rows.
    Rules: 1.1, 3.4, 3.5, 3.13

    Raises `UnsupportedDataFrame` for a streaming DataFrame and for a column that PySpark has no
    Python value for; `ModeUnavailable` when the requested mode, or batches, are not possible. Like
    most methods of a DataFrame, this calls the JVM, or the server, and blocks for some
    milliseconds (the first time, for some tens).
    """
    require_dataframe(df)
    require_option(FUNCTION, "rows", rows, ROW_KINDS)
    require_option(FUNCTION, "mode", mode, READ_MODES)
    require_int(FUNCTION, "window", window, least=1)
    if batch is not None:
        require_int(FUNCTION, "batch", batch, least=1)
    require_unique_names(df.schema, rows)
    on_progress = require_on_progress(FUNCTION, progress)
    chosen = choose_mode(df, mode, rows)
    connect = ConnectSession.of(df) if is_connect(df) else None
    source = DataFrameSource(
        df=df, inherit=None if connect else inherit_properties(df), connect=connect, kind=rows,
        mode=mode, chosen=chosen, window=window, batch=batch, ordered=ordered,
        on_progress=on_progress,
    )  # fmt: skip
    return SparkFlow(source)
