"""The white box: a subscriber under test that reports its signals and accepts commands.

The author of the subscriber wraps it so that, *after* its own handling of each signal, it reports
the signal to the probe, and so that the kit can make it request and cancel through the puppet::

    class Probed(MySubscriber):
        def on_subscribe(self, subscription):
            super().on_subscribe(subscription)
            self.probe.register_on_subscribe(MyPuppet(self))

The methods of the probe are plain functions, for ``def`` and ``async def`` signals alike. The
methods of a puppet may be either.
"""

from typing import Any, Protocol

__all__ = ("SubscriberPuppet", "WhiteboxProbe")


class SubscriberPuppet(Protocol):
    """The commands that a subscriber accepts. Each method may be ``def`` or ``async def``."""

    def trigger_request(self, n: int, /) -> object:
        """Request at least *n* more elements, in one call or in several."""
        ...

    def signal_cancel(self) -> object:
        """Cancel the subscription."""
        ...


class WhiteboxProbe:
    """Records the signals that a white-box subscriber reports."""

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
