"""The short way: requests for one element that a plain function answers at once.

What follows from a request's metadata (its route, its handler, the types of data) is found out once
for each; then an answer costs the call of the handler and little more. Whatever is not plain goes
the way of all requests (`serving`): deadlines, authorization, handlers that want more than data.
"""

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from .protocol.errors import ProtocolError, RequestInvalid

if TYPE_CHECKING:
    from collections.abc import Callable

    from .protocol.frames import Setup
    from .responder import RouterResponder

__all__ = ("UNKNOWN", "DirectHandler", "FastResponder")

_PAIRS: Final = 16
_KEPT: Final = 256
UNKNOWN: Final[Any] = object()


class DirectHandler(NamedTuple):
    """A handler that needs nothing but the data, if that, and how its answer is written."""

    call: "Callable[[bytes], Any]"
    encode: "Callable[[Any], bytes]"


Known: TypeAlias = dict[bytes | None, DirectHandler | None]


class FastResponder:
    """Knows which requests are plain, of up to 16 pairs of types and 256 kinds of metadata each."""

    def __init__(self, responder: "RouterResponder") -> None:
        self._responder = responder
        self._known: dict[tuple[str, str], Known] = {}
        self._routes = 0

    def known(self, setup: "Setup | None") -> "Known":
        """What is known of the clients that began by such a *setup*, by metadata."""
        router = self._responder.router
        if self._routes != router.routes:  # one that is new may be a closer fit
            self._known.clear()
            self._routes = router.routes
        if setup is None:
            return {}
        key = setup.metadata_mime, setup.data_mime
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _PAIRS:
                self._known.clear()
            known = self._known[key] = {}
        return known

    def find(self, setup: "Setup | None", metadata: bytes | None) -> DirectHandler | None:
        """How a request with *metadata* is answered, if it is plain."""
        if setup is None:
            return None
        found = self._learn(setup, metadata)
        if self._responder.metadata_cache.holds(setup, metadata):
            known = self.known(setup)
            if len(known) >= _KEPT:
                known.clear()
            known[metadata] = found
        return found

    def _learn(self, setup: "Setup", metadata: bytes | None) -> DirectHandler | None:
        responder = self._responder
        try:
            envelope = responder.metadata_cache.read(setup, metadata)
            if responder.auth.authorize is not None or envelope.timeout is not None:
                return None
            found = responder.router.find(envelope.route)
            if found is None or not found[0].needs_only_data or len(envelope.accept) > 1:
                return None
            handler, texts = found
            read, written = responder.choose_codecs(setup, envelope)
            return DirectHandler(handler.bind(read, handler.route_arguments(texts)), written.encode)
        except (ProtocolError, RequestInvalid):  # it is refused on the long way
            return None
