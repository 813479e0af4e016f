"""Links of Markdown documents, changed for another place than the repository."""

import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

__all__ = ("Link", "index_page", "rewrite")

_LINK: Final = re.compile(
    # Code is matched first, so that no link is searched for in it.
    r"(?P<code>^(?P<indent>\ *)(?P<fence>```+|~~~+).*?^(?P=indent)(?P=fence)\ *$"
    r"|(?P<tick>`+)(?!`).+?(?<!`)(?P=tick)(?!`))"
    r"|(?P<sign>!?)\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]\((?P<target>[^()\s]+)\)",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Link:
    """A link or, with *is_image*, an image."""

    text: str
    target: str
    is_image: bool = False

    def __str__(self) -> str:
        return f"{'!' * self.is_image}[{self.text}]({self.target})"

    @property
    def is_relative(self) -> bool:
        """Whether it points to a file of the repository."""
        return not re.match(r"[a-z][a-z+.-]*:|#|//", self.target)

    def path_from(self, document: str) -> str:
        """The path in the repository, for a link in *document* (a path in the repository)."""
        path = self.target.partition("#")[0]
        return posixpath.normpath(posixpath.join(posixpath.dirname(document), path))

    @property
    def anchor(self) -> str:
        """``#name``, or nothing."""
        _, sign, name = self.target.partition("#")
        return sign + name


def rewrite(text: str, change: Callable[[Link], str]) -> str:
    """*text* with the result of *change* in place of each relative link outside of code."""

    def changed(found: re.Match[str]) -> str:
        if found["code"]:
            return found[0]
        link = Link(found["text"], found["target"], bool(found["sign"]))
        return change(link) if link.is_relative else found[0]

    return _LINK.sub(changed, text)


def index_page(readme: str, repository: str, branch: str) -> str:
    """*readme* for the page of a package index, where relative links lead nowhere.

    Links lead to *repository*. As long as that has no address, a link is only its text, and an
    image is left out: an address that leads nowhere would be worse.
    """

    def absolute(link: Link) -> str:
        if not repository:
            return "" if link.is_image else link.text
        kind = "raw" if link.is_image else "blob"
        address = f"{repository}/{kind}/{branch}/{link.path_from('README.md')}{link.anchor}"
        return str(Link(link.text, address, link.is_image))

    return rewrite(readme, absolute)
