"""From the bytes of a record batch to elements, and how many rows a record batch has."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from .._internals import arrow_schema
from ..column_values import columns_of, is_cheap
from ..rows import RowKind, row_maker
from .partition_windows import BatchSizes

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ("DEFAULT_BATCH", "Decode", "batch_sizes", "decoder", "row_converter")

Decode = Callable[[Any], tuple[Iterator[Any], int]]
"""Makes the elements of the bytes of a record batch, and counts them."""

DEFAULT_BATCH: Final = 1024
"""Rows of a record batch as long as the size of a row is unknown."""
_LARGEST_BATCH: Final = 4096
_VALUES: Final = 16_384  # of a record batch, at most, if it has more rows than DEFAULT_BATCH


def batch_sizes(schema: "StructType", kind: RowKind, requested: int | None) -> BatchSizes:
    """Return how many rows a record batch of *schema* may have: *requested*, or the best size.

    All values of a batch are made before its first element, which delays other work on the loop;
    and each batch costs some microseconds, however small it is.
    """
    if requested is not None:
        return BatchSizes(requested, requested)
    if kind == "batch":  # no values are made
        return BatchSizes(_LARGEST_BATCH, _LARGEST_BATCH)
    if not all(is_cheap(field.dataType) for field in schema.fields):
        return BatchSizes(DEFAULT_BATCH, DEFAULT_BATCH)
    by_columns = _VALUES // max(1, len(schema.fields))
    return BatchSizes(DEFAULT_BATCH, max(DEFAULT_BATCH, min(_LARGEST_BATCH, by_columns)))


def decoder(schema: "StructType", kind: RowKind) -> Decode:
    """Return the function that decodes record batches of *schema* into elements of *kind*."""
    import pyarrow

    untyped: Any = pyarrow
    buffer, read = untyped.py_buffer, untyped.ipc.read_record_batch
    arrow = arrow_schema(schema)
    if kind == "batch":

        def decode_batch(frame: Any) -> tuple[Iterator[Any], int]:
            batch = read(buffer(frame), arrow)
            return (iter((batch,)), 1) if batch.num_rows else (iter(()), 0)

        return decode_batch
    convert = row_converter(schema, kind)

    def decode_rows(frame: Any) -> tuple[Iterator[Any], int]:
        batch = read(buffer(frame), arrow)
        return convert(batch), batch.num_rows

    return decode_rows


def row_converter(schema: "StructType", kind: RowKind) -> Callable[[Any], Iterator[Any]]:
    """Return the function that makes rows of *kind* from a record batch of *schema*."""
    columns, make = columns_of(schema), row_maker(kind, schema.names)

    def convert(batch: Any) -> Iterator[Any]:
        return make(columns(batch), batch.num_rows)

    return convert
