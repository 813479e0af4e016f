"""SparkTask: which task of Spark runs a flow, so that a task that runs again can be idempotent."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

_BATCH_ID: Final = "streaming.sql.batchId"
"""The local property in which a streaming query passes the number of its micro-batch."""


@dataclass(frozen=True, slots=True)
class SparkTask:
    """The task that computes a partition.

    Spark runs a task again after a failure, and may run a second attempt beside a slow one
    (``spark.speculation``). All attempts have the same *partition*; what identifies the work of a
    partition of a query that you start once is its number, and in a streaming query, also after a
    restart, *batch_id* with *partition*.
    """

    partition: int
    """The number of the partition, from 0."""
    attempt: int = 0
    """How many attempts of this task there were before."""
    attempt_id: int = 0
    """Identifies this attempt within the application."""
    stage: int = 0
    """The number of the stage. A query that is started again has another one."""
    batch_id: int | None = None
    """The number of the micro-batch; None outside of a streaming query."""

    def __str__(self) -> str:
        batch = "" if self.batch_id is None else f" of micro-batch {self.batch_id}"
        return (
            f"partition {self.partition}{batch}, attempt {self.attempt} "
            f"(stage {self.stage}, task {self.attempt_id})"
        )


_LOCAL: Final = SparkTask(0)
_current: ContextVar[SparkTask] = ContextVar("the task of Spark", default=_LOCAL)


def spark_task() -> SparkTask:
    """Return the task whose flow calls this, in `map_flow` and `for_each_partition`.

    It may be called in any function of the flow, coroutines and those that run on threads
    included. Outside of a worker of Spark, where the same flow runs on one loop, the result is
    partition 0, attempt 0.
    """
    return _current.get()


@contextmanager
def inside(task: SparkTask) -> Generator[None]:
    """Make *task* the current one of this thread, and of what it starts on a loop."""
    _current.set(task)
    try:
        yield
    finally:
        _current.set(_LOCAL)


def running_task() -> SparkTask:
    """Return the task that this worker runs, as Spark describes it."""
    from pyspark import TaskContext

    context: Any = TaskContext.get()
    if context is None:
        return _LOCAL
    batch = context.getLocalProperty(_BATCH_ID)
    return SparkTask(
        partition=context.partitionId(),
        attempt=context.attemptNumber(),
        attempt_id=context.taskAttemptId(),
        stage=context.stageId(),
        batch_id=None if batch is None else int(batch),
    )
