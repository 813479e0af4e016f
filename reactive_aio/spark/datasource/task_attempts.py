"""Which chunks of which partition have been received, from any attempt of its task. No I/O.

Spark runs a task again after a failure, or a second time beside a slow attempt. Each attempt sends
the chunks of its partition from the first one on, each with a digest of its content. A chunk that
was received from an earlier attempt is not received again; but its content must be the same.
"""

from typing import Final

JobKey = tuple[str, int]
"""The name of a job, and the number of its micro-batch."""

_MAX_REFUSED: Final = 1000
"""Jobs that are refused, at most: a task of one may still be on its way when Spark aborts it."""


class TaskAttempts:
    """The running jobs, of which one at a time is received, and the committed micro-batches."""

    def __init__(self) -> None:
        self._jobs: dict[JobKey, dict[int, list[str]]] = {}
        self._committed: dict[str, int] = {}
        self._refused: dict[JobKey, None] = {}
        self.current: JobKey | None = None
        """The job whose chunks are received."""

    def digests(self, key: JobKey, partition: int) -> list[str]:
        """The digests of the chunks received of *partition*, in order; append the next one."""
        return self._jobs.setdefault(key, {}).setdefault(partition, [])

    def select(self, key: JobKey) -> bool:
        """Make this job the current one unless another one is; return whether it is now."""
        if self.current is None:
            self.current = key
        return self.current == key

    def is_committed(self, key: JobKey) -> bool:
        """Whether the micro-batch was committed before: a restarted query repeats the last one."""
        return key[1] <= self._committed.get(key[0], -1)

    def is_refused(self, key: JobKey) -> bool:
        return key in self._refused

    def commit(self, key: JobKey, *, is_durable: bool) -> None:
        """Record the commit; with *is_durable*, the job's name identifies the query for ever."""
        self._forget(key)
        if is_durable:
            name, batch = key
            self._committed[name] = max(batch, self._committed.get(name, -1))

    def abort(self, key: JobKey, *, is_repeated: bool) -> None:
        """The job has failed; with *is_repeated*, Spark runs it again from its beginning."""
        if is_repeated:
            self._refused.pop(key, None)
            if self.current == key:
                self.current = None
        else:
            self._refuse(key)

    def refuse_current(self) -> None:
        """The subscriber has cancelled: refuse the current job, a micro-batch until it is rerun."""
        if self.current is not None:
            self._refuse(self.current)

    def _refuse(self, key: JobKey) -> None:
        self._refused[key] = None
        self._forget(key)
        while len(self._refused) > _MAX_REFUSED:
            self._refused.pop(next(iter(self._refused)))

    def _forget(self, key: JobKey) -> None:
        self._jobs.pop(key, None)
        if self.current == key:
            self.current = None
