"""What the requests of one peer cost this side, and which of them are served when.

Streams send no more than their demand while little output is queued, but a response is one element,
which was requested with the request. So a request for one element is served only while less than
`max_unread` bytes of output wait for the peer.

A request that is cancelled makes room for another, but its handler may clean up for seconds. So a
request is served only while fewer than `max_streams` of such handlers have not ended: at most twice
as many run. Those of all connections of a server count together as well, also when their connection
has ended (`EndingHandlers`). The connection is read meanwhile, which keeps both sides alive, until
more than `MAX_UNSERVED` bytes of requests wait as well. Requests that use up the time slice of a
turn wait for the next one in the same way.

Handlers of requests without a response are limited by their number; while as many run as may, the
connection is not read. One that awaits something of the peer, such as a response, would wait for
ever if nothing were read: its connection is read meanwhile.

What one connection holds for its peer is a part of what the process may hold for all peers: output
which the peer does not read, frames of which it has sent a part, requests that wait to be served,
and what is kept of a session to be sent again. Unfinished payloads in fragments count by
themselves, as they come (`fragmentation`). A connection that holds no more than `watermark` counts
nothing: the budget, when it is used up, is not in the way of who needs little. A session that waits
for its client counts all that it holds, with its objects: nobody needs it just now.
"""

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Protocol

from ..._core.flow_subscription import FlowSubscription
from ..protocol.connection import Connection
from ..protocol.events import RequestTuple

if TYPE_CHECKING:
    from ..._core.loop import LoopHandle, Task

MAX_UNSERVED: Final = 1024 * 1024
REFUSED_ABOVE: Final = 8 * MAX_UNSERVED
"""For a side that must read on, since it awaits something of the peer itself."""
_OVERHEAD: Final = 256
_SESSION: Final = 8 * 1024
"""What the objects of a session take, about: `tests/rsocket/test_idle_memory.py` measures them."""
_FEW_LARGE: Final = 8
MAX_ENDING: Final = 1024
_FEW_RUNNING: Final = 8
_MANY_TIMES: Final = 8
NO_ROOM: Final = b"too many requests wait to be served"
UNREAD: Final = b"too much waits for clients to read it"
STILL_ENDING: Final = b"too many handlers of cancelled requests have not ended"
CLIENT_IS_BUSY: Final = b"too many requests of this client are being served"

IN_HANDLER: Final[ContextVar[bool]] = ContextVar("reactive_aio.rsocket.in_handler", default=False)
"""Whether the handler of a request without a response is running."""


async def _clean(loop_handle: "LoopHandle", subscription: FlowSubscription) -> None:
    try:
        await subscription.aclose()
    except Exception as error:
        loop_handle.report("the cleanup of an RSocket handler failed", error)


def _nothing() -> None:
    pass


class RunsHandlers(Protocol):
    """A connection with handlers."""

    @property
    def running(self) -> int:
        """How many of them run, those of cancelled requests included."""
        ...


class EndingHandlers:
    """How many handlers of a server have not ended, although nobody awaits their result any more.

    Above *most*, a connection may have only a few handlers that await something, and above eight
    times as many none: a client that connects again and again would have a few each time. A handler
    that is a plain function has ended when it returns.
    """

    __slots__ = ("count", "is_client_busy", "most")

    def __init__(self, most: int = MAX_ENDING) -> None:
        self.most: int = most
        self.count: int = 0
        self.is_client_busy: Callable[[Any], bool] | None = None
        """Whether the client of a connection has as many handlers as it may, if there is a limit
        for all of its connections."""

    def refusal(self, driver: RunsHandlers) -> bytes:
        """Why *driver* may not begin one more handler that awaits something; empty if it may."""
        few = _FEW_RUNNING if self.count < _MANY_TIMES * self.most else 0
        if self.count >= self.most and driver.running >= few:
            return STILL_ENDING
        if self.is_client_busy is not None and self.is_client_busy(driver):
            return CLIENT_IS_BUSY
        return b""


