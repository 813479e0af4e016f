"""Tables of a catalog that are appended to."""

from typing import TYPE_CHECKING, Any

from .schemas import name_key, require_storable
from .writing import Writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_FUNCTION = "append_table"


class TableWriter(Writer):
    """Appends to one table, which may be missing before the first commit."""

    def __init__(
        self, spark: "SparkSession", table: str, schema: "StructType | str", files: int
    ) -> None:
        super().__init__(_FUNCTION, spark, schema)
        self._table = table
        self._files = files
        self._columns: list[str] | None = None
        """The columns of the schema in the order of the table, if that exists."""

    def open(self) -> None:
        super().open()
        if self.spark.catalog.tableExists(self._table):
            self._require_no_view()
            self._columns = self._matched(self.spark.table(self._table).schema)
        else:
            require_storable(_FUNCTION, self.conversion.schema, name_key(self.spark))

    def save(self, df: "DataFrame", mode: str, folder: str) -> None:
        if self._columns is None:
            df.coalesce(self._files).write.mode(mode).saveAsTable(self._table)
        else:
            df.select(*self._columns).coalesce(self._files).write.insertInto(self._table)

    def _require_no_view(self) -> None:
        found: Any = self.spark.catalog.getTable(self._table)
        if found.isTemporary or found.tableType == "VIEW":
            kind = "temporary view" if found.isTemporary else "view"
            raise ValueError(
                f"{_FUNCTION}: {self._table!r} is a {kind}, which cannot be appended to; name a "
                "table, or give it another name"
            )

    def _matched(self, table: "StructType") -> list[str]:
        """Return the names of the schema in the order of *table*. Raises for a difference."""
        key = name_key(self.spark)
        given = {key(field.name): field for field in self.conversion.schema.fields}
        needed = {key(field.name): field for field in table.fields}
        if given.keys() != needed.keys():
            raise ValueError(
                f"{_FUNCTION}: the schema has the columns {_names(given)}, and the table "
                f"{self._table!r} has {_names(needed)}; {self._remedy()}"
            )
        for name, field in needed.items():
            own, other = given[name].dataType.simpleString(), field.dataType.simpleString()
            if key(own) != key(other):
                raise ValueError(
                    f"{_FUNCTION}: column {field.name!r} is {own} in the schema, and {other} in "
                    f"the table {self._table!r}; {self._remedy()}"
                )
        return [f"`{given[name].name.replace('`', '``')}`" for name in needed]

    def _remedy(self) -> str:
        return f"spark.table({self._table!r}).schema is the schema that fits"


def _names(fields: "dict[str, Any]") -> str:
    return ", ".join(field.name for field in fields.values())
