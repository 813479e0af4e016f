"""The serving side of connections: who is let in, who serves a request, who gets leases."""

from collections.abc import Callable, Coroutine
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, TypedDict

from .._core.duration import Duration, to_seconds
from .auth import Authenticate, AuthHooks, Authorize, connecting_client
from .driver import Driver
from .fast_responder import UNKNOWN, DirectHandler, FastResponder
from .leases import Lease, LeaseGranter
from .payloads import BYTES, JSON, MSGPACK, TEXT, Codec
from .protocol.errors import ProtocolError, RequestInvalid, StreamFailed
from .protocol.events import RequestReceived
from .protocol.frames import ErrorCode, Payload, Resume, Setup
from .protocol.stream_states import InteractionModel
from .request_execution import ONE, RequestExecution
from .request_metadata import MetadataCache, RequestMetadata, read_items
from .requester import Requester
from .resumable_sessions import ResumableSessions
from .routing import Router
from .stream_adapters import answer

if TYPE_CHECKING:
    from ..spec import Publisher

__all__ = ("CODECS", "ResponderOptions", "RouterResponder")

_RESPONSE: Final = InteractionModel.RESPONSE
CODECS: Final[dict[str, Codec[Any]]] = {each.mime: each for each in (BYTES, TEXT, JSON, MSGPACK)}


class ResponderOptions(TypedDict, total=False):
    """How a router serves, for `serve`, `loopback` and everybody who makes a `RouterResponder`."""

    authenticate: "Authenticate | None"
    """Called with the credentials of each client, or None, and the `ConnectingClient` if it takes
    two arguments. Returns the user, or a false value to refuse the client. May be a coroutine
    function."""
    authorize: "Authorize | None"
    """Gets each `Request` before it is served; returns something false if it may not be, else True
    or what the handler shall see as its user. It may be a coroutine function."""
    auth_timeout: Duration
    """How long either may take: 5 seconds."""
    codecs: dict[str, Codec[Any]] | None
    """Codecs beside those for bytes, text, JSON and MessagePack, by MIME type."""
    leases: "Callable[[Any], Publisher[Lease]] | None"
    """Gets the user, and returns a publisher of leases: a client that asks for leases is granted
    one after the other. Without it, such clients are refused."""
    on_connect: Callable[[Requester[Any]], Any] | None
    """Gets a requester for each client that was let in; it may be a coroutine function."""
    max_running: int
    """How many fire-and-forget requests are served at a time, on all connections: 256."""
    tell_errors: bool
    """Whether the peer sees the texts of exceptions. Those of a `StreamFailed` it always does."""
    on_error: Callable[[BaseException], object] | None
    """Gets the exceptions that are not meant for the peer; else the loop's handler does."""


