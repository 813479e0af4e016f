"""The serving side of a connection: requests go to handlers, what they return goes to the peer."""

from collections.abc import AsyncIterable, Awaitable, Callable, Iterator
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, cast

from .._core.loop import CancelledError
from ..coerce import to_flow
from ..errors import AlreadySubscribed
from ..stage import Inlet, from_push
from .driver import Driver
from .exchange import Inflow, Outflow, answer
from .payloads import BYTES, JSON, TEXT, Codec
from .protocol.errors import ProtocolError, RequestInvalid, StreamFailed
from .protocol.events import Requested
from .protocol.frames import ErrorCode, Payload, Setup
from .protocol.metadata import Credentials, Item, read_auth, read_composite, read_routing
from .protocol.mime import AUTHENTICATION, COMPOSITE_METADATA, ROUTING
from .protocol.states import Model
from .requester import Requester
from .routing import Handler, Request, Router

if TYPE_CHECKING:
    from ..flow import Flow
    from ..spec import Subscription

__all__ = ("Authenticate", "RouterResponder")

Authenticate = Callable[[Credentials | None], Any]
"""Gets the credentials of a SETUP; returns who that is, or something false; may be awaitable."""

_ONE: Final = frozenset({bytes, str, int, float, bool, dict, list, tuple, Payload})
"""What is one element, without a closer look."""
_CODECS: Final[dict[str, Codec[Any]]] = {each.mime: each for each in (BYTES, TEXT, JSON)}


class RouterResponder:
    """Serves the requests of one or many connections by a router."""

    def __init__(
        self,
        router: Router,
        *,
        authenticate: Authenticate | None = None,
        auth_timeout: float = 5.0,
        codecs: dict[str, Codec[Any]] | None = None,
        tell_errors: bool = False,
        on_error: Callable[[BaseException], object] | None = None,
        max_running: int = 256,
    ) -> None:
        self._router = router
        self._authenticate = authenticate
        self._auth_timeout = auth_timeout
        self._codecs = _CODECS | (codecs or {})
        self._tell = tell_errors
        self._on_error = on_error
        self._max_running = max_running
        self._running = 0
        self.dropped: int = 0
        """How many fire-and-forget requests came while too many were being served."""

    # -- admission ---------------------------------------------------------------------------------
    def admit(self, driver: Driver, setup: Setup) -> None:
        if self._authenticate is None:
            driver.accept()
            return
        try:
            credentials = _credentials(setup)
        except ProtocolError:
            driver.reject("the credentials cannot be read")
            return
        late = driver.door.later(self._auth_timeout, driver.reject, "authentication took too long")
        task = driver.spawn(self._judge(driver, credentials), "rsocket: authentication")
        if task is not None:
            task.add_done_callback(lambda _: late.cancel())

    async def _judge(self, driver: Driver, credentials: Credentials | None) -> None:
        user: Any = None
        try:
            if self._authenticate is not None:
                user = self._authenticate(credentials)
                if isawaitable(user):
                    user = await user
        except Exception as error:
            user = None
            self._report(driver, error)
        if user:
            driver.user = user
            driver.accept()
        else:
            driver.reject("authentication failed")

    # -- requests ----------------------------------------------------------------------------------
    def serve(self, driver: Driver, request: Requested) -> None:
        """Call the handler of a request; whatever it raises is the answer."""
        try:
            _Served(self, driver, request).begin()
        except Exception as error:
            self.refuse(driver, request, error)

    def refuse(self, driver: Driver, request: Requested, error: BaseException) -> None:
        code, data = self.failed(driver, error)
        if request.model is not Model.FNF:
            driver.senders.pop(request.stream_id, None)
            driver.connection.fail_stream(request.stream_id, code, data)
            driver.plan()

    def failed(self, driver: Driver, error: BaseException) -> tuple[int, bytes]:
        """The answer to the peer; an error that was not meant for it is reported here."""
        if not isinstance(error, StreamFailed):
            self._report(driver, error)
        return answer(error, self._tell)

    def _report(self, driver: Driver, error: BaseException) -> None:
        if self._on_error is not None:
            self._on_error(error)
        else:
            driver.door.report("an RSocket handler failed", error)

    def find(
        self, driver: Driver, payload: Payload
    ) -> tuple[Handler, dict[str, str], str, list[Item]]:
        """The handler for a request; raises `RequestInvalid` if there is none."""
        setup = driver.connection.setup
        try:
            items = _items(setup, payload.metadata)
            tags = [tag for mime, content in items if mime == ROUTING
                    for tag in read_routing(content)[:1]]  # fmt: skip
        except ProtocolError as error:
            raise RequestInvalid(ErrorCode.INVALID, f"{error}".encode()) from None
        route = tags[0] if tags else ""
        found = self._router.find(route)
        if found is None:
            raise RequestInvalid(ErrorCode.INVALID, b"there is no such route")
        return *found, route, items

    def codec(self, driver: Driver) -> Codec[Any]:
        setup = driver.connection.setup
        return self._codecs.get(setup.data_mime if setup else "", BYTES)

    def take_place(self) -> bool:
        """Whether one more fire-and-forget may run."""
        if self._running >= self._max_running:
            self.dropped += 1
            return False
        self._running += 1
        return True

    def leave_place(self) -> None:
        self._running -= 1


