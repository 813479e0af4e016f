"""Which versions of PySpark this package works with. It imports none."""

import re
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

OLDEST: Final = (3, 5)
_VERSION: Final = re.compile(r"(\d+)\.(\d+)")
_IN_FILE: Final = re.compile(r"__version__\b[^=]*=\s*[\"'](\d+)\.(\d+)")


@cache
def pyspark_version() -> tuple[int, int]:
    """Return the version of the installed PySpark; (0, 0) if there is none."""
    found = _VERSION.match(_packaged_version()) or _IN_FILE.search(_version_file())
    return (0, 0) if found is None else (int(found[1]), int(found[2]))


def _packaged_version() -> str:
    try:
        return version("pyspark")
    except PackageNotFoundError:
        try:
            return version("pyspark-client")
        except PackageNotFoundError:
            return ""


def _version_file() -> str:
    """Return the text of ``pyspark/version.py``: of a Spark that is on the path without pip."""
    found = find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        return ""
    path = Path(found.submodule_search_locations[0]) / "version.py"
    return path.read_text("utf-8") if path.exists() else ""


def require_known_version() -> None:
    """Raise ImportError if PySpark is installed and too old."""
    found = pyspark_version()
    if (0, 0) < found < OLDEST:
        oldest, here = (".".join(map(str, each)) for each in (OLDEST, found))
        raise ImportError(
            f"reactive_aio.spark needs PySpark {oldest} or newer, and {here} is installed: "
            f"pip install 'pyspark>={oldest}', or 'reactive-aio[spark]' for the newest",
            name="reactive_aio.spark",
        )
