"""One row of the scoreboard."""

from collections.abc import Callable
from typing import NamedTuple

from reactive_aio.tck import Candidate

__all__ = ("Contestant",)


class Contestant(NamedTuple):
    """One candidate and the library that it comes from."""

    library: str
    """The distribution whose version is stated; empty for Python itself."""
    what: str
    factory: Callable[[], Candidate]
    """A function of a module, so that the kit's command can judge it."""
    adapter: str = ""
    """The name of the adapter through which it is judged, if any."""

    @property
    def name(self) -> str:
        return f"{self.library or 'Python'}: {self.what}"

    @property
    def where(self) -> str:
        return f"{self.factory.__module__}:{self.factory.__qualname__}"
