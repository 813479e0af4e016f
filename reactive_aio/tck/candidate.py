"""Candidates: the factories of the objects under test, and what the kit may assume about them."""

import asyncio
import importlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from ..spec import Processor, Publisher, Subscriber
from ..testing.safe_repr import safe_repr

PUBLISHER_FACTORIES: Final = (
    "publisher",
    "failing_publisher",
    "infinite_publisher",
    "closing_publisher",
)
FACTORIES: Final = (*PUBLISHER_FACTORIES, "subscriber", "whitebox_subscriber", "processor")
"""The fields of which at least one must be given."""


T = TypeVar("T")
Made: TypeAlias = T | Awaitable[T]
"""What a factory returns."""


class InvalidCandidate(ValueError):
    """The candidate cannot be judged as it is given; the message names the remedy."""


class SubscriberPuppet(Protocol):
    """The commands that a subscriber accepts. Each method may be ``def`` or ``async def``."""

    def trigger_request(self, n: int, /) -> object:
        """Request at least *n* more elements, in one call or in several."""
        ...

    def signal_cancel(self) -> object:
        """Cancel the subscription."""
        ...


class WhiteboxProbe:
    """Records the signals that a white-box subscriber reports.

    The author of the subscriber wraps it so that, *after* its own handling of each signal, it
    reports the signal to the probe, and so that the kit can make it request and cancel through the
    puppet::

        class Probed(MySubscriber):
            def on_subscribe(self, subscription):
                super().on_subscribe(subscription)
                self.probe.register_on_subscribe(MyPuppet(self))

    The methods of the probe are plain functions, for ``def`` and ``async def`` signals alike.
    """

    def __init__(self) -> None:
        self.puppet: SubscriberPuppet | None = None
        self.elements: list[Any] = []
        self.errors: list[Any] = []
        self.completions: int = 0

    def register_on_subscribe(self, puppet: SubscriberPuppet, /) -> None:
        """Called after on_subscribe. A second registration (rule 2.5) is ignored."""
        if self.puppet is None:
            self.puppet = puppet

    def register_on_next(self, element: Any, /) -> None:
        """Called after on_next."""
        self.elements.append(element)

    def register_on_error(self, error: BaseException, /) -> None:
        """Called after on_error."""
        self.errors.append(error)

    def register_on_complete(self) -> None:
        """Called after on_complete."""
        self.completions += 1


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One publisher, subscriber or processor to judge. Each factory that is given is judged.

    Every factory is called once for each scenario and returns a new object, or an awaitable of
    one. It runs on the event loop on which the object is judged.
    """

    name: str = "the candidate"
    publisher: Callable[[int], Made[Publisher[Any]]] | None = None
    """``publisher(n)`` sends exactly *n* elements, for *n* from 0 to `max_elements`."""
    failing_publisher: Callable[[], Made[Publisher[Any]]] | None = None
    """Sends on_subscribe and then fails, at once or after some elements."""
    infinite_publisher: Callable[[], Made[Publisher[Any]]] | None = None
    """Never ends."""
    closing_publisher: Callable[[int, Callable[[], None]], Made[Publisher[Any]]] | None = None
    """``closing_publisher(n, closed)`` calls *closed* when it releases its resources."""
    subscriber: Callable[[], Made[Subscriber[Any]]] | None = None
    """For the black-box laws, which observe only what the subscriber requests."""
    whitebox_subscriber: Callable[[WhiteboxProbe], Made[Subscriber[Any]]] | None = None
    """For the white-box laws: reports its signals to the probe and accepts commands."""
    processor: Callable[[int], Made[Processor[Any, Any]]] | None = None
    """``processor(buffer_size)`` passes its elements on unchanged."""

    element: Callable[[int], Any] = field(default=int)
    """``element(i)`` is element *i* that the kit sends to a subscriber or processor."""
    trigger_request: Callable[[Any], object] | None = None
    """Makes a black-box subscriber request, if it does not request by itself."""
    max_elements: int = 2**63 - 2
    """The largest *n* that `publisher` accepts."""
    completes: bool = True
    """Whether publishers of a given length signal completion."""
    max_depth: int = 1
    """How deep on_next may be nested inside on_next (rule 3.3)."""
    max_subscribers: int | None = None
    """How many subscribers a processor accepts at a time; None: any number."""
    coordinated_emission: bool = False
    """Whether a processor sends an element only when all of its subscribers have requested it."""
    ordered: bool = True
    """Whether the elements come in the same order each time."""
    knows_demand: bool = True
    """Whether the publisher implements demand. If not, the laws about demand report it, and all
    other laws judge its other behavior instead of failing on elements without demand."""
    awaits_signals: bool = True
    """Whether the publisher awaits what ``async def`` signals return."""
    virtual_time: bool = False
    """Whether it works on a loop with a virtual clock; waiting then takes no time."""
    quiet_period: float | None = None
    """Seconds without a signal that prove its absence; None: as in the timeouts. A publisher that
    uses threads needs some."""
    loop: Callable[[], asyncio.AbstractEventLoop] | None = None
    """Makes the loop of each law; None: asyncio's default."""
    after_each: Callable[[], object] | None = None
    """Called on the loop after each law, and awaited if it returns an awaitable."""

    def __post_init__(self) -> None:
        if all(getattr(self, factory) is None for factory in FACTORIES):
            raise InvalidCandidate(
                f"a Candidate has nothing to judge: give at least one of {', '.join(FACTORIES)}"
            )
        for factory in FACTORIES:
            given: object = getattr(self, factory)
            if given is not None and not callable(given):
                raise InvalidCandidate(
                    f"{factory} must be a factory, a callable that returns a new object each time; "
                    f"got {safe_repr(given)}. Write {factory}=lambda …: …"
                )
        if self.max_elements < 0:
            raise InvalidCandidate(f"max_elements must be at least 0, got {self.max_elements}")
        if self.max_depth < 1:
            raise InvalidCandidate(f"max_depth must be at least 1, got {self.max_depth}")


def load_candidate(where: str) -> Candidate:
    """The candidate that the factory at ``package.module:factory`` returns."""
    module_name, colon, path = where.partition(":")
    if "/" in module_name or "\\" in module_name or module_name.endswith(".py"):
        dotted = module_name.removesuffix(".py").replace("\\", "/").strip("./").replace("/", ".")
        raise InvalidCandidate(
            f"{where!r} names a file, and a module is needed: write {dotted}:{path or 'factory'}"
        )
    if not (module_name and colon and path):
        raise InvalidCandidate(f"{where!r} does not name a factory: write package.module:factory")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # a dependency of the module is missing
        raise InvalidCandidate(
            f"there is no module {error.name!r}; is its folder on sys.path "
            "(the current one is, PYTHONPATH adds others)?"
        ) from None
    for name in path.split("."):
        if not hasattr(found, name):
            raise InvalidCandidate(f"{module_name} has no {path!r}")
        found = getattr(found, name)
    candidate = found() if callable(found) else found
    if not isinstance(candidate, Candidate):
        raise InvalidCandidate(
            f"{where} must return a reactive_aio.tck.Candidate, "
            f"it returned {safe_repr(candidate, 80)}"
        )
    return candidate
