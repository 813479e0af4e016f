"""Elements of a flow as Arrow tables, with the types of Spark's schema. Blocks."""

from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ("Tables",)


class Tables:
    """Makes tables, and DataFrames of them. Its methods are called on a thread."""

    def __init__(self, spark: "SparkSession", schema: "StructType | str") -> None:
        self._spark = spark
        self._given = schema

    @cached_property
    def schema(self) -> "StructType":
        """The columns; text is parsed by Spark."""
        return self.empty().schema

    def table(self, elements: Sequence[Any]) -> Any:
        """A ``pyarrow.Table`` of rows (tuples, Rows, dicts …), or of record batches."""
        import pyarrow

        untyped: Any = pyarrow
        if isinstance(elements[0], untyped.RecordBatch):
            return untyped.Table.from_batches(elements)
        # What Spark Connect makes of rows: it knows every type, and checks each value.
        conversion: Any = import_module("pyspark.sql.conversion")
        return conversion.LocalDataToArrowConversion.convert([*elements], self.schema, False)

    def dataframe(self, table: Any) -> "DataFrame":
        untyped: Any = self._spark
        made: DataFrame = untyped.createDataFrame(table, self.schema)
        return made

    def concatenated(self, tables: Sequence[Any]) -> "DataFrame":
        import pyarrow

        untyped: Any = pyarrow
        return self.dataframe(untyped.concat_tables(tables)) if tables else self.empty()

    def empty(self) -> "DataFrame":
        untyped: Any = self._spark
        made: DataFrame = untyped.createDataFrame([], self._given)
        return made
