"""The pages of docs/migrating/ have a row for each public name of the libraries that are installed.

A name that a page lacks, or has twice, is reported by name, and so is a cell of the column "here"
that names something which does not exist. The rows about libraries of the JVM are compared with
nothing but each other.
"""

import inspect
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from reactive_aio import Flow
from reactive_aio._shared.foreign_names import name_here
from tests.house.equivalents import problems

PAGES = Path(__file__).parents[2] / "docs" / "migrating"
HEADER = re.compile(r"\| *[^|]+ *\| here \| difference \|")
CELLS = re.compile(r"(?<!\\)\|")
NOTHING = "–"
CALLS_OURS = re.compile(r"\.|(await )?(flow|rx|asyncio|testing)\.")
# Names that mean something else in one library than they do here, or than the error assumes.
OTHER_SENSE = (
    "on_error_resume_next is on_error_resume() here",  # that of reactivex goes on in any case
    "buffer is buffer() here",  # those of reactivex are closed by another publisher
    "window is window() here",
    "concat is concat_with() here",  # that of aiostream takes a stream of streams
)
INSTALLED = {
    "reactivex.md": [
        "reactivex",
        *("reactivex.operators", "reactivex.subject", "reactivex.scheduler"),
        *("reactivex.scheduler.eventloop", "reactivex.scheduler.mainloop"),
        *("reactivex.Observable", "reactivex.ConnectableObservable"),
    ],
    "aiostream.md": ["aiostream", "aiostream.stream", "aiostream.pipe"],
}
"""The modules and classes whose names a page explains."""


@dataclass(frozen=True)
class Row:
    """Names of another library, what to write here, and what differs."""

    place: str
    names: tuple[str, ...]
    here: str
    difference: str

    def __str__(self) -> str:
        return self.place


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
            yield Row(f"{page.name}:{number}", codes(cells[0]), cells[1], cells[2])


