"""What MkDocs calls while it builds the site (``hooks`` in mkdocs.yml)."""

import re
import sys
import tomllib
from pathlib import Path
from typing import Any, Final, cast

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page as SitePage

# MkDocs runs this file by its path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from publishing import llms
from publishing.installing import with_note
from publishing.links import rewrite
from publishing.offline import foreign_resources
from publishing.operators import SOURCE as REFERENCE
from publishing.pages import Entries, Pages, expand, source_page
from publishing.project import ROOT, project, publication

PAGES: Final = Pages()
PLACES: Final = publication()
FOR_USERS: Final = ("Start", "Tutorial", "Guides", "Reference", "Understand")
"""The parts of the navigation that llms-full.txt contains; llms.txt lists all."""
KEYWORDS: Final[dict[str, list[str]]] = tomllib.loads(
    (Path(__file__).parent / "keywords.toml").read_text("utf-8")
)
_RANKS: Final = {
    "tutorial/": 1.5,
    "guides/": 2.0,
    "how-to/": 2.0,
    "operators/": 1.5,
    "decisions/": 0.2,
    "performance/": 0.3,
    "contributing/": 0.3,
    "examples/": 0.3,
    "migrating/": 0.5,
    "api/": 0.5,
    "changelog": 0.1,
    "guards": 0.2,
    "laws": 0.3,
}
"""How much pages count in the search, by the beginning of their path: tasks before reasons."""
_FOR_TESTS: Final = re.compile(r"^( *```python) \w+$", re.MULTILINE)
_OUTPUT: Final = re.compile(r"^( *```)output$", re.MULTILINE)
_texts: dict[str, str] = {}
_order: list[tuple[str, SitePage]] = []


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the addresses, and complete the navigation."""
    config.site_description = project()["description"]
    config.site_url = PLACES["documentation"] or ""
    if PLACES["repository"]:
        config.repo_url = PLACES["repository"]
    settings: dict[str, Any] = cast("Any", config)
    entries: Entries = settings["nav"]
    settings["nav"] = expand(entries, PAGES.all_pages())
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and pictures that are not below docs/, and those made of a part of a page."""
    for divided in [file for file in files if f"docs/{file.src_uri}" == REFERENCE]:
        files.remove(divided)
    for page, content in PAGES.made().items():
        files.append(File.generated(config, page, content=content))
    for path, page in PAGES.added.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / path)))
    for path, page in PAGES.sources.items():
        content = source_page(path, (ROOT / path).read_text("utf-8"))
        files.append(File.generated(config, page, content=content))
    return files


def on_nav(nav: Navigation, **_: Any) -> Navigation:
    """Remember the order of the pages, and the part of the navigation that each is in."""
    parts: list[Any] = [*nav]
    _order[:] = [
        (part.title, page)
        for part in parts
        for page in nav.pages
        if part is page or part in page.ancestors
    ]
    return nav


def on_page_markdown(markdown: str, page: SitePage, **_: Any) -> str:
    """Make the links those of the site, and mark what a program prints."""
    name = page.file.src_uri
    for beginning, rank in _RANKS.items():
        if name.startswith(beginning):
            page.meta["search"] = {"boost": rank}
    page.meta["tags"] = KEYWORDS.get(name, [])
    if name == "index.md":
        page.meta["hide"] = ["navigation", "toc"]
    text = with_note(markdown, is_published=bool(PLACES["index"]))
    text = rewrite(
        text, lambda link: PAGES.link(link, name, PLACES["repository"], PLACES["branch"])
    )
    _texts[name] = text
    return _OUTPUT.sub(r"\1{ .text .output }", _FOR_TESTS.sub(r"\1", text))


def on_page_context(context: Any, page: SitePage, **_: Any) -> Any:
    """Let each page say where it is edited, once the repository has an address."""
    path = PAGES.edited(page.file.src_uri)
    place = f"{PLACES['repository']}/edit/{PLACES['branch']}"
    page.edit_url = f"{place}/{path}" if PLACES["repository"] and path else None
    return context


def on_post_build(config: MkDocsConfig) -> None:
    """Write the texts for language models, and check that the site needs no other."""
    site = Path(config.site_dir)
    base = f"{config.site_url.rstrip('/')}/" if config.site_url else ""
    pages = [
        llms.Page(part, str(cast("Any", page).title), base + name, _texts[name])
        for part, page in _order
        if (name := page.file.src_uri) in _texts
    ]
    for page in pages:
        path = site / page.address.removeprefix(base)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page.text, "utf-8")
    summary = config.site_description or ""
    (site / "llms.txt").write_text(llms.overview(config.site_name, summary, pages), "utf-8")
    read = [page for page in pages if page.section in FOR_USERS]
    (site / "llms-full.txt").write_text(llms.full(config.site_name, summary, read), "utf-8")
    if foreign := [*foreign_resources(site)]:
        raise PluginError("\n".join(["the site loads from elsewhere:", *foreign]))
