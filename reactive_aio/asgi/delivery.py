"""One response: a flow's elements into its body, as fast as the client takes them and no faster."""

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .._core.loop import LoopHandle, wait_settled, yield_to_loop
from .basket import Basket
from .forms import Form
from .problem import Problem, problem_of
from .request import Receive, Send
from .tally import Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..stage import Fluent

__all__ = ("Delivery", "Manner", "encoded", "refuse", "respond", "tell")

CHUNK: Final = 4 * 1024
"""Bytes, or a single element, that are handed to the server at a time."""

_Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How an endpoint delivers, whatever the format."""

    prefetch: int
    heartbeat: float | None
    first_within: float
    tell_errors: bool
    on_error: "Callable[[BaseException], object] | None"
    headers: _Headers
    tally: Tally


class Delivery:
    """Asks for *prefetch* elements, and for as many again as the server has taken."""

    def __init__(
        self,
        loop_handle: LoopHandle,
        receive: Receive,
        send: Send,
        form: Form,
        manner: Manner,
        resumed: bool,
    ) -> None:
        self._receive = receive
        self._send = send
        self._form = form
        self._manner = manner
        self._resumed = resumed
        self._loop_handle = loop_handle
        self._basket = Basket(loop_handle, manner.tally)
        self._elements: deque[Any] = deque()  # out of the basket, and not written yet
        self._broken: Exception | None = None  # by the one who writes elements
        self._begun = False
        self._sent = 0

    async def run(self, flow: "Fluent[Any]", count: int | None) -> None:
        """Deliver *flow*, until the client leaves; a *count* of elements is not its completion."""
        basket, tally = self._basket, self._manner.tally
        tally.open += 1
        tally.opened += 1
        watch = self._loop_handle.create_task(self._watch(), "asgi: waits for the client to leave")
        over = False
        try:
            prefetch = self._manner.prefetch
            basket.begin(flow, prefetch if count is None else min(prefetch, count))
            over = await self._deliver(count)
        except OSError:  # so says a server that cannot send: the client has gone
            pass
        finally:
            tally.open -= 1
            tally.cancelled += not over
            watch.cancel()
            await wait_settled(watch)
            await basket.aclose()

    async def _watch(self) -> None:
        """Cancel upstream the moment the client leaves; drop the body that it may have sent."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._basket.leave()

    async def _deliver(self, count: int | None) -> bool:
        """Return whether the stream came to its end."""
        basket = self._basket
        await basket.wait(self._manner.first_within)
        while not basket.left:
            if not self._elements:
                self._elements.extend(basket.fetch())
            body, written = self._chunk()
            if written:
                await self._pass(body, written)
                # Demand goes on when the send has returned and everybody else had a turn: a source
                # that never waits would otherwise keep the loop for itself.
                await yield_to_loop()
                more = written if count is None else min(written, count - self._sent - basket.asked)
                if more:
                    basket.request(more)
            elif error := self._broken or basket.error:
                await self._fail(error)
                return True
            elif basket.ended:
                await self._complete(self._sent == count)
                return True
            elif not self._begun:
                await self._pass(b"", 0)
            elif not await basket.wait(self._manner.heartbeat):
                await self._pass(self._form.heartbeat, 0)
        return False

    def _chunk(self) -> tuple[bytes, int]:
        """Write elements until there are enough for a send."""
        elements, write = self._elements, self._form.element
        written: list[bytes] = []
        size = 0
        try:
            while elements and size < CHUNK:
                written.append(write(elements.popleft()))
                size += len(written[-1])
        except Exception as error:
            self._broken = error
            elements.clear()
            self._basket.stop()
        return b"".join(written), len(written)

    # -- to the server -----------------------------------------------------------------------------
    async def _pass(self, body: bytes, elements: int, *, more: bool = True) -> None:
        tally = self._manner.tally
        if not self._begun:
            self._begun = True
            headers = [(b"content-type", self._form.media_type.encode()), *self._manner.headers]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
            body = self._form.opening() + body
        await self._send({"type": "http.response.body", "body": body, "more_body": more})
        tally.bytes += len(body)
        tally.elements += elements
        self._sent += elements

    async def _complete(self, asked_for_no_more: bool) -> None:
        self._manner.tally.completed += 1
        if self._resumed and not self._begun:
            # Nothing was missed: a browser that is told so does not come again.
            await respond(self._send, 204, self._manner.headers)
        else:
            await self._pass(b"" if asked_for_no_more else self._form.completed(), 0, more=False)

    async def _fail(self, error: BaseException) -> None:
        self._manner.tally.failed += 1
        problem, meant = problem_of(error, self._manner.tell_errors)
        if not meant:
            tell(self._loop_handle, self._manner.on_error, error)
        if self._begun:
            await self._pass(self._form.failed(problem), 0, more=False)
        else:
            await refuse(self._send, problem)


def tell(
    loop_handle: LoopHandle,
    on_error: "Callable[[BaseException], object] | None",
    error: BaseException,
) -> None:
    """Report an error that the client is not told of."""
    if on_error is not None:
        on_error(error)
    else:
        loop_handle.report("a stream served by ASGI failed", error)


async def refuse(send: Send, problem: Problem, *, head: bool = False) -> None:
    """Answer with the status of *problem* and its detail (RFC 9457)."""
    headers = [(b"content-type", b"application/problem+json"), (b"cache-control", b"no-store")]
    headers += encoded(problem.headers)
    await respond(send, problem.status, headers, b"" if head else problem.json().encode())


async def respond(
    send: Send,
    status: int,
    headers: _Headers,
    body: bytes = b"",
    *,
    kind: str = "http.response",
) -> None:
    """Send a whole response, if the client is still there."""
    try:
        await send({"type": f"{kind}.start", "status": status, "headers": headers})
        await send({"type": f"{kind}.body", "body": body})
    except OSError:  # so says a server that cannot send
        pass


def encoded(headers: "Mapping[str, str]") -> _Headers:
    """Headers as ASGI has them."""
    return [(name.lower().encode("latin-1"), each.encode("latin-1"))
            for name, each in headers.items()]  # fmt: skip
