"""Trampoline: jobs run one at a time, in order, to their end, never nested (rules 1.3, 3.3).

Pure: it decides which caller runs the jobs, and never calls anything. A caller whose `offer`
returns True takes jobs until none is left; any other caller has only added a job to the queue.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from threading import Lock

from ..errors import Overflow

Job = tuple[Callable[..., object], tuple[object, ...]]


class ExecutorState(IntEnum):
    """Whether a caller is running jobs."""

    IDLE = 0
    RUNNING = 1
    CLOSED = 2


@dataclass(slots=True, eq=False, repr=False)
class Trampoline:
    """A first-in-first-out queue of jobs, run by at most one caller. Safe from any thread."""

    capacity: int | None
    state: ExecutorState = ExecutorState.IDLE
    _jobs: deque[Job] = field(default_factory=deque[Job])
    _lock: Lock = field(default_factory=lambda: Lock())  # the explorer of schedules replaces it

    def __len__(self) -> int:
        return len(self._jobs)

    def offer(self, job: Job) -> bool:
        """Queue *job*; return whether the caller must run the queue.

        Raises `Overflow` when *capacity* jobs are waiting. A closed trampoline accepts nothing.
        """
        with self._lock:
            if self.state is ExecutorState.CLOSED:
                return False
            if self.capacity is not None and len(self._jobs) >= self.capacity:
                remedy = "submit from one place that waits, or give it a larger capacity."
                raise Overflow("a serial executor", self.capacity, remedy)
            self._jobs.append(job)
            if self.state is ExecutorState.RUNNING:
                return False
            self.state = ExecutorState.RUNNING
            return True

    def take(self) -> Job | None:
        """Return the next job to run, or None if the caller must stop."""
        with self._lock:
            if self._jobs and self.state is ExecutorState.RUNNING:
                return self._jobs.popleft()
            if self.state is ExecutorState.RUNNING:
                self.state = ExecutorState.IDLE
            return None

    def close(self) -> None:
        """Accept no more jobs, and drop those that wait."""
        with self._lock:
            self.state = ExecutorState.CLOSED
            self._jobs.clear()
