"""Which files of the repository are pages of the site, where, and in which order.

The paths of `docs/` are those of the site. Some documents are elsewhere, since they belong to what
they describe: they are pages as well.
"""

import ast
import posixpath
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

from publishing.links import Link
from publishing.operators import INDEX as OPERATORS, SOURCE as REFERENCE, Reference
from publishing.project import ROOT

__all__ = ("REST", "Entries", "Pages", "expand", "source_page")

Entries: TypeAlias = list["str | dict[str, str | Entries]"]
"""A part of the navigation: pages, and titles of pages and of further parts."""

REST: Final = "..."
"""In the navigation: the pages that are named nowhere else, of the folder before it or of docs/."""
_ROOT_PAGES: Final = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "contributing/architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing/README.md",
    "SECURITY.md": "security.md",
}
_FOLDERS: Final = {"benchmarks": "performance", "examples": "examples"}
"""Folders with documents, and their place in the site."""
_ASSETS: Final = {".ipynb", ".png", ".svg"}
"""What the site has as it is: pictures, and notebooks to download."""


class Pages:
    """The pages, by their path in the repository and by that in the site."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self.added: dict[str, str] = {}
        """Pages and pictures outside of docs/: the path in the site, by that in the repository."""
        self.sources: dict[str, str] = {}
        """Pages that show a program: the path in the site, by that in the repository."""
        self.projects: dict[str, str] = {}
        """Folders that are a project of their own, with one page for all of its files."""
        reference = root / REFERENCE
        self.reference = Reference(reference.read_text("utf-8") if reference.exists() else "")
        self._made = dict(self.reference.pages()) if reference.exists() else {}
        for path, page in _ROOT_PAGES.items():
            if page != "index.md" and (root / path).exists():
                self.added[path] = page
        for folder, place in _FOLDERS.items():
            self._add_folder(folder, place)

    def _add_folder(self, folder: str, place: str) -> None:
        for path in sorted((self.root / folder).rglob("*")):
            name = path.relative_to(self.root / folder).as_posix()
            if "node_modules" in path.parts or "dist" in path.parts:
                continue
            if (project := self._project_of(path)) is not None:
                self.projects[project] = f"{place}/{posixpath.basename(project)}.md"
            elif path.suffix in {".md", *_ASSETS}:
                self.added[f"{folder}/{name}"] = f"{place}/{name}"
            elif path.suffix == ".py" and _is_program(path):
                self.sources[f"{folder}/{name}"] = f"{place}/{name.removesuffix('.py')}.md"

    def _project_of(self, path: Path) -> str | None:
        """The folder of the project to which the file at *path* belongs."""
        for folder in path.parents:
            if folder == self.root:
                return None
            if (folder / "pyproject.toml").exists():
                return folder.relative_to(self.root).as_posix()
        return None

    def documented(self) -> list[str]:
        """The pages below docs/, as paths in the site."""
        docs = self.root / "docs"
        found = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
        return sorted(found - {REFERENCE.removeprefix("docs/")})

    def made(self) -> dict[str, str]:
        """The text of each page that is made of a part of a document, by its path in the site."""
        projects = {page: project_page(self.root, folder) for folder, page in self.projects.items()}
        return self._made | projects

    def all_pages(self) -> list[str]:
        """All pages, as paths in the site."""
        added = [page for page in self.added.values() if page.endswith(".md")]
        return [*self.documented(), *added, *self.sources.values(), *self.made()]

    def page_of(self, path: str) -> str | None:
        """The path in the site of the document or picture at *path*, which may be a folder."""
        if path in _ROOT_PAGES and path not in self.added:
            return _ROOT_PAGES[path]
        if (self.root / path).is_dir():
            path = posixpath.join(path, "README.md")
        if path == REFERENCE:
            return OPERATORS
        for folder, page in self.projects.items():
            if path == folder or path.startswith(f"{folder}/"):
                return page
        if path.removeprefix("docs/") in self._made:
            return path.removeprefix("docs/")
        if path.startswith("docs/"):
            return path.removeprefix("docs/") if (self.root / path).exists() else None
        return self.added.get(path) or self.sources.get(path)

    def path_of(self, page: str) -> str:
        """The path in the repository of what makes *page*."""
        for paths in (self.added, self.sources):
            for path, found in paths.items():
                if found == page:
                    return path
        return f"docs/{page}"

    def edited(self, page: str) -> str | None:
        """The path in the repository of what one edits to change *page*; None if it is made."""
        for folder, made in self.projects.items():
            if made == page:
                return f"{folder}/README.md"
        return None if page in self._made else self.path_of(page)

    def link(self, link: Link, page: str, repository: str, branch: str) -> str:
        """*link* of *page*, for the site.

        What is not a page is linked to in the repository, or, as long as that has no address, is
        only the text of the link.
        """
        path = link.path_from(self.path_of(page))
        if target := self.page_of(path):
            anchor = link.anchor
            if path == REFERENCE:
                target, _, anchor = self.reference.target(anchor).partition("#")
                anchor = anchor and f"#{anchor}"
            relative = posixpath.relpath(target, posixpath.dirname(page) or ".")
            return str(Link(link.text, relative + anchor, link.is_image))
        if not repository:
            return link.text
        return str(Link(link.text, f"{repository}/blob/{branch}/{path}{link.anchor}"))


def _is_program(path: Path) -> bool:
    """Whether it declares what it needs, which parts of programs do not."""
    return path.read_text("utf-8").startswith("# /// script\n")


def source_page(path: str, text: str) -> str:
    """The page of the program *text* at *path*: its docstring's first line, and the program."""
    summary = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
    return f"# {Path(path).stem}\n\n{summary}\n\n`{path}`:\n\n```python\n{text.rstrip()}\n```\n"


def project_page(root: Path, folder: str) -> str:
    """The page of the project in *folder*: its README, and each of its files."""
    files = sorted(
        path
        for path in (root / folder).rglob("*")
        if path.suffix in {".py", ".toml"} or path.name == "Dockerfile"
    )
    readme = (root / folder / "README.md").read_text("utf-8")
    parts = [readme.replace("](../../docs/", "](../")]
    for path in files:
        language = {".py": "python", ".toml": "toml"}.get(path.suffix, "dockerfile")
        shown = path.relative_to(root / folder).as_posix()
        parts.append(f"## `{shown}`\n\n```{language}\n{path.read_text('utf-8').rstrip()}\n```\n")
    return "\n".join(parts)


def expand(navigation: Entries, pages: Iterable[str]) -> Entries:
    """*navigation* with pages in place of each ``...``, so that a new page needs no entry.

    ``decisions/...`` stands for the pages of that folder, ``...`` alone for those of no folder:
    those that no other entry names, in alphabetical order.
    """
    rest = sorted({*pages} - {*_named(navigation)})

    def expanded(entries: Entries) -> Entries:
        found: Entries = []
        for entry in entries:
            if isinstance(entry, dict):
                found.append({title: resolved(below) for title, below in entry.items()})
            elif entry.endswith(REST):
                folder = entry.removesuffix(REST).rstrip("/")
                found += [page for page in rest if posixpath.dirname(page) == folder]
            else:
                found.append(entry)
        return found

    def resolved(below: str | Entries) -> str | Entries:
        return below if isinstance(below, str) else expanded(below)

    return expanded(navigation)


def _named(entries: Entries) -> Iterator[str]:
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            for below in entry.values():
                yield from [below] if isinstance(below, str) else _named(below)
