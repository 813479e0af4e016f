"""Which pieces of which partition have been taken, whoever sends them again. Pure.

Spark runs a task again that has failed, or beside one that is slow. Each attempt brings the pieces
of its partition from the first one on, and says of each what its content is. What was taken from an
earlier attempt is not taken again; but it must have been the same.
"""

from dataclasses import dataclass, field
from typing import Final

__all__ = ("Job", "Ledger")

SKIP: Final = "skip"
SEND: Final = "send"


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
    """The jobs under way, and the micro-batches that are over."""

    def __init__(self) -> None:
        self._jobs: dict[tuple[str, int], Job] = {}
        self._over: dict[str, int] = {}
        self._refused: set[tuple[str, int]] = set()

    def job(self, name: str, batch: int) -> Job:
        return self._jobs.setdefault((name, batch), Job())

    def is_over(self, name: str, batch: int) -> bool:
        """Whether the micro-batch was committed before: Spark repeats the last one."""
        return batch <= self._over.get(name, -1)

    def is_refused(self, name: str, batch: int) -> bool:
        return (name, batch) in self._refused

    def commit(self, name: str, batch: int, *, known: bool) -> None:
        """*known*: the name tells the query for ever, so its batches are not taken twice."""
        self._jobs.pop((name, batch), None)
        if known:
            self._over[name] = max(batch, self._over.get(name, -1))

    def abort(self, name: str, batch: int) -> None:
        """The job has failed; what comes under its name now is a new run of it."""
        self._refused.discard((name, batch))

    def drop(self) -> None:
        """Whoever took the pieces has gone: what is under way is refused, and then begins anew."""
        self._refused.update(self._jobs)
        self._jobs.clear()
