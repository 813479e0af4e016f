"""Which of several servers gets the next request: pure decisions about their state and load."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import exp2
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from ..errors import TimedOut
from .protocol.errors import ConnectionLost

if TYPE_CHECKING:
    from .client import Client

T = TypeVar("T")

_SMOOTHING: Final = 0.2
"""The part of the newest response in the mean latency."""
_HALF_LIFE: Final = 10.0
"""The seconds after which a latency counts for half: else a server that was slow once would never
get the request that shows that it no longer is."""
_FAILURES: Final = 3
"""The number of failures in a row after which a server is avoided."""
_FIRST_REST: Final = 1.0
_LONGEST_REST: Final = 30.0
_FAILING: Final = (ConnectionLost, TimedOut, TimeoutError)
"""Errors that say something about the server, and not about the request."""


class ServerState(Enum):
    """Whether a server gets requests."""

    CONNECTING = "connecting"  # there is no connection, and attempts go on
    READY = "ready"
    DRAINING = "draining"  # the server is closing: open streams continue
    UNHEALTHY = "unhealthy"  # its health check has failed
    RESTING = "resting"  # several requests failed in a row: others are preferred for a time
    REFUSED = "refused"  # it refused the client, or the retry policy has given up


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancedServer:
    """One server of a `BalancedClient`, at one moment."""

    uri: str
    state: ServerState
    outstanding: int
    """Requests without an end, streams included."""
    latency: float | None
    """The mean time of a response in seconds, of which recent ones count most; None before one."""
    failures: int
    """Requests that failed in a row, because of the connection or a timeout."""
    error: BaseException | None
    """The last error of the connection, an attempt to connect, or the health check."""


class Member(Generic[T]):
    """One server: its connection, its health and its load."""

    def __init__(self, uri: str, *, is_checked: bool) -> None:
        self.uri: str = uri
        self.client: Client[T] | None = None
        self.error: BaseException | None = None
        self._is_checked = is_checked
        self._is_healthy = not is_checked
        self._is_refused = False
        self._outstanding = 0
        self._latency: float | None = None
        self._measured_at = 0.0
        self._failures = 0
        self._rests_until = 0.0

    # -- the connection ----------------------------------------------------------------------------
    def connected(self, client: "Client[T]") -> None:
        self.client, self.error = client, None
        self._is_healthy = not self._is_checked
        self._failures = 0

    def disconnected(self, error: BaseException) -> None:
        self.client, self.error = None, error

    def give_up(self) -> None:
        """No further attempt to connect is made."""
        self._is_refused = True

    def checked(self, error: BaseException | None) -> None:
        """The result of a health check; None if the server is healthy."""
        self._is_healthy = error is None
        if error is not None:
            self.error = error

    # -- requests ----------------------------------------------------------------------------------
    def begin(self) -> None:
        self._outstanding += 1

    def end(self) -> None:
        self._outstanding -= 1

    def responded(self, seconds: float, now: float) -> None:
        """A request was answered after *seconds*."""
        self._failures = 0
        before = seconds if self._latency is None else self._latency
        newest = 1 - (1 - _SMOOTHING) * self._freshness(now)
        self._latency, self._measured_at = before + newest * (seconds - before), now

    def failed(self, error: BaseException, now: float) -> None:
        """A request failed. After several in a row, the server rests, longer each time."""
        if not isinstance(error, _FAILING):
            self._failures = 0  # an answer of the server
            return
        self._failures += 1
        excess = self._failures - _FAILURES
        if excess >= 0:
            self._rests_until = now + min(_FIRST_REST * 2 ** min(excess, 10), _LONGEST_REST)

    # -- the state ---------------------------------------------------------------------------------
    def state(self, now: float) -> ServerState:
        if self.client is None or self.client.is_closed:
            return ServerState.REFUSED if self._is_refused else ServerState.CONNECTING
        if not self.client.may_request:
            return ServerState.DRAINING
        if not self._is_healthy:
            return ServerState.UNHEALTHY
        if self._failures >= _FAILURES and now < self._rests_until:
            return ServerState.RESTING
        return ServerState.READY

    def cost(self, usual_latency: float, now: float) -> float:
        """How long a request would take if the load were shared evenly by its requests."""
        if self._latency is None:
            return usual_latency * (self._outstanding + 1)
        return self._latency * self._freshness(now) * (self._outstanding + 1)

    def _freshness(self, now: float) -> float:
        """How much the latency counts: 1 at first, and never nothing, as requests have to count."""
        return max(exp2((self._measured_at - now) / _HALF_LIFE), 1e-6)

    @property
    def latency(self) -> float | None:
        return self._latency

    def snapshot(self, now: float) -> BalancedServer:
        return BalancedServer(
            uri=self.uri,
            state=self.state(now),
            outstanding=self._outstanding,
            latency=self._latency,
            failures=self._failures,
            error=self.error,
        )


def choose(
    members: Sequence[Member[T]], now: float, first: float, second: float
) -> Member[T] | None:
    """The better one of two members that may get a request; None if there is none.

    *first* and *second* are random numbers in [0, 1). Comparing two is nearly as even as comparing
    all, and does not send all requests of many clients to the same server. Members that rest get
    requests only if there are no others.
    """
    states = [(each, each.state(now)) for each in members]
    usable = [each for each, state in states if state is ServerState.READY]
    usable = usable or [each for each, state in states if state is ServerState.RESTING]
    if not usable:
        return None
    one = usable.pop(int(first * len(usable)))
    if not usable:
        return one
    other = usable[int(second * len(usable))]
    known = [each.latency for each in members if each.latency is not None]
    usual = max(sum(known) / len(known) if known else 1.0, 1e-6)
    return one if one.cost(usual, now) <= other.cost(usual, now) else other
