"""sse, ndjson, stream: a flow, or a function that makes one, as the body of a response.

`javascript` serves the module with which browsers read them.
"""

import re
from collections.abc import Awaitable, Callable
from hashlib import sha256
from importlib.resources import files
from inspect import isawaitable
from typing import Any, Final, Generic, TypeVar, Unpack, cast

from .._core.arguments import Duration, require_callable
from .._core.loop import LoopHandle
from .._shared.coerce import Source, is_source, to_flow
from .app_streams import take_place
from .body_writer import BodyWriter, ResponseStart
from .end_watch import EndWatch
from .formats import BodyFormat, EventStream, Ndjson, negotiate, to_json
from .function_errors import failure_of
from .http import (
    Endpoint,
    HttpRequest,
    Receive,
    Send,
    encode_headers,
    is_returned_by_route,
    parse_count,
    send_problem,
    send_response,
)
from .options import ResponseConfig, ResponseOptions, response_config
from .problem import Problem, Refused, server_stops
from .send_limit import SendLimit

T = TypeVar("T")

_TAG: Final = re.compile(r'"[^"]*"')

Make = Callable[[HttpRequest], Source[T] | Awaitable[Source[T] | None] | None]
"""Makes the flow for a request; None when there is nothing to stream (204)."""

_OF_EVENTS: Final = ("id", "event", "retry", "encode")


def sse(
    source: Source[T] | Make[T],
    *,
    id: Callable[[T], str | int] | None = None,
    event: Callable[[T], str | None] | str | None = None,
    retry: Duration | None = None,
    encode: Callable[[Any], str | bytes] = to_json,
    **options: Unpack[ResponseOptions],
) -> "HttpEndpoint[T]":
    """Serve a flow as server-sent events, which browsers read with ``EventSource``.

    *source* is a flow, or a function that makes one from an `HttpRequest`: it may be a coroutine
    function, may raise `Refused`, and returns None when there is nothing to stream. With *id*,
    which computes an id for each element, a client that reconnects sends the last id it received:
    ``request.last_event_id``. *event* is the type of all events, or computes it for each element.
    *retry* is the delay after which a browser reconnects. An element that is an `Event` sets all
    of these itself. The other options are described in `ResponseOptions`.

    ::

        Route("/prices", endpoint=sse(prices, id=lambda price: price["number"]))

    Demand: *prefetch* elements; then as many as were sent, each time a send returns.
    Completes: with an event ``complete``; with 204 when a client reconnects and missed nothing.
    Fails: before the first element with the status of `Refused`, or 500; after it with an event
        ``failure``. Other texts than that of `Refused` are sent only with *expose_errors*; such
        errors go to *on_error*, or to the loop's exception handler.
    Cancels: upstream is cancelled at once when the client disconnects or the server stops, and when
        the client has not read what was sent to it within *send_timeout* seconds (15).
    Holds: *prefetch* elements per client, and at most 4 KiB of text or one longer element.
    Rules: 1.1, 2.1, 2.6, 3.9

    The heartbeat is a comment. With ``count_parameter="n"``, ``?n=100`` ends the response after
    100 elements without the event ``complete``, so that a browser reconnects for more.
    """
    form = EventStream("sse", encode, id, event, retry)
    return HttpEndpoint("sse", source, lambda _: form, response_config("sse", options, *_OF_EVENTS))


def ndjson(
    source: Source[T] | Make[T],
    *,
    encode: Callable[[T], str | bytes] = to_json,
    **options: Unpack[ResponseOptions],
) -> "HttpEndpoint[T]":
    """Serve a flow as lines of JSON (``application/x-ndjson``), for programs in any language.

    ::

        Route("/flights", endpoint=ndjson(lambda request: flights(request.query["carrier"])))

    Demand: *prefetch* elements; then as many as were sent, each time a send returns.
    Completes: with the end of the response.
    Fails: before the first element with a status; after it with a last line
        ``{"$failure":{"status":…,"detail":…}}``.
    Cancels: upstream is cancelled at once when the client disconnects or the server stops, and when
        the client has not read what was sent to it within *send_timeout* seconds (15).
    Holds: *prefetch* elements per client, and at most 4 KiB of text or one longer element.
    Rules: 1.1, 2.1, 2.6, 3.9

    The heartbeat is a blank line. Everything else is as in `sse`.
    """
    form: Ndjson[T] = Ndjson("ndjson", encode)
    return HttpEndpoint(
        "ndjson", source, lambda _: form, response_config("ndjson", options, "encode")
    )


def stream(
    source: Source[T] | Make[T],
    *,
    id: Callable[[T], str | int] | None = None,
    event: Callable[[T], str | None] | str | None = None,
    retry: Duration | None = None,
    encode: Callable[[T], str | bytes] = to_json,
    **options: Unpack[ResponseOptions],
) -> "HttpEndpoint[T]":
    """Serve a flow as server-sent events or as lines of JSON, by the client's ``Accept`` header.

    A client that accepts both receives lines; one that accepts neither receives 406. Everything
    else is as in `sse` and `ndjson`.
    """
    events = EventStream("stream", encode, id, event, retry)
    lines: Ndjson[T] = Ndjson("stream", encode)
    formats: dict[str, BodyFormat] = {lines.media_type: lines, events.media_type: events}

    def choose(request: HttpRequest) -> BodyFormat:
        found = negotiate(formats, request.headers.get("accept", "*/*"))
        if found is None:
            raise Refused(406, f"this is available as {' or '.join(formats)}")
        return found

    options["headers"] = {"vary": "accept", **(options.get("headers") or {})}
    return HttpEndpoint("stream", source, choose, response_config("stream", options, *_OF_EVENTS))


