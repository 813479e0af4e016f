"""sse, ndjson, stream: a flow as the body of a response."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from .._core.arguments import require_callable, require_int
from .._core.duration import Duration, to_seconds
from ..coerce import Source
from .accept import chosen
from .endpoint import HttpEndpoint, Make, manner_of
from .forms import EventForm, Form, LineForm, to_json
from .problem import Refused
from .request import HttpRequest
from .tally import Tally

__all__ = ("ndjson", "sse", "stream")

T = TypeVar("T")
Report = Callable[[BaseException], object]


def sse(
    source: Source[T] | Make[T],
    *,
    id: Callable[[T], str | int] | None = None,
    event: Callable[[T], str | None] | str | None = None,
    retry: Duration | None = None,
    encode: Callable[[Any], str | bytes] = to_json,
    prefetch: int = 64,
    heartbeat: Duration | None = 15.0,
    first_within: Duration = 1.0,
    count: str | None = None,
    max_streams: int = 1000,
    tell_errors: bool = False,
    on_error: Report | None = None,
    headers: Mapping[str, str] | None = None,
    tally: Tally | None = None,
) -> HttpEndpoint[T]:
    """Serve a flow as server-sent events, which browsers read with ``EventSource``.

    *source* is a flow, or a function that makes one of an `HttpRequest`: it may be a coroutine
    function, may raise `Refused`, and returns None when there is nothing to stream. Where each
    element has an *id*, a client that comes again says which one it had last:
    ``request.last_event_id``. *event* names the elements, one and all or each. *retry* is how long
    a browser waits before it comes again. An element that is an `Event` says all that itself.

    ::

        Route("/prices", endpoint=sse(prices, id=lambda price: price["number"]))

    Demand: *prefetch* elements; then as many again as a send that has returned has taken.
    Completes: with an event ``complete``; when the client came again and missed nothing, with 204.
    Fails: before the first element with a status, that of `Refused` or 500; behind it with an event
        ``failure``. Other texts than that of `Refused` stay here, unless *tell_errors*; they go to
        *on_error*, or to the loop's exception handler.
    Cancels: upstream is cancelled at once when the client leaves, or the server stops.
    Holds: *prefetch* elements for each client, and at most 4 KiB of text or one element's.
    Rules: 1.1, 2.1, 2.6, 3.9

    When nothing was sent for *heartbeat* seconds, a comment is. The response begins with the first
    element, or after *first_within* seconds. *count* is the name of a query parameter: with
    ``?n=100`` (``count="n"``) the response ends after so many elements, and without the event
    ``complete``, so that a browser comes again for more. The client after *max_streams* gets 503.
    """
    require_callable("sse", "encode", encode)
    every = None if retry is None else round(to_seconds(retry, "sse: retry", zero=True) * 1000)
    form: EventForm[T] = EventForm(encode, id, event, every)
    manner = manner_of(
        "sse",
        prefetch=prefetch,
        heartbeat=heartbeat,
        first_within=first_within,
        tell_errors=tell_errors,
        on_error=on_error,
        headers=headers,
        tally=tally,
    )
    most = require_int("sse", "max_streams", max_streams, least=1)
    return HttpEndpoint(source, lambda _: form, manner, count, most, "sse")


def ndjson(
    source: Source[T] | Make[T],
    *,
    encode: Callable[[T], str | bytes] = to_json,
    prefetch: int = 64,
    heartbeat: Duration | None = 15.0,
    first_within: Duration = 1.0,
    count: str | None = None,
    max_streams: int = 1000,
    tell_errors: bool = False,
    on_error: Report | None = None,
    headers: Mapping[str, str] | None = None,
    tally: Tally | None = None,
) -> HttpEndpoint[T]:
    """Serve a flow as lines of JSON (``application/x-ndjson``), for programs of any language.

    ::

        Route("/flights", endpoint=ndjson(lambda request: flights(request.query["carrier"])))

    Demand: *prefetch* elements; then as many again as a send that has returned has taken.
    Completes: by the end of the response.
    Fails: before the first element with a status; behind it with a last line
        ``{"$failure":{"status":…,"detail":…}}``.
    Cancels: upstream is cancelled at once when the client leaves, or the server stops.
    Holds: *prefetch* elements for each client, and at most 4 KiB of text or one element's.
    Rules: 1.1, 2.1, 2.6, 3.9

    The heartbeat is a blank line. Everything else is as in `sse`.
    """
    require_callable("ndjson", "encode", encode)
    form: LineForm[T] = LineForm(encode)
    manner = manner_of(
        "ndjson",
        prefetch=prefetch,
        heartbeat=heartbeat,
        first_within=first_within,
        tell_errors=tell_errors,
        on_error=on_error,
        headers=headers,
        tally=tally,
    )
    most = require_int("ndjson", "max_streams", max_streams, least=1)
    return HttpEndpoint(source, lambda _: form, manner, count, most, "ndjson")


def stream(
    source: Source[T] | Make[T],
    *,
    id: Callable[[T], str | int] | None = None,
    event: Callable[[T], str | None] | str | None = None,
    retry: Duration | None = None,
    encode: Callable[[T], str | bytes] = to_json,
    prefetch: int = 64,
    heartbeat: Duration | None = 15.0,
    first_within: Duration = 1.0,
    count: str | None = None,
    max_streams: int = 1000,
    tell_errors: bool = False,
    on_error: Report | None = None,
    headers: Mapping[str, str] | None = None,
    tally: Tally | None = None,
) -> HttpEndpoint[T]:
    """Serve a flow as server-sent events or as lines of JSON, whichever the client accepts.

    Lines are for those who accept both; who accepts neither gets 406. All else is as in `sse` and
    `ndjson`.
    """
    require_callable("stream", "encode", encode)
    every = None if retry is None else round(to_seconds(retry, "stream: retry", zero=True) * 1000)
    lines: LineForm[T] = LineForm(encode)
    events: EventForm[T] = EventForm(encode, id, event, every)
    forms: dict[str, Form] = {lines.media_type: lines, events.media_type: events}

    def choose(request: HttpRequest) -> Form:
        form = chosen(forms, request.headers.get("accept", "*/*"))
        if form is None:
            raise Refused(406, f"this is to be had as {' or '.join(forms)}")
        return form

    manner = manner_of(
        "stream",
        prefetch=prefetch,
        heartbeat=heartbeat,
        first_within=first_within,
        tell_errors=tell_errors,
        on_error=on_error,
        headers={"vary": "accept", **(headers or {})},
        tally=tally,
    )
    most = require_int("stream", "max_streams", max_streams, least=1)
    return HttpEndpoint(source, choose, manner, count, most, "stream")
