"""Other libraries, imported only by the cases that use them."""

from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any, Final

PEERS: Final = (
    "aiostream",
    "aioitertools",
    "anyio",
    "asyncstdlib",
    "reactivex",
    "rsocket",
    "starlette",
    "uvicorn",
    "websockets",
)
"""Those whose versions a result records."""


@cache
def missing(package: str) -> str:
    """Return why *package* cannot be used here; empty if it can."""
    return "" if find_spec(package) is not None else f"{package} is not installed"


@cache
def peer(module: str) -> Any:
    """Import a module of another library, without its types."""
    return import_module(module)


def versions() -> dict[str, str]:
    """Return the versions of the installed peers."""
    found: dict[str, str] = {}
    for name in PEERS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
