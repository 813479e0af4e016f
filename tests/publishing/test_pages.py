"""The pages of the site: where they come from, the navigation, and the links between them."""

import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from publishing.links import Link, rewrite
from publishing.pages import Entries, Pages, expand, source_page
from publishing.project import ROOT, addresses, publication
from reactive_aio import stage

HOME = "https://forge.example/rx"


@pytest.fixture(scope="module")
def pages() -> Pages:
    return Pages()


def navigation() -> Entries:
    # BaseLoader does not run the tags that MkDocs understands.
    entries: Entries = yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), yaml.BaseLoader)["nav"]
    return entries


def named(entries: Entries) -> list[str]:
    found: list[str] = []
    for entry in entries:
        if isinstance(entry, str):
            found.append(entry)
        else:
            for below in entry.values():
                found += [below] if isinstance(below, str) else named(below)
    return found


# -- this site -------------------------------------------------------------------------------------
def test_the_navigation_has_each_page_once(pages: Pages) -> None:
    shown = named(expand(navigation(), pages.all_pages()))
    assert len(shown) == len(set(shown)), "a page is in the navigation twice"
    assert set(shown) - set(pages.all_pages()) == set(), "mkdocs.yml names pages that do not exist"
    missing = set(pages.all_pages()) - set(shown)
    assert not missing, f"add them, or their folder with `...`, to the nav of mkdocs.yml: {missing}"


def test_each_link_to_a_document_leads_to_a_page(pages: Pages) -> None:
    lost: list[str] = []
    for page in pages.documented():
        path = pages.path_of(page)

        def check(link: Link, path: str = path) -> str:
            target = link.path_from(path)
            if target.endswith(".md") and not pages.page_of(target):
                lost.append(f"{path}: {link}")
            return str(link)

        rewrite((ROOT / path).read_text("utf-8"), check)
    assert not lost, "\n".join(lost)


def test_documents_of_the_repository_are_pages(pages: Pages) -> None:
    assert pages.page_of("benchmarks/spark/README.md") == "performance/spark/README.md"
    assert pages.page_of("docs/decisions") == "decisions/README.md"
    assert pages.page_of("README.md") == "index.md"
    assert pages.page_of("examples/own_operator.py") == "examples/own_operator.md"
    assert pages.page_of("pyproject.toml") is None
    for path, page in (pages.added | pages.sources).items():
        assert pages.page_of(path) == page
        assert pages.path_of(page) == path


def test_keywords_of_the_search_are_of_pages_that_exist(pages: Pages) -> None:
    keywords = tomllib.loads((ROOT / "publishing" / "keywords.toml").read_text("utf-8"))
    assert keywords.keys() <= {*pages.all_pages()}


def test_an_operator_has_a_page_with_its_names_elsewhere(pages: Pages) -> None:
    made = pages.made()
    assert "**Called elsewhere:**" in made["operators/switch_map.md"]
    assert "`flatMapLatest` (Kotlin)" in made["operators/switch_map.md"]
    assert "](map_async.md)" in made["operators/README.md"]
    assert "### `" not in made["operators/README.md"]


# -- links -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("target", "page", "expected"),
    [
        ("../benchmarks/README.md#running-them", "why.md", "performance/README.md#running-them"),
        ("../docs/decisions/0035-instructions-as-gate.md", "performance/README.md",
         "../decisions/0035-instructions-as-gate.md"),
        ("plots/on_next.svg", "performance/README.md", "plots/on_next.svg"),
        ("docs/operators.md#map_async", "contributing/README.md", "../operators/map_async.md"),
        ("share.md", "operators/replay.md", "share.md"),
        ("ARCHITECTURE.md", "contributing/README.md", "architecture.md"),
        ("docs/decisions", "contributing/README.md", "../decisions/README.md"),
        ("../examples/own_operator.py", "rsocket.md", "examples/own_operator.md"),
        ("../examples/notebook.ipynb", "pictures.md", "examples/notebook.ipynb"),
        ("../README.md", "why.md", "index.md"),
    ],
)  # fmt: skip
def test_a_link_between_pages_is_relative(
    target: str, page: str, expected: str, pages: Pages
) -> None:
    assert pages.link(Link("x", target), page, "", "main") == f"[x]({expected})"


def test_a_link_to_another_file_leads_to_the_repository_if_that_has_an_address(
    pages: Pages,
) -> None:
    link = Link("x", "../reactive_aio/retry.py#L3")
    address = f"{HOME}/blob/main/reactive_aio/retry.py#L3"
    assert pages.link(link, "rsocket.md", HOME, "main") == f"[x]({address})"
    assert pages.link(link, "rsocket.md", "", "main") == "x"