def codes(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`([^`]+)`", cell))


TABLES = {
    page.name: found for page in sorted(PAGES.glob("[a-z]*.md")) if (found := list(rows(page)))
}


def misnamed(table: Iterable[Row], names: set[str]) -> list[str]:
    """The names that *table* lacks, or has twice."""
    found = Counter(name for row in table for name in row.names)
    return [
        *(f"a row for {name!r} is missing" for name in sorted(names - found.keys())),
        *(f"{name!r} has {n} rows" for name, n in found.items() if n > 1),
    ]


def unexplained(row: Row) -> list[str]:
    """What is wrong with the columns "here" and "difference"."""
    if row.here == NOTHING and not row.difference:
        return [f"{row}: nothing here, and no reason"]
    if row.here != NOTHING and not codes(row.here):
        return [f"{row}: no code in the column here"]
    written = [*codes(row.here), *filter(CALLS_OURS.match, codes(row.difference))]
    return [f"{row}: {problem}" for code in written for problem in problems(code)]


def disagreements(row: Row) -> list[str]:
    """The names of *row* that a flow has, or answers with another name, unlike the table."""
    return [
        f"{row}: {name} is {ours}() here"
        for name in row.names
        if (ours := name_of(name, row.here)) and ours not in row.here
    ]


def name_of(name: str, here: str) -> str | None:
    """The method *name* of a flow, or what the error about it says."""
    if hasattr(Flow, name):
        return name if here == NOTHING else None
    return name_here(name, Flow)


def public_names(of: str) -> set[str]:
    """The public names of an installed module, or the public methods of a class."""
    path, _, last = of.rpartition(".")
    if last[:1].isupper():
        kind: type = getattr(import_module(path), last)
        return {name for name in vars(kind) if not name.startswith("_")}
    module = import_module(of)
    exported = getattr(module, "__all__", None)
    names = vars(module) if exported is None else {*exported, *functions_of(module)}
    return {name for name in names if name[0] != "_" and callable(getattr(module, name))}


def functions_of(module: ModuleType) -> set[str]:
    """The functions defined in *module*: ``__all__`` of reactivex lacks some of them."""
    functions = inspect.getmembers(module, inspect.isfunction)
    return {name for name, function in functions if function.__module__ == module.__name__}


@pytest.mark.parametrize("page", TABLES)
def test_each_name_has_one_row(page: str) -> None:
    names = {name for of in INSTALLED.get(page, []) for name in public_names(of)}
    assert misnamed(TABLES[page], names) == []


@pytest.mark.parametrize("page", TABLES)
def test_what_a_table_says_to_write_exists(page: str) -> None:
    assert [problem for row in TABLES[page] for problem in unexplained(row)] == []


def test_tables_and_the_error_about_an_unknown_attribute_agree() -> None:
    found = [
        problem for table in TABLES.values() for row in table for problem in disagreements(row)
    ]
    assert [problem for problem in found if not problem.endswith(OTHER_SENSE)] == []
    assert len(found) == len(OTHER_SENSE)  # each exception is needed


def test_every_page_has_tables_and_is_linked() -> None:
    overview = (PAGES / "README.md").read_text("utf-8")
    for page in PAGES.glob("[a-z]*.md"):
        assert page.name in TABLES
        assert f"]({page.name})" in overview


class TestFaults:
    """Faulty tables are reported, and right ones are not."""

    def table(self, tmp_path: Path, *lines: str) -> list[Row]:
        page = tmp_path / "page.md"
        header = (
            "| a | b |\n|---|---|\n| `x` | 1 |\n\n| theirs | here | difference |\n|---|---|---|\n"
        )
        page.write_text(header + "".join(f"{line}\n" for line in lines), "utf-8")
        return list(rows(page))

    def test_only_tables_with_the_header_are_read(self, tmp_path: Path) -> None:
        [row] = self.table(tmp_path, "| `a`, `b` | `.map(f)` | slower |", "", "| `c` | | |")
        assert row == Row("page.md:7", ("a", "b"), "`.map(f)`", "slower")
        with pytest.raises(AssertionError, match=r"page\.md:7 has 2 cells"):
            self.table(tmp_path, "| `a` | `.map(f)` |")

    def test_missing_and_repeated_names(self, tmp_path: Path) -> None:
        table = self.table(tmp_path, "| `a`, `b` | `.run` | |", "| `b` | `.run` | |")
        assert misnamed(table, {"b", "c"}) == ["a row for 'c' is missing", "'b' has 2 rows"]

    @pytest.mark.parametrize(
        ("cells", "problem"),
        [
            ("– |", "nothing here, and no reason"),
            ("something |", "no code in the column here"),
            ("`.map(f).mop()` |", "has no attribute 'mop'"),
            ("`rx.merge(a, b.mop())` |", "has no attribute 'mop'"),
            ("`asyncio.mop` |", "has no attribute 'mop'"),
            ("`await flow.mop()` |", "has no attribute 'mop'"),
            ("`.map(f, mop=1)` |", "unexpected keyword argument 'mop'"),
            ("`.map()` |", "missing a required argument"),
            ("`.map(lambda e: mop(e))` |", "nothing is called 'mop'"),
            ("`.map(f` |", "is not valid Python"),
            ("`.map(f)` | or `.mop(f)`", "has no attribute 'mop'"),
        ],
    )
    def test_a_wrong_cell(self, cells: str, problem: str, tmp_path: Path) -> None:
        [row] = self.table(tmp_path, f"| `a` | {cells} |")
        [found] = unexplained(row)
        assert problem in found

    @pytest.mark.parametrize("row", ["`flatMap` | – | why", "`merge_map` | `.concat_map(f)` |"])
    def test_another_name_than_that_of_the_error(self, row: str, tmp_path: Path) -> None:
        [row_] = self.table(tmp_path, f"| {row} |")
        [found] = disagreements(row_)
        assert found.endswith(" is flat_map() here")
