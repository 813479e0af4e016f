"""Rows as Arrow streams, and back, with the types of Spark's schema. Blocks: for threads."""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ("encode", "parse", "read_batches")


def encode(rows: Sequence[Any], schema: "StructType") -> bytes:
    """An Arrow stream of *rows*: tuples, Rows or dicts. Raises for a row that does not fit."""
    import pyarrow

    untyped: Any = pyarrow
    conversion: Any = import_module("pyspark.sql.conversion")
    if rows:
        table = conversion.LocalDataToArrowConversion.convert([*rows], schema, False)
    else:
        types: Any = import_module("pyspark.sql.pandas.types")
        table = types.to_arrow_schema(schema, timezone="UTC").empty_table()
    sink = untyped.BufferOutputStream()
    with untyped.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def read_batches(content: bytes) -> list[Any]:
    """The record batches of an Arrow stream."""
    import pyarrow

    untyped: Any = pyarrow
    with untyped.ipc.open_stream(untyped.py_buffer(content)) as stream:
        return [*stream]


def parse(schema: "StructType | str") -> "StructType":
    """The schema, if it is text: Spark parses it, so a session must be there."""
    from pyspark.sql.types import StructType

    if isinstance(schema, StructType):
        return schema
    untyped: Any = StructType
    parsed: StructType = untyped.fromDDL(schema)
    return parsed
