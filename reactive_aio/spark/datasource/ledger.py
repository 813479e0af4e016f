"""Which pieces of which partition have been taken, whoever sends them again. Pure.

Spark runs a task again that has failed, or beside one that is slow. Each attempt brings the pieces
of its partition from the first one on, and says of each what its content is. What was taken from an
earlier attempt is not taken again; but it must have been the same.
"""

from dataclasses import dataclass, field
from typing import Final

__all__ = ("Job", "Key", "Ledger")

Key = tuple[str, int]
"""A job's name, and the number of its micro-batch."""

_REMEMBERED: Final = 1000
"""Refused jobs, of which Spark has not said yet that it has given them up."""


@dataclass(slots=True)
class Job:
    """One ``df.write``, or one micro-batch of a ``df.writeStream``."""

    taken: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    """For each partition the digests of the pieces that were taken, in their order."""

    def differs(self, partition: int, number: int, digest: str) -> bool:
        """Whether piece *number* was taken already, with another content."""
        pieces = self.taken.get(partition, [])
        return number < len(pieces) and pieces[number] != digest

    def has(self, partition: int, number: int) -> bool:
        return number < len(self.taken.get(partition, []))

    def take(self, partition: int, digest: str) -> None:
        self.taken.setdefault(partition, []).append(digest)


class Ledger:
    """The jobs under way, of which one at a time is served, and the micro-batches that are over."""

    def __init__(self) -> None:
        self._jobs: dict[Key, Job] = {}
        self._over: dict[str, int] = {}
        self._refused: dict[Key, None] = {}
        self.serving: Key | None = None

    def job(self, key: Key) -> Job:
        return self._jobs.setdefault(key, Job())

    def serve(self, key: Key) -> bool:
        """Whether it is the turn of this job; it stays so until the job is over."""
        if self.serving is None:
            self.serving = key
        return self.serving == key

    def is_over(self, key: Key) -> bool:
        """Whether the micro-batch was committed before: Spark repeats the last one."""
        return key[1] <= self._over.get(key[0], -1)

    def is_refused(self, key: Key) -> bool:
        return key in self._refused

    def commit(self, key: Key, *, known: bool) -> None:
        """*known*: the name tells the query for ever, so its batches are not taken twice."""
        self._forget(key)
        if known:
            name, batch = key
            self._over[name] = max(batch, self._over.get(name, -1))

    def abort(self, key: Key, *, again: bool) -> None:
        """The job has failed; with *again*, it will come once more, from its beginning."""
        self._refused.pop(key, None)
        if again:
            if self.serving == key:
                self.serving = None
        else:
            self._forget(key)

    def drop(self) -> None:
        """Whoever took the pieces has gone: the job under way is refused until Spark gave it up."""
        if self.serving is not None:
            self._refused[self.serving] = None
            self._forget(self.serving)
        while len(self._refused) > _REMEMBERED:
            self._refused.pop(next(iter(self._refused)))

    def _forget(self, key: Key) -> None:
        self._jobs.pop(key, None)
        if self.serving == key:
            self.serving = None
