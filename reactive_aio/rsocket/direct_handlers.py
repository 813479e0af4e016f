"""Requests for one element that a plain function answers at once.

The meaning of a request's metadata (route, handler, codecs) is the same each time: it is worked out
once, and a response then costs little more than the call of the handler. Requests that need more (a
deadline, authorization, a handler with other arguments than the data) are served by a
`RequestExecution`. This is how the batches of the protocol's `fast_path` are answered.
"""

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from .protocol.errors import ProtocolError, RequestInvalid

if TYPE_CHECKING:
    from collections.abc import Callable

    from .protocol.frames import Setup
    from .request_execution import RequestServices

__all__ = ("UNKNOWN", "DirectHandler", "DirectHandlers")

_MAX_SETUPS: Final = 16
_MAX_METADATA: Final = 256
UNKNOWN: Final[Any] = object()


class DirectHandler(NamedTuple):
    """A handler that needs at most the data, and the encoder of its response."""

    call: "Callable[[bytes], Any]"
    encode: "Callable[[Any], bytes]"


Handlers: TypeAlias = dict[bytes | None, DirectHandler | None]


class DirectHandlers:
    """A cache of direct handlers: of 16 pairs of MIME types, and of 256 kinds of metadata each."""

    def __init__(self, services: "RequestServices") -> None:
        self._services = services
        self._handlers: dict[tuple[str, str], Handlers] = {}
        self._routes = 0

    def of_setup(self, setup: "Setup | None") -> "Handlers":
        """The handlers found for clients with such a *setup*, by the metadata of their requests."""
        router = self._services.router
        if self._routes != router.routes:  # a new route may match better
            self._handlers.clear()
            self._routes = router.routes
        if setup is None:
            return {}
        key = setup.metadata_mime, setup.data_mime
        handlers = self._handlers.get(key)
        if handlers is None:
            if len(self._handlers) >= _MAX_SETUPS:
                self._handlers.clear()
            handlers = self._handlers[key] = {}
        return handlers

    def find(self, setup: "Setup | None", metadata: bytes | None) -> DirectHandler | None:
        """The direct handler of requests with *metadata*; None if they need an execution."""
        if setup is None:
            return None
        found = self._resolve(setup, metadata)
        if self._services.metadata_cache.holds(setup, metadata):
            handlers = self.of_setup(setup)
            if len(handlers) >= _MAX_METADATA:
                handlers.clear()
            handlers[metadata] = found
        return found

    def _resolve(self, setup: "Setup", metadata: bytes | None) -> DirectHandler | None:
        services = self._services
        try:
            envelope = services.metadata_cache.read(setup, metadata)
            if services.auth.authorize is not None or envelope.timeout is not None:
                return None
            found = services.router.find(envelope.route)
            if found is None or not found[0].needs_only_data or len(envelope.accept) > 1:
                return None
            handler, texts = found
            read, written = services.choose_codecs(setup, envelope)
            return DirectHandler(handler.bind(read, handler.route_arguments(texts)), written.encode)
        except (ProtocolError, RequestInvalid):  # the execution refuses it
            return None
