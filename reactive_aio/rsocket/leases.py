"""Leases: how many requests the other side is allowed, by a publisher of the application.

The publisher is asked for one lease, and for the next when that is used up or has run out; so it
decides when there is one, and nothing is granted ahead.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._core.duration import Duration, to_seconds

if TYPE_CHECKING:
    from .._core.loop import TimerHandle
    from ..spec import Publisher, Subscription
    from .driver import Driver

__all__ = ("Lease", "LeaseGranter")


@dataclass(frozen=True, slots=True)
class Lease:
    """Leave for *requests* requests within *ttl* seconds."""

    requests: int
    ttl: Duration
    metadata: bytes | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.requests < 2**31:
            raise ValueError(f"requests must be from 1 to 2147483647, not {self.requests}")
        if not 0.001 <= to_seconds(self.ttl, "ttl") < 2**31 / 1000:
            raise ValueError(f"ttl must be from a millisecond to 24 days, not {self.ttl}")


class LeaseGranter:
    """Subscribes to leases for one connection, and grants them to its peer."""

    def __init__(self, driver: "Driver") -> None:
        self._driver = driver
        self._subscription: Subscription | None = None
        self._timer: TimerHandle | None = None
        self._asked = False
        self._over = False

    def attach(self, leases: "Publisher[Lease]") -> None:
        leases.subscribe(self)

    def used(self) -> None:
        """A request has come: perhaps it was the last one allowed."""
        given = self._driver.connection.requests.given
        if given is not None and given.requests < 1:
            self.renew()

    def renew(self) -> None:
        """There is no lease, or none any more: ask for another."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._subscription is not None and not self._asked and not self._over:
            self._asked = True
            self._subscription.request(1)

    def end(self) -> None:
        """The connection is over."""
        if self._timer is not None:
            self._timer.cancel()
        if not self._over:
            self._over = True
            if self._subscription is not None:
                self._subscription.cancel()

    # -- the publisher -----------------------------------------------------------------------------
    def on_subscribe(self, subscription: "Subscription", /) -> None:
        self._subscription = subscription
        if self._over:
            subscription.cancel()
        else:
            self.renew()

    def on_next(self, lease: Lease, /) -> None:
        if self._over:
            return
        self._asked = False
        if self._driver.connection.is_suspended:  # it asks anew when there is somebody to tell
            return
        ttl = to_seconds(lease.ttl, "ttl")
        self._driver.connection.grant_lease(lease.requests, round(ttl * 1000), lease.metadata)
        self._timer = self._driver.loop_handle.call_later(ttl, self.renew)
        self._driver.schedule_turn()

    def on_error(self, error: BaseException, /) -> None:
        self._over = True
        self._driver.loop_handle.report(
            "the publisher of leases failed: no more are granted", error
        )

    def on_complete(self) -> None:
        self._over = True
