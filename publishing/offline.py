"""A check of the built site: it loads no script, style, font or picture from elsewhere."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ("foreign_resources",)

_ELSEWHERE: Final = r"""["']?((?:https?:)?//[^"'\s>)]+)"""
_TAG: Final = re.compile(r"<(script|link|img|iframe|source|video|audio|object)\b[^>]*>", re.I)
_ADDRESS: Final = re.compile(rf"\b(?:src|href|srcset|data)\s*=\s*{_ELSEWHERE}", re.I)
_IN_STYLE: Final = re.compile(rf"(?:url\(|@import)\s*{_ELSEWHERE}", re.I)
_NOT_LOADED: Final = re.compile(r"""\brel\s*=\s*["']?(?:canonical|next|prev|alternate)\b""", re.I)


def foreign_resources(site: Path) -> Iterator[str]:
    """The resources that pages below *site* would load from elsewhere, each with its file."""
    for path in sorted(site.rglob("*.html")):
        text = path.read_text("utf-8")
        for tag in _TAG.finditer(text):
            if not _NOT_LOADED.search(tag[0]):
                yield from _found(path, _ADDRESS.findall(tag[0]), site)
        yield from _found(path, _IN_STYLE.findall(text), site)
        if 'class="mermaid"' in text:
            yield f"{path.relative_to(site)}: a Mermaid diagram, and with it a script"
    for path in sorted(site.rglob("*.css")):
        yield from _found(path, _IN_STYLE.findall(path.read_text("utf-8")), site)


def _found(path: Path, addresses: list[str], site: Path) -> Iterator[str]:
    return (f"{path.relative_to(site)}: {address}" for address in addresses)
