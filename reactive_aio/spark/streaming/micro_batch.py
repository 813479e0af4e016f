"""A micro-batch of a streaming query, and the error when the query is stopped inside it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from ...errors import ReactiveError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ..spark_flow import SparkFlow

__all__ = ("MicroBatch", "StreamStopped")

T_co = TypeVar("T_co", covariant=True)


class StreamStopped(ReactiveError):
    """The streaming query was stopped by other code before this subscription had ended."""

    def __init__(self, function: str) -> None:
        super().__init__(
            f"{function}: the streaming query was stopped (StreamingQuery.stop(), or another query "
            "on the same checkpoint) before a micro-batch was over. Subscribe again: from its "
            "checkpoint on, that batch is repeated."
        )


@dataclass(frozen=True, slots=True, eq=False)
class MicroBatch(Generic[T_co]):
    """The data between two checkpoints of a streaming query.

    It is over when it was processed and another one is requested; until then the query waits, and
    *rows* and *df* can be read. When the program ends before that, the next run from the same
    checkpoint repeats the micro-batch, with the same *id* and the same rows. So a sink that stores
    *id* together with the rows, in one transaction, stores each row exactly once.
    """

    id: int
    """0, 1, 2 …: continues from the checkpoint."""
    rows: "SparkFlow[T_co]"
    """The rows, computed under demand, once for each subscription."""
    df: "DataFrame"
    """The same as a DataFrame, for other operations of Spark."""

    def __repr__(self) -> str:
        return f"<MicroBatch {self.id}>"
