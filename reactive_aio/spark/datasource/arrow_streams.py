"""Rows as Arrow streams, and back, with the types of Spark's schema. Blocks: for threads."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._internals import arrow_schema, table_of_rows

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ("encode", "encode_rows", "parse_schema", "read_batches")


def encode_rows(rows: Sequence[Any], schema: "StructType") -> bytes:
    """Return an Arrow stream of *rows*: tuples, Rows or dicts. Each must fit the schema."""
    return encode(table_of_rows(rows, schema) if rows else arrow_schema(schema).empty_table())


def encode(table: Any) -> bytes:
    """Return an Arrow stream of a table, or of a record batch."""
    import pyarrow

    untyped: Any = pyarrow
    sink = untyped.BufferOutputStream()
    with untyped.ipc.new_stream(sink, table.schema) as stream:
        stream.write(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def read_batches(content: bytes) -> list[Any]:
    """Return the record batches of an Arrow stream."""
    import pyarrow

    untyped: Any = pyarrow
    with untyped.ipc.open_stream(untyped.py_buffer(content)) as stream:
        return [*stream]


def parse_schema(schema: "StructType | str") -> "StructType":
    """Return a schema that may be text: Spark parses it, so a session must exist."""
    from pyspark.sql.types import StructType

    if isinstance(schema, StructType):
        return schema
    untyped: Any = StructType
    parsed: StructType = untyped.fromDDL(schema)
    return parsed
