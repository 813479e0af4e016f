"""The ends of a flow in Spark, as methods of every flow.

What they do is in the Spark room, which stands above the flow and is imported when one of them is
called, and not before: see docs/decisions. Nothing else below that room knows of it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

if TYPE_CHECKING:
    from os import PathLike

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from .._core.duration import Duration
    from ..flow import Flow
    from ..spark.sinks import Written
    from ..stage import Fluent

__all__ = ("append_table", "to_dataframe", "write_parquet")


async def to_dataframe(
    source: "Fluent[Any]",
    spark: "SparkSession",
    schema: "StructType | str",
    *,
    limit: int = 1_000_000,
) -> "DataFrame":
    """Gather the elements, and return them as a DataFrame of *spark*.

    It is `reactive_aio.spark.to_dataframe`, which says what elements and *schema* may be; it needs
    the extra ``spark``.

    Demand: unbounded; the flow waits while elements are turned into Arrow, on a thread.
    Completes: returns when the flow completes.
    Fails: raises what the flow failed with, PySpark's error for a row that does not fit, or
        `TooManyElements` for more than *limit* rows.
    Cancels: when its task is cancelled, and at more than *limit* rows.
    Holds: *limit* rows.
    Rules: 2.1
    """
    from ..spark import sinks

    return await sinks.to_dataframe(_flow(source), spark, schema, limit=limit)


async def write_parquet(
    source: "Fluent[Any]",
    spark: "SparkSession",
    path: "str | PathLike[str]",
    schema: "StructType | str",
    *,
    batch: int = 100_000,
    within: "Duration | None" = None,
    mode: Literal["append", "overwrite", "error"] = "append",
    partition_by: Sequence[str] = (),
    files: int = 1,
) -> "Written":
    """Write the elements as Parquet files, in commits of *batch*, or of what came *within* a time.

    It is `reactive_aio.spark.write_parquet`, which says more; it needs the extra ``spark``.

    Demand: *batch* elements ahead of what is written; the flow waits while Spark writes.
    Completes: returns how much was written, when the flow completes.
    Fails: raises what the flow failed with, or Spark; whole commits stay, as a note says.
    Cancels: when its task is cancelled: the commit under way is undone, those before stay.
    Holds: 2 × *batch* elements.
    Rules: 2.1
    """
    from ..spark import sinks

    return await sinks.write_parquet(
        _flow(source), spark, path, schema, batch=batch, within=within, mode=mode,
        partition_by=partition_by, files=files,
    )  # fmt: skip


async def append_table(
    source: "Fluent[Any]",
    spark: "SparkSession",
    table: str,
    schema: "StructType | str",
    *,
    batch: int = 100_000,
    within: "Duration | None" = None,
    files: int = 1,
) -> "Written":
    """Append the elements to a table, in commits of *batch*, or of what came *within* a time.

    It is `reactive_aio.spark.append_table`, which says more; it needs the extra ``spark``.

    Demand: *batch* elements ahead of what is written; the flow waits while Spark writes.
    Completes: returns how much was written, when the flow completes.
    Fails: raises what the flow failed with, or Spark; whole commits stay, as a note says.
    Cancels: when its task is cancelled: the commit under way is undone, those before stay.
    Holds: 2 × *batch* elements.
    Rules: 2.1
    """
    from ..spark import sinks

    return await sinks.append_table(
        _flow(source), spark, table, schema, batch=batch, within=within, files=files
    )


def _flow(source: "Fluent[Any]") -> "Flow[Any]":
    return cast("Flow[Any]", source)
