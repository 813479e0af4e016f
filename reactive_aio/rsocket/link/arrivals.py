"""Arrivals: connections that are not served yet, from the moment at which they are accepted.

They are in the TLS handshake, in that of WebSocket, have sent no SETUP, or are being authenticated.
None of that proves anything about the peer, so they have few places of their own, and time limits.
When these places are taken, the one that has waited longest of the client with the most gives way,
so that a client with many half-open connections is in the way of nobody but itself.
"""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, Protocol

from .by_client import ByClient

_LOOK_AGAIN: Final = 0.1
_LEAST_TIME: Final = 0.5
"""Seconds for which others of one client keep their place, which is enough to shake hands."""


class Arriving(Protocol):
    """A connection, or what becomes one after its TLS handshake."""

    def abort(self) -> object: ...


@dataclass(slots=True, eq=False)
class _Arrival:
    key: Hashable | None
    since: float
    is_known: bool = False
    """Whether its SETUP has come, so that the application decides on it."""


class Arrivals:
    """Has place for *most* connections that are not served yet."""

    def __init__(self, most: int) -> None:
        self.most: int = most
        self.refused: int = 0
        self._waiting: dict[Arriving, _Arrival] = {}
        self._by_client: ByClient[Arriving, None] = ByClient()
        self._silent: deque[Arriving] = deque()
        self._listed_at = float("-inf")

    def __len__(self) -> int:
        return len(self._waiting)

    def arrive(self, who: Arriving, key: Hashable | None, now: float) -> None:
        """Give *who* a place, or abort it."""
        if len(self._waiting) >= self.most:
            self.refused += 1
            other = self._who_gives_way(key, now)
            if other is None:
                who.abort()
                return
            self.leave(other)
            other.abort()
        self._waiting[who] = _Arrival(key, now)
        self._by_client.add(key, who, None)

    def set_up(self, who: Arriving) -> None:
        """The SETUP of *who* has come: the application decides on it."""
        if (arrival := self._waiting.get(who)) is not None:
            arrival.is_known = True

    def leave(self, who: Arriving) -> None:
        """*who* is served now, or has gone."""
        arrival = self._waiting.pop(who, None)
        if arrival is not None:
            self._by_client.remove(arrival.key, who)

    def _who_gives_way(self, key: Hashable | None, now: float) -> Arriving | None:
        """Who has waited longest, of the client with the most; None if all may go on.

        Those whose SETUP has come go on, as do those that have just come, unless their client has
        more than half of the places, and it is another that comes.
        """
        if now - self._listed_at >= _LOOK_AGAIN:
            self._list_silent(now)
        while self._silent:
            other = self._silent.popleft()
            if other in self._waiting and not self._waiting[other].is_known:
                return other
        largest = self._by_client.largest
        crowd = self._by_client.of(largest)
        if largest in (None, key) or len(crowd) * 2 <= self.most:
            return None
        return next(iter(crowd))

    def _list_silent(self, now: float) -> None:
        """List those that give way; not for each that comes, since all have to be looked at."""
        self._listed_at = now
        silent = [
            (-len(self._by_client.of(arrival.key)), arrival.since, number, who)
            for number, (who, arrival) in enumerate(self._waiting.items())
            if not arrival.is_known and now - arrival.since >= _LEAST_TIME
        ]
        silent.sort()
        self._silent = deque(who for *_, who in silent)
