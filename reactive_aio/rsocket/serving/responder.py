"""The responder: it admits clients, serves requests by a router, and grants leases.

Clients are authenticated, and their requests authorized, by functions of the application. A
publisher of the application limits the requests of the peer: it is requested for one lease, and for
the next when that one is used up or has expired. The publisher thus decides when a lease is
granted, and none is granted ahead.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from inspect import Parameter, isawaitable
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypedDict

from anyio import Event, fail_after, move_on_after

from ..._core.arguments import Duration, require_int, to_seconds
from ..._core.failures import stop_program
from ..._core.loop import CancelledError
from ..._core.time_slice import TimeSlice
from ..._shared.coerce import to_flow
from ..link.callbacks import ends_task, notify
from ..link.driver import Driver
from ..link.shutdown import report_end
from ..option_checks import checked_codecs, require_callback, require_function
from ..payloads import BYTES, JSON, MSGPACK, TEXT, Codec, unknown_codec
from ..protocol.errors import (
    ConnectionLost,
    ProtocolError,
    RequestInvalid,
    RequestRejected,
    StreamFailed,
    is_for_peer,
)
from ..protocol.events import RequestReceived, ResponseRequests
from ..protocol.frames import ErrorCode, MetadataPush, Payload, Resume, Setup
from ..protocol.metadata import Credentials, MetadataItem
from ..protocol.resume import Sessions
from ..protocol.stream_states import InteractionModel
from ..requesting.requester import Requester
from ..requesting.stream_adapters import error_frame
from .direct_responses import (
    SINGLE_TYPES,
    CoroutineResponse,
    CoroutineResponses,
    DirectHandler,
    RequestTuple,
    is_coroutine,
)
from .fire_and_forget import DroppedRequest, FireAndForget
from .interceptors import ConnectionInterceptor, Interceptor, checked, run
from .request import MetadataCache, Request, RequestMetadata, find_credentials, read_items
from .request_execution import RequestExecution
from .request_without_response import FnfRequest, ReceivedPush
from .route_stats import Counters
from .routing import DEFAULT, Router, signature_parameters
from .unserved import STILL_ENDING, may_serve

if TYPE_CHECKING:
    from ...spec import Publisher

TOO_MANY: Final = "the server has too many connections; try again later"
_RESPONSE: Final = InteractionModel.RESPONSE
_FEW: Final = 8
"""So many requests are served without looking at the clock."""
_MAX_SETUPS: Final = 16
_MAX_METADATA: Final = 256
_UNKNOWN: Final[Any] = object()
_POSITIONAL: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
CODECS: Final[dict[str, Codec[Any]]] = {each.mime: each for each in (BYTES, TEXT, JSON, MSGPACK)}


Authenticate: TypeAlias = (
    "Callable[[Credentials | None], Any] | Callable[[Credentials | None, ConnectingClient], Any]"
)
"""Called with the credentials of a SETUP, or None, and the `ConnectingClient` if it takes two
arguments."""

Authorize: TypeAlias = Callable[[Request], Any]
"""Called with a request before it is served."""


@dataclass(frozen=True, slots=True)
class ConnectingClient:
    """A client that is to be authenticated."""

    credentials: Credentials | None
    certificate: dict[str, Any] | None = None
    """The verified certificate of its TLS connection, in the form of
    `ssl.SSLSocket.getpeercert`."""
    address: Any = None
    """Its network address, if the transport knows it."""
    data: bytes = field(default=b"", repr=False)
    """The data of its SETUP."""
    metadata: tuple[MetadataItem, ...] = field(default=(), repr=False)
    """All items of metadata of its SETUP."""


@dataclass(frozen=True, slots=True)
class Lease:
    """Permission for *requests* requests within *ttl* seconds."""

    requests: int
    ttl: Duration
    metadata: bytes | None = None

    def __post_init__(self) -> None:
        require_int("Lease", "requests", self.requests)
        if not 1 <= self.requests < 2**31:
            raise ValueError(f"requests must be from 1 to 2147483647, not {self.requests}")
        if not 0.001 <= to_seconds(self.ttl, "ttl") < 2**31 / 1000:
            raise ValueError(f"ttl must be from a millisecond to 24 days, not {self.ttl}")


class ResponderOptions(TypedDict, total=False):
    """How a router is served, by `serve`, `asgi_app`, `loopback` or `connect`.

    - authenticate: called with the credentials of each client, or None, and the `ConnectingClient`
      if it takes two arguments. Returns the user, or a false value to refuse the client. May be a
      coroutine function.
    - authorize: called with each `Request` before it is served, metadata pushes included. Returns
      False to refuse it, True, or the user of this request. May be a coroutine function.
    - interceptors: called around each request, metadata pushes included, the first one outermost:
      for logging, tracing, metrics. They see requests before `authorize`, and its refusals. See
      `Interceptor`.
    - connection_interceptors: called around `authenticate` for each client. See
      `ConnectionInterceptor`.
    - auth_timeout: the timeout of `authenticate` and `authorize`: 5 seconds.
    - codecs: codecs in addition to those for bytes, text, JSON and MessagePack, by MIME type.
    - leases: called with the user of a client that requires leases; returns the publisher of its
      leases. Without it, such clients are refused.
    - on_connect: called with a requester for each accepted client. May be a coroutine function,
      which is cancelled when the connection has ended.
    - on_close: called with that requester and the reason when the connection has ended.
    - max_fire_and_forget: the maximum number of handlers of fire-and-forget requests and metadata
      pushes that run at the same time for one connection: 256.
    - max_fire_and_forget_total: the same for all connections together: 1024. Each connection may
      always run one.
    - fire_and_forget_overflow: what happens beyond these limits: the connection is not read until a
      handler ends (``wait``, the default), or the request is dropped (``drop_newest``).
    - on_drop: called with each fire-and-forget request and metadata push that no handler processes;
      the first of them is also logged.
    - expose_errors: whether the texts of all exceptions, not only of `StreamFailed`, are sent to
      the peer.
    - on_error: called with exceptions that are not sent to the peer; by default, the loop's handler
      is.
    """

    authenticate: "Authenticate | None"
    authorize: "Authorize | None"
    interceptors: "Sequence[Interceptor]"
    connection_interceptors: "Sequence[ConnectionInterceptor]"
    auth_timeout: Duration
    codecs: dict[str, Codec[Any]] | None
    leases: "Callable[[Any], Publisher[Lease]] | None"
    on_connect: Callable[[Requester[Any]], Any] | None
    on_close: "Callable[[Requester[Any], StreamFailed], object] | None"
    max_fire_and_forget: int
    max_fire_and_forget_total: int
    fire_and_forget_overflow: Literal["wait", "drop_newest"]
    on_drop: "Callable[[DroppedRequest], object] | None"
    expose_errors: bool
    on_error: Callable[[BaseException], object] | None


Handlers: TypeAlias = dict[bytes | None, DirectHandler | None]


class RouterResponder:
    """Serves the requests of one or many connections by a router."""

    def __init__(
        self,
        router: Router,
        *,
        authenticate: "Authenticate | None" = None,
        authorize: "Authorize | None" = None,
        interceptors: "Sequence[Interceptor]" = (),
        connection_interceptors: "Sequence[ConnectionInterceptor]" = (),
        auth_timeout: Duration = 5.0,
        codecs: dict[str, Codec[Any]] | None = None,
        leases: "Callable[[Any], Publisher[Lease]] | None" = None,
        on_connect: Callable[[Requester[Any]], Any] | None = None,
        on_close: "Callable[[Requester[Any], StreamFailed], object] | None" = None,
        expose_errors: bool = False,
        on_error: Callable[[BaseException], object] | None = None,
        max_fire_and_forget: int = 256,
        max_fire_and_forget_total: int = 1024,
        fire_and_forget_overflow: Literal["wait", "drop_newest"] = "wait",
        on_drop: "Callable[[DroppedRequest], object] | None" = None,
    ) -> None:
        self.router: Router = router
        self.metadata_cache: MetadataCache = MetadataCache()
        self.authenticate: Authenticate | None = authenticate
        self.authorize: Authorize | None = authorize
        self.interceptors: tuple[Interceptor, ...] = checked("interceptors", interceptors)
        self._connection_interceptors: tuple[ConnectionInterceptor, ...] = checked(
            "connection_interceptors", connection_interceptors
        )
        self.counters: Counters = Counters()
        self.leases: Callable[[Any], Publisher[Lease]] | None = leases
        self._passes_client = authenticate is not None and _takes_two(authenticate)
        self._auth_timeout = to_seconds(auth_timeout, "auth_timeout")
        self._direct_handlers: dict[tuple[str, str], Handlers] = {}
        """The direct handlers found: for 16 pairs of MIME types, and 256 kinds of metadata each."""
        self._cached_routes = 0
        self._sessions: Sessions[tuple[Driver, bytes | None]] = Sessions()
        """The resumable sessions, with the TLS certificates of their clients."""
        self._codecs = CODECS | checked_codecs(codecs)
        self._on_connect = on_connect
        self._on_close = on_close
        require_callback("on_close", on_close, 2)
        for name, callback in (("on_error", on_error), ("on_drop", on_drop), ("leases", leases)):
            require_callback(name, callback, 1)
        for name, function in (("authorize", authorize), ("on_connect", on_connect)):
            require_function(name, function, 1)
        self._expose_errors = expose_errors
        self._on_error = on_error
        self._leases_over: dict[Driver, Event] = {}
        """Set when the lease of a connection is used up, or void since the session was resumed."""
        self.refused_connections: int = 0
        self.has_place: Callable[[Driver], bool] = lambda _: True
        """Whether the client of a driver may have one more connection."""
        """The number of clients refused because too many connections were open."""
        self.fire_and_forget: FireAndForget = FireAndForget(
            max_fire_and_forget,
            max_fire_and_forget_total,
            fire_and_forget_overflow,
            on_drop,
            self.report,
        )

    @property
    def dropped_requests(self) -> int:
        """The number of fire-and-forget requests and metadata pushes that no handler processed."""
        return self.fire_and_forget.dropped

    def handle(self, driver: Driver, event: object) -> bool:
        """Act on an event of *driver*, if it is one for a responder."""
        handler = _ON_EVENT.get(type(event))
        if handler is None:
            return False
        handler(self, driver, event)
        return True

    # -- admission ---------------------------------------------------------------------------------
    def admit(self, driver: Driver, setup: Setup) -> None:
        """Accept or reject a client, now or later."""
        if driver.is_resume_only or not self.has_place(driver):
            self.refused_connections += 1
            # Not a refusal of the SETUP: the client may succeed later, with the same one.
            driver.reject(TOO_MANY, ErrorCode.CONNECTION_ERROR)
            return
        if self.authenticate is None and not self._connection_interceptors:
            self._accept(driver, setup)
            return
        timer = driver.loop_handle.call_later(
            self._auth_timeout, driver.reject, "authentication took too long"
        )
        task = driver.create_task(self._authenticate(driver, setup), "rsocket: authentication")
        if task is not None:
            task.add_done_callback(lambda _: timer.cancel())

    async def _authenticate(self, driver: Driver, setup: Setup) -> None:
        user: Any = None
        try:
            most = driver.connection.limits.max_items
            items = read_items(setup, setup.payload.metadata, most)
            client = ConnectingClient(
                find_credentials(items),
                certificate=driver.get_extra_info("peercert") or None,
                address=driver.get_extra_info("peername"),
                data=setup.payload.data,
                metadata=items,
            )
            user = await self._in_time(run(self._connection_interceptors, client, self._user_of))
        except ProtocolError:
            driver.reject("the credentials cannot be read")
            return
        except BaseException as error:
            if ends_task(driver.loop_handle, error):
                raise
            self.report(driver, error)
        if user:
            driver.user = None if self.authenticate is None and user is True else user
            self._accept(driver, setup)
        else:
            driver.reject("authentication failed")

    async def _user_of(self, client: ConnectingClient) -> Any:
        """The result of `authenticate`; True without it."""
        authenticate: Any = self.authenticate
        if authenticate is None:
            return True
        given = [client.credentials, client] if self._passes_client else [client.credentials]
        user = authenticate(*given)
        return await user if isawaitable(user) else user

    @property
    def is_guarded(self) -> bool:
        """Whether something is called, and perhaps awaited, before a handler."""
        return self.authorize is not None or bool(self.interceptors)

    async def check(self, request: Request) -> None:
        """Raise `RequestRejected` unless *request* is authorized."""
        if self.authorize is None:
            return
        try:
            user = await self._in_time(self.authorize(request))
        except TimeoutError:
            message = b"authorization took too long"
            raise RequestRejected(ErrorCode.REJECTED, message) from None
        if not user:
            raise RequestRejected(ErrorCode.REJECTED, b"not authorized")
        if user is not True:
            request.user = user

    async def _in_time(self, result: Any) -> Any:
        """The *result* of one of the application's functions, which may have to be awaited."""
        if isawaitable(result):
            with fail_after(self._auth_timeout):
                return await result
        return result

    def _accept(self, driver: Driver, setup: Setup) -> None:
        token = setup.token
        if token is not None:
            if not self._sessions.add(token, (driver, _certificate(driver))):
                driver.reject("the session cannot be kept")
                return
            driver.add_close_callback(lambda _: self._sessions.remove(token))
        driver.accept()
        self.begin(driver)

    def begin(self, driver: Driver) -> None:
        """Grant leases on a new connection, on either side, and call `on_connect`."""
        setup = driver.connection.setup
        peer: Requester[Any] = Requester(driver, self.codec(setup))
        if self._on_close is not None:
            report_end(driver, self._on_close, peer)
        if setup is not None and setup.lease and self.leases is not None:
            granting = self._grant(driver, self.leases)
            # Not a task of the driver, which would linger for it when the peer has closed.
            task = driver.loop_handle.create_task(granting, "rsocket: grants leases")
            driver.add_resume_callback(lambda: self._end_lease(driver))
            driver.add_close_callback(lambda _: task.cancel())
        if self._on_connect is None:
            return
        try:
            result = self._on_connect(peer)
            if isawaitable(result):
                work = self._await(driver, result)
                driver.create_background_task(work, "rsocket: for a connection")
        except BaseException as error:
            self.report(driver, error)

    async def _grant(self, driver: Driver, leases: "Callable[[Any], Publisher[Lease]]") -> None:
        """Grant the peer one lease after the other."""
        connection = driver.connection
        try:
            async with to_flow(leases(driver.user)).stream(prefetch=1) as requested:
                async for lease in requested:
                    over = self._leases_over[driver] = Event()
                    ttl = None
                    if not connection.is_suspended:
                        ttl = to_seconds(lease.ttl, "ttl")
                        milliseconds = round(ttl * 1000)
                        connection.grant_lease(lease.requests, milliseconds, lease.metadata)
                        driver.schedule_turn()
                    with move_on_after(ttl):
                        await over.wait()
        except BaseException as error:
            if ends_task(driver.loop_handle, error):
                raise
            message = "the publisher of leases failed: no more are granted"
            driver.loop_handle.report(message, error)
            stop_program(driver.loop_handle, error)
        finally:
            self._leases_over.pop(driver, None)

    def _end_lease(self, driver: Driver) -> None:
        if (over := self._leases_over.get(driver)) is not None:
            over.set()

    async def _await(self, driver: Driver, result: Any) -> None:
        try:
            await result
        except BaseException as error:
            if ends_task(driver.loop_handle, error):
                raise
            self.report(driver, error)

    def resume(self, driver: Driver, frame: Resume) -> None:
        """Continue a session on the transport of *driver*, or reject the connection.

        The token of a session, 128 random bits, grants access to it. A session that began with a
        TLS client certificate requires the same certificate again.
        """
        session, certificate = self._sessions.find(frame.token) or (None, None)
        if session is None or certificate != _certificate(driver):
            driver.reject("there is no such session")
        elif not session.take_over(driver, frame):
            driver.reject("the session cannot go on")

    # -- requests ----------------------------------------------------------------------------------
    def serve(self, driver: Driver, request: RequestReceived) -> None:
        """Call the handler of a request; an exception is sent as the response."""
        if request.model is _RESPONSE:
            data, metadata = request.payload
            self.respond(driver, ResponseRequests([(request.stream_id, data, metadata)]))
        elif request.model is InteractionModel.FNF:
            self.fire_and_forget.run(driver, FnfRequest(self, driver, request))
        elif driver.ending < driver.connection.limits.max_streams:
            self._begin(driver, request, RequestExecution.begin)
        else:
            refusal = RequestRejected(ErrorCode.REJECTED, STILL_ENDING)
            self.refuse(driver, request.stream_id, refusal)
        if self._leases_over:
            granted = driver.connection.granted_lease
            if granted is not None and granted.requests < 1:
                self._end_lease(driver)

    def respond(self, driver: Driver, event: ResponseRequests) -> None:
        """Serve requests for one element, for a time slice; the others wait for the next turn."""
        requests = event.requests
        coroutines: CoroutineResponses | None = None
        if len(requests) <= _FEW:
            coroutines = self._respond(driver, requests, coroutines)
        else:
            end, batch, time = 0, _FEW, TimeSlice()
            time.start_slice()
            while end < len(requests) and not time.is_slice_over:
                begin, end = end, end + batch
                coroutines = self._respond(driver, requests[begin:end], coroutines)
                batch = time.next_batch_size(batch)
            if end < len(requests):
                driver.hold_requests(requests[end:])
        if coroutines is not None:
            coroutines.start()
        driver.schedule_turn()

    def _respond(
        self,
        driver: Driver,
        several: list[RequestTuple],
        coroutines: CoroutineResponses | None,
    ) -> CoroutineResponses | None:
        """Serve *several* as long as the peer reads the responses; *coroutines*, with theirs."""
        setup, output = driver.connection.setup, driver.connection.streams.output
        is_held = driver.unserved or not may_serve(driver)
        size, free = 0, -1 if is_held else driver.connection.limits.watermark
        known = self._handlers_of(setup)
        responses: list[tuple[int, bytes]] = []
        requests = iter(several)
        for request in requests:
            if output.queued_bytes + size > free and (is_held or not may_serve(driver, size)):
                driver.hold_requests([request, *requests])
                break
            stream_id, data, metadata = request
            direct = known.get(metadata, _UNKNOWN)
            if direct is _UNKNOWN:
                direct = self._find_direct_handler(driver, metadata)
            if direct is None:
                self._begin(driver, _requested(*request), RequestExecution.begin)
                continue
            try:
                result = direct.call(data)
                if type(result) in SINGLE_TYPES:
                    encoded = direct.encode(result)
                    responses.append((stream_id, encoded))
                    size += len(encoded)
                    direct.counters.answered += 1
                    continue
            except BaseException as error:
                self._refuse_directly(driver, direct, stream_id, error)
                continue
            if is_coroutine(result):
                coroutines = coroutines or CoroutineResponses(self, driver)
                coroutines.add(CoroutineResponse(driver, direct, request, result))
            else:
                begin = partial(RequestExecution.handle_result, result=result)
                self._begin(driver, _requested(*request), begin)
        if responses:
            driver.connection.fast_path.respond_all(responses)
        return coroutines

    def _refuse_directly(
        self, driver: Driver, direct: DirectHandler, stream_id: int, error: BaseException
    ) -> None:
        direct.counters.requests += 1
        direct.counters.count_error(error)
        self.refuse(driver, stream_id, error)

    def _handlers_of(self, setup: Setup | None) -> Handlers:
        """The handlers found for clients with such a *setup*, by the metadata of their requests."""
        if self._cached_routes != self.router.routes:  # a new route may match better
            self._direct_handlers.clear()
            self._cached_routes = self.router.routes
        if setup is None:
            return {}
        key = setup.metadata_mime, setup.data_mime
        handlers = self._direct_handlers.get(key)
        if handlers is None:
            if len(self._direct_handlers) >= _MAX_SETUPS:
                self._direct_handlers.clear()
            handlers = self._direct_handlers[key] = {}
        return handlers

    def _find_direct_handler(self, driver: Driver, metadata: bytes | None) -> DirectHandler | None:
        """The direct handler of requests with *metadata*; None if they need an execution."""
        setup, limits = driver.connection.setup, driver.connection.limits
        if setup is None:
            return None
        found: DirectHandler | None = None
        try:
            envelope = self.metadata_cache.read(setup, metadata, limits.max_items)
            match = self.router.find(envelope.route)
            is_special = envelope.timeout is not None or len(envelope.accept) > 1
            if match and match[0].needs_only_data and not (self.is_guarded or is_special):
                handler, texts = match
                read, written = self.choose_codecs(setup, envelope)
                call = handler.bind(read, handler.route_arguments(texts), limits.max_decoded)
                counters = self.counters.of(handler.pattern)
                name = f"rsocket: serves {handler.pattern}"
                found = DirectHandler(call, written.encode, counters, name)
        except (ProtocolError, RequestInvalid):
            pass  # the execution refuses it
        if self.metadata_cache.holds(setup, metadata):
            handlers = self._handlers_of(setup)
            if len(handlers) >= _MAX_METADATA:
                handlers.clear()
            handlers[metadata] = found
        return found

    def send_result(self, driver: Driver, request: RequestTuple, value: Any) -> None:
        """Send what the coroutine of a handler has returned."""
        self._begin(driver, _requested(*request), partial(RequestExecution.send, value=value))

    def _begin(
        self, driver: Driver, request: RequestReceived, begin: Callable[[RequestExecution], object]
    ) -> None:
        served: RequestExecution | None = None
        try:
            served = RequestExecution(self, driver, request)
            begin(served)
        except BaseException as error:
            if served is None:
                self.counters.of(DEFAULT).requests += 1
                self.counters.of(DEFAULT).count_error(error)
                self.refuse(driver, request.stream_id, error)
            else:
                served.refuse(error)

    def refuse(self, driver: Driver, stream_id: int, error: BaseException) -> None:
        code, data = self.error_frame(driver, error)
        driver.connection.fail_stream(stream_id, code, data)
        driver.schedule_turn()

    def pushed(self, driver: Driver, frame: MetadataPush) -> None:
        """Metadata for the whole connection."""
        self.fire_and_forget.run(driver, ReceivedPush(self, driver, frame))

    def error_frame(self, driver: Driver, error: BaseException) -> tuple[int, bytes]:
        """The error frame for *error*, which is reported unless it is meant for the peer."""
        if isinstance(error, CancelledError):
            return ErrorCode.CANCELED, b""
        if not is_for_peer(error, driver.streams.origin) and not isinstance(error, ConnectionLost):
            self.report(driver, error)
        return error_frame(driver, error, self._expose_errors)

    def report(self, driver: Driver, error: BaseException) -> None:
        """Report an exception that is not sent to the peer; one that stops the program does so."""
        on_error, loop_handle = self._on_error, driver.loop_handle
        if on_error is None or not notify(loop_handle, "on_error", on_error, error):
            loop_handle.report("an RSocket handler failed", error)
        stop_program(loop_handle, error)

    # -- types of data -----------------------------------------------------------------------------
    def codec(self, setup: Setup | None) -> Codec[Any]:
        """The codec of a connection; one of bytes for an unknown type."""
        if setup is None:
            return BYTES
        known = self._codecs.get(setup.data_mime)
        return known or unknown_codec(setup.data_mime, tuple(self._codecs))

    def choose_codecs(
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


_ON_EVENT: Final[dict[type[Any], Callable[[RouterResponder, Driver, Any], object]]] = {
    RequestReceived: RouterResponder.serve,
    ResponseRequests: RouterResponder.respond,
    Setup: RouterResponder.admit,
    Resume: RouterResponder.resume,
    MetadataPush: RouterResponder.pushed,
}


def _takes_two(function: Authenticate) -> bool:
    require_function("authenticate", function)
    kinds = [each.kind for each in signature_parameters(function).values()]
    takes_two = Parameter.VAR_POSITIONAL in kinds or sum(each in _POSITIONAL for each in kinds) > 1
    require_function("authenticate", function, 2 if takes_two else 1)
    return takes_two


def _certificate(driver: Driver) -> bytes | None:
    tls = driver.get_extra_info("ssl_object")
    return None if tls is None else tls.getpeercert(binary_form=True)


def _requested(stream_id: int, data: bytes, metadata: bytes | None) -> RequestReceived:
    return RequestReceived(stream_id, _RESPONSE, Payload(data, metadata))
