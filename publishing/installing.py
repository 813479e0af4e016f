"""What is true of ``pip install reactive-aio`` as long as the package is on no index."""

import re
from typing import Final

__all__ = ("NOTE", "with_note")

NOTE: Final = (
    "The package is not on an index yet: in a clone of the repository, write `.` in place of "
    "`reactive-aio`, as in `pip install .` or `pip install '.[spark]'`; or give the path of a "
    "wheel."
)
_INSTALLS: Final = re.compile(
    r"^```(?:sh|console)\n(?:(?!```).*\n)*?.*pip install '?reactive-aio(?:.*\n)*?```$", re.MULTILINE
)


def with_note(markdown: str, *, is_published: bool) -> str:
    """*markdown*, with the note after the first block that installs the package."""
    found = None if is_published else _INSTALLS.search(markdown)
    if found is None or NOTE in markdown:
        return markdown
    return f"{markdown[: found.end()]}\n\n{NOTE}\n{markdown[found.end() :]}"
