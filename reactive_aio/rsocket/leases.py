"""Leases: a publisher of the application limits the requests of the peer.

The publisher is requested for one lease, and for the next when that one is used up or has expired.
The publisher thus decides when a lease is granted, and none is granted ahead.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._core.arguments import Duration, to_seconds

if TYPE_CHECKING:
    from .._core.loop import TimerHandle
    from ..spec import Subscription
    from .driver import Driver

__all__ = ("Lease", "LeaseGranter")


@dataclass(frozen=True, slots=True)
class Lease:
    """Permission for *requests* requests within *ttl* seconds."""

    requests: int
    ttl: Duration
    metadata: bytes | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.requests < 2**31:
            raise ValueError(f"requests must be from 1 to 2147483647, not {self.requests}")
        if not 0.001 <= to_seconds(self.ttl, "ttl") < 2**31 / 1000:
            raise ValueError(f"ttl must be from a millisecond to 24 days, not {self.ttl}")


class LeaseGranter:
    """Subscribes to leases for one connection and grants them to the peer."""

    def __init__(self, driver: "Driver") -> None:
        self._driver = driver
        self._subscription: Subscription | None = None
        self._timer: TimerHandle | None = None
        self._is_requested = False
        self._is_done = False

    def request_received(self) -> None:
        """Renew the lease if the request of the peer was the last one allowed."""
        granted = self._driver.connection.granted_lease
        if granted is not None and granted.requests < 1:
            self.renew()

    def renew(self) -> None:
        """Request the next lease, since there is none or the current one is over."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._subscription is not None and not self._is_requested and not self._is_done:
            self._is_requested = True
            self._subscription.request(1)

    def cancel(self) -> None:
        """Stop granting, since the connection is closed."""
        if self._timer is not None:
            self._timer.cancel()
        if not self._is_done:
            self._is_done = True
            if self._subscription is not None:
                self._subscription.cancel()

    # -- the subscriber ----------------------------------------------------------------------------
    def on_subscribe(self, subscription: "Subscription", /) -> None:
        self._subscription = subscription
        if self._is_done:
            subscription.cancel()
        else:
            self.renew()

    def on_next(self, lease: Lease, /) -> None:
        if self._is_done:
            return
        self._is_requested = False
        if self._driver.connection.is_suspended:  # `renew` is called when the session resumes
            return
        ttl = to_seconds(lease.ttl, "ttl")
        self._driver.connection.grant_lease(lease.requests, round(ttl * 1000), lease.metadata)
        self._timer = self._driver.loop_handle.call_later(ttl, self.renew)
        self._driver.schedule_turn()

    def on_error(self, error: BaseException, /) -> None:
        self._is_done = True
        message = "the publisher of leases failed: no more are granted"
        self._driver.loop_handle.report(message, error)

    def on_complete(self) -> None:
        self._is_done = True
