"""From the bytes of a record batch to elements, and how many of them a batch is to have."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from .arrow import Decode
from .batches import arrow_schema
from .launches import Sizes
from .rows import Kind, maker
from .values import columns_of, quick

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ("FEW", "batch_sizes", "decoder")

FEW: Final = 1024
"""Rows of a batch of which nothing is known."""
_MANY: Final = 4096
_VALUES: Final = 16_384


def batch_sizes(schema: "StructType", kind: Kind, asked: int | None) -> Sizes:
    """How many rows a batch of *schema* may have: *asked*, or what is best.

    The values of a batch are made before its first element, and nobody else has a turn meanwhile;
    while each batch costs some microseconds, however small it is.
    """
    if asked is not None:
        return Sizes(asked, asked)
    if kind == "batch":  # no value is made; and how large a row is, nobody looks
        return Sizes(_MANY, _MANY)
    if not all(quick(field.dataType) for field in schema.fields):
        return Sizes(FEW, FEW)
    return Sizes(FEW, max(FEW, min(_MANY, _VALUES // max(1, len(schema.fields)))))


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
