"""The checkpoint of one subscription: which partitions remain, and their commits."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ._internals import java_dataset
from ._internals.plans import (
    Unrepeatable,
    input_text,
    layout_text,
    list_files_again,
    query_text,
    require_deterministic,
    require_uncached,
)
from .checkpoint import (
    Checkpoint,
    CheckpointStore,
    PlanIdentity,
    commit_partition,
    digest,
    load_partitions,
)
from .errors import UnsupportedDataFrame, explained

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def require_repeatable(df: "DataFrame", checkpoint: Checkpoint) -> None:
    """Raise `UnsupportedDataFrame` if *df* may have other rows the next time. Calls the JVM."""
    with explained(df), _refused():
        dataset = java_dataset(df)
        require_deterministic(df.sparkSession.sparkContext, dataset)
        planned = java_dataset(df.alias("from_dataframe"))  # *df* would keep its plan
        require_uncached(planned)
        layout_text(planned, 0)
        if checkpoint.snapshot is None:
            input_text(dataset)


@contextmanager
def _refused() -> Generator[None, None, None]:
    try:
        yield
    except Unrepeatable as error:
        raise UnsupportedDataFrame(
            f"from_dataframe(checkpoint=…) cannot resume this DataFrame: {error}. Write its "
            "result with df.write first, and read that."
        ) from error


@dataclass(eq=False)
class Resume:
    """One subscription. Its methods block, and are called on threads."""

    checkpoint: Checkpoint
    partitions: Sequence[int] = field(default=(), init=False)
    """Those that are not committed."""
    committed: int = field(default=0, init=False)
    """How many others there are."""
    _store: CheckpointStore | None = field(default=None, init=False)
    _identity: PlanIdentity | None = field(default=None, init=False)

    def list_files_again(self, df: "DataFrame") -> None:
        """Look at the input files of *df* before it is planned: they may have changed."""
        if self.checkpoint.snapshot is None:
            with _refused():
                list_files_again(java_dataset(df))

    def begin(self, dataset: Any, partitions: int) -> int:
        """Look up what is committed; return how many partitions remain."""
        snapshot = self.checkpoint.snapshot
        with _refused():
            require_uncached(dataset)
            data = input_text(dataset) if snapshot is None else f"snapshot {snapshot}"
            layout = layout_text(dataset, partitions)
            self._identity = PlanIdentity(digest(query_text(dataset)), digest(data), layout)
        self._store = self.checkpoint.opened()
        committed = load_partitions(self._store, self._identity)
        self.partitions = [each for each in range(partitions) if each not in committed]
        self.committed = partitions - len(self.partitions)
        return len(self.partitions)

    def commit(self, position: int) -> None:
        """Commit the partition at *position* of `partitions`."""
        assert self._store is not None, "the query was planned"
        assert self._identity is not None
        commit_partition(self._store, self._identity, self.partitions[position])