class HttpEndpoint(Endpoint, Generic[T]):
    """What `sse`, `ndjson` and `stream` return: an ASGI app that streams a flow to each client."""

    def __init__(
        self,
        name: str,
        source: Source[T] | Make[T],
        choose: Callable[[HttpRequest], BodyFormat],
        config: ResponseConfig,
    ) -> None:
        super().__init__(config.headers)
        self._name = name
        self._make = _maker(source, name)
        self._choose = choose
        self._config = config

    def __repr__(self) -> str:
        return f"<{self._name} endpoint, {self._config.places.taken} clients>"

    async def _answer(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        head = request.method == "HEAD"
        if request.method not in ("GET", "HEAD") and not is_returned_by_route(request):
            allow = {"allow": "GET, HEAD"}
            await send_problem(send, Problem(405, "this is a stream: GET it", allow))
            return
        loop_handle = LoopHandle("a request")
        watch = EndWatch(loop_handle, receive)
        try:
            place = take_place(request, self._config.places, watch.stop)
        except BaseException as error:
            await self._refuse(loop_handle, send, error, head)
            return
        limit = SendLimit(loop_handle, send, self._config.send_timeout)
        with place:
            try:
                async with limit:
                    await self._stream(loop_handle, request, watch, limit, head)
            except TimeoutError:
                if not limit.has_expired:
                    raise
            finally:
                await watch.aclose()

    async def _refuse(
        self, loop_handle: LoopHandle, send: Send, error: BaseException, head: bool
    ) -> None:
        failure, config = failure_of(error, loop_handle), self._config
        config.counters.failed += 1
        problem = config.errors.problem(failure, loop_handle, "a stream served by ASGI failed")
        await send_problem(send, problem, head=head)

    async def _stream(
        self,
        loop_handle: LoopHandle,
        request: HttpRequest,
        watch: EndWatch,
        limit: SendLimit,
        head: bool,
    ) -> None:
        config, send = self._config, limit.send
        try:
            form = self._choose(request)
            name = config.count_parameter
            text = None if name is None else request.query.get(name)
            count = None if name is None or text is None else parse_count(text, name)
            made: Any = self._make(request)
            if isawaitable(made):
                # A function of the framework may read the body of the request, also here.
                is_watched = not is_returned_by_route(request)
                made = await watch.cancel_at_end(made, reads=is_watched)
                if watch.is_stopped:
                    raise server_stops()
            flow = None if made is None else to_flow(made, name=self._name)
        except BaseException as error:
            await self._refuse(loop_handle, send, error, head)
            return
        if watch.is_disconnected:
            return
        if flow is None:
            await send_response(send, 204, self._header_list())
            return
        headers = self._header_list(content_type=form.media_type)
        if head:
            await send_response(send, self.status_code, headers)
        else:
            flow = flow if count is None else flow.take(count)
            resumes = request.last_event_id is not None and form.media_type == "text/event-stream"
            start = ResponseStart(self.status_code, headers, resumes)
            await BodyWriter(loop_handle, watch, limit, form, config, start).run(flow, count)


def _maker(source: Source[T] | Make[T], name: str) -> Make[T]:
    if callable(source) and not is_source(source):
        require_callable(name, "source", source, takes=1, may_generate=True)
        return source
    flow = to_flow(cast("Source[T]", source), name=name)
    return lambda _: flow


def _matches(condition: str, tag: str) -> bool:
    """Whether ``If-None-Match`` names *tag*, by weak comparison (RFC 9110, 13.1.2)."""
    return condition.strip() == "*" or tag in _TAG.findall(condition)


def javascript() -> "JavaScriptEndpoint":
    """Serve ``reactive.js``: the text protocol for browsers and Node, without dependencies.

    ::

        Route("/reactive.js", endpoint=javascript())

    A page imports it: ``import {connect} from "/reactive.js"``. This call reads the file;
    responses are sent from memory, with an ETag.
    """
    return JavaScriptEndpoint((files(__package__ or "") / "browser" / "reactive.js").read_bytes())


class JavaScriptEndpoint(Endpoint):
    """What `javascript` returns: an ASGI app."""

    def __init__(self, text: bytes) -> None:
        self.text: bytes = text
        self._tag = f'"{sha256(text).hexdigest()[:24]}"'
        headers = {"content-type": "text/javascript; charset=utf-8", "etag": self._tag,
                   "cache-control": "no-cache"}  # fmt: skip
        super().__init__(encode_headers(headers))

    async def _answer(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        if request.method not in ("GET", "HEAD"):
            await send_problem(send, Problem(405, "this is a file: GET it", {"allow": "GET, HEAD"}))
        elif _matches(request.headers.get("if-none-match", ""), self._tag):
            await send_response(send, 304, self._header_list())
        else:
            length = (b"content-length", str(len(self.text)).encode())
            body = b"" if request.method == "HEAD" else self.text
            headers = [*self._header_list(), length]
            await send_response(send, self.status_code, headers, body)
