"""The way into Spark: a flow's elements as a DataFrame, as files, in a table."""

from .words import append_table, to_dataframe, write_parquet
from .written import Written

__all__ = ("Written", "append_table", "to_dataframe", "write_parquet")
