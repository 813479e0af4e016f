"""SparkFlow: a flow of the rows of a DataFrame that can change the query."""

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from .._core.compiler.inline import describe
from .._operators.select import TAKE
from ..flow import Flow
from ..stage import InlineStage
from .dataframe_source import DataFrameSource
from .errors import explained, is_connect
from .read_mode import ChosenMode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

__all__ = ("SparkFlow",)

_LARGEST_LIMIT: Final = 2**31 - 1  # a limit in Spark is an int of Java
T_co = TypeVar("T_co", covariant=True)


class SparkFlow(Flow[T_co]):
    """The flow of `from_dataframe`: it has a `schema`, a `mode`, and operators that Spark runs.

    `where`, `select`, `limit` and `sample` change the query, so that Spark does their work before a
    row leaves it. They take columns and SQL, which Spark can plan, and never Python functions. Like
    those of a DataFrame, they call the JVM and block for some milliseconds. A `take` directly after
    them is pushed down as well: Spark computes no more rows of a partition than it takes.

    Every other operator returns an ordinary flow, since its elements may not be rows any more.
    ``explain()`` shows Spark's plan and where the flow begins.
    """

    __slots__ = ("_source",)

    def __init__(self, source: DataFrameSource) -> None:
        super().__init__(source.chain())
        self._source = source

    @property
    def schema(self) -> "StructType":
        """The columns, as ``df.schema``."""
        return self._source.df.schema

    @property
    def mode(self) -> ChosenMode:
        """How rows come out of Spark, and why: ``mode.mode`` is "arrow", "connect" or "rows"."""
        return self._source.chosen

    # -- push-down --------------------------------------------------------------------------------
    def where(self, condition: "Column | str") -> "SparkFlow[T_co]":
        """Keep the rows for which *condition* holds, in Spark: ``where("delay > 30")``."""
        _require_expression("where", condition, "filter()")
        return self._over(lambda df: df.where(condition))

    def select(self, *columns: "Column | str") -> "SparkFlow[T_co]":
        """Compute other columns, in Spark: ``select("carrier", "delay / 60 as hours")``."""
        for column in columns:
            _require_expression("select", column, "map()")
        return self._over(lambda df: df.select(*_expressions(df, columns)))

    def limit(self, count: int) -> "SparkFlow[T_co]":
        """Compute any *count* rows, as ``df.limit``; `take` computes the first ones."""
        return self._over(lambda df: df.limit(count))

    def sample(self, fraction: float, *, seed: int | None = None) -> "SparkFlow[T_co]":
        """Pick about that *fraction* of the rows in Spark, each at most once."""
        return self._over(lambda df: df.sample(fraction=fraction, seed=seed))

    def _over(self, change: "Callable[[DataFrame], DataFrame]") -> "SparkFlow[T_co]":
        source = self._source
        with explained(source.df):
            changed = change(source.df)
        return SparkFlow(source.over(changed))

    def via(self, stage: InlineStage, *arguments: object, holds: int | None = 0) -> "Flow[Any]":
        """Attach an inline stage; a `take` is pushed down."""
        count = cast("int", arguments[0]) if stage is TAKE else _LARGEST_LIMIT + 1
        if count > _LARGEST_LIMIT or self._source.kind == "batch":
            return super().via(stage, *arguments, holds=holds)
        limited = replace(self._source, first=count)
        return Flow[Any](limited.chain()).via(stage, *arguments, holds=holds)


def _require_expression(method: str, value: object, alternative: str) -> None:
    from pyspark.sql import Column

    if not isinstance(value, str | Column):
        kind = type(value).__name__
        raise TypeError(
            f"{method}: a column or SQL is needed, which Spark can plan, not {describe(value)} "
            f"({kind}); for a Python function use {alternative}"
        )


def _expressions(df: "DataFrame", columns: "Iterable[Column | str]") -> "Iterator[Column]":
    """Return SQL as columns; those of Spark Connect have another class than those of a JVM."""
    functions: Any = import_module(
        "pyspark.sql.connect.functions" if is_connect(df) else "pyspark.sql.functions"
    )
    return (functions.expr(each) if isinstance(each, str) else each for each in columns)
