"""What a wheel contains, compared with the package in the repository."""

import zipfile
from collections import Counter
from pathlib import Path
from typing import Final

from publishing.project import ROOT

__all__ = ("missing_from", "sizes", "strangers_in")

PACKAGE: Final = "reactive_aio"


def missing_from(wheel: Path, root: Path = ROOT) -> list[str]:
    """The files of the package that *wheel* lacks: modules, and data such as scripts and marks."""
    return sorted(_files_of_package(root) - set(_names(wheel)))


def strangers_in(wheel: Path, root: Path = ROOT) -> list[str]:
    """The files of *wheel* that are neither of the package nor metadata."""
    names = {name for name in _names(wheel) if ".dist-info/" not in name}
    return sorted(names - _files_of_package(root))


def sizes(wheel: Path) -> list[tuple[str, int]]:
    """The compressed bytes of each part of the package, the largest first."""
    found: Counter[str] = Counter()
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            parts = entry.filename.split("/")
            found["/".join(parts[:2]) if len(parts) > 2 else parts[0]] += entry.compress_size
    return found.most_common()


def _names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def _files_of_package(root: Path) -> set[str]:
    return {
        path.relative_to(root).as_posix()
        for path in (root / PACKAGE).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
