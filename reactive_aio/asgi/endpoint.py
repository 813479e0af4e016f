"""An endpoint: a flow, or a function that makes one, as an ASGI app."""

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Mapping
from inspect import isawaitable
from typing import TYPE_CHECKING, Final, Generic, TypeVar, cast

from .._core.arguments import require_int
from .._core.duration import Duration, to_seconds
from .._core.loop import LoopHandle
from ..coerce import Source, to_flow
from .delivery import Delivery, Manner, encoded, refuse, respond, tell
from .forms import Form
from .problem import Problem, problem_of
from .request import HttpRequest, Receive, Scope, Send, count_of
from .tally import Tally

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("HttpEndpoint", "Make", "live", "manner_of")

T = TypeVar("T")

Make = Callable[[HttpRequest], Source[T] | Awaitable[Source[T] | None] | None]
"""Makes the flow that a request gets; None when there is nothing to stream (204)."""

Choose = Callable[[HttpRequest], Form]


class HttpEndpoint(Generic[T]):
    """What `sse`, `ndjson` and `stream` return: an ASGI app that streams a flow to each client."""

    def __init__(
        self,
        source: Source[T] | Make[T],
        choose: Choose,
        manner: Manner,
        count: str | None,
        max_streams: int,
        name: str,
    ) -> None:
        self._make = _maker(source, name)
        self._choose = choose
        self._manner = manner
        self._count = count
        self._max_streams = max_streams
        self._name = name
        self._serving = 0

    def __repr__(self) -> str:
        return f"<{self._name} endpoint, {self._serving} clients>"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._answer(HttpRequest(scope), receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
        else:
            await live(receive, send)

    async def _answer(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        head = request.method == "HEAD"
        if request.method not in ("GET", "HEAD"):
            allow = {"allow": "GET, HEAD"}
            await refuse(send, Problem(405, "this is a stream: GET it", allow))
            return
        if self._serving >= self._max_streams:
            again = {"retry-after": "5"}
            detail = f"all {self._max_streams} streams are in use"
            await refuse(send, Problem(503, detail, again), head=head)
            return
        self._serving += 1
        try:
            await self._serve(request, receive, send, head)
        finally:
            self._serving -= 1

    async def _serve(self, request: HttpRequest, receive: Receive, send: Send, head: bool) -> None:
        loop_handle, manner = LoopHandle("a request"), self._manner
        try:
            form = self._choose(request)
            count = self._counted(request)
            flow = await self._flow(request)
        except Exception as error:
            manner.tally.failed += 1
            problem, meant = problem_of(error, manner.tell_errors)
            if not meant:
                tell(loop_handle, manner.on_error, error)
            await refuse(send, problem, head=head)
            return
        if flow is None:
            await respond(send, 204, manner.headers)
        elif head:
            type_ = (b"content-type", form.media_type.encode())
            await respond(send, 200, [type_, *manner.headers])
        else:
            flow = flow if count is None else flow.take(count)
            again = request.last_event_id is not None and form.media_type == "text/event-stream"
            await Delivery(loop_handle, receive, send, form, manner, again).run(flow, count)

    async def _flow(self, request: HttpRequest) -> "Flow[T] | None":
        made = self._make(request)
        if isawaitable(made):
            made = await made
        if made is None:
            return None
        return to_flow(made, name=self._name)

    def _counted(self, request: HttpRequest) -> int | None:
        text = None if self._count is None else request.query.get(self._count)
        return None if text is None else count_of(text, self._count or "")


def _maker(source: Source[T] | Make[T], name: str) -> Make[T]:
    if _makes(source):
        return cast("Make[T]", source)
    flow = to_flow(cast("Source[T]", source), name=name)
    return lambda _: flow


def _makes(source: object) -> bool:
    """Whether it is a function, and not a source itself."""
    return callable(source) and not (
        hasattr(source, "subscribe") or isinstance(source, AsyncIterable | Iterable)
    )


async def live(receive: Receive, send: Send) -> None:
    """The lifespan of an endpoint that is served without a framework: nothing to set up."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


_HEADERS: Final = {
    "cache-control": "no-store",
    "x-accel-buffering": "no",  # nginx would collect a buffer full before it passed anything on
}


def manner_of(
    name: str,
    *,
    prefetch: int,
    heartbeat: Duration | None,
    first_within: Duration,
    tell_errors: bool,
    on_error: Callable[[BaseException], object] | None,
    headers: Mapping[str, str] | None,
    tally: Tally | None,
) -> Manner:
    """Check the options that all formats share."""
    return Manner(
        prefetch=require_int(name, "prefetch", prefetch, least=1),
        heartbeat=None if heartbeat is None else to_seconds(heartbeat, f"{name}: heartbeat"),
        first_within=to_seconds(first_within, f"{name}: first_within", zero=True),
        tell_errors=tell_errors,
        on_error=on_error,
        headers=encoded(_HEADERS | {key.lower(): each for key, each in (headers or {}).items()}),
        tally=Tally() if tally is None else tally,
    )
