"""BodyWriter: writes a flow into the body of a response, at the pace of the client."""

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .._core.flow_subscription import FlowSubscription
from .._core.loop import Future, LoopHandle, yield_to_loop
from .._core.subscription.bulk_subscriber import BulkSubscriber
from .end_watch import EndWatch
from .formats import BodyFormat
from .function_errors import failure_of
from .http import Headers, Send, send_problem, send_response
from .options import ResponseConfig
from .problem import Problem, problem_of, server_stops
from .send_limit import SendLimit

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..spec import Subscription
    from ..stage import Fluent

CHUNK: Final = 4 * 1024
"""Bytes handed to the server in one send; a longer element is sent alone."""
_SEND_GRACE: Final = 1.0
"""The seconds that sends may take when the response must end. When the client has disconnected,
Hypercorn's never returns if it waits for the window of an HTTP/2 stream."""


@dataclass(frozen=True, slots=True)
class ResponseStart:
    """How a response starts that has elements, or ends without an error."""

    status: int
    headers: Headers
    resumes: bool
    """Whether the client continues an event stream: 204 if it has missed nothing."""


class BodyWriter(BulkSubscriber):
    """The subscriber of a response: it buffers elements until they are sent.

    It requests *prefetch* elements, then as many as each send has handed to the server.
    """

    def __init__(
        self,
        loop_handle: LoopHandle,
        watch: EndWatch,
        limit: SendLimit,
        form: BodyFormat,
        config: ResponseConfig,
        start: ResponseStart,
    ) -> None:
        self._elements: deque[Any] = deque()
        self.append: Callable[[Any], None] = self._elements.append
        self.is_notified: bool = False
        self._watch = watch
        self._limit = limit
        self._send: Send = limit.send
        self._form = form
        self._config = config
        self._start = start
        self._loop_handle = loop_handle
        self._subscription: Subscription | None = None
        self._waiter: Future[Any] | None = None
        self._error: BaseException | None = None
        self._is_done = False
        self._is_disconnected = False
        self._is_interrupted = False
        self._is_started = False
        self._outstanding = 0  # elements requested, and not encoded yet
        self._sent = 0

    async def run(self, flow: "Fluent[Any]", count: int | None) -> None:
        """Write *flow* until it ends or the client disconnects.

        A response that ends after *count* elements does not report the flow as complete.
        """
        counters = self._config.counters
        counters.open += 1
        counters.opened += 1
        ended = False
        try:
            self._watch.start(self._on_end)
            prefetch = self._config.prefetch
            flow.subscribe(self)
            self._request(prefetch if count is None else min(prefetch, count))
            ended = await self._write(count)
        except OSError:  # what servers raise after a disconnect
            pass
        finally:
            self._limit.lift()  # the flow may take longer to clean up
            counters.open -= 1
            counters.cancelled += not ended
            self._cancel()
            await self._settle()

    async def _settle(self) -> None:
        """Wait until the flow has cleaned up, unless the server cancels the response meanwhile."""
        try:
            await self._watch.aclose()
        finally:
            subscription, self._subscription = self._subscription, None
            if isinstance(subscription, FlowSubscription):
                await subscription.aclose()

    def _on_end(self) -> None:
        self._is_disconnected = self._watch.is_disconnected
        if self._is_disconnected or not self._is_done:
            self._is_interrupted = True
            self._cancel()
        self._wake(True)
        self._limit.end_within(_SEND_GRACE)

    async def _write(self, count: int | None) -> bool:
        """Return whether the stream reached its end."""
        await self._wait(self._config.max_start_delay)
        while not self._is_disconnected:
            body, written = self._encode_chunk()
            if written:
                await self._send_body(body, written)
                # Other tasks run before the next request: a source that never waits would
                # otherwise block the loop.
                await yield_to_loop()
                unrequested = written if count is None else count - self._sent - self._outstanding
                if more := min(written, unrequested):
                    self._request(more)
            elif self._is_interrupted:
                await self._interrupt()
                return False
            elif self._error is not None:
                await self._fail(self._error)
                return True
            elif self._is_done:
                await self._complete(self._sent == count)
                return True
            elif not self._is_started:
                await self._send_body(b"", 0)
            elif not await self._wait(self._config.heartbeat):
                await self._send_body(self._form.heartbeat, 0)
        return False

    async def _wait(self, seconds: float | None) -> bool:
        """Wait for an element, the end or a disconnect; return False after *seconds* without."""
        if self._elements or self._is_done or self._is_disconnected:
            return True
        self._waiter = waiter = self._loop_handle.create_future()
        timer = (
            None if seconds is None else self._loop_handle.call_later(seconds, self._wake, False)
        )
        try:
            return bool(await waiter)
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def _wake(self, has_news: bool) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(has_news)

    # -- demand ------------------------------------------------------------------------------------
    def _request(self, n: int) -> None:
        if self._subscription is not None and not self._is_done and not self._is_disconnected:
            self._add_outstanding(n)
            self._subscription.request(n)

    def _cancel(self) -> None:
        """Cancel upstream and discard the buffered elements."""
        self._add_outstanding(-self._outstanding)
        self._elements.clear()
        was_done, self._is_done = self._is_done, True
        if self._subscription is not None and not was_done:
            self._subscription.cancel()

    def _add_outstanding(self, n: int) -> None:
        self._outstanding += n
        self._config.counters.outstanding += n

    def _encode_chunk(self) -> tuple[bytes, int]:
        """Encode elements until there are enough for one send."""
        elements, encode = self._elements, self._form.element
        parts: list[bytes] = []
        size = 0
        try:
            while elements and size < CHUNK:
                parts.append(encode(elements.popleft()))
                size += len(parts[-1])
        except BaseException as error:
            self._error = failure_of(error, self._loop_handle)
            self._cancel()
        else:
            self._add_outstanding(-len(parts))
        return b"".join(parts), len(parts)

    # -- to the server -----------------------------------------------------------------------------
    async def _send_body(self, body: bytes, elements: int, *, more: bool = True) -> None:
        counters = self._config.counters
        if not self._is_started:
            self._is_started = True
            status, headers = self._start.status, self._start.headers
            await self._send({"type": "http.response.start", "status": status, "headers": headers})
            body = self._form.opening() + body
        await self._send({"type": "http.response.body", "body": body, "more_body": more})
        counters.bytes += len(body)
        counters.elements += elements
        self._sent += elements

    async def _complete(self, is_limited: bool) -> None:
        self._config.counters.completed += 1
        if self._start.resumes and not self._is_started:
            # The client has missed nothing; 204 stops a browser from reconnecting.
            headers = [each for each in self._start.headers if each[0] != b"content-type"]
            await send_response(self._send, 204, headers)
        else:
            await self._send_body(b"" if is_limited else self._form.completed(), 0, more=False)

    async def _interrupt(self) -> None:
        """End a response whose flow has not: the server stops."""
        if self._form.reconnects:
            await self._send_body(b"", 0, more=False)
        else:
            await self._send_failure(problem_of(server_stops()))

    async def _fail(self, error: BaseException) -> None:
        self._config.counters.failed += 1
        problem = self._config.errors.problem(
            error, self._loop_handle, "a stream served by ASGI failed"
        )
        await self._send_failure(problem)

    async def _send_failure(self, problem: Problem) -> None:
        if self._is_started:
            await self._send_body(self._form.failed(problem), 0, more=False)
        else:
            await send_problem(self._send, problem)

    # -- the flow's side ---------------------------------------------------------------------------
    def on_subscribe(self, subscription: "Subscription", /) -> None:
        self._subscription = subscription
        if self._is_disconnected:
            subscription.cancel()

    def on_next(self, element: Any, /) -> None:
        self._elements.append(element)
        self._wake(True)

    @property
    def container(self) -> deque[Any]:
        return self._elements

    def flush(self) -> None:
        if self._elements:
            self._wake(True)

    def on_error(self, error: BaseException, /) -> None:
        if not self._is_done:
            self._error = error
            self.on_complete()

    def on_complete(self) -> None:
        self._is_done = True
        self._wake(True)
