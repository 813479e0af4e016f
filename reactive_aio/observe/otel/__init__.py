"""OpenTelemetry: spans of named flows, their metrics, and traces that go on over RSocket.

::

    from reactive_aio.observe import otel

    async def main():
        with otel.trace(), otel.measure():
            ...  # the service

The extra ``otel`` is needed: the API of OpenTelemetry. Which SDK receives spans and metrics, and
where it sends them, is the program's own choice.
"""

from ...errors import MissingExtra

try:
    from .interceptors import client_interceptor, server_interceptor
    from .meter import measure
    from .spans import trace
except ModuleNotFoundError as _error:
    if (_error.name or "").partition(".")[0] != "opentelemetry":
        raise
    raise MissingExtra("observe.otel", "otel") from _error

__all__ = ("client_interceptor", "measure", "server_interceptor", "trace")
