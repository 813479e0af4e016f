"""The white box: how a subscriber under test tells what it receives, and takes orders.

The subscriber's author wraps the real one so that, *after* its own handling of each signal, it
tells the probe, and so that the kit can make it request and cancel through the puppet::

    class Told(MySubscriber):
        def on_subscribe(self, subscription):
            super().on_subscribe(subscription)
            self.probe.register_on_subscribe(MyPuppet(self))

All methods of the probe are plain functions, to be called from ``def`` and ``async def`` signals
alike. A puppet's methods may be either.
"""

from typing import Any, Protocol

__all__ = ("Probe", "Puppet")


class Puppet(Protocol):
    """What the kit can make a subscriber do. Each method may be ``def`` or ``async def``."""

    def trigger_request(self, n: int, /) -> object:
        """See to it that at least *n* more are requested in the end, in one call or in several."""
        ...

    def signal_cancel(self) -> object:
        """Cancel the subscription."""
        ...


class Probe:
    """Where a white-box subscriber tells what it has received."""

    def __init__(self) -> None:
        self.puppet: Puppet | None = None
        self.elements: list[Any] = []
        self.errors: list[Any] = []
        self.completions: int = 0

    def register_on_subscribe(self, puppet: Puppet, /) -> None:
        """After on_subscribe. A second registration (rule 2.5 is tried) changes nothing."""
        if self.puppet is None:
            self.puppet = puppet

    def register_on_next(self, element: Any, /) -> None:
        """After on_next."""
        self.elements.append(element)

    def register_on_error(self, error: BaseException, /) -> None:
        """After on_error."""
        self.errors.append(error)

    def register_on_complete(self) -> None:
        """After on_complete."""
        self.completions += 1