# -- the navigation --------------------------------------------------------------------------------
def test_three_dots_stand_for_the_pages_that_are_not_named() -> None:
    pages = ["a.md", "b.md", "c.md", "d/x.md", "d/y.md", "d/README.md", "e/z.md"]
    entries: Entries = [{"One": ["a.md", "..."]}, {"Two": "b.md"}, {"D": ["d/README.md", "d/..."]}]
    assert expand(entries, pages) == [
        {"One": ["a.md", "c.md"]},
        {"Two": "b.md"},
        {"D": ["d/README.md", "d/x.md", "d/y.md"]},
    ]


# -- programs and folders --------------------------------------------------------------------------
def test_a_program_is_shown_with_the_first_line_of_its_docstring() -> None:
    page = source_page("examples/own.py", '"""Write one.\n\nMore."""\n\nprint(1)\n')
    assert page.startswith("# own\n\nWrite one.\n\n`examples/own.py`:\n\n```python\n")
    assert page.endswith("\nprint(1)\n```\n")


def test_a_new_document_of_a_folder_is_a_page(tmp_path: Path) -> None:
    for path in ("docs/new.md", "examples/README.md", "examples/a/dist/README.md", "SECURITY.md"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    pages = Pages(tmp_path)
    assert sorted(pages.all_pages()) == ["examples/README.md", "new.md", "security.md"]


# -- addresses -------------------------------------------------------------------------------------
def test_addresses_are_made_of_two_settings() -> None:
    places = {"repository": HOME, "branch": "main", "documentation": "https://docs.example"}
    assert addresses(places) == {
        "Documentation": "https://docs.example",
        "Source": HOME,
        "Issues": f"{HOME}/issues",
        "Changelog": f"{HOME}/blob/main/CHANGELOG.md",
    }
    assert addresses({"repository": "", "branch": "main", "documentation": ""}) == {}


def test_an_address_that_is_set_is_an_address() -> None:
    places = publication()
    assert places["branch"]
    for address in (places["repository"], places["documentation"]):
        assert not address or address.startswith("https://")


# -- the API ---------------------------------------------------------------------------------------
API = ROOT / "docs" / "api"
NOT_FOR_USERS = {"about", "processors"}
"""Rooms without a page: one for a command, and one whose names the package itself exports."""


def documented_modules() -> dict[str, str]:
    """The text of its page, by the name of a module."""
    found: dict[str, str] = {}
    for path in API.glob("*.md"):
        text = path.read_text("utf-8")
        found |= dict.fromkeys(re.findall(r"^::: (\S+)$", text, re.MULTILINE), text)
    return found


@pytest.mark.parametrize("module", documented_modules())
def test_a_page_of_the_api_names_what_exists(module: str) -> None:
    exported = vars(import_module(module))
    members = re.findall(r"^        - (\w+)$", documented_modules()[module], re.MULTILINE)
    assert [name for name in members if name not in exported] == []


def test_each_room_for_users_has_a_page() -> None:
    folders = [
        path for path in (ROOT / "reactive_aio").iterdir() if (path / "__init__.py").exists()
    ]
    rooms = {path.name for path in folders if not path.name.startswith("_")} - NOT_FOR_USERS
    listed = (API / "README.md").read_text("utf-8")
    for room in sorted(rooms):
        assert f"reactive_aio.{room}" in documented_modules(), f"add docs/api/{room}.md"
        assert f"]({room}.md)" in listed, f"list {room}.md in docs/api/README.md"


def test_the_guides_on_operators_and_sources_name_all_that_they_are_written_with() -> None:
    guides = ("docs/how-to/write-an-operator.md", "docs/guides/write-a-source.md")
    text = "\n".join((ROOT / path).read_text("utf-8") for path in guides)
    assert [name for name in stage.__all__ if not re.search(rf"\b{name}\b", text)] == []


def test_a_page_knows_what_is_edited_to_change_it() -> None:
    pages = Pages()
    assert pages.edited("faq.md") == "docs/faq.md"
    assert pages.edited("contributing/README.md") == "CONTRIBUTING.md"
    assert pages.edited("examples/chat.md") == "examples/chat.py"
    assert pages.edited("examples/service.md") == "examples/service/README.md"
    assert pages.edited("operators/map.md") is None, "it is made of a docstring"
