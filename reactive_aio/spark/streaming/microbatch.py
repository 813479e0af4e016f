"""What a streaming query is made of, and how it may end."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from ...errors import ReactiveError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ..flow import SparkFlow

__all__ = ("MicroBatch", "StreamStopped")

T_co = TypeVar("T_co", covariant=True)


class StreamStopped(ReactiveError):
    """Somebody else stopped the streaming query: there is more, but not from this run of it."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}: the streaming query was stopped (StreamingQuery.stop(), or another query on "
            "the same checkpoint) before a micro-batch was over. Subscribe again: from its "
            "checkpoint on, that batch comes once more."
        )


@dataclass(frozen=True, slots=True, eq=False)
class MicroBatch(Generic[T_co]):
    """The data between two checkpoints of a streaming query.

    It is over when it was processed and another one is asked for; until then the query waits, and
    *rows* and *df* can be read. When the program ends before that, the next run from the same
    checkpoint brings the batch again, with the same *id* and the same rows. So a sink that keeps
    *id* together with what it made of the rows, in one transaction, has each row exactly once.
    """

    id: int
    """0, 1, 2 …: goes on where the checkpoint is."""
    rows: "SparkFlow[T_co]"
    """The rows, computed as they are asked for. Each subscription computes them anew."""
    df: "DataFrame"
    """The same as a DataFrame, for all that Spark can do with one."""

    def __repr__(self) -> str:
        return f"<MicroBatch {self.id}>"
