"""The schemas of what flows deliver to Spark, checked before the first row."""

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, cast

from .._core.compiler.inline import describe
from .read_mode import unfit_columns
from .rows import types_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.types import DataType, StructType

_FIXED_LENGTH: Final = ("CharType", "VarcharType")
_CHAR_OR_VARCHAR: Final = "char/varchar"
"""A part of Spark's message about them."""


def require_schema(function: str, schema: object) -> None:
    """*schema* must be a ``StructType`` or a text."""
    from pyspark.sql.types import StructType

    if not isinstance(schema, str | StructType):
        raise TypeError(
            f"{function}: schema must be a StructType or its text, such as 'id long, name string', "
            f"not {describe(schema)} ({type(schema).__name__})"
        )


def parsed_schema(
    function: str, schema: "StructType | str", parse: "Callable[[str], StructType]"
) -> "StructType":
    """Return a schema that may be text, for *parse*; raise if no rows can be written with it."""
    require_schema(function, schema)
    if isinstance(schema, str):
        try:
            schema = parse(schema)
        except Exception as error:
            if _CHAR_OR_VARCHAR in str(error):
                raise _fixed_length(function) from error
            raise
    _require_different_names(function, schema)
    for kind in types_in(schema):
        if type(kind).__name__ in _FIXED_LENGTH:
            raise _fixed_length(function)
        for field in getattr(kind, "fields", ()):
            if type(field.dataType).__name__ == "NullType" and not field.nullable:
                raise ValueError(
                    f"{function}: column {field.name!r} of the schema is NOT NULL, and of the type "
                    "void, whose only value is null"
                )
    for reason in unfit_columns(schema, "batch"):
        raise ValueError(
            f"{function}: {reason}. Write it as another type, and cast it in a query on the result"
        )
    return schema


def parse_with(session: Any) -> "Callable[[str], StructType]":
    """Return the function by which *session*, of either kind, parses a schema."""
    return lambda text: cast("StructType", session.createDataFrame([], text).schema)


def repeated_name(kind: "DataType", key: "Callable[[str], str]" = str) -> str | None:
    """Return a name that two fields of a struct have, at any depth; those of columns included.

    Names are the same if *key* makes the same of them.
    """
    for each in types_in(kind):
        names = Counter[str](map(key, getattr(each, "names", [])))
        for name, count in names.items():
            if count > 1:
                return name
    return None


def name_key(spark: Any) -> "Callable[[str], str]":
    """Return a function that makes the same of names that are the same for *spark*. Asks it."""
    return str if spark.conf.get("spark.sql.caseSensitive") == "true" else str.lower


def require_storable(function: str, schema: "StructType", key: "Callable[[str], str]") -> None:
    """Raise if files and tables cannot have the columns: Spark would say so at the first commit."""
    if (name := repeated_name(schema, key)) is not None:
        raise ValueError(
            f"{function}: the schema has two columns or fields named {name!r}, if the case of the "
            "letters does not count, as for this session (spark.sql.caseSensitive). Rename one."
        )
    for kind in types_in(schema):
        if not getattr(kind, "fields", (kind,)):
            raise ValueError(
                f"{function}: the schema has a struct without fields, or no columns, which files "
                "cannot store"
            )


def _require_different_names(function: str, schema: "StructType") -> None:
    """Raise if two columns, or two fields of a struct, have the same name.

    A dict could not say which of them it means, and Spark finds them by name in Arrow's batches.
    """
    name = repeated_name(schema)
    if name is None:
        return
    if schema.names.count(name) > 1:
        what, remedy = f"columns named {name!r}", ", and the result with toDF(...)"
    else:
        (inside, *_) = (each for each in schema.fields if repeated_name(each.dataType) == name)
        what, remedy = f"fields named {name!r} in column {inside.name!r}", ""
    raise ValueError(
        f"{function}: the schema has two {what}, which Spark cannot tell apart in what it "
        f"receives. Rename one of them{remedy}."
    )


def _fixed_length(function: str) -> ValueError:
    return ValueError(
        f"{function}: the schema has a char or a varchar, which only tables have; take string"
    )
