"""BodyWriter: writes a flow into the body of a response, at the pace of the client."""

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from .._core.flow_subscription import FlowSubscription
from .._core.loop import Future, LoopHandle, wait_settled, yield_to_loop
from .._core.subscription.bulk_subscriber import BulkSubscriber
from .formats import BodyFormat
from .options import Counters, ResponseConfig
from .request import Receive, Send
from .responses import send_problem, send_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..spec import Subscription
    from ..stage import Fluent

__all__ = ("BodyWriter",)

CHUNK: Final = 4 * 1024
"""Bytes handed to the server in one send; a longer element is sent alone."""


class BodyWriter:
    """Requests *prefetch* elements, then as many as each send has handed to the server."""

    def __init__(
        self,
        loop_handle: LoopHandle,
        receive: Receive,
        send: Send,
        form: BodyFormat,
        config: ResponseConfig,
        resumes: bool,
    ) -> None:
        self._receive = receive
        self._send = send
        self._form = form
        self._config = config
        self._resumes = resumes
        self._loop_handle = loop_handle
        self._subscriber = PrefetchSubscriber(loop_handle, config.counters)
        self._elements: deque[Any] = deque()  # taken from the subscriber, and not encoded yet
        self._encode_error: Exception | None = None
        self._is_started = False
        self._sent = 0

    async def run(self, flow: "Fluent[Any]", count: int | None) -> None:
        """Write *flow* until it ends or the client disconnects.

        A response that ends after *count* elements does not report the flow as complete.
        """
        subscriber, counters = self._subscriber, self._config.counters
        counters.open += 1
        counters.opened += 1
        watch = self._loop_handle.create_task(self._watch(), "asgi: waits for a disconnect")
        ended = False
        try:
            prefetch = self._config.prefetch
            flow.subscribe(subscriber)
            subscriber.request(prefetch if count is None else min(prefetch, count))
            ended = await self._write(count)
        except OSError:  # what servers raise after a disconnect
            pass
        finally:
            counters.open -= 1
            counters.cancelled += not ended
            watch.cancel()
            await wait_settled(watch)
            await subscriber.aclose()

    async def _watch(self) -> None:
        """Cancel upstream when the client disconnects; discard the body of the request."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._subscriber.disconnect()

    async def _write(self, count: int | None) -> bool:
        """Return whether the stream reached its end."""
        subscriber = self._subscriber
        await subscriber.wait(self._config.max_start_delay)
        while not subscriber.is_disconnected:
            if not self._elements:
                self._elements.extend(subscriber.take())
            body, written = self._encode_chunk()
            if written:
                await self._send_body(body, written)
                # Other tasks run before the next request: a source that never waits would
                # otherwise block the loop.
                await yield_to_loop()
                more = (
                    written
                    if count is None
                    else min(written, count - self._sent - subscriber.outstanding)
                )
                if more:
                    subscriber.request(more)
            elif error := self._encode_error or subscriber.error:
                await self._fail(error)
                return True
            elif subscriber.is_done:
                await self._complete(self._sent == count)
                return True
            elif not self._is_started:
                await self._send_body(b"", 0)
            elif not await subscriber.wait(self._config.heartbeat):
                await self._send_body(self._form.heartbeat, 0)
        return False

    def _encode_chunk(self) -> tuple[bytes, int]:
        """Encode elements until there are enough for one send."""
        elements, encode = self._elements, self._form.element
        parts: list[bytes] = []
        size = 0
        try:
            while elements and size < CHUNK:
                parts.append(encode(elements.popleft()))
                size += len(parts[-1])
        except Exception as error:
            self._encode_error = error
            elements.clear()
            self._subscriber.cancel()
        return b"".join(parts), len(parts)

    # -- to the server -----------------------------------------------------------------------------
    async def _send_body(self, body: bytes, elements: int, *, more: bool = True) -> None:
        counters = self._config.counters
        if not self._is_started:
            self._is_started = True
            headers = [(b"content-type", self._form.media_type.encode()), *self._config.headers]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
            body = self._form.opening() + body
        await self._send({"type": "http.response.body", "body": body, "more_body": more})
        counters.bytes += len(body)
        counters.elements += elements
        self._sent += elements

    async def _complete(self, is_limited: bool) -> None:
        self._config.counters.completed += 1
        if self._resumes and not self._is_started:
            # The client has missed nothing; 204 stops a browser from reconnecting.
            await send_response(self._send, 204, self._config.headers)
        else:
            await self._send_body(b"" if is_limited else self._form.completed(), 0, more=False)

    async def _fail(self, error: BaseException) -> None:
        self._config.counters.failed += 1
        problem = self._config.errors.problem(
            error, self._loop_handle, "a stream served by ASGI failed"
        )
        if self._is_started:
            await self._send_body(self._form.failed(problem), 0, more=False)
        else:
            await send_problem(self._send, problem)


class PrefetchSubscriber(BulkSubscriber):
    """Buffers elements until they are taken; never more than were requested."""

    __slots__ = (
        "_counters",
        "_loop_handle",
        "_subscription",
        "_waiter",
        "append",
        "elements",
        "error",
        "is_disconnected",
        "is_done",
        "is_notified",
        "outstanding",
    )  # fmt: skip

    def __init__(self, loop_handle: LoopHandle, counters: Counters) -> None:
        self.elements: list[Any] = []
        self.append: Callable[[Any], None] = self.elements.append
        self.is_notified: bool = False
        self.is_done: bool = False
        self.error: BaseException | None = None
        self.is_disconnected: bool = False
        """Whether the client has disconnected."""
        self.outstanding: int = 0
        """The number of elements requested and not yet taken."""
        self._loop_handle = loop_handle
        self._counters = counters
        self._subscription: Subscription | None = None
        self._waiter: Future[Any] | None = None

    # -- the client's side -------------------------------------------------------------------------
    def request(self, n: int) -> None:
        if self._subscription is not None and not self.is_done and not self.is_disconnected:
            self.outstanding += n
            self._counters.outstanding += n
            self._subscription.request(n)

    def take(self) -> list[Any]:
        """Remove the buffered elements, and return them."""
        elements = self.elements[:]
        self.elements.clear()
        self.outstanding -= len(elements)
        self._counters.outstanding -= len(elements)
        return elements

    async def wait(self, seconds: float | None) -> bool:
        """Wait for an element, the end or a disconnect; return False after *seconds* without."""
        if self.elements or self.is_done or self.is_disconnected:
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

    def cancel(self) -> None:
        """Cancel upstream and discard the buffered elements."""
        self._counters.outstanding -= self.outstanding
        self.outstanding = 0
        self.elements.clear()
        was_done, self.is_done = self.is_done, True
        if self._subscription is not None and not was_done:
            self._subscription.cancel()

    def disconnect(self) -> None:
        """Cancel, because the client has disconnected."""
        self.is_disconnected = True
        self.cancel()
        self._wake(True)

    async def aclose(self) -> None:
        """Cancel, and wait until the flow's cleanup has run."""
        self.cancel()
        subscription, self._subscription = self._subscription, None
        if isinstance(subscription, FlowSubscription):
            await subscription.aclose()

    def _wake(self, has_news: bool) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(has_news)

    # -- the flow's side ---------------------------------------------------------------------------
    def on_subscribe(self, subscription: "Subscription", /) -> None:
        self._subscription = subscription
        if self.is_disconnected:
            subscription.cancel()

    def on_next(self, element: Any, /) -> None:
        self.elements.append(element)
        self._wake(True)

    @property
    def container(self) -> list[Any]:
        return self.elements

    def flush(self) -> None:
        if self.elements:
            self._wake(True)

    def on_error(self, error: BaseException, /) -> None:
        self.error = error
        self.on_complete()

    def on_complete(self) -> None:
        self.is_done = True
        self._wake(True)
