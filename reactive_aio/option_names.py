"""The check of keyword arguments that a function collects: an unknown name is refused."""

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ("require_known_options",)


def require_known_options(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Each name of *given* must be one of *known*, the options of the function *what*."""
    names = list(known)
    unknown = [each for each in given if each not in names]
    if not unknown:
        return
    similar = [name for each in unknown for name in get_close_matches(each, names, 1)]
    hint = f"did you mean {', '.join(similar)}?" if similar else f"known are {', '.join(names)}"
    raise TypeError(f"{what}: unknown {', '.join(unknown)}; {hint}")
