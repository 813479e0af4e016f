"""Where readings are kept: in SQLite, so that the example needs no server."""

import sqlite3
from contextlib import closing
from pathlib import Path

from station.flow import Located, Reading

TABLES = """
create table if not exists readings (room text, sensor integer, celsius real);
create table if not exists set_aside (sensor integer, celsius real, error text);
"""


class Store:
    """The database at *path*. Each call opens it, so that any thread may call."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with closing(self._open()) as database:
            database.executescript(TABLES)

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path)

    def add(self, batch: list[Located]) -> int:
        """Store *batch* in one transaction; return its size."""
        rows = [(each.room, each.reading.sensor, each.reading.celsius) for each in batch]
        with closing(self._open()) as database, database:
            database.executemany("insert into readings values (?, ?, ?)", rows)
        return len(rows)

    def set_aside(self, reading: Reading, error: Exception) -> None:
        """Keep a reading that could not be processed, with the reason."""
        row = (reading.sensor, reading.celsius, f"{type(error).__name__}: {error}")
        with closing(self._open()) as database, database:
            database.execute("insert into set_aside values (?, ?, ?)", row)

    def rooms(self) -> dict[str, int]:
        """How many readings there are of each room."""
        with closing(self._open()) as database:
            return dict(database.execute("select room, count(*) from readings group by room"))