class Intake:
    """The account of one connection. *on_change* is called when it may be read, or no more.

    *all_ending* counts the handlers that have not ended, for all connections of a server.
    """

    __slots__ = ("_all_ending", "_connection", "_on_change", "_on_room", "_waiting_handlers",
                 "counted", "ending", "held", "held_size", "is_full")  # fmt: skip

    def __init__(
        self,
        connection: Connection,
        all_ending: EndingHandlers,
        on_change: Callable[[], object],
        on_room: Callable[[], object],
    ) -> None:
        self.held: list[RequestTuple] | tuple[()] = ()
        """Requests for one element that wait until the peer reads, in their order."""
        self.held_size: int = 0
        """Their bytes."""
        self.ending: int = 0
        """The number of handlers whose requests were cancelled, and that have not ended yet."""
        self.is_full: bool = False
        """Whether as many handlers of requests without a response run as may."""
        self.counted: int = 0
        """The bytes that are counted of the budget of the process."""
        self._connection = connection
        self._all_ending = all_ending
        self._on_change = on_change
        self._on_room = on_room
        self._waiting_handlers = 0

    # -- reading -----------------------------------------------------------------------------------
    @property
    def is_busy(self) -> bool:
        """Whether nothing is read, since the handlers have enough to do."""
        limits = self._connection.limits
        most = limits.watermark if limits.budget.is_exceeded else MAX_UNSERVED
        if self.held_size > most and not self._connection.streams.local_count:
            # Two sides that both wait for responses must not wait for each other to read.
            return True
        return self.is_full and not self._waiting_handlers

    @property
    def is_needed_by_handlers(self) -> bool:
        """Whether a handler without a response awaits something of the peer."""
        return self._waiting_handlers > 0

    def handler_waits(self, by: int) -> None:
        """*by* more of these handlers await something of the peer, or fewer."""
        self._waiting_handlers += by
        self._on_change()

    def set_full(self, is_full: bool) -> None:
        """Read nothing while the handlers have enough to do, unless one of them needs the peer."""
        if is_full is not self.is_full:
            self.is_full = is_full
            self._on_change()

    # -- requests that wait ------------------------------------------------------------------------
    def may_serve(self, size: int = 0) -> bool:
        """Whether a request for one element may be served, after *size* more bytes of responses.

        A few large payloads do not count: small responses overtake them. While the process holds as
        much for its peers as it may, a connection keeps only what its transport needs next.
        """
        limits, output = self._connection.limits, self._connection.output
        queued = output.queued_bytes + size
        if self.ending >= limits.max_streams:
            return False
        if queued <= limits.watermark or limits.budget.is_exceeded:
            return queued <= limits.watermark
        if output.rotation.fragmented_count <= _FEW_LARGE:
            queued -= output.rotation.fragmented_bytes
        return queued <= max(limits.watermark, limits.max_unread)

    def may_answer(self, size: int) -> bool:
        """Whether a handler that has awaited something may send a response of *size* bytes.

        It has begun when little was held. If the peer reads nothing meanwhile, and the process may
        hold no more, its response is refused.
        """
        limits, queued = self._connection.limits, self._connection.output.queued_bytes
        if queued <= limits.watermark:
            return True
        others = limits.budget.used - self.counted
        return others + queued + size <= limits.budget.most

    def hold(self, requests: Iterable[RequestTuple]) -> list[int]:
        """Hold *requests*; the streams of those for which there is no room."""
        refused: list[int] = []
        held = self.held or []
        for request in requests:
            if self.held_size > REFUSED_ABOVE:
                refused.append(request[0])
            else:
                held.append(request)
                self.held_size += len(request[1]) + len(request[2] or b"") + _OVERHEAD
        self.held = held
        return refused

    def take(self) -> list[RequestTuple]:
        """All that are held and whose streams are still open; none is held after that."""
        by_id = self._connection.streams.by_id
        held, self.held, self.held_size = self.held, (), 0
        return [request for request in held if request[0] in by_id]

    # -- what is counted ---------------------------------------------------------------------------
    def await_end(self, task: "Task[Any]") -> None:
        """Count a handler whose request was cancelled until its *task* has ended.

        It counts for the server as well, also when this connection has ended.
        """
        self.ending += 1
        self._all_ending.count += 1
        task.add_done_callback(self._on_ended)

    def await_cleanup(self, loop_handle: "LoopHandle", subscription: object) -> None:
        """Count the publisher of *subscription*, which was cancelled, until it has cleaned up."""
        if isinstance(subscription, FlowSubscription) and not subscription.is_clean:
            work = _clean(loop_handle, subscription)
            self.await_end(loop_handle.create_task(work, "rsocket: awaits a cleanup"))

    def _on_ended(self, _: object) -> None:
        self.ending -= 1
        self._all_ending.count -= 1
        if self.held:
            self._on_room()

    def count_memory(self, others: int, in_transport: int) -> bool:
        """Count what is held for the peer, and give up what is too much.

        *others* are the bytes that others than the connection hold for it, *in_transport* those of
        a message that is not whole. Whether the connection ends by it.
        """
        connection = self._connection
        others += self.held_size + in_transport
        if not self._count(connection.held_bytes + others):
            return False
        is_end = connection.hold_less(in_transport)
        self._count(connection.held_bytes + others)
        return is_end

    def _count(self, held: int) -> bool:
        """Count *held* bytes, instead of those before; whether they are too much just now.

        That is so while the process holds more than it may, and this connection more than little.
        """
        connection = self._connection
        limits = connection.limits
        if connection.is_suspended:
            counted = held + _SESSION
        else:
            counted = held if held > limits.watermark else 0
        if counted != self.counted:
            limits.budget.hold(counted - self.counted)
            self.counted = counted
        return counted > 0 and limits.budget.is_exceeded

    def release(self) -> None:
        """The connection has ended: nothing is held, and nobody is told any more."""
        self.held, self.held_size = (), 0
        if self.counted:
            self._connection.limits.budget.hold(-self.counted)
            self.counted = 0
        self._on_change = self._on_room = _nothing
