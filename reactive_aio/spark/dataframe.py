"""from_dataframe: the rows of a DataFrame as a flow."""

from typing import TYPE_CHECKING, Any, Literal, overload

from .._core.arguments import require_int
from .connect import Remote
from .failures import check, is_connect
from .flow import SparkFlow
from .jobs import inheriting
from .mode import MODES, Mode, choose
from .progress import Tell, teller
from .rows import KINDS, Kind
from .source import NAME, Source, check_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

__all__ = ("from_dataframe",)


@overload
def from_dataframe(
    df: "DataFrame", *, rows: Literal["row"] = ..., mode: Mode = ..., window: int = ...,
    batch: int | None = ..., ordered: bool = ..., progress: "bool | Tell" = ...,
) -> "SparkFlow[Row]": ...  # fmt: skip
@overload
def from_dataframe(
    df: "DataFrame", *, rows: Literal["tuple"], mode: Mode = ..., window: int = ...,
    batch: int | None = ..., ordered: bool = ..., progress: "bool | Tell" = ...,
) -> SparkFlow[tuple[Any, ...]]: ...  # fmt: skip
@overload
def from_dataframe(
    df: "DataFrame", *, rows: Literal["dict"], mode: Mode = ..., window: int = ...,
    batch: int | None = ..., ordered: bool = ..., progress: "bool | Tell" = ...,
) -> SparkFlow[dict[str, Any]]: ...  # fmt: skip
@overload
def from_dataframe(
    df: "DataFrame", *, rows: Kind, mode: Mode = ..., window: int = ..., batch: int | None = ...,
    ordered: bool = ..., progress: "bool | Tell" = ...,
) -> SparkFlow[Any]: ...  # fmt: skip
def from_dataframe(
    df: "DataFrame",
    *,
    rows: Kind = "row",
    mode: Mode = "auto",
    window: int = 16,
    batch: int | None = None,
    ordered: bool = True,
    progress: "bool | Tell" = False,
) -> SparkFlow[Any]:
    """Emit the rows of *df*, in its order, computed as they are asked for.

    Elements are ``"row"``: a ``pyspark.sql.Row`` as ``collect()`` returns it; ``"tuple"``: the same
    without names, faster; ``"dict"``; or ``"batch"``: a ``pyarrow.RecordBatch`` of up to *batch*
    rows. `SparkFlow.schema` says what the columns are. Unless told, *batch* is 4096
    for a ``RecordBatch``; for rows 1024, or up to 4096 where they turn out to be small and their
    columns few and quickly read.

    *mode* ``"arrow"`` computes partitions in windows, one Spark job each: of 1, 1, 2, 4, … up to
    *window* partitions, if demand covers them, and of fewer at the end; their rows are read on the
    loop as Arrow batches. ``"rows"`` drains ``toLocalIterator`` on a thread, which is much slower
    and needs nothing but PySpark's public surface. ``"connect"`` fetches the batches of a DataFrame
    of Spark Connect, on a thread; *window* and *ordered* mean nothing there. ``"auto"`` takes the
    best that is possible; `SparkFlow.mode` says which, and why. With *ordered* false, a window that
    is computed need not wait for the ones before it.

    *progress* is a function that is given a `Progress` of each subscription, on the loop and in a
    turn of its own, when something has happened, at most ten times a second, and once before its
    end is signalled. If it raises, the loop's exception handler is told, and the flow goes on
    without it. True means a `ProgressBar`.

    Each subscription runs jobs of its own, with the local properties (the scheduler pool, the job
    group, the job tags) that were set in the thread that called this.

    ::

        from_dataframe(df)
        r--r--r--|

    Demand: passed through. At demand 0 no job is started and nothing is read; a window is launched
        when a row of it is due, by what is known of the partitions before. Spark itself computes
        whole partitions: they are in the driver's JVM ahead of demand, so make partitions small
        where rows are large (``df.repartition(n)``). A server of Spark Connect computes everything,
        as soon as anything is asked for, and keeps what is not fetched yet.
    Completes: behind the last row, when Spark has confirmed that it sent everything; partitions
        without rows are found out by asking for one more row.
    Fails: when a job fails, with PySpark's exception for what went wrong and Spark's message
        (the py4j error is its ``__cause__``), behind the rows of the windows before; with
        `SparkSessionLost` when the session was stopped, its JVM died, or its server is gone.
    Cancels: returns at once. The running jobs are cancelled, their tasks are interrupted, and the
        threads that wait for them end.
    Holds: up to *batch* - 1 rows, the rest of a batch of which something was asked for; nothing in
        mode ``"rows"``, or of batches. ``flow.bound()`` says how many that is. In mode
        ``"connect"``, of the batch that the server makes:
        ``spark.sql.execution.arrow.maxRecordsPerBatch`` rows.
    Rules: 1.1, 3.4, 3.5, 3.13

    Raises `UnsupportedDataFrame` for what this cannot read: a streaming DataFrame, or a column
    that PySpark has no Python value for; `ModeUnavailable` when the mode or the batches that were
    asked for are not possible. Like most methods of a DataFrame, this call asks the JVM something,
    or the server, and blocks for some milliseconds (once, for some tens).
    """
    check(df)
    _one_of("rows", rows, KINDS)
    _one_of("mode", mode, MODES)
    require_int(NAME, "window", window, least=1)
    if batch is not None:
        require_int(NAME, "batch", batch, least=1)
    check_names(df, rows)
    tell = teller(NAME, progress)
    chosen, remote = choose(df, mode, rows), Remote.of(df) if is_connect(df) else None
    source = Source(
        df=df, inherit=None if remote else inheriting(df), remote=remote, kind=rows, mode=mode,
        chosen=chosen, window=window, batch=batch, ordered=ordered, tell=tell,
    )  # fmt: skip
    return SparkFlow(source)


def _one_of(parameter: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{NAME}: {parameter} must be one of {', '.join(allowed)}, not {value!r}.")
