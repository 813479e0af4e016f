"""What the metadata of a request mean: the route, its handler, the codecs. Worked out once.

Most requests for a route carry the same bytes of metadata, so that a plan serves all of them.
"""

from collections.abc import Callable
from typing import Any, Final

from ..payloads import BYTES, Codec, UnwritableType, unknown_codec
from ..protocol.connection import Connection
from ..protocol.errors import ProtocolError, RequestInvalid
from ..protocol.frames import ErrorCode, Setup
from ..protocol.metadata import AUTHENTICATION, MIME_TYPE, write_mime_types
from ..protocol.request_metadata import RequestMetadata, read_metadata, write_items
from .request import Request
from .route_stats import Counters, RouteCounters
from .routing import DEFAULT, Handler, Router, no_such_route

_MAX_SETUPS: Final = 16
_MAX_PLANS: Final = 256
_MAX_PLAN_SIZE: Final = 256

Known = dict[bytes | None, "Plan"]


class Plan:
    """How requests with the same metadata are served."""

    __slots__ = ("call", "codec", "counters", "data_codec", "encode", "envelope", "first_metadata",
                 "handler", "separate", "texts")  # fmt: skip

    def __init__(
        self,
        envelope: RequestMetadata,
        found: tuple[Handler, dict[str, str]] | None,
        codecs: tuple[Codec[Any], Codec[Any]],
        counters: RouteCounters,
    ) -> None:
        self.envelope: RequestMetadata = envelope
        self.handler: Handler | None = found and found[0]
        self.texts: dict[str, str] = found[1] if found else {}
        self.data_codec: Codec[Any] = codecs[0]
        self.codec: Codec[Any] = codecs[1]
        self.encode: Callable[[Any], bytes] = _answers_in(codecs[1])
        """Encodes an element of the response."""
        self.counters: RouteCounters = counters
        self.first_metadata: bytes | None = None
        """Goes with the first element: the MIME type chosen, if the peer accepts several."""
        self.call: Callable[[bytes], Any] | None = None
        """Calls the handler with the data of a request, if it takes nothing else."""
        self.separate: int = 0
        """How many more of its coroutines get a task each, since one has suspended."""

    @property
    def task_name(self) -> str:
        return f"rsocket: serves {self.envelope.route}"

    def handle(self, request: Request, most: int) -> Any:
        """Call the handler with *request*, of which up to *most* bytes are decoded."""
        handler = self.handler
        if handler is None:
            raise no_such_route(request.route)
        values = handler.route_arguments(self.texts)
        request._decode = handler.decoder(self.data_codec, most)
        return handler(request, values)


class Plans:
    """The plans of one router: 256 for each of 16 pairs of MIME types, none with credentials."""

    def __init__(self, router: Router, codecs: dict[str, Codec[Any]], counters: Counters) -> None:
        self._router = router
        self._codecs = codecs
        self._counters = counters
        self._known: dict[tuple[str, str], Known] = {}
        self._known_routes = 0

    def known(self, setup: Setup | None) -> Known:
        """The plans that were made for clients with such a *setup*, by the metadata."""
        if self._known_routes != self._router.routes:  # a new route may match better
            self._known.clear()
            self._known_routes = self._router.routes
        if setup is None:
            return {}
        key = setup.metadata_mime, setup.data_mime
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MAX_SETUPS:
                self._known.clear()
            known = self._known[key] = {}
        return known

    def find(self, connection: Connection, metadata: bytes | None) -> Plan:
        """The plan for a request with *metadata*; raises `RequestInvalid` if there is none."""
        setup, limits = connection.setup, connection.limits
        known = self.known(setup)
        plan = known.get(metadata)
        if plan is not None:
            return plan
        try:
            envelope = read_metadata(setup, metadata, limits.max_items)
            plan = self._make(setup, envelope, limits.max_decoded)
        except ProtocolError as error:
            raise RequestInvalid(ErrorCode.INVALID, f"{error}".encode()) from None
        is_secret = any(mime == AUTHENTICATION for mime, _ in envelope.items)
        if len(metadata or b"") <= _MAX_PLAN_SIZE and not is_secret:
            if len(known) >= _MAX_PLANS:
                known.clear()
            known[metadata] = plan
        return plan

    def _make(self, setup: Setup | None, envelope: RequestMetadata, most: int) -> Plan:
        found = self._router.find(envelope.route)
        codecs = self._choose_codecs(setup, envelope)
        pattern = DEFAULT if found is None else found[0].pattern
        plan = Plan(envelope, found, codecs, self._counters.of(pattern))
        if len(envelope.accept) > 1 and setup is not None:
            plan.first_metadata = _chosen_type(setup, plan.codec)
        is_special = envelope.timeout is not None or plan.first_metadata is not None
        if found and found[0].needs_only_data and not is_special:
            handler, texts = found
            try:
                plan.call = handler.bind(codecs[0], handler.route_arguments(texts), most)
            except RequestInvalid:
                pass  # each request is refused, as it is called
        return plan

    def for_push(self, connection: Connection, metadata: bytes | None) -> Plan:
        """The plan for a metadata push; raises `ProtocolError` if there is none."""
        handler = self._router.metadata_push
        if handler is None:
            raise ProtocolError("no function is decorated with @router.on_metadata_push")
        envelope = read_metadata(connection.setup, metadata, connection.limits.max_items)
        return Plan(envelope, (handler, {}), (BYTES, BYTES), RouteCounters())

    # -- types of data -----------------------------------------------------------------------------
    def codec(self, setup: Setup | None) -> Codec[Any]:
        """The codec of a connection; one of bytes for an unknown type."""
        if setup is None:
            return BYTES
        known = self._codecs.get(setup.data_mime)
        return known or unknown_codec(setup.data_mime, tuple(self._codecs))

    def _choose_codecs(
        self, setup: Setup | None, metadata: RequestMetadata
    ) -> tuple[Codec[Any], Codec[Any]]:
        """The codecs for a request's data and for its response; raises `RequestInvalid`."""
        data = self.codec(setup)
        if metadata.mime is not None:
            if metadata.mime not in self._codecs:
                message = f"data of type {metadata.mime} cannot be read here"
                raise RequestInvalid(ErrorCode.INVALID, message.encode())
            data = self._codecs[metadata.mime]
        if not metadata.accept:
            return data, data
        for mime in metadata.accept:
            if mime in self._codecs:
                return data, self._codecs[mime]
        message = f"none of the acceptable types can be written here: {', '.join(metadata.accept)}"
        raise RequestInvalid(ErrorCode.INVALID, message.encode())


def _answers_in(codec: Codec[Any]) -> Callable[[Any], bytes]:
    """What encodes the elements of a response in *codec*, which the requester has chosen.

    If the handler returns something of another type, the request is at fault, and not the service.
    """
    encode = codec.encode

    def answer(value: Any) -> bytes:
        try:
            return encode(value)
        except UnwritableType as error:
            raise RequestInvalid(ErrorCode.INVALID, f"{error}".encode()) from None

    return answer


def _chosen_type(setup: Setup, codec: Codec[Any]) -> bytes | None:
    """Metadata with the MIME type of *codec*."""
    try:
        return write_items(setup.metadata_mime, [(MIME_TYPE, write_mime_types(codec.mime))])
    except ValueError:
        return None  # this connection's metadata has no room for it
