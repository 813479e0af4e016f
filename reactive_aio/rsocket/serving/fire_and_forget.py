"""Requests without a response: how many handlers run, which runs next, and what is dropped.

A requester gets no demand for fire-and-forget requests and metadata pushes. What keeps them in
bounds is the transport: while as many handlers run as may, the connection is not read, and in the
end the requester waits. `HandlerLimits` decides, `FireAndForget` acts.

A handler that awaits something of the peer, such as a response, would wait for ever if nothing were
read. Its connection is read meanwhile, and holds up to `MAX_HELD` bytes of further requests.
"""

from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from logging import getLogger
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from ..._core.arguments import require_int
from ..._core.foreign_text import excerpt
from ..protocol.frames import Payload
from ..protocol.stream_states import InteractionModel

if TYPE_CHECKING:
    from ..link.driver import Driver

_logger: Final = getLogger("reactive_aio.rsocket")
MAX_HELD: Final = 1024 * 1024
_FNF: Final = InteractionModel.FNF
_OVERHEAD: Final = 256
_AT_THE_END: Final = "the connection has ended"

IN_HANDLER: Final[ContextVar[bool]] = ContextVar("reactive_aio.rsocket.in_handler", default=False)
"""Whether the handler of a request without a response is running."""


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


class Work(Protocol):
    """One request without a response."""

    @property
    def payload(self) -> Payload: ...
    @property
    def model(self) -> InteractionModel: ...

    @property
    def result(self) -> object:
        """What the handler has returned; None before `begin`."""
        ...

    def begin(self) -> Coroutine[Any, Any, object] | None:
        """Call the handler; the rest of its work, if it has not finished. Raises nothing."""
        ...

    def lost(self) -> None:
        """Count the request, which no handler processes, for its route."""
        ...


@dataclass(eq=False)
class Backlog:
    """The requests of one connection: how many run, and those that wait."""

    driver: "Driver"
    running: int = 0
    held_bytes: int = 0
    waiting: deque[Work] = field(default_factory=deque[Work])

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

    def hold(self, backlog: Backlog, work: Work, size: int) -> None:
        if not backlog.waiting:
            self._turns.append(backlog)
        backlog.waiting.append(work)
        backlog.held_bytes += size

    def take(self, backlog: Backlog) -> Work:
        """The request of *backlog* that has waited longest; then it is another one's turn."""
        work = backlog.waiting.popleft()
        self._turns.remove(backlog)
        if backlog.waiting:
            self._turns.append(backlog)
        else:
            backlog.held_bytes = 0
        return work

    def take_all(self, backlog: Backlog) -> list[Work]:
        """Everything of a connection that has ended."""
        works = [*backlog.waiting]
        if works:
            self._turns.remove(backlog)
            backlog.waiting.clear()
            backlog.held_bytes = 0
        return works

    def must_yield(self, backlog: Backlog) -> bool:
        """Whether a handler of *backlog* that has finished makes room for another connection."""
        if self.running < self.total or backlog.running < 2:
            return False
        others = (each for each in self._turns if each is not backlog and each.is_open)
        return any(each.running < self.per_connection for each in others)

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
        on_error: "Callable[[Driver, BaseException], object]",
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

    def run(self, driver: "Driver", work: Work) -> None:
        """Begin *work* now or later, or drop it."""
        if driver.close_reason is not None:
            self.drop(driver, work, _AT_THE_END)
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
            self.drop(driver, work, "too many handlers are running")
        elif driver.is_needed_by_handlers and backlog.held_bytes + size > MAX_HELD:
            self.drop(driver, work, "the handlers that are running wait for the peer")
        else:
            self._limits.hold(backlog, work, size)
            driver.set_intake(is_full=True)

    def drop(self, driver: "Driver", work: Work, reason: str) -> None:
        """Account for *work*, which no handler processes."""
        self.dropped += 1
        work.lost()
        if self.dropped == 1:
            what = "a fire-and-forget request" if work.model is _FNF else "a metadata push"
            _logger.warning(
                "%s was dropped: %s. dropped_requests counts them, on_drop= receives each of them.",
                what,
                excerpt(reason),
            )
        if self._on_drop is not None:
            try:
                self._on_drop(DroppedRequest(reason, work.model, work.payload, driver.user))
            except BaseException as error:
                self._on_error(driver, error)

    # -- tasks -------------------------------------------------------------------------------------
    def _begin(self, backlog: Backlog, work: Work) -> None:
        rest = work.begin()
        if rest is None:
            return
        driver = backlog.driver
        unstarted = rest, work.result
        task = driver.create_task(
            self._finish(backlog, rest), "rsocket: fire and forget", *unstarted
        )
        if task is None:
            self.drop(driver, work, _AT_THE_END)
            return
        self._limits.started(backlog)
        task.add_done_callback(partial(self._on_task_done, backlog))

    async def _finish(self, backlog: Backlog, rest: Coroutine[Any, Any, object] | None) -> None:
        """Await the *rest* of a request, and then run those that wait."""
        IN_HANDLER.set(True)
        while rest is not None:
            await rest
            rest = None
            while rest is None and backlog.waiting and not self._limits.must_yield(backlog):
                rest = self._take(backlog).begin()

    def _take(self, backlog: Backlog) -> Work:
        work = self._limits.take(backlog)
        if not backlog.waiting:
            backlog.driver.set_intake(is_full=False)
        return work

    def _on_task_done(self, backlog: Backlog, _: object) -> None:
        self._limits.finished(backlog)
        while (following := self._limits.next()) is not None:
            self._begin(following, self._take(following))

    def _close(self, driver: "Driver") -> None:
        """Nothing of the connection is left: account for what has not begun."""
        for work in self._limits.take_all(self._backlogs.pop(driver)):
            self.drop(driver, work, _AT_THE_END)
