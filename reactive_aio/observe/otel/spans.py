"""A span for each subscription of a named flow."""

import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from opentelemetry import context, propagate, trace as api

from ..._core.compiler.error_notes import short_text
from ..._core.observation.figures import held_by
from ..._core.observation.tracing import End, OnEnd, current_tracer, set_tracer

if TYPE_CHECKING:
    from ..._core.subscription.island import Island

__all__ = ("trace",)

SCOPE: Final = "reactive_aio"
"""The name of the instrumentation scope."""
_MOST_TRAIL: Final = 1000


@contextmanager
def trace(tracer_provider: "api.TracerProvider | None" = None) -> Generator[None]:
    """Make a span of each subscription of a named flow that begins inside the block.

    The span has the name of the flow. Its parent is the span that is current where the flow is
    subscribed to. It is itself current in all that is upstream of the name: functions of operators,
    the threads of ``map_in_thread`` and ``from_thread``, and named flows, whose spans are its
    children. It ends with the subscription:

    * ``reactive_aio.outcome``: completed, failed or cancelled
    * ``reactive_aio.delivered``: elements that have passed the name
    * ``reactive_aio.discarded``: elements that its parts held when it ended
    * ``reactive_aio.operators``: the operators from the sources to the consumer

    A failure sets the status, and is recorded with its traceback; so is each error after
    which something was tried again, as an event. Without *tracer_provider*, the global one is used.
    A subscription that is freed without an end has no span.
    """
    tracer = _FlowTracer(api.get_tracer(SCOPE, tracer_provider=tracer_provider))
    set_tracer(tracer)
    try:
        yield
    finally:
        set_tracer(None)


def tracer_in_use() -> api.Tracer:
    """That of the block of `trace`, or else that of the global provider."""
    tracer = current_tracer()
    return tracer.tracer if isinstance(tracer, _FlowTracer) else api.get_tracer(SCOPE)


def note_failure(span: api.Span, error: BaseException) -> None:
    """*span* has failed with *error*."""
    span.set_status(api.StatusCode.ERROR, short_text(error))
    span.record_exception(error)


class _FlowTracer:
    """What the SDK raises, or an extension of it, is logged: it must not fail a flow."""

    def __init__(self, tracer: api.Tracer) -> None:
        self.tracer: Final = tracer

    def begin(self, name: str, subscription: "Island", /) -> OnEnd:
        span: api.Span = api.INVALID_SPAN
        with _logged():
            span = subscription.loop_handle.context.run(self._start, name)
        return partial(_end, span)

    def _start(self, name: str) -> api.Span:
        """In the context of the subscription, in which the span stays the current one."""
        span = self.tracer.start_span(name)
        context.attach(api.set_span_in_context(span))
        return span

    def retried(self, error: BaseException, /) -> None:
        with _logged():
            api.get_current_span().record_exception(error, {"reactive_aio.retried": True})

    def headers(self) -> Mapping[str, str]:
        carrier: dict[str, str] = {}
        with _logged():
            propagate.inject(carrier)
        return carrier


def _end(span: api.Span, subscription: "Island", end: End) -> None:
    with _logged():
        if span.is_recording():
            _describe(span, subscription, end)
    with _logged():
        span.end()


def _describe(span: api.Span, subscription: "Island", end: End) -> None:
    span.set_attributes(
        {
            "reactive_aio.outcome": end.outcome,
            "reactive_aio.delivered": end.delivered,
            "reactive_aio.discarded": held_by(subscription),
            "reactive_aio.operators": subscription.chain.trail()[:_MOST_TRAIL],
        }
    )
    if end.error is not None:
        note_failure(span, end.error)


@contextmanager
def _logged() -> Generator[None]:
    try:
        yield
    except Exception:
        logging.getLogger("reactive_aio").exception("observe.otel: a span is incomplete")
