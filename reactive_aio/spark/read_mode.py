"""How rows come out of Spark: which modes exist, which one is chosen, and why."""

import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal
from weakref import WeakKeyDictionary

from ..errors import ReactiveError
from ._internals import arrow_schema, missing_arrow_call, missing_connect_name
from .errors import UnsupportedDataFrame, explained, is_connect, require_unique_names
from .rows import RowKind, UnreadableType, columns_of, unreadable_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

ReadMode = Literal["auto", "arrow", "rows", "connect"]
READ_MODES: Final = ("auto", "arrow", "rows", "connect")
_WHY_BEST: Final = {
    "arrow": "Spark, PyArrow and every column allow it",
    "connect": "the session is one of Spark Connect",
}
_OTHER_SESSION: Final = {
    "arrow": (
        "mode='arrow') reads what the JVM beside this process has computed, and a "
        "DataFrame of Spark Connect is computed elsewhere. Use mode='connect', or mode='auto', "
        "which chooses it automatically."
    ),
    "connect": (
        "mode='connect') needs a DataFrame of Spark Connect, of a session made with "
        "SparkSession.builder.remote('sc://…') (pip install 'reactive-aio[connect]'). For this one "
        "use mode='arrow', or mode='auto', which chooses it automatically."
    ),
}
_log: Final = logging.getLogger("reactive_aio.spark")
_missing_calls: WeakKeyDictionary[Any, str | None] = WeakKeyDictionary()


class ModeUnavailable(ReactiveError, RuntimeError):
    """The requested mode of reading is not available here; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class ChosenMode:
    """The mode that is used. Its text gives the mode and the reason."""

    mode: Literal["arrow", "rows", "connect"]
    why: str

    def __str__(self) -> str:
        return f"{self.mode}: {self.why}"


def choose_mode(
    df: "DataFrame", mode: ReadMode, kind: RowKind, function: str = "from_dataframe"
) -> ChosenMode:
    """Choose the mode for *df*; when ``auto`` falls back to ``rows``, the log gives the reason."""
    with explained(df):
        column = unreadable_column(df.schema)
    if column is not None:
        raise UnsupportedDataFrame(
            f"{function}() cannot read {column}: PySpark has no Python value for it, and "
            "collect() fails on it as well. Cast it to a string or to numbers in the query."
        )
    require_unique_names(df.schema, kind, function)
    best: Final = "connect" if is_connect(df) else "arrow"
    if mode in _OTHER_SESSION and mode != best:
        raise ModeUnavailable(f"{function}({_OTHER_SESSION[mode]}")
    is_requested: Final = mode == "rows"
    obstacle = "mode='rows' was requested" if is_requested else next(_obstacles(df, kind), None)
    if obstacle is None:
        return ChosenMode(best, _WHY_BEST[best] if mode == "auto" else "requested")
    if mode == best:
        raise ModeUnavailable(
            f"{function}(mode={mode!r}) is not possible: {obstacle}. Use mode='rows', or "
            "mode='auto', which chooses it automatically."
        )
    if kind == "batch":
        raise ModeUnavailable(
            f"rows='batch' needs Arrow, which mode='rows' does not use, and {obstacle}."
        )
    if is_requested:
        return ChosenMode("rows", "requested")
    _log.warning("%s reads slowly, in mode 'rows': %s.", function, obstacle)
    return ChosenMode("rows", obstacle)


def _obstacles(df: "DataFrame", kind: RowKind) -> Iterator[str]:
    """Yield what prevents the best mode for the session of *df*."""
    if is_connect(df):
        missing = missing_connect_name(df)
    else:
        if sys.platform == "win32":
            yield "asyncio cannot watch the JVM's sockets on Windows"
        if find_spec("pyarrow") is None:
            yield "PyArrow is not installed (pip install 'reactive-aio[spark]')"
        context = df.sparkSession.sparkContext
        if context not in _missing_calls:
            with explained(df):
                _missing_calls[context] = missing_arrow_call(context)
        missing = _missing_calls[context]
    if missing is not None:
        yield missing
    yield from unfit_columns(df.schema, kind)


def unfit_columns(schema: "StructType", kind: RowKind) -> Iterator[str]:
    """Yield the columns that Arrow cannot carry, or whose values cannot be made from Arrow."""
    from pyspark.sql.types import StructType

    if _misfit(schema, kind) is None:  # in a seventh of the time, where there are many columns
        return
    for field in schema.fields:
        if (error := _misfit(StructType([field]), kind)) is not None:
            where = f"column {field.name!r} of type {field.dataType.simpleString()}"
            yield f"{where} cannot become Arrow, or be read from it ({error})"


def _misfit(schema: "StructType", kind: RowKind) -> Exception | None:
    """Return why a record batch of *schema* cannot be read, if it cannot."""
    try:
        arrow_schema(schema)
        if kind != "batch":
            columns_of(schema)
    except (UnreadableType, TypeError, ValueError) as error:
        return error
    return None
