"""The pages of docs/migrating/ explain every name of the catalogues, which catalogues.toml lists.

A name that a page lacks, or has twice, is reported by name, and so is a cell of the column "here"
that names something which does not exist.
"""

import inspect
import re
from collections import Counter
from collections.abc import Iterable
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from types import ModuleType

import pytest

from reactive_aio import Flow
from reactive_aio._shared.foreign_names import name_here
from tests.house.equivalents import problems
from tests.house.migrating import CATALOGUES, PAGES, Catalogue, Row, codes, rows

NOTHING = "–"
CALLS_OURS = re.compile(r"\.|(await )?(flow|rx|asyncio|testing)\.")
# Names that mean something else in one library than they do here, or than the error assumes.
OTHER_SENSE = (
    "on_error_resume_next is on_error_resume() here",  # that of reactivex goes on in any case
    "buffer is buffer() here",  # those of reactivex are closed by another publisher
    "window is window() here",
    "concat is concat_with() here",  # that of aiostream takes a stream of streams
)
TABLES = {page: list(rows(page)) for page in sorted({each.page for each in CATALOGUES})}
ROWS = [row for table in TABLES.values() for row in table]
PYTHON = [each for each in CATALOGUES if each.library in {"reactivex", "aiostream"}]


def misnamed(table: Iterable[Row], names: set[str]) -> list[str]:
    """The names that *table* lacks, has twice, or has without need."""
    found = Counter(name for row in table for name in row.names)
    return [
        *(f"a row for {name!r} is missing" for name in sorted(names - found.keys())),
        *(f"{name!r} has {n} rows" for name, n in found.items() if n > 1),
        *(f"{name!r} is not in the catalogue" for name in sorted(found.keys() - names)),
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


@pytest.mark.parametrize("page", TABLES, ids=attrgetter("name"))
def test_each_name_of_a_catalogue_has_one_row(page: Path) -> None:
    names = {name for each in CATALOGUES if each.page == page for name in each.names}
    assert misnamed(TABLES[page], names) == []


@pytest.mark.parametrize("page", TABLES, ids=attrgetter("name"))
def test_a_page_states_the_versions_of_its_catalogues(page: Path) -> None:
    text = page.read_text("utf-8")
    for each in CATALOGUES:
        assert each.page != page or f"{each.library} {each.version}" in text


@pytest.mark.parametrize("page", TABLES, ids=attrgetter("name"))
def test_what_a_table_says_to_write_exists(page: Path) -> None:
    assert [problem for row in TABLES[page] for problem in unexplained(row)] == []


def test_tables_and_the_error_about_an_unknown_attribute_agree() -> None:
    found = [problem for row in ROWS for problem in disagreements(row)]
    assert [problem for problem in found if not problem.endswith(OTHER_SENSE)] == []
    assert len(found) == len(OTHER_SENSE)  # each exception is needed


@pytest.mark.parametrize("catalogue", PYTHON, ids=attrgetter("of"))
def test_a_catalogue_has_every_name_of_the_installed_library(catalogue: Catalogue) -> None:
    missing = public_names(catalogue.of) - catalogue.names
    assert not missing, f"add to tests/house/catalogues.toml and to {catalogue.page.name}"


def test_every_page_is_linked() -> None:
    overview = (PAGES / "README.md").read_text("utf-8")
    for page in PAGES.glob("[a-z]*.md"):
        assert f"]({page.name})" in overview
        assert page in TABLES


class TestFaults:
    """Faulty tables fail."""

    HEADER = "| theirs | here | difference |\n|---|---|---|\n"

    def table(self, tmp_path: Path, *lines: str) -> list[Row]:
        page = tmp_path / "page.md"
        page.write_text("# A page\n\n| a | b |\n|---|---|\n| `x` | 1 |\n\n" + self.HEADER, "utf-8")
        with page.open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
        return list(rows(page))

    def test_only_tables_with_the_header_are_read(self, tmp_path: Path) -> None:
        [row] = self.table(tmp_path, "| `a`, `b` | `.map(f)` | slower |", "", "| `c` | | |")
        assert (row.names, row.here, row.difference) == (("a", "b"), "`.map(f)`", "slower")
        assert str(row) == "docs/migrating/page.md:9"

    def test_a_row_with_a_wrong_number_of_cells_fails(self, tmp_path: Path) -> None:
        with pytest.raises(AssertionError, match=r"page\.md:9 has 2 cells"):
            self.table(tmp_path, "| `a` | `.map(f)` |")

    def test_missing_repeated_and_unknown_names_are_reported(self, tmp_path: Path) -> None:
        table = self.table(tmp_path, "| `a`, `b` | `.run` | |", "| `b` | `.run` | |")
        assert misnamed(table, {"b", "c"}) == [
            "a row for 'c' is missing",
            "'b' has 2 rows",
            "'a' is not in the catalogue",
        ]

    @pytest.mark.parametrize(
        ("cells", "problem"),
        [
            ("– |", "nothing here, and no reason"),
            ("something |", "no code in the column here"),
            ("`.mop(f)` |", "has no attribute 'mop'"),
            ("`.map(f).mop()` |", "has no attribute 'mop'"),
            ("`rx.mop(a)` |", "has no attribute 'mop'"),
            ("`rx.merge(a).mop()` |", "has no attribute 'mop'"),
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
    def test_a_wrong_cell_is_reported(self, cells: str, problem: str, tmp_path: Path) -> None:
        [row] = self.table(tmp_path, f"| `a` | {cells} |")
        [found] = unexplained(row)
        assert problem in found

    @pytest.mark.parametrize("name", ["flatMap", "flat_map", "merge_map"])
    def test_a_dash_for_what_a_flow_has_is_reported(self, name: str, tmp_path: Path) -> None:
        [row] = self.table(tmp_path, f"| `{name}` | – | a reason |")
        [found] = disagreements(row)
        assert found.endswith(f": {name} is flat_map() here")

    def test_another_name_than_that_of_the_error_is_reported(self, tmp_path: Path) -> None:
        [row] = self.table(tmp_path, "| `merge_map` | `.concat_map(f)` | |")
        assert len(disagreements(row)) == 1

    @pytest.mark.parametrize(
        "cells",
        [
            "– | a reason",
            "`.map`, `.run` |",
            "`await flow.filter(p).first(default=None)` | a reason",
            "`async for element in flow` |",
            "`break` |",
            "`[f(x) async for x in flow]` |",
            "`rx.MulticastProcessor().emit_threadsafe(x)` |",
            "`.retry(rx.RetryPolicy(attempts=5))` |",
        ],
    )
    def test_a_right_cell_passes(self, cells: str, tmp_path: Path) -> None:
        [row] = self.table(tmp_path, f"| `a` | {cells} |")
        assert unexplained(row) == []
