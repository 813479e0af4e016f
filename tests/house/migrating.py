"""The tables of docs/migrating/, and the names of other libraries that they have to explain."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ("CATALOGUES", "PAGES", "Catalogue", "Row", "codes", "rows")

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = ROOT / "docs" / "migrating"
HEADER: Final = re.compile(r"\| *[^|]+ *\| here \| difference \|")
CELLS: Final = re.compile(r"(?<!\\)\|")
CODE: Final = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Catalogue:
    """The public names of one class or module of a library."""

    page: Path
    library: str
    version: str
    of: str
    names: frozenset[str]


@dataclass(frozen=True)
class Row:
    """Names of another library, what to write here, and what differs."""

    page: Path
    line: int
    names: tuple[str, ...]
    here: str
    difference: str

    def __str__(self) -> str:
        return f"docs/migrating/{self.page.name}:{self.line}"


def load_catalogues() -> Iterator[Catalogue]:
    entries = tomllib.loads(Path(__file__).with_name("catalogues.toml").read_text("utf-8"))
    for entry in entries["catalogue"]:
        names = frozenset(entry["names"].split())
        page = PAGES / entry["page"]
        yield Catalogue(page, entry["library"], entry["version"], entry["of"], names)


def rows(page: Path) -> Iterator[Row]:
    """The rows of all tables of *page* that have the header "… | here | difference"."""
    is_inside = False
    for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
        if HEADER.fullmatch(line):
            is_inside = True
        elif not line.startswith("|"):
            is_inside = False
        elif is_inside and not line.startswith("|---"):
            cells = [cell.strip() for cell in CELLS.split(line)[1:-1]]
            assert len(cells) == 3, f"{page.name}:{number} has {len(cells)} cells instead of 3"
            yield Row(page, number, codes(cells[0]), cells[1], cells[2])


def codes(cell: str) -> tuple[str, ...]:
    return tuple(CODE.findall(cell))


CATALOGUES: Final = tuple(load_catalogues())