class _Served:
    """One request while it is served: the sender of its stream until there is a publisher."""

    def __init__(self, responder: RouterResponder, driver: Driver, request: Requested) -> None:
        self.responder = responder
        self.driver = driver
        self.request = request
        self.stream_id = request.stream_id
        self.codec = responder.codec(driver)
        self._pending = 0
        self._taken = False  # somebody has subscribed to the elements of the channel
        self._task: Any = None

    def begin(self) -> None:
        request, driver, model = self.request, self.driver, self.request.model
        handler, values, route, items = self.responder.find(driver, request.payload)
        payload = self._decode(request.payload.data)
        incoming = self._incoming if model is Model.CHANNEL else partial(_alone, payload)
        if model is Model.CHANNEL and not handler.incoming:
            driver.connection.cancel(self.stream_id)
        peer = Requester(driver, self.codec)
        asked = Request(model, route, payload, incoming, items, driver.user, peer)
        if model is Model.FNF:
            self._forget(handler, asked, values)
            return
        driver.senders[self.stream_id] = self
        result = handler(asked, values)
        if isawaitable(result):
            self._task = driver.spawn(self._await(result), f"rsocket: serves {route}")
        else:
            self._send(result)

    def _decode(self, data: bytes) -> Any:
        try:
            return self.codec.decode(data)
        except Exception as error:
            message = b"the data cannot be read"
            raise RequestInvalid(ErrorCode.INVALID, message) from error

    def _incoming(self) -> "Flow[Any]":
        """The elements of a channel, for one subscriber."""

        def begin(inflow: Inflow, n: int) -> None:
            if self._taken:
                raise AlreadySubscribed("rule 1.11: incoming serves one subscription, and has")
            self._taken = True
            inflow.bind(self.stream_id)
            self.driver.connection.request(self.stream_id, n)

        def open(inlet: Inlet[Any]) -> "Subscription":
            return Inflow(self.driver, inlet, self.codec.decode, begin)

        return from_push(open, name="incoming", holds=None)

    # -- as the sender of the stream ---------------------------------------------------------------
    def demanded(self, n: int) -> None:
        self._pending += n

    def cancelled(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _await(self, result: Awaitable[Any]) -> None:
        try:
            value = await result
            self._task = None
            if self.driver.senders.get(self.stream_id) is self:
                self._send(value)
        except CancelledError:
            if self.driver.senders.get(self.stream_id) is self:
                self.driver.connection.fail_stream(self.stream_id, ErrorCode.CANCELED, b"")
                self.driver.senders.pop(self.stream_id)
                self.driver.plan()
            raise
        except Exception as error:
            self.responder.refuse(self.driver, self.request, error)

    def _send(self, value: Any) -> None:
        driver, stream_id = self.driver, self.stream_id
        publisher = _publisher(value)
        single = self.request.model is Model.RESPONSE
        if publisher is None and single:
            driver.senders.pop(stream_id, None)
            if value is None:
                driver.connection.complete(stream_id)
            else:
                driver.connection.send(stream_id, self._encode(value), complete=True)
            driver.plan()
            return
        if publisher is None:
            publisher = to_flow([] if value is None else [value])
        failed = self._failed
        outflow = Outflow(driver, stream_id, self._encode, failed=failed, single=single)
        driver.senders[stream_id] = outflow
        if self._pending:
            outflow.demanded(self._pending)
        outflow.attach(publisher)

    def _encode(self, value: Any) -> Payload:
        return value if type(value) is Payload else Payload(self.codec.encode(value))

    def _failed(self, error: BaseException) -> tuple[int, bytes]:
        return self.responder.failed(self.driver, error)

    # -- fire and forget ---------------------------------------------------------------------------
    def _forget(self, handler: Handler, asked: Request, values: dict[str, str]) -> None:
        if not self.responder.take_place():
            return
        task = self.driver.spawn(self._run(handler, asked, values), f"rsocket: {asked.route}")
        if task is None:
            self.responder.leave_place()
        else:
            task.add_done_callback(lambda _: self.responder.leave_place())

    async def _run(self, handler: Handler, asked: Request, values: dict[str, str]) -> None:
        try:
            result = handler(asked, values)
            if isawaitable(result):
                result = await result
            publisher = _publisher(result)
            if publisher is not None:
                await publisher.for_each(_ignore)
        except Exception as error:
            self.responder.failed(self.driver, error)


def _ignore(element: object) -> None:
    """Nobody waits for it."""


def _publisher(value: Any) -> "Flow[Any] | None":
    """*value* as a flow if it is many elements; None if it is one."""
    if value is None or type(cast("object", value)) in _ONE:
        return None
    many = isinstance(value, AsyncIterable | Iterator) or callable(
        getattr(cast("object", value), "subscribe", None)
    )
    return to_flow(cast("AsyncIterable[Any]", value)) if many else None


def _alone(payload: Any) -> "Flow[Any]":
    return to_flow([] if payload is None else [payload])


def _items(setup: Setup | None, metadata: bytes | None) -> list[Item]:
    if not metadata or setup is None:
        return []
    if setup.metadata_mime == COMPOSITE_METADATA:
        return read_composite(metadata)
    return [Item(setup.metadata_mime, metadata)]


def _credentials(setup: Setup) -> Credentials | None:
    for mime, content in _items(setup, setup.payload.metadata):
        if mime == AUTHENTICATION:
            return read_auth(content)
    return None
