"""How rows come out of Spark: which ways there are, which one is taken, and why."""

import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal
from weakref import WeakKeyDictionary

from ..errors import ReactiveError
from .batches import arrow_missing, arrow_schema
from .connect import connect_missing
from .failures import UnsupportedDataFrame, is_connect, telling
from .rows import Kind
from .values import NotReadable, columns_of, unreadable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

__all__ = ("MODES", "Chosen", "Mode", "ModeUnavailable", "choose")

Mode = Literal["auto", "arrow", "rows", "connect"]
MODES: Final = ("auto", "arrow", "rows", "connect")
_GOOD: Final = {
    "arrow": "Spark, PyArrow and every column allow it",
    "connect": "the session is one of Spark Connect",
}
_log: Final = logging.getLogger("reactive_aio.spark")
_missing: WeakKeyDictionary[Any, str | None] = WeakKeyDictionary()


class ModeUnavailable(ReactiveError, RuntimeError):
    """The way of reading that was asked for is not to be had here; the message says why."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The way that is taken. `str` says which, and why."""

    mode: Literal["arrow", "rows", "connect"]
    why: str

    def __str__(self) -> str:
        return f"{self.mode}: {self.why}"


def choose(df: "DataFrame", mode: Mode, kind: Kind) -> Chosen:
    """Choose the way for *df*; an ``auto`` that must make do says so in the log."""
    _refuse_unreadable(df)
    if mode == "rows":
        _refuse_batches(kind, "mode='rows' was asked for")
        return Chosen("rows", "asked for")
    remote = is_connect(df)
    best: Final = "connect" if remote else "arrow"
    _refuse_another(mode, best)
    obstacle = next(_in_the_way(df, kind) if remote else _obstacles(df, kind), None)
    if obstacle is None:
        return Chosen(best, _GOOD[best] if mode == "auto" else "asked for")
    if mode != "auto":
        raise ModeUnavailable(
            f"from_dataframe(mode={mode!r}) is not possible: {obstacle}. Use mode='rows', or "
            "mode='auto', which takes it by itself."
        )
    _refuse_batches(kind, obstacle)
    _log.warning("from_dataframe reads slowly, in mode 'rows': %s.", obstacle)
    return Chosen("rows", obstacle)


def _refuse_another(mode: Mode, best: str) -> None:
    """Sessions come in two kinds, and each has a fast way of its own."""
    if mode == "arrow" != best:
        raise ModeUnavailable(
            "from_dataframe(mode='arrow') reads what the JVM beside this process has computed, and "
            "a DataFrame of Spark Connect is computed elsewhere. Use mode='connect', or "
            "mode='auto', which takes it by itself."
        )
    if mode == "connect" != best:
        raise ModeUnavailable(
            "from_dataframe(mode='connect') needs a DataFrame of Spark Connect, of a session made "
            "with SparkSession.builder.remote('sc://…') (pip install 'reactive-aio[connect]'). "
            "For this one use mode='arrow', or mode='auto', which takes it by itself."
        )


def _in_the_way(df: "DataFrame", kind: Kind) -> Iterator[str]:
    """What stands against reading *df*, of Spark Connect, by its batches."""
    if (missing := connect_missing(df)) is not None:
        yield missing
    yield from _unfit_columns(df.schema, kind)


def _obstacles(df: "DataFrame", kind: Kind) -> Iterator[str]:
    """What stands against reading *df* as Arrow."""
    if sys.platform == "win32":
        yield "asyncio cannot watch the JVM's sockets on Windows"
    if find_spec("pyarrow") is None:
        yield "PyArrow is not installed (pip install 'reactive-aio[spark]')"
        return
    context = df.sparkSession.sparkContext
    if context not in _missing:
        with telling(df):
            _missing[context] = arrow_missing(context)
    if (missing := _missing[context]) is not None:
        yield missing
    yield from _unfit_columns(df.schema, kind)


def _unfit_columns(schema: "StructType", kind: Kind) -> Iterator[str]:
    from pyspark.sql.types import StructType

    for field in schema.fields:
        alone = StructType([field])
        try:
            arrow_schema(alone)
            if kind != "batch":
                columns_of(alone)
        except (NotReadable, TypeError, ValueError) as error:
            told = f"column {field.name!r} of type {field.dataType.simpleString()}"
            yield f"{told} cannot be read as Arrow ({error})"


def _refuse_unreadable(df: "DataFrame") -> None:
    with telling(df):
        found = unreadable(df.schema)
    if found is not None:
        raise UnsupportedDataFrame(
            f"from_dataframe() cannot read {found}: PySpark has no Python value for it, and "
            "collect() fails on it as well. Cast it to a string or to numbers in the query."
        )


def _refuse_batches(kind: Kind, why: str) -> None:
    if kind == "batch":
        raise ModeUnavailable(
            f"rows='batch' are Arrow's, which mode='rows' cannot read, and {why}."
        )
