"""Writing all or nothing to a disk that may be full."""

from io import FileIO


def write_all(file: FileIO, data: bytes | memoryview) -> None:
    """Write all of *data* to a file without a buffer, or raise OSError.

    One call writes a part, and says how much, when the disk has no room for the rest; the next call
    raises.
    """
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]