class RouterResponder:
    """Serves the requests of one or many connections by a router."""

    def __init__(
        self,
        router: Router,
        *,
        authenticate: "Authenticate | None" = None,
        authorize: "Authorize | None" = None,
        auth_timeout: Duration = 5.0,
        codecs: dict[str, Codec[Any]] | None = None,
        leases: "Callable[[Any], Publisher[Lease]] | None" = None,
        on_connect: Callable[[Requester[Any]], Any] | None = None,
        tell_errors: bool = False,
        on_error: Callable[[BaseException], object] | None = None,
        max_running: int = 256,
    ) -> None:
        self.router: Router = router
        self.envelopes: MetadataCache = MetadataCache()
        self._auth_timeout = to_seconds(auth_timeout, "auth_timeout")
        self.hooks: AuthHooks = AuthHooks(authenticate, authorize, self._auth_timeout)
        self._short = FastResponder(self)
        self.kept: ResumableSessions = ResumableSessions()
        self._codecs = CODECS | (codecs or {})
        self._leases = leases
        self._on_connect = on_connect
        self._tell = tell_errors
        self._on_error = on_error
        self._max_running = max_running
        self._running = 0
        self._grants: dict[Driver, LeaseGranter] = {}
        self.dropped: int = 0
        """How many requests that nobody answers came while too many were being served, or made no
        sense."""

    @property
    def has_leases(self) -> bool:
        """Whether clients that want leases are let in."""
        return self._leases is not None

    # -- admission ---------------------------------------------------------------------------------
    def admit(self, driver: Driver, setup: Setup) -> None:
        if driver.is_resume_only:
            driver.reject("there are too many connections")
            return
        if self.hooks.authenticate is None:
            self._let_in(driver, setup)
            return
        timeout = self._auth_timeout
        late = driver.loop_handle.call_later(timeout, driver.reject, "authentication took too long")
        task = driver.spawn(self._judge(driver, setup), "rsocket: authentication")
        if task is not None:
            task.add_done_callback(lambda _: late.cancel())

    async def _judge(self, driver: Driver, setup: Setup) -> None:
        user: Any = None
        try:
            user = await self.hooks.identify(connecting_client(driver, setup))
        except ProtocolError:
            driver.reject("the credentials cannot be read")
            return
        except Exception as error:
            self._report(driver, error)
        if user:
            driver.user = user
            self._let_in(driver, setup)
        else:
            driver.reject("authentication failed")

    def _let_in(self, driver: Driver, setup: Setup) -> None:
        if setup.token is not None and not self.kept.keep(setup.token, driver):
            driver.reject("the session cannot be kept")
            return
        driver.accept()
        self.begin(driver)

    def begin(self, driver: Driver) -> None:
        """A connection is open, on either side: grant leases, and say that it is there."""
        setup = driver.connection.setup
        if setup is not None and setup.lease and self._leases is not None:
            grants = self._grants[driver] = LeaseGranter(driver)
            driver.at_resume.append(grants.renew)
            driver.add_close_callback(self._end_grants)
            grants.subscribe_to(self._leases(driver.user))
        if self._on_connect is not None:
            self._call(driver, self._on_connect, Requester(driver, self.codec(setup)))

    def _end_grants(self, driver: Driver) -> None:
        grants = self._grants.pop(driver, None)
        if grants is not None:
            grants.cancel()

    def _call(self, driver: Driver, function: Callable[..., Any], *given: Any) -> None:
        """Call a function of the application that nobody waits for."""
        try:
            result = function(*given)
            if isawaitable(result):
                driver.spawn(self._attended(driver, result), "rsocket: for a connection")
        except Exception as error:
            self._report(driver, error)

    async def _attended(self, driver: Driver, result: Any) -> None:
        try:
            await result
        except Exception as error:
            self._report(driver, error)

    def resume(self, driver: Driver, frame: Resume) -> None:
        self.kept.resume(driver, frame)

    # -- requests ----------------------------------------------------------------------------------
    def serve(self, driver: Driver, request: RequestReceived) -> None:
        """Call the handler of a request; whatever it raises is the answer."""
        if request.model is _RESPONSE:
            data, metadata = request.payload
            self.respond(driver, [(request.stream_id, data, metadata)])
        else:
            self._begin(driver, request, RequestExecution.begin)
        if self._grants and (grants := self._grants.get(driver)) is not None:
            grants.request_received()

    def respond(self, driver: Driver, requests: "list[tuple[int, bytes, bytes | None]]") -> None:
        setup = driver.connection.setup
        known = self._short.known(setup)
        for request in requests:
            plain = known.get(request[2], UNKNOWN)
            if plain is UNKNOWN:
                plain = self._short.find(setup, request[2])
            if plain is None:
                self._begin(driver, _requested(*request), RequestExecution.begin)
            else:
                self._answer_plainly(driver, plain, request)
        driver.schedule_turn()

    def _answer_plainly(
        self, driver: Driver, plain: DirectHandler, request: tuple[int, bytes, bytes | None]
    ) -> None:
        stream_id, data, _ = request
        try:
            result = plain.call(data)
            if type(result) in ONE:
                driver.connection.respond(stream_id, plain.encode(result))
                return
        except Exception as error:
            self.refuse(driver, stream_id, error)
            return
        self._begin(driver, _requested(*request), partial(RequestExecution.go_on, result=result))

    def _begin(
        self, driver: Driver, request: RequestReceived, begin: Callable[[RequestExecution], object]
    ) -> None:
        served: RequestExecution | None = None
        try:
            served = RequestExecution(self, driver, request)
            begin(served)
        except Exception as error:
            if served is None:
                self.refuse(driver, request.stream_id, error)
            else:
                served.refuse(error)

    def refuse(self, driver: Driver, stream_id: int, error: BaseException) -> None:
        code, data = self.failed(driver, error)
        driver.connection.fail_stream(stream_id, code, data)
        driver.schedule_turn()

    def pushed(self, driver: Driver, metadata: bytes) -> None:
        """Metadata for the whole connection; what cannot be read, or is too much, is dropped."""
        if self.router.metadata_push is None or not self.take_place():
            return
        task: Coroutine[Any, Any, None] = self._push(driver, metadata)
        spawned = driver.spawn(task, "rsocket: metadata push")
        if spawned is None:
            self.leave_place()
        else:
            spawned.add_done_callback(lambda _: self.leave_place())

    async def _push(self, driver: Driver, metadata: bytes) -> None:
        setup = driver.connection.setup
        try:
            items = read_items(setup, metadata)
        except ProtocolError:
            self.dropped += 1
            return
        try:
            peer = Requester(driver, self.codec(setup))
            push: Any = self.router.metadata_push
            result = push(metadata=items, user=driver.user, peer=peer)
            if isawaitable(result):
                await result
        except Exception as error:
            self._report(driver, error)

    def failed(self, driver: Driver, error: BaseException) -> tuple[int, bytes]:
        """The answer to the peer; an error that was not meant for it is reported here."""
        if not isinstance(error, StreamFailed):
            self._report(driver, error)
        return answer(error, self._tell)

    def _report(self, driver: Driver, error: BaseException) -> None:
        if self._on_error is not None:
            self._on_error(error)
        else:
            driver.loop_handle.report("an RSocket handler failed", error)

    # -- types of data -----------------------------------------------------------------------------
    def codec(self, setup: Setup | None) -> Codec[Any]:
        """That of a whole connection. A type that nobody knows is bytes."""
        return self._codecs.get(setup.data_mime if setup else "", BYTES)

    def choose(
        self, setup: Setup | None, envelope: RequestMetadata
    ) -> tuple[Codec[Any], Codec[Any]]:
        """The codecs for a request's data and for the answers; raises `RequestInvalid`."""
        data = self.codec(setup)
        if envelope.mime is not None:
            known = self._codecs.get(envelope.mime)
            if known is None:
                message = f"data of type {envelope.mime} cannot be read here"
                raise RequestInvalid(ErrorCode.INVALID, message.encode())
            data = known
        if not envelope.accept:
            return data, data
        for mime in envelope.accept:
            if mime in self._codecs:
                return data, self._codecs[mime]
        message = f"none of the acceptable types can be written here: {', '.join(envelope.accept)}"
        raise RequestInvalid(ErrorCode.INVALID, message.encode())

    # -- fire and forget ---------------------------------------------------------------------------
    def take_place(self) -> bool:
        """Whether one more request may run that nobody waits for."""
        if self._running >= self._max_running:
            self.dropped += 1
            return False
        self._running += 1
        return True

    def leave_place(self) -> None:
        self._running -= 1


def _requested(stream_id: int, data: bytes, metadata: bytes | None) -> RequestReceived:
    return RequestReceived(stream_id, _RESPONSE, Payload(data, metadata))
