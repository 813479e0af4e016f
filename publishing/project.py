"""What pyproject.toml says about the project, for the site and the package."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Final

__all__ = ("ROOT", "addresses", "project", "publication")

ROOT: Final = Path(__file__).resolve().parents[1]


@cache
def _pyproject() -> Any:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def project() -> dict[str, Any]:
    """The table ``[project]``."""
    found: dict[str, Any] = _pyproject()["project"]
    return found


def publication() -> dict[str, str]:
    """Where the project is published: *repository*, *branch*, *documentation* and *index*.

    An address is empty as long as there is none. It is set once, in pyproject.toml; the links of
    the site and of the README, and the addresses in the metadata, are made of it.
    """
    settings = _pyproject()["tool"]["hatch"]["metadata"]["hooks"]["custom"]
    return {
        key: settings[key].rstrip("/") for key in ("repository", "branch", "documentation", "index")
    }


def addresses(places: dict[str, str]) -> dict[str, str]:
    """The addresses that an index page lists: those that exist."""
    repository, documentation = places["repository"], places["documentation"]
    found = {"Documentation": documentation} if documentation else {}
    if repository:
        found |= {
            "Source": repository,
            "Issues": f"{repository}/issues",
            "Changelog": f"{repository}/blob/{places['branch']}/CHANGELOG.md",
        }
    return found
