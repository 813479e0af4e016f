"""Directories of Parquet files that are written."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ._internals import condition_of
from .errors import require_java_int, require_path
from .schemas import name_key, require_storable
from .writing import SaveMode, Writer

if TYPE_CHECKING:
    from os import PathLike

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_FUNCTION = "write_parquet"


class FileWriter(Writer):
    """Writes into one directory. What Spark would refuse at the first commit is refused at once."""

    def __init__(
        self,
        spark: "SparkSession",
        path: "str | PathLike[str]",
        schema: "StructType | str",
        partition_by: Sequence[str],
        files: int,
        mode: SaveMode,
    ) -> None:
        require_java_int(_FUNCTION, "files", files)
        self._path = require_path(_FUNCTION, "path", path)
        self._partition_by = _column_names(partition_by)
        self._files = files
        self._mode = mode
        super().__init__(_FUNCTION, spark, schema)

    def open(self) -> None:
        from pyspark.sql.types import ArrayType, MapType, StructType

        super().open()
        schema, key = self.conversion.schema, name_key(self.spark)
        require_storable(_FUNCTION, schema, key)
        fields = {key(field.name): field for field in schema.fields}
        for name in self._partition_by:
            field: Any = fields.pop(key(name), None)
            if field is None:
                raise ValueError(
                    f"{_FUNCTION}: partition_by names {name!r}, which is no column of the schema, "
                    f"or is named twice; the columns are {', '.join(schema.names)}"
                )
            if isinstance(field.dataType, (ArrayType, MapType, StructType)):
                raise ValueError(
                    f"{_FUNCTION}: partition_by names {name!r}, which is "
                    f"{field.dataType.typeName()}; only single values can name a directory"
                )
        if not fields:
            raise ValueError(f"{_FUNCTION}: partition_by names all columns, so none is in a file")
        if self._mode == "error" and self._exists():
            raise FileExistsError(
                f"{_FUNCTION}: {self._path!r} exists, and mode='error' makes a new directory; give "
                "another path, or mode='append' or 'overwrite'"
            )

    def _exists(self) -> bool:
        from pyspark.errors import AnalysisException

        try:
            return bool(self.spark.read.schema("line string").text(self._path).schema)
        except AnalysisException as error:
            if condition_of(error) == "PATH_NOT_FOUND":
                return False
            raise

    def save(self, df: "DataFrame", mode: str, folder: str) -> None:
        writer = df.coalesce(self._files).write.mode(mode).partitionBy(*self._partition_by)
        # A session may want to replace only those folders of which there are rows. The first commit
        # has some of them.
        writer.option("partitionOverwriteMode", "static").parquet(self._path + folder)


def _column_names(partition_by: Sequence[object]) -> list[str]:
    if isinstance(partition_by, str) or not all(isinstance(name, str) for name in partition_by):
        raise TypeError(
            f"{_FUNCTION}: partition_by must be a list of names, such as ['day'], not "
            f"{partition_by!r}"
        )
    return [*map(str, partition_by)]
