"""The reference of operators as pages of the site: one for each operator, and an index.

In the repository the reference is one document, which can be searched and read without the site.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from publishing.links import Link, rewrite

__all__ = ("FOLDER", "INDEX", "SOURCE", "Reference")

SOURCE: Final = "docs/operators.md"
FOLDER: Final = "operators"
INDEX: Final = f"{FOLDER}/README.md"
_SECTION: Final = re.compile(r"^### `(\w+)`\n(.*?)(?=^##+ |\Z)", re.DOTALL | re.MULTILINE)
_OWN_LINK: Final = re.compile(r"\]\(#([\w-]+)\)")
_ROW: Final = re.compile(r"^\| `([\w. ]+)` \| ([^|]+) \| \[`(\w+)`\]\(#\w+\) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Reference:
    """The document *text*, divided."""

    text: str

    @property
    def names(self) -> list[str]:
        """The operators, in the order of the document."""
        return [section[1] for section in _SECTION.finditer(self.text)]

    def pages(self) -> Iterator[tuple[str, str]]:
        """The path in the site and the text of each page."""
        names = {*self.names}
        index = _SECTION.sub("", self.text)
        yield INDEX, self._linked(re.sub(r"\n{3,}", "\n\n", index), names)
        elsewhere = self._names_elsewhere()
        for section in _SECTION.finditer(self.text):
            name, body = section[1], section[2].strip()
            parts = [f"# {name}", body]
            if name in elsewhere:
                parts.append("**Called elsewhere:** " + ", ".join(elsewhere[name]) + ".")
            yield f"{FOLDER}/{name}.md", self._linked("\n\n".join(parts) + "\n", names)

    def target(self, anchor: str) -> str:
        """The page, and the anchor in it, to which ``operators.md#anchor`` leads."""
        name = anchor.removeprefix("#")
        return f"{FOLDER}/{name}.md" if name in self.names else INDEX + anchor

    def _linked(self, text: str, names: set[str]) -> str:
        """*text* for a page in the folder, to which the document's own links lead as well."""

        def own(found: re.Match[str]) -> str:
            name = found[1]
            return f"]({name}.md)" if name in names else f"](README.md#{name})"

        def other(link: Link) -> str:
            return str(replace(link, target=f"../{link.target}"))

        return _OWN_LINK.sub(own, rewrite(text, other))

    def _names_elsewhere(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for row in _ROW.finditer(self.text):
            found.setdefault(row[3], []).append(f"`{row[1]}` ({row[2].strip()})")
        return found
