"""The four interfaces of Reactive Streams 1.0.4, in Python's names.

A subscriber's methods may be ``def`` or ``async def``, each one independently: a publisher awaits
the result of a signal, if it is awaitable, before it sends the next signal (rule 1.3). Every other
method returns ``None`` at once and never raises, except for a missing (``None``) argument.

The interfaces are protocols: an object that has the methods conforms, without inheriting anything.
"""

from collections.abc import Awaitable
from typing import Protocol, TypeVar, runtime_checkable

__all__ = ("Processor", "Publisher", "Signalled", "Subscriber", "Subscription")

T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)

Signalled = Awaitable[None] | None
"""The result of a signal method: None, or an awaitable to await before the next signal."""


@runtime_checkable
class Subscription(Protocol):
    """The link between one subscriber and one publisher: demand and cancellation."""

    def request(self, n: int, /) -> None:
        """Request *n* more elements.

        Additive, re-entrant, callable from any thread, never raises (rules 3.2, 3.8, 3.16).
        A demand of 2**63-1 or more counts as unbounded (3.17). ``n < 1`` fails the flow with an
        error that names rule 3.9. After a cancellation or a terminal signal: no effect (3.6).
        """
        ...

    def cancel(self) -> None:
        """Make the publisher stop, and forget the subscriber (rules 3.5, 3.7, 3.12, 3.13).

        Idempotent, callable from any thread, returns at once and never raises (3.15).
        """
        ...


@runtime_checkable
class Subscriber(Protocol[T_contra]):
    """The receiving end: ``on_subscribe on_next* (on_error | on_complete)?``."""

    def on_subscribe(self, subscription: Subscription, /) -> Signalled:
        """Receive the subscription: the first signal, sent once (rules 1.9, 2.12).

        Nothing arrives before ``subscription.request(n)`` (2.1). A subscriber that already has a
        subscription must cancel the new one (2.5).
        """
        ...

    def on_next(self, element: T_contra, /) -> Signalled:
        """Receive an element; never more than were requested (rule 1.1)."""
        ...

    def on_error(self, error: BaseException, /) -> Signalled:
        """The flow has failed. Terminal, with or without demand (rules 1.4, 1.7, 2.10)."""
        ...

    def on_complete(self) -> Signalled:
        """The flow is complete. Terminal, with or without demand (rules 1.5, 1.7, 2.9)."""
        ...


@runtime_checkable
class Publisher(Protocol[T_co]):
    """A provider of elements, sent by the demand of each subscriber."""

    def subscribe(self, subscriber: Subscriber[T_co], /) -> None:
        """Start one subscription: call ``on_subscribe`` first, and return normally (rule 1.9).

        ``None`` raises ``TypeError``; every other failure is signalled by ``on_error``.
        """
        ...


@runtime_checkable
class Processor(Subscriber[T_contra], Publisher[T_co], Protocol[T_contra, T_co]):
    """A subscriber and a publisher in one, bound by both contracts (rule 4.1)."""
