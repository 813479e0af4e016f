"""The responder: it admits clients, serves requests by a router, and grants leases.

Clients are authenticated, and their requests authorized, by functions of the application. A
publisher of the application limits the requests of the peer: it is requested for one lease, and for
the next when that one is used up or has expired. The publisher thus decides when a lease is
granted, and none is granted ahead.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from inspect import Parameter, isawaitable
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypedDict

from anyio import Event, fail_after, move_on_after

from ..._core.arguments import Duration, require_int, to_seconds
from ..._core.failures import stop_program
from ..._core.loop import CancelledError
from ..._shared.coerce import to_flow
from ..link.callbacks import ends_task, notify
from ..link.driver import Driver
from ..link.intake import STILL_ENDING, EndingHandlers
from ..link.shutdown import report_end
from ..link.turns import Turns
from ..option_checks import checked_codecs, require_callback, require_function
from ..payloads import BYTES, JSON, MSGPACK, TEXT, Codec
from ..protocol.errors import (
    ProtocolError,
    RequestInvalid,
    RequestRejected,
    StreamFailed,
    is_for_peer,
    is_loss_of,
)
from ..protocol.events import RequestReceived, ResponseRequests
from ..protocol.frames import ErrorCode, MetadataPush, Payload, Resume, Setup
from ..protocol.metadata import Credentials, MetadataItem
from ..protocol.request_metadata import find_credentials, read_items
from ..protocol.resume import Sessions
from ..protocol.stream_states import InteractionModel
from ..requesting.interceptors import checked, run
from ..requesting.requester import Requester
from ..requesting.stream_adapters import error_frame
from .execution import SILENT, Execution
from .fire_and_forget import DroppedRequest, FireAndForget
from .plans import Plans
from .request import Interceptor, Request
from .route_stats import Counters
from .routing import DEFAULT, Router, signature_parameters
from .shared_tasks import Batch

if TYPE_CHECKING:
    from ...spec import Publisher
    from .client_places import ClientPlaces

_RESPONSE: Final = InteractionModel.RESPONSE
_SESSIONS_SHARE: Final = 2
"""Sessions that wait for their clients hold at most this share of the budget of the process."""
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


ConnectionInterceptor: TypeAlias = Callable[
    [ConnectingClient, Callable[[ConnectingClient], Awaitable[Any]]], Any
]
"""Called with each `ConnectingClient`, and with ``proceed``: ``await proceed(client)`` returns the
user, or a false value for a client that is refused. It returns the same."""


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


class RouterResponder:
    """Serves the requests of one or many connections by a router."""

    refused_connections: int = 0
    """The number of clients refused because too many connections were open."""
    unread_connections: int = 0
    """The number of connections that were ended since the client did not read."""
    admission: "ClientPlaces | None" = None
    """Which clients have a place; all of them if it is None."""

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
        self.sessions: Sessions[tuple[Driver, bytes | None]] = Sessions()
        """The resumable sessions, with the TLS certificates of their clients."""
        self.plans: Plans = Plans(router, CODECS | checked_codecs(codecs), self.counters)
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
        self.ending_handlers: EndingHandlers = EndingHandlers()
        self.turns: Turns = Turns()
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

    def held_bytes(self, driver: Driver) -> int:
        """The bytes of requests of *driver* without a response that wait."""
        return self.fire_and_forget.held_bytes(driver)

    def handle(self, driver: Driver, event: object, /) -> bool:
        """Act on an event of *driver*, if it is one for a responder."""
        handler = _ON_EVENT.get(type(event))
        if handler is None:
            return False
        handler(self, driver, event)
        return True

    # -- admission ---------------------------------------------------------------------------------
    def admit(self, driver: Driver, setup: Setup) -> None:
        """Accept or reject a client, now or later."""
        if self.admission is not None and (reason := self.admission.set_up(driver)):
            self._refuse_for_now(driver, reason)
            return
        if self.authenticate is None and not self._connection_interceptors:
            self._accept(driver, setup)
            return
        timer = driver.loop_handle.call_later(
            self._auth_timeout, driver.reject, "authentication took too long"
        )
        task = driver.tasks.create(self._authenticate(driver, setup), "rsocket: authentication")
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

    def _refuse_for_now(self, driver: Driver, reason: str) -> None:
        """Not a refusal of the SETUP: the client may succeed later, with the same one."""
        self.refused_connections += 1
        driver.reject(reason, ErrorCode.CONNECTION_ERROR)

    def _accept(self, driver: Driver, setup: Setup) -> None:
        if not driver.connection.is_awaiting_accept:
            return  # it took too long
        if self.admission is not None and (reason := self.admission.serve(driver)):
            self._refuse_for_now(driver, reason)
            return
        token = setup.token
        if token is not None:
            if self.sessions.is_full and self.admission is not None:
                self._end_session(self.admission)
            if self.sessions.is_full:
                self._refuse_for_now(driver, "the server has too many sessions; try again later")
                return
            if not self.sessions.add(token, (driver, _certificate(driver))):
                driver.reject("the session cannot be kept")
                return
            driver.add_close_callback(lambda _: self.sessions.remove(token))
            driver.on_suspended = self._suspended
        driver.accept()
        self.begin(driver)

    def _suspended(self, driver: Driver) -> None:
        """The session of *driver* waits for its client, and holds what it may need.

        Sessions cost who leaves them behind nothing. So all that wait may hold a share of the
        budget, the rest of which is for clients that are there.
        """
        if (admission := self.admission) is not None:
            admission.suspended(driver)
            most = driver.connection.limits.budget.most // _SESSIONS_SHARE
            while admission.waiting_bytes > most and len(admission.waiting) > 1:
                self._end_session(admission)

    def _end_session(self, admission: "ClientPlaces") -> None:
        """End a session that waits for its client, if there is one."""
        other = admission.least_wanted()
        setup = None if other is None else other.connection.setup
        if other is not None and setup is not None and setup.token is not None:
            self.sessions.remove(setup.token)
            other.ending.give_up(ErrorCode.CONNECTION_ERROR, "the server has too many sessions")

    def begin(self, driver: Driver) -> None:
        """Grant leases on a new connection, on either side, and call `on_connect`."""
        setup = driver.connection.setup
        peer: Requester[Any] = Requester(driver, self.plans.codec(setup))
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
                driver.tasks.create_background(work, "rsocket: for a connection")
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
        session, certificate = self.sessions.find(frame.token) or (None, None)
        if session is None or certificate != _certificate(driver):
            driver.reject("there is no such session")
        elif not session.take_over(driver, frame):
            driver.reject("the session cannot go on")
        elif self.admission is not None:
            self.admission.resumed(session)

    # -- requests ----------------------------------------------------------------------------------
    def serve(self, driver: Driver, request: RequestReceived) -> None:
        """Call the handler of a request; an exception is sent as the response, if there is one."""
        model, stream_id, payload = request.model, request.stream_id, request.payload
        most = driver.connection.limits.max_streams
        try:
            if model not in SILENT and driver.intake.ending >= most:
                raise RequestRejected(ErrorCode.REJECTED, STILL_ENDING)
            is_push = model is InteractionModel.PUSH
            find = self.plans.for_push if is_push else self.plans.find
            plan = find(driver.connection, payload.metadata)
        except (RequestInvalid, RequestRejected, ProtocolError) as error:
            if model in SILENT:
                self.drop(driver, model, payload, str(error))
            else:
                self.refuse(driver, stream_id, error)
        else:
            execution = Execution(self, driver, plan, model, stream_id, payload)
            if model in SILENT:
                self.fire_and_forget.run(execution)
            else:
                execution.begin()
        self._lease_used(driver)

    def respond(self, driver: Driver, event: ResponseRequests) -> None:
        """Serve requests for one element."""
        Batch(self, driver).serve(event.requests)
        self._lease_used(driver)

    def pushed(self, driver: Driver, frame: MetadataPush) -> None:
        """Metadata for the whole connection: a request without data or a response."""
        payload = Payload(b"", frame.metadata)
        self.serve(driver, RequestReceived(0, InteractionModel.PUSH, payload))

    def _lease_used(self, driver: Driver) -> None:
        if self._leases_over:
            granted = driver.connection.granted_lease
            if granted is not None and granted.requests < 1:
                self._end_lease(driver)

    def drop(self, driver: Driver, model: InteractionModel, payload: Payload, reason: str) -> None:
        """Account for a request without a response that no handler processes."""
        self.fire_and_forget.drop(driver, model, payload, reason)

    def refuse(self, driver: Driver, stream_id: int, error: BaseException) -> None:
        """Send *error* in answer to a request for which there is no plan."""
        counters = self.counters.of(DEFAULT)
        counters.requests += 1
        counters.count_error(error)
        code, data = self.error_frame(driver, error)
        driver.connection.fail_stream(stream_id, code, data)
        driver.schedule_turn()

    def error_frame(self, driver: Driver, error: BaseException) -> tuple[int, bytes]:
        """The error frame for *error*, which is reported unless it is meant for the peer."""
        if isinstance(error, CancelledError):
            return ErrorCode.CANCELED, b""
        origin = driver.streams.origin
        if not (is_for_peer(error, origin) or is_loss_of(error, origin)):
            self.report(driver, error)
        return error_frame(driver, error, self._expose_errors)

    def report(self, driver: Driver, error: BaseException) -> None:
        """Report an exception that is not sent to the peer; one that stops the program does so."""
        on_error, loop_handle = self._on_error, driver.loop_handle
        if on_error is None or not notify(loop_handle, "on_error", on_error, error):
            loop_handle.report("an RSocket handler failed", error)
        stop_program(loop_handle, error)


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
