"""The source of a SparkFlow: a DataFrame, and how its rows are read."""

import io
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .._core.compiler.chain import Chain
from .._core.compiler.chain_sources import PushSource
from ..stage import Downstream, from_push
from ._internals import limit_partitions
from .arrow.decoder import DEFAULT_BATCH, batch_sizes, decoder
from .arrow.reading_state import ReadingState
from .arrow.subscription import ArrowSubscription
from .arrow.window_jobs import WindowJobs
from .connect import ConnectSession, from_connect
from .errors import explained, require_unique_names
from .local_iterator import from_local_iterator
from .progress import NO_PROGRESS, OnProgress, ProgressMeter, metered
from .read_mode import ChosenMode, ReadMode, choose_mode
from .rows import RowKind, count_rows
from .tagged_jobs import InheritProperties, TaggedJobs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ..flow import Flow

__all__ = ("FUNCTION", "DataFrameSource")

FUNCTION = "from_dataframe"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFrameSource:
    """Immutable, as a DataFrame is."""

    df: "DataFrame"
    inherit: InheritProperties | None
    """Gives jobs their local properties; None with Spark Connect, which has none."""
    connect: ConnectSession | None
    """The session of Spark Connect, if it is one."""
    kind: RowKind
    mode: ReadMode
    chosen: ChosenMode
    window: int
    batch: int | None
    """Rows of a record batch, or of what a thread hands to the loop at a time; None: the best."""
    ordered: bool
    on_progress: OnProgress | None = None
    first: int | None = None
    """How many rows of each partition are taken at most; no more of them are computed."""

    def over(self, df: "DataFrame") -> "DataFrameSource":
        """Return the same for another DataFrame, whose columns may allow another mode."""
        require_unique_names(df.schema, self.kind)
        return replace(self, df=df, chosen=choose_mode(df, self.mode, self.kind))

    def chain(self) -> Chain:
        """Return the chain of a flow; its `explain()` shows Spark's plan."""
        source = replace(self._push_source(NO_PROGRESS), details=self._explain)
        if self.on_progress is not None:
            rows = count_rows if self.kind == "batch" else len
            source = replace(source, open=metered(self._push_source, self.on_progress, rows))
        return Chain(source)

    def _push_source(self, meter: ProgressMeter) -> PushSource:
        source = self._flow(meter).chain.source
        assert isinstance(source, PushSource)
        return source

    def _flow(self, meter: ProgressMeter) -> "Flow[Any]":
        batch = self.batch or DEFAULT_BATCH
        if self.connect is not None:
            return from_connect(
                self._plan, self.df.schema, self.connect, self.kind,
                by_batches=self.chosen.mode == "connect", name=FUNCTION, batch=batch, meter=meter,
            )  # fmt: skip
        if self.chosen.mode == "rows":
            return from_local_iterator(
                self._jobs, self.kind, name=FUNCTION, batch=batch, meter=meter
            )
        decode = decoder(self.df.schema, self.kind)
        sizes = batch_sizes(self.df.schema, self.kind, self.batch)

        def open_subscription(downstream: Downstream[Any]) -> ArrowSubscription[Any]:
            state = ReadingState[Any](
                largest=self.window, batch_sizes=sizes, is_ordered=self.ordered
            )
            jobs = WindowJobs(self._jobs(), sizes.least)
            return ArrowSubscription(downstream, state, jobs, decode, meter)

        holds = 0 if self.kind == "batch" else sizes.most - 1
        return from_push(open_subscription, name=FUNCTION, holds=holds, checked=True)

    def _jobs(self) -> TaggedJobs:
        assert self.inherit is not None, "a session of Spark Connect has no jobs here"
        return TaggedJobs(self.df, self.inherit, self._plan)

    def _plan(self) -> "DataFrame":
        """Return the same DataFrame with a plan of its own.

        A DataFrame keeps its plan and the results of it: its shuffles, and also that their job was
        cancelled, which would fail every later subscription.
        """
        if self.connect is not None:  # its plan is sent for each subscription
            return self.df if self.first is None else self.connect.limited(self.df, self.first)
        df = self.df.alias(FUNCTION)  # select("*") would be the same, in nine calls of the JVM
        if self.first is not None:
            # Without it a Spark that lacks the call computes more; the flow takes no more anyway.
            with suppress(Exception):
                return limit_partitions(df, self.first)
        return df

    def _explain(self) -> str:
        """Return the mode, its reason, and Spark's plan. Calls the JVM."""
        with explained(self.df), redirect_stdout(io.StringIO()) as plan:
            self._plan().explain()
        return f"{self.chosen}\n{plan.getvalue().strip()}"
