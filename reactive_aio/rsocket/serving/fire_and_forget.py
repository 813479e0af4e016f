"""Requests without a response: how many handlers run, which runs next, and what is dropped.

A requester gets no demand for fire-and-forget requests and metadata pushes. What keeps them in
bounds is the transport: while as many handlers run as may, the connection is not read, and in the
end the requester waits.

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


class FireAndForget:
    """Runs the requests without a response of one or many connections.

    At most *per_connection* run for each connection, and *total* for all. A connection of which
    none runs may always begin one, so that the handlers of others cannot stop it; beyond that,
    connections take turns.
    """

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
        self._per_connection = per_connection
        self._total = total
        self._running = 0
        self._turns: deque[Backlog] = deque()
        """The connections with requests that wait; the first one has waited longest."""
        self._overflow = overflow
        self._on_drop = on_drop
        self._on_error = on_error
        self._backlogs: dict[Driver, Backlog] = {}

    def run(self, work: Execution) -> None:
        """Begin *work* now or later, or drop it."""
        driver = work.driver
        if driver.ending.reason is not None:
            work.drop(AT_THE_END)
            return
        backlog = self._backlogs.get(driver)
        if backlog is None:
            backlog = self._backlogs[driver] = Backlog(driver)
            driver.add_close_callback(self._close)
        if not backlog.waiting and self._may_begin(backlog):
            self._begin(backlog, work)
            return
        data, metadata = work.payload
        size = len(data) + len(metadata or b"") + _OVERHEAD
        if self._overflow == "drop_newest":
            work.drop("too many handlers are running")
        elif driver.intake.is_needed_by_handlers and backlog.held_bytes + size > MAX_HELD:
            work.drop("the handlers that are running wait for the peer")
        else:
            if not backlog.waiting:
                self._turns.append(backlog)
            backlog.waiting.append(work)
            backlog.held_bytes += size
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

    def _may_begin(self, backlog: Backlog) -> bool:
        if backlog.driver.ending.reason is not None:
            return False  # the tasks of an ending connection only continue
        if not backlog.running:
            return True
        return backlog.running < self._per_connection and self._running < self._total

    def _begin(self, backlog: Backlog, work: Execution) -> None:
        work.begin()
        if work.task is not None:
            backlog.running += 1
            self._running += 1
            work.task.add_done_callback(partial(self._on_task_done, backlog))

    def _on_task_done(self, backlog: Backlog, _: object) -> None:
        backlog.running -= 1
        self._running -= 1
        while (following := next(filter(self._may_begin, self._turns), None)) is not None:
            self._turns.remove(following)
            work = following.waiting.popleft()
            if following.waiting:
                self._turns.append(following)
            else:
                following.held_bytes = 0
                following.driver.intake.set_full(False)
            self._begin(following, work)

    def _close(self, driver: Driver) -> None:
        """Nothing of the connection is left: account for what has not begun."""
        backlog = self._backlogs.pop(driver)
        if backlog.waiting:
            self._turns.remove(backlog)
        for work in backlog.waiting:
            work.drop(AT_THE_END)
