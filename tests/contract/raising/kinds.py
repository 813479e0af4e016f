"""The kinds of errors that code of the user may raise, and as what each is received."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from reactive_aio.errors import Interrupted


class OwnError(BaseException):
    """An exception that is not an Exception."""


@dataclass(frozen=True)
class Kind:
    """A kind of errors."""

    make: Callable[[], BaseException]
    received: tuple[type[BaseException], ...]
    """What a consumer may receive."""
    ended: tuple[str, ...] = ("failed",)
    """What `do_finally` may be told."""
    stops: bool = False
    """Whether it leaves the event loop."""
    may_be_an_end: tuple[type[BaseException], ...] = ()
    """As what a cleanup may raise it, if it is like the cancellation or closing it answers."""


KINDS: Final[Mapping[str, Kind]] = {
    "`Exception`": Kind(lambda: ValueError("wrong"), (ValueError,)),
    "`BaseExceptionGroup`": Kind(
        lambda: BaseExceptionGroup("several", [OwnError()]), (BaseExceptionGroup,)
    ),
    "own `BaseException`": Kind(OwnError, (OwnError,)),
    "own `CancelledError`": Kind(
        asyncio.CancelledError,
        (Interrupted,),
        may_be_an_end=(asyncio.CancelledError, Interrupted),
    ),
    # A generator that it leaves takes it for its own closing.
    "`GeneratorExit`": Kind(
        GeneratorExit,
        (RuntimeError, GeneratorExit),
        ended=("failed", "cancelled"),
        may_be_an_end=(RuntimeError, GeneratorExit),
    ),
    "`KeyboardInterrupt`": Kind(
        KeyboardInterrupt,
        (Interrupted, KeyboardInterrupt),
        ended=("failed", "cancelled"),
        stops=True,
    ),
    "`StopIteration`": Kind(StopIteration, (RuntimeError, StopIteration)),
}
QUIET: Final = [name for name, kind in KINDS.items() if not kind.stops]
"""Those that do not stop the program."""
