"""Prepares the docstrings of the API, which griffe reads from the sources."""

import sys
from pathlib import Path
from typing import Any

from griffe import Extension, Object

# griffe runs this file by its path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from publishing.docstrings import markdown


class MarkdownDocstrings(Extension):
    """Changes each docstring when griffe has read it."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of *obj*."""
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value)
