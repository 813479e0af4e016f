"""What is judged: the factories that a person gives, and what the kit may assume of them."""

import asyncio
import importlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from ..spec import Processor, Publisher, Subscriber
from ..testing.safe_repr import safe_repr
from .whitebox import Probe

__all__ = ("PARTS", "BadSubject", "Subject", "find_subject")

PARTS: Final = (
    "publisher",
    "failing_publisher",
    "infinite_publisher",
    "closing_publisher",
    "subscriber",
    "whitebox_subscriber",
    "processor",
)
"""The fields of which at least one must be given."""


class BadSubject(ValueError):
    """A subject that cannot be judged as it stands; the message names the remedy."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One thing to judge. All parts are optional; what is given is judged.

    Every factory is called again for each scenario and returns a fresh object, or an awaitable of
    one; it runs on the event loop on which the object is judged.
    """

    name: str = "the subject"
    publisher: Callable[[int], Publisher[Any] | Awaitable[Publisher[Any]]] | None = None
    """``publisher(n)``: exactly *n* elements, for *n* from 0 to `max_elements`."""
    failing_publisher: Callable[[], Publisher[Any] | Awaitable[Publisher[Any]]] | None = None
    """Hands out a subscription and then fails, at once or after some elements."""
    infinite_publisher: Callable[[], Publisher[Any] | Awaitable[Publisher[Any]]] | None = None
    """Never ends."""
    closing_publisher: (
        Callable[[int, Callable[[], None]], Publisher[Any] | Awaitable[Publisher[Any]]] | None
    ) = None
    """``closing_publisher(n, closed)``: calls *closed* when it gives back what it holds."""
    subscriber: Callable[[], Subscriber[Any] | Awaitable[Subscriber[Any]]] | None = None
    """For the black box: no more is known of it than what it requests."""
    whitebox_subscriber: Callable[[Probe], Subscriber[Any] | Awaitable[Subscriber[Any]]] | None = (
        None
    )
    """For the white box: it tells the probe what it receives, and takes orders (see `Probe`)."""
    processor: Callable[[int], Processor[Any, Any] | Awaitable[Processor[Any, Any]]] | None = None
    """``processor(buffer_size)``: passes its elements on as they are."""

    element: Callable[[int], Any] = field(default=int)
    """``element(i)``: what is sent to a subscriber or a processor as its element *i*."""
    trigger_request: Callable[[Any], object] | None = None
    """Makes a black-box subscriber request, if it does not by itself."""
    max_elements: int = 2**63 - 2
    """The largest *n* that `publisher` can take."""
    completes: bool = True
    """Whether the publishers of a length signal their completion."""
    max_depth: int = 1
    """How deep on_next may be inside on_next (rule 3.3)."""
    max_subscribers: int | None = None
    """How many subscribers at a time one processor takes; None: any number."""
    coordinated_emission: bool = False
    """Whether a processor sends only what all of its subscribers have requested."""
    ordered: bool = True
    """Whether the elements come in the same order each time."""
    knows_demand: bool = True
    """Whether demand means anything to it. If not, the laws about demand say so, and all others
    look at what else it does, instead of seeing nothing but elements that nobody requested."""
    awaits_signals: bool = True
    """Whether the publisher awaits what ``async def`` signals return."""
    virtual_time: bool = False
    """Whether it can live on a loop whose clock jumps; then waiting costs nothing."""
    quiet: float | None = None
    """Seconds to wait for what must not come; None: as the terms say. Threads need some."""
    loop: Callable[[], asyncio.AbstractEventLoop] | None = None
    """Makes the loop of each law; None: asyncio's own."""
    after_each: Callable[[], object] | None = None
    """Called, and awaited if need be, on the loop after each law."""

    def __post_init__(self) -> None:
        if all(getattr(self, part) is None for part in PARTS):
            raise BadSubject(
                f"a Subject without anything to judge: give at least one of {', '.join(PARTS)}"
            )
        for part in PARTS:
            made: object = getattr(self, part)
            if made is not None and not callable(made):
                raise BadSubject(
                    f"{part} must be a factory, a callable that returns a fresh one each time; "
                    f"got {safe_repr(made)}. Write {part}=lambda …: …"
                )
        if self.max_elements < 0:
            raise BadSubject(f"max_elements must be at least 0, got {self.max_elements}")
        if self.max_depth < 1:
            raise BadSubject(f"max_depth must be at least 1, got {self.max_depth}")


def find_subject(where: str) -> Subject:
    """The subject that the factory at ``package.module:factory`` returns."""
    module_name, colon, path = where.partition(":")
    if not (module_name and colon and path):
        raise BadSubject(f"{where!r} is no place of a factory: write package.module:factory")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # something that the module imports
        raise BadSubject(
            f"there is no module {error.name!r}; is its folder on sys.path "
            "(the current one is, PYTHONPATH adds others)?"
        ) from None
    for name in path.split("."):
        if not hasattr(found, name):
            raise BadSubject(f"{module_name} has no {path!r}")
        found = getattr(found, name)
    subject = found() if callable(found) else found
    if not isinstance(subject, Subject):
        raise BadSubject(
            f"{where} must return a reactive_aio.tck.Subject, it returned {safe_repr(subject, 80)}"
        )
    return subject
