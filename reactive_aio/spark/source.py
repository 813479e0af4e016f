"""What a SparkFlow is made of: a DataFrame, and how its rows are wanted."""

import io
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .._core.compiler.chain import Chain
from .._core.compiler.chain_sources import PushSource
from ..stage import Downstream, from_push
from .arrow import ArrowSubscription
from .batches import Batches
from .connect import Remote, by_connect, by_remote_iterator
from .decoding import FEW, batch_sizes, decoder
from .failures import UnsupportedDataFrame, telling
from .jobs import Inherit, Jobs
from .local import by_local_iterator
from .mode import Chosen, Mode, choose
from .progress import NOBODY, Meter, Tell, metered
from .rows import Kind, batched_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ..flow import Flow

__all__ = ("NAME", "Source", "check_names")

NAME = "from_dataframe"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Immutable, as a DataFrame is."""

    df: "DataFrame"
    inherit: Inherit | None
    """Whose local properties jobs have; with Spark Connect there are none."""
    remote: Remote | None
    """What is to be known of a session of Spark Connect, if it is one."""
    kind: Kind
    mode: Mode
    chosen: Chosen
    window: int
    batch: int | None
    """How many rows a batch has, or go from a thread to the loop together; None: what is best."""
    ordered: bool
    tell: Tell | None = None
    """Who is told how far a subscription has got."""
    first: int | None = None
    """How many rows of each partition are wanted at most: no more of them are computed."""

    def over(self, df: "DataFrame") -> "Source":
        """The same for another DataFrame, whose columns may allow another mode."""
        check_names(df, self.kind)
        return replace(self, df=df, chosen=choose(df, self.mode, self.kind))

    def chain(self) -> Chain:
        """The head of a flow, which can say what it reads."""
        head = replace(self._head(NOBODY), about=self._about)
        if self.tell is not None:
            rows = batched_rows if self.kind == "batch" else len
            head = replace(head, open=metered(self._head, self.tell, rows))
        return Chain(head)

    def _head(self, meter: Meter) -> PushSource:
        head = self._flow(meter).chain.source
        assert isinstance(head, PushSource)
        return head

    def _flow(self, meter: Meter) -> "Flow[Any]":
        if self.remote is not None:
            read = by_connect if self.chosen.mode == "connect" else by_remote_iterator
            return read(
                self._fresh, self.df.schema, self.remote, self.kind, name=NAME,
                batch=self.batch or FEW,
                meter=meter,
            )  # fmt: skip
        if self.chosen.mode == "rows":
            return by_local_iterator(
                self._jobs, self.kind, name=NAME, batch=self.batch or FEW, meter=meter
            )
        decode = decoder(self.df.schema, self.kind)
        sizes = batch_sizes(self.df.schema, self.kind, self.batch)

        def attach(downstream: Downstream[Any]) -> ArrowSubscription[Any]:
            batches = Batches(self._jobs(), sizes.least)
            return ArrowSubscription(
                downstream, batches, decode, window=self.window, sizes=sizes, ordered=self.ordered,
                meter=meter,
            )  # fmt: skip

        holds = 0 if self.kind == "batch" else sizes.most - 1
        return from_push(attach, name=NAME, holds=holds, checked=True)

    def _jobs(self) -> Jobs:
        assert self.inherit is not None, "these are of a JVM beside this process"
        return Jobs(self.df, self.inherit, self._fresh)

    def _fresh(self) -> "DataFrame":
        """The same DataFrame with a plan of its own.

        A DataFrame keeps its plan and what was computed of it: shuffles, and also that their job
        was cancelled, which would fail every later subscription.
        """
        if self.remote is not None:  # its plan is sent anew for each subscription
            return self.df if self.first is None else self.remote.first(self.df, self.first)
        fresh = self.df.alias(NAME)  # select("*") would be the same, by nine calls of the JVM
        if self.first is not None:
            # Done without where a new Spark does not have it: the flow takes no more anyway.
            with suppress(Exception):
                return _first_of_each(fresh, self.first)
        return fresh

    def _about(self) -> str:
        """How the rows are read, and what Spark does for them. Asks the JVM."""
        with telling(self.df), redirect_stdout(io.StringIO()) as plan:
            self._fresh().explain()
        return f"{self.chosen}\n{plan.getvalue().strip()}"


def check_names(df: "DataFrame", kind: Kind) -> None:
    """Raise unless the names of *df* fit into an element."""
    names = df.schema.names
    if kind == "dict" and len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise UnsupportedDataFrame(
            f"{NAME}(rows='dict'): there are two columns named {twice!r}, and a dict has room "
            "for one. Rename one of them, or use rows='tuple'."
        )


def _first_of_each(df: "DataFrame", count: int) -> "DataFrame":
    """The first *count* rows of each partition.

    Not ``df.limit``: that computes rows of every partition, brings them together in one, and may
    mix up their order on the way.
    """
    from pyspark.sql import DataFrame

    untyped: Any = df
    jvm: Any = df.sparkSession.sparkContext._jvm
    catalyst = jvm.org.apache.spark.sql.catalyst
    number = catalyst.expressions.Literal(
        count, jvm.org.apache.spark.sql.types.DataTypes.IntegerType
    )
    plan = catalyst.plans.logical.LocalLimit(number, untyped._jdf.queryExecution().analyzed())
    session: Any = df.sparkSession
    made = jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan)
    return DataFrame(made, df.sparkSession)
