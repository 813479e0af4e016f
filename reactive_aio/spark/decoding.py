"""From the bytes of a record batch to elements."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .arrow import Decode
from .batches import arrow_schema
from .rows import Kind, maker
from .values import columns_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ("decoder",)


def decoder(schema: "StructType", kind: Kind) -> Decode[Any]:
    """Make what decodes batches of *schema* into elements of *kind*."""
    import pyarrow

    untyped: Any = pyarrow
    buffer, read = untyped.py_buffer, untyped.ipc.read_record_batch
    arrow = arrow_schema(schema)
    if kind == "batch":

        def whole(frame: Any) -> tuple[Iterator[Any], int]:
            batch = read(buffer(frame), arrow)
            return (iter((batch,)), 1) if batch.num_rows else (iter(()), 0)

        return whole
    columns, make = columns_of(schema), maker(kind, schema.names)

    def split(frame: Any) -> tuple[Iterator[Any], int]:
        batch = read(buffer(frame), arrow)
        return make(columns(batch), batch.num_rows), batch.num_rows

    return split
