"""llms.txt, a list of the pages for language models, and llms-full.txt, all that users read."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ("Page", "full", "overview")

_CODE: Final = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_LINK: Final = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]+\)")


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the site, as the navigation shows it."""

    section: str
    title: str
    address: str
    """That of its Markdown."""
    text: str


def overview(name: str, summary: str, pages: Iterable[Page]) -> str:
    """The content of llms.txt."""
    lines = [f"# {name}", "", f"> {summary}"]
    section = ""
    for page in pages:
        if page.section != section:
            section = page.section
            lines += ["", f"## {section}", ""]
        described = _description(page.text)
        lines.append(f"- [{page.title}]({page.address})" + (f": {described}" if described else ""))
    return "\n".join(lines) + "\n"


def full(name: str, summary: str, pages: Iterable[Page]) -> str:
    """The content of llms-full.txt: the pages one after another."""
    return "\n".join([f"# {name}", "", f"> {summary}", *_bodies(pages)])


def _bodies(pages: Iterable[Page]) -> Iterator[str]:
    for page in pages:
        yield from ("", "---", f"Page: {page.address}", "", page.text.strip(), "")


def _description(text: str) -> str:
    """The first sentence of the first paragraph."""
    for block in re.split(r"\n{2,}", _CODE.sub("", text)):
        words = " ".join(_LINK.sub(r"\1", block).split())
        if words and not re.match(r"[#|!<>*:\-\d]", words):
            return re.split(r"(?<=[.!?])\s", words)[0].rstrip(":")
    return ""
