"""Interceptors for RSocket: a span for each request, and a trace that goes on at the other side.

The context of a trace travels in an item of the metadata of the request: one line for each header
of the propagators that are configured, by default those of W3C Trace Context and Baggage.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from opentelemetry import context, propagate, trace as api
from opentelemetry.context import Context

from ..._sources.values import defer
from ...flow import Flow
from .spans import note_failure, tracer_in_use

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from ...rsocket import OutgoingRequest, Request

__all__ = ("TRACE_CONTEXT", "client_interceptor", "server_interceptor")

TRACE_CONTEXT: Final = "application/x.reactive-aio.trace-context.v0"
"""The MIME type of the item."""
_MOST_BYTES: Final = 16_384


def client_interceptor(
    request: "OutgoingRequest", proceed: "Callable[[OutgoingRequest], Any]"
) -> Any:
    """Give each request of a client a span, and send its context.

    ``connect(uri, interceptors=[otel.client_interceptor])``. The span has the name of the route. It
    is a child of the current one: for a stream or a channel, of that where the flow is subscribed
    to; each subscription has its own, and requests at most 256 elements at a time. The metadata of
    the connection must be composite, as it is by default.
    """
    if request.model.name not in ("STREAM", "CHANNEL"):
        return _response(request, proceed)

    def traced() -> Flow[Any]:
        span, current = _client_span(request)
        return _ending(span, proceed(_with_context(request, current)))

    return defer(traced)


async def _response(
    request: "OutgoingRequest", proceed: "Callable[[OutgoingRequest], Awaitable[Any]]"
) -> Any:
    span, current = _client_span(request)
    try:
        return await proceed(_with_context(request, current))
    except Exception as error:
        note_failure(span, error)
        raise
    finally:
        span.end()


def _client_span(request: "OutgoingRequest") -> tuple[api.Span, Context]:
    span = _start(request.route or "", request.model.name, api.SpanKind.CLIENT, None)
    return span, api.set_span_in_context(span)


def _with_context(request: "OutgoingRequest", current: Context) -> "OutgoingRequest":
    carrier: dict[str, str] = {}
    propagate.inject(carrier, current)
    if not carrier:
        return request
    content = "\n".join(f"{name}:{value}" for name, value in carrier.items())
    item = (TRACE_CONTEXT, content.encode())
    return replace(request, metadata=[*request.metadata, item])


async def server_interceptor(
    request: "Request", proceed: "Callable[[Request], Awaitable[Any]]"
) -> Any:
    """Give each request that is served a span, in the trace of its client.

    ``serve(uri, router, interceptors=[otel.server_interceptor])``. The span has the name of the
    route. It is current in the handler, and in the flow that the handler returns, with whose end it
    ends. Put this interceptor first, so that the span includes the others, and what they refuse.
    """
    # Without the client's context it begins a trace, which is not that of the server's start.
    current = propagate.extract(_carrier(request.item(TRACE_CONTEXT)), Context())
    span = _start(request.route, request.model.name, api.SpanKind.SERVER, current)
    token = context.attach(api.set_span_in_context(span, current))
    is_stream = False
    try:
        result = await proceed(request)
        is_stream = _is_flow(result)
    except Exception as error:
        note_failure(span, error)
        raise
    finally:
        if not is_stream:
            span.end()
            context.detach(token)
    # It stays attached for a stream: the flow is subscribed to in the task of this request.
    return _ending(span, result) if _is_flow(result) else result


def _is_flow(result: object) -> "TypeGuard[Flow[Any]]":
    return isinstance(result, Flow)


def _carrier(item: bytes | None) -> dict[str, str]:
    """The headers in an item of metadata, which any client may have made."""
    if item is None or len(item) > _MOST_BYTES:
        return {}
    lines: Iterable[str] = item.decode("utf-8", "replace").splitlines()
    pairs = (line.partition(":") for line in lines)
    return {name.strip().lower(): value.strip() for name, colon, value in pairs if colon}


def _start(route: str, model: str, kind: api.SpanKind, current: Context | None) -> api.Span:
    attributes = {"rpc.system": "rsocket", "rpc.method": route, "rsocket.model": model.lower()}
    name = route or f"rsocket {model.lower()}"
    return tracer_in_use().start_span(name, current, kind, attributes)


def _ending(span: api.Span, flow: Flow[Any]) -> Flow[Any]:
    """*flow*, with whose end the span ends."""

    def note_error(error: BaseException) -> None:
        note_failure(span, error)

    def end_span(_: object) -> None:
        span.end()

    return flow.do_on_error(note_error).do_finally(end_span)
