"""SparkFlow: a flow of the rows of a DataFrame, which still knows what Spark knows of them."""

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from .._core.compiler.inline import describe
from .._operators.select import TAKE
from ..flow import Flow
from ..stage import InlineStage
from .failures import is_connect, telling
from .mode import Chosen
from .source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

__all__ = ("SparkFlow",)

_MOST: Final = 2**31 - 1  # a limit in Spark is an int of Java
T_co = TypeVar("T_co", covariant=True)


class SparkFlow(Flow[T_co]):
    """What `from_dataframe` returns: a `Flow` with a `schema`, a `mode`, and words for Spark.

    `where`, `select`, `limit` and `sample` change the query: Spark does them, before a row has
    left it. They take columns and SQL, which Spark can plan, and never Python functions. Like
    those of a DataFrame, they ask the JVM and block for some milliseconds. A `take` right behind
    them is known to Spark as well, which computes no more of a partition.

    What the other operators return is an ordinary flow: its elements need not be rows any more.
    ``explain()`` shows Spark's plan and where the flow takes over.
    """

    __slots__ = ("_source",)

    def __init__(self, source: Source) -> None:
        super().__init__(source.chain())
        self._source = source

    @property
    def schema(self) -> "StructType":
        """The columns, as ``df.schema`` has them."""
        return self._source.df.schema

    @property
    def mode(self) -> Chosen:
        """How rows come out of Spark, and why: ``mode.mode`` is "arrow", "connect" or "rows"."""
        return self._source.chosen

    # -- done by Spark ----------------------------------------------------------------------------
    def where(self, condition: "Column | str") -> "SparkFlow[T_co]":
        """Let Spark keep the rows for which *condition* holds: ``where("delay > 30")``."""
        _plannable("where", condition, "filter()")
        return self._over(lambda df: df.where(condition))

    def select(self, *columns: "Column | str") -> "SparkFlow[T_co]":
        """Let Spark make other columns: ``select("carrier", "delay / 60 as hours")``."""
        for column in columns:
            _plannable("select", column, "map()")
        return self._over(lambda df: df.select(*_expressions(df, columns)))

    def limit(self, count: int) -> "SparkFlow[T_co]":
        """Let Spark compute any *count* rows, as ``df.limit``; `take` wants the first ones."""
        return self._over(lambda df: df.limit(count))

    def sample(self, fraction: float, *, seed: int | None = None) -> "SparkFlow[T_co]":
        """Let Spark pick about that *fraction* of the rows, each at most once."""
        return self._over(lambda df: df.sample(fraction=fraction, seed=seed))

    def _over(self, change: "Callable[[DataFrame], DataFrame]") -> "SparkFlow[T_co]":
        source = self._source
        with telling(source.df):
            changed = change(source.df)
        return SparkFlow(source.over(changed))

    def via(self, stage: InlineStage, *arguments: object, holds: int | None = 0) -> "Flow[Any]":
        """Attach an inline stage; Spark is told of a `take`."""
        count = cast("int", arguments[0]) if stage is TAKE else _MOST + 1
        if count > _MOST or self._source.kind == "batch":
            return super().via(stage, *arguments, holds=holds)
        told = replace(self._source, first=count)
        return Flow[Any](told.chain()).via(stage, *arguments, holds=holds)


def _plannable(word: str, value: object, instead: str) -> None:
    from pyspark.sql import Column

    if not isinstance(value, str | Column):
        kind = type(value).__name__
        raise TypeError(
            f"{word}: a column or SQL is needed, which Spark can plan, not {describe(value)} "
            f"({kind}); for a Python function use {instead}"
        )


def _expressions(df: "DataFrame", columns: "Iterable[Column | str]") -> "Iterator[Column]":
    """SQL as columns: those of Spark Connect are of another class than a JVM's."""
    functions: Any = import_module(
        "pyspark.sql.connect.functions" if is_connect(df) else "pyspark.sql.functions"
    )
    return (functions.expr(each) if isinstance(each, str) else each for each in columns)
