"""Record batches that a flow delivers, with the columns and types of a schema."""

from collections.abc import Callable
from typing import Any, Final

Misfit = Callable[[int, str | None, str], Exception]
"""Makes the error of a row, counted from the first one of the batch, with the name of a column."""


def fitted(batch: Any, target: Any, misfit: Misfit, *, keeps_timestamps: bool = False) -> Any:
    """Return a table with the columns and types of *target*; *batch*, which may be one, if it fits.

    Columns are found by name. With *keeps_timestamps*, those that contain some stay as they are:
    PySpark knows the time zone that they are in.
    """
    made = batch
    if not batch.schema.equals(target):
        import pyarrow

        untyped: Any = pyarrow
        columns = _columns(batch, target, misfit, keeps_timestamps=keeps_timestamps)
        fields = [field.with_type(each.type) for field, each in zip(target, columns, strict=True)]
        made = untyped.Table.from_arrays(columns, schema=untyped.schema(fields))
    for position, field in enumerate(target):
        if not field.nullable and made.column(position).null_count:
            at = made.column(position).is_valid().to_pylist().index(False)
            text = f"does not fit the schema: column {field.name!r} is NOT NULL, and is null"
            raise misfit(at, field.name, text)
    return made


def _columns(batch: Any, target: Any, misfit: Misfit, *, keeps_timestamps: bool) -> list[Any]:
    names: list[str] = batch.schema.names
    if sorted(names) != sorted(target.names):
        raise misfit(
            0,
            None,
            f"is in a batch with the columns {', '.join(names)}, and the schema has "
            f"{', '.join(target.names)}; select or rename them in the flow",
        )
    columns = list[Any]()
    for position, field in enumerate(target):
        column = batch.column(position if names == target.names else field.name)
        is_kept = keeps_timestamps and _TIMESTAMP in str(column.type)
        try:
            fits = is_kept or column.type == field.type
            columns.append(column if fits else column.cast(field.type))
        except Exception as error:
            raise misfit(
                0,
                field.name,
                f"is in a batch whose column {field.name!r} is {column.type}, and the schema "
                f"has {field.type}: {error}",
            ) from error
    return columns


_TIMESTAMP: Final = "timestamp["
"""A part of the text of Arrow's types, which contains the types inside."""
