"""What has been written."""

from dataclasses import dataclass

__all__ = ("Written",)


@dataclass(frozen=True, slots=True)
class Written:
    """What `write_parquet` and `append_table` return."""

    rows: int
    commits: int

    def __str__(self) -> str:
        return f"{self.rows:,} rows in {self.commits:,} commits"
