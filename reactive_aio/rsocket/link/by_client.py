"""ByClient: what each client has, and which client has the most of it."""

from collections.abc import Hashable
from typing import Generic, TypeVar

W = TypeVar("W")
V = TypeVar("V")


class ByClient(Generic[W, V]):
    """Connections by the keys of their clients, each with a value.

    A server asks who has the most whenever it is full, which attackers arrange. So the clients are
    kept by how many they have, and no question looks at all of them.
    """

    __slots__ = ("_by_count", "_by_key", "_most")

    def __init__(self) -> None:
        self._by_key: dict[Hashable | None, dict[W, V]] = {}
        self._by_count: dict[int, dict[Hashable | None, None]] = {}
        self._most = 0

    def of(self, key: Hashable | None) -> dict[W, V]:
        """What the client with this *key* has, the oldest first; it is to be read only."""
        return self._by_key.get(key, {})

    @property
    def largest(self) -> Hashable | None:
        """The key of the client that has the most; None if there is none, or it is unknown."""
        return next(iter(self._by_count[self._most])) if self._most else None

    def add(self, key: Hashable | None, who: W, value: V) -> None:
        """*who*, which is new, belongs to the client with this *key*."""
        found = self._by_key.setdefault(key, {})
        found[who] = value
        self._count(key, len(found) - 1, len(found))

    def remove(self, key: Hashable | None, who: W) -> V:
        """*who* has gone; returns its value."""
        found = self._by_key[key]
        value = found.pop(who)
        if not found:
            del self._by_key[key]
        self._count(key, len(found) + 1, len(found))
        return value

    def _count(self, key: Hashable | None, before: int, now: int) -> None:
        if before:
            others = self._by_count[before]
            del others[key]
            if not others:
                del self._by_count[before]
        if now:
            self._by_count.setdefault(now, {})[key] = None
        if now > self._most or self._most not in self._by_count:
            self._most = now
