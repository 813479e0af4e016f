"""Requests without a response: how many handlers run, which runs next, and what is dropped.

A requester gets no demand for fire-and-forget requests and metadata pushes. What keeps them in
bounds is the transport: while as many handlers run as may, the connection is not read, and in the
end the requester waits. `HandlerLimits` decides, `FireAndForget` acts.

A connection whose handlers await something of the peer is read meanwhile (`Intake`), and holds up
to `MAX_HELD` bytes of further requests.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from logging import getLogger
from typing import Any, Final, Literal

from ..._core.arguments import require_int
from ..._core.foreign_text import excerpt
from ..link.driver import Driver
from ..protocol.frames import Payload
from ..protocol.stream_states import InteractionModel
from .execution import AT_THE_END, Execution

_logger: Final = getLogger("reactive_aio.rsocket")
MAX_HELD: Final = 1024 * 1024
_OVERHEAD: Final = 256


@dataclass(frozen=True, slots=True)
class DroppedRequest:
    """A fire-and-forget request or a metadata push that no handler has processed."""

    reason: str
    model: InteractionModel
    """``FNF``, or ``PUSH`` for a metadata push."""
    payload: Payload = field(repr=False)
    """Data and metadata, as they were received."""
    user: Any = None
    """The result of `authenticate` for the connection."""


@dataclass(eq=False)
class Backlog:
    """The requests of one connection: how many run, and those that wait."""

    driver: Driver
    running: int = 0
    held_bytes: int = 0
    waiting: deque[Execution] = field(default_factory=deque[Execution])

    @property
    def is_open(self) -> bool:
        """Whether new tasks may begin; those of an ending connection only continue."""
        return self.driver.close_reason is None


class HandlerLimits:
    """Which of the waiting requests may begin: pure.

    At most *per_connection* run for each connection, and *total* for all. A connection of which
    none runs may always begin one, so that the handlers of others cannot stop it; beyond that,
    connections take turns.
    """

    def __init__(self, per_connection: int, total: int) -> None:
        self.per_connection: int = per_connection
        self.total: int = total
        self.running: int = 0
        self._turns: deque[Backlog] = deque()

    def may_begin(self, backlog: Backlog) -> bool:
        if not backlog.is_open:
            return False
        if not backlog.running:
            return True
        return backlog.running < self.per_connection and self.running < self.total

    def started(self, backlog: Backlog) -> None:
        backlog.running += 1
        self.running += 1

    def finished(self, backlog: Backlog) -> None:
        backlog.running -= 1
        self.running -= 1

    def hold(self, backlog: Backlog, work: Execution, size: int) -> None:
        if not backlog.waiting:
            self._turns.append(backlog)
        backlog.waiting.append(work)
        backlog.held_bytes += size

    def take(self, backlog: Backlog) -> Execution:
        """The request of *backlog* that has waited longest; then it is another one's turn."""
        work = backlog.waiting.popleft()
        self._turns.remove(backlog)
        if backlog.waiting:
            self._turns.append(backlog)
        else:
            backlog.held_bytes = 0
        return work

    def take_all(self, backlog: Backlog) -> list[Execution]:
        """Everything of a connection that has ended."""
        works = [*backlog.waiting]
        if works:
            self._turns.remove(backlog)
            backlog.waiting.clear()
            backlog.held_bytes = 0
        return works

    def next(self) -> Backlog | None:
        """The connection whose request may begin now."""
        return next((each for each in self._turns if self.may_begin(each)), None)


class FireAndForget:
    """Runs the requests without a response of one or many connections."""

    def __init__(
        self,
        per_connection: int,
        total: int,
        overflow: Literal["wait", "drop_newest"],
        on_drop: Callable[[DroppedRequest], object] | None,
        on_error: Callable[[Driver, BaseException], object],
    ) -> None:
        require_int("serve", "max_fire_and_forget", per_connection, least=1)
        require_int("serve", "max_fire_and_forget_total", total, least=1)
        if overflow not in ("wait", "drop_newest"):
            raise ValueError(
                f"serve: fire_and_forget_overflow must be 'wait' or 'drop_newest', not {overflow!r}"
            )
        self.dropped: int = 0
        self._limits = HandlerLimits(per_connection, total)
        self._overflow = overflow
        self._on_drop = on_drop
        self._on_error = on_error
        self._backlogs: dict[Driver, Backlog] = {}

    def run(self, work: Execution) -> None:
        """Begin *work* now or later, or drop it."""
        driver = work.driver
        if driver.close_reason is not None:
            work.drop(AT_THE_END)
            return
        backlog = self._backlogs.get(driver)
        if backlog is None:
            backlog = self._backlogs[driver] = Backlog(driver)
            driver.add_close_callback(self._close)
        if not backlog.waiting and self._limits.may_begin(backlog):
            self._begin(backlog, work)
            return
        data, metadata = work.payload
        size = len(data) + len(metadata or b"") + _OVERHEAD
        if self._overflow == "drop_newest":
            work.drop("too many handlers are running")
        elif driver.intake.is_needed_by_handlers and backlog.held_bytes + size > MAX_HELD:
            work.drop("the handlers that are running wait for the peer")
        else:
            self._limits.hold(backlog, work, size)
            driver.intake.set_full(True)

    def held_bytes(self, driver: Driver) -> int:
        """The bytes of requests of *driver* that wait."""
        backlog = self._backlogs.get(driver)
        return 0 if backlog is None else backlog.held_bytes

    def drop(self, driver: Driver, model: InteractionModel, payload: Payload, reason: str) -> None:
        """Account for a request that no handler processes."""
        self.dropped += 1
        if self.dropped == 1:
            is_request = model is InteractionModel.FNF
            _logger.warning(
                "%s was dropped: %s. dropped_requests counts them, on_drop= receives each of them.",
                "a fire-and-forget request" if is_request else "a metadata push",
                excerpt(reason),
            )
        if self._on_drop is not None:
            try:
                self._on_drop(DroppedRequest(reason, model, payload, driver.user))
            except BaseException as error:
                self._on_error(driver, error)

    def _begin(self, backlog: Backlog, work: Execution) -> None:
        work.begin()
        if work.task is not None:
            self._limits.started(backlog)
            work.task.add_done_callback(partial(self._on_task_done, backlog))

    def _on_task_done(self, backlog: Backlog, _: object) -> None:
        self._limits.finished(backlog)
        while (following := self._limits.next()) is not None:
            work = self._limits.take(following)
            if not following.waiting:
                following.driver.intake.set_full(False)
            self._begin(following, work)

    def _close(self, driver: Driver) -> None:
        """Nothing of the connection is left: account for what has not begun."""
        for work in self._limits.take_all(self._backlogs.pop(driver)):
            work.drop(AT_THE_END)
