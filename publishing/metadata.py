"""Completes the metadata when the package is built: addresses, and the README of the index page.

All addresses are made of settings in pyproject.toml; see `project.publication`.
"""

import sys
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

# Hatch runs this file by its path; its neighbours are found from the root of the project.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from publishing.links import index_page
from publishing.project import ROOT, addresses, publication


class PublishedMetadata(MetadataHookInterface):
    """The fields that pyproject.toml declares as dynamic: ``readme`` and ``urls``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the fields in *metadata*."""
        places = publication()
        readme = Path(ROOT, "README.md").read_text("utf-8")
        text = index_page(readme, places["repository"], places["branch"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = addresses(places)
