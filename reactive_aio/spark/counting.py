"""Counting what PySpark's local iterator reads: partitions and bytes.

They pass through the serializer of its reader, which is private. Where it is not what it was in
4.x, nothing is counted: a progress then has the rows, and no partitions.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, BinaryIO

from .leaving import reader_of
from .progress import Meter

__all__ = ("counted",)


def counted(rows: Iterator[Any], meter: Meter) -> bool:
    """Have *rows*, which nobody has iterated over yet, counted; return whether that is possible."""
    with suppress(Exception):
        reader: Any = reader_of(rows)
        reader._serializer = _Counted(reader._serializer, meter)
        return True
    return False


class _Counted:
    """A serializer that tells of each partition: one stream is one of them."""

    def __init__(self, serializer: Any, meter: Meter) -> None:
        self._load = serializer.load_stream
        self._meter = meter

    def load_stream(self, file: BinaryIO) -> Iterator[Any]:
        meter = self._meter
        meter.add_by_thread("launched", 1)
        meter.add_by_thread("computed", 1)
        yield from self._load(_File(file, meter))
        meter.add_by_thread("done", 1)


class _File:
    """A file that tells how much is read of it."""

    def __init__(self, file: BinaryIO, meter: Meter) -> None:
        self._file = file
        self._meter = meter

    def read(self, size: int) -> bytes:
        got = self._file.read(size)
        self._meter.add_by_thread("bytes", len(got))
        return got
