"""The client: `connect` opens a connection, by a URI or over any byte stream."""

from functools import partial
from inspect import isawaitable
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar, Unpack

from .._core.arguments import Duration, require_known_options, to_seconds
from ..retry import RetryPolicy
from .link.connecting import Dialer, TimeLimit
from .link.driver import Driver
from .link.reconnection import Reconnector
from .link.shutdown import report_end, wait_closed
from .link.transports.bytestream import StreamTransport
from .opening import Opening
from .option_checks import (
    require_bytes,
    require_callback,
    require_codec,
    require_instance,
    require_uri_or_stream,
)
from .payloads import BYTES, Codec
from .protocol.connection import Connection
from .protocol.errors import ConnectionLost, StreamFailed, renewed
from .protocol.frames import ErrorCode, Payload, Setup
from .protocol.limits import Limits
from .protocol.metadata import (
    AUTHENTICATION,
    COMPOSITE_METADATA,
    BearerToken,
    Credentials,
    MetadataItem,
    OtherCredentials,
    SimpleAuth,
    write_auth,
)
from .protocol.request_metadata import checked_items, write_items
from .protocol.resume import Resumption
from .requesting.interceptors import ClientInterceptor, checked_outgoing
from .requesting.requester import Requester
from .serving.responder import CODECS, ResponderOptions, RouterResponder
from .serving.routing import Router, to_router
from .uri import Address

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from anyio.abc import ByteStream
    from typing_extensions import TypeVar as TypeVarWithDefault

    Element = TypeVarWithDefault("Element", default=bytes)

T = TypeVar("T")


class Client(Requester[T]):
    """A requester that may reconnect when its connection is lost.

    Unless the session is resumed, open requests then fail with `ConnectionLost`, as do new requests
    until there is another connection; `ready` waits for it.
    """

    def __init__(
        self,
        driver: Driver,
        codec: Codec[T],
        reconnector: Reconnector,
        route: str | None = None,
        prefetch: int | None = None,
        *,
        interceptors: tuple[ClientInterceptor, ...] = (),
    ) -> None:
        super().__init__(driver, codec, route, prefetch, interceptors=interceptors)
        self._reconnector = reconnector
        reconnector.on_reconnect = self._replace_driver

    def _replace_driver(self, driver: Driver) -> None:
        self._driver = driver

    @property
    def is_closed(self) -> bool:
        """Whether there is no connection and the client does not reconnect."""
        return super().is_closed and not self._reconnector.may_reconnect

    async def ready(self) -> None:
        """Wait for a connection; raise `ConnectionLost` if the client does not reconnect.

        Once it has given up, this is the error of its last attempt, or has it as its cause.
        """
        if self._driver.ending.reason is not None:
            await self._reconnector.wait()
        reason, failure = self._driver.ending.reason, self._reconnector.failure
        if reason is not None and isinstance(failure, StreamFailed):
            raise failure
        if reason is not None:
            raise renewed(reason) from failure

    async def closed(self) -> StreamFailed:
        """Wait until there is no connection and the client does not reconnect; return the reason.

        This is the error of the last attempt to connect, or the end of the last connection.
        """
        while True:
            driver = self._driver
            reason = await wait_closed(driver)
            if self._driver is driver:
                await self._reconnector.wait()
            if self._driver is driver and not self._reconnector.may_reconnect:
                failure = self._reconnector.failure
                return failure if isinstance(failure, StreamFailed) else reason

    async def aclose(self) -> None:
        """Close the connection; open streams fail."""
        try:
            await self._reconnector.aclose()
        except BaseException:  # this call is cancelled
            self._driver.ending.abort()
            raise
        await super().aclose()


class ClientOptions(TypedDict, total=False):
    """The options of `connect`.

    - credentials: the client's credentials, or a function, possibly a coroutine function, that
      returns them. The function is called once for each connection.
    - keepalive: the interval between two KEEPALIVE frames: 20 seconds.
    - lifetime: how long either side may be silent before the other closes the connection: 90
      seconds.
    - limits: the bounds of the connection.
    - interceptors: called around each request, the first one outermost. See `ClientInterceptor`.
    - on_close: called with the reason when a connection has ended, before the client reconnects.
    - router: the router, or a mapping from routes to handlers or flows, that serves requests of the
      server.
    - responder_options: how *router* is served.
    - lease: whether requests in both directions need leases. Those of the server get
      `ResponderOptions.leases`.
    - resume: whether, and how long, the session outlives its transport.
    - metadata_mime: the MIME type of metadata, for servers that do not support composite metadata.
    - metadata: additional metadata of the SETUP.
    - data: the data of the SETUP.
    """

    credentials: "Credentials | Callable[[], Any] | None"
    keepalive: Duration
    lifetime: Duration
    limits: Limits | None
    interceptors: "Sequence[ClientInterceptor]"
    on_close: "Callable[[StreamFailed], object] | None"
    router: "Router | Mapping[str, Any] | None"
    responder_options: ResponderOptions
    lease: bool
    resume: "Resumption | None"
    metadata_mime: str
    metadata: "tuple[MetadataItem | tuple[str, bytes], ...]"
    data: bytes


_RECONNECTS: Final = "connect(…, retry=…) reconnects"
OF_CONNECT: Final = ("codec", "ssl", "timeout", "retry")
"""The options of `connect` besides `ClientOptions`."""


def checked_options(what: str, options: ClientOptions, *own: str) -> ClientOptions:
    """*options* of the function *what*, which has its *own* ones: names and router are checked."""
    require_known_options(what, options, (*own, *ClientOptions.__annotations__))
    nested = options.get("responder_options", ResponderOptions())
    require_known_options(f"{what}: responder_options", nested, ResponderOptions.__annotations__)
    router = options.get("router")
    if router is not None:
        return {**options, "router": to_router(router, what, "router")}
    return options


def client_driver(
    codec: Codec[Any], options: ClientOptions, credentials: Credentials | None
) -> Driver:
    """The driver of a client's connection, without a transport."""
    items = [*checked_items(options.get("metadata", ()))]
    require_credentials(credentials)
    require_codec("codec", codec)
    require_instance("limits", options.get("limits"), Limits)
    require_instance("resume", options.get("resume"), Resumption)
    require_bytes("data", options.get("data", b""))
    if credentials is not None:
        items.insert(0, (AUTHENTICATION, write_auth(credentials)))
    mime = options.get("metadata_mime", COMPOSITE_METADATA)
    setup = Setup(
        keepalive=max(1, int(to_seconds(options.get("keepalive", 20.0), "keepalive") * 1000)),
        lifetime=max(1, int(to_seconds(options.get("lifetime", 90.0), "lifetime") * 1000)),
        metadata_mime=mime,
        data_mime=codec.mime,
        payload=Payload(options.get("data", b""), write_items(mime, items)),
        lease=options.get("lease", False),
    )
    make_connection = partial(
        Connection,
        setup,
        limits=options.get("limits"),
        resumption=options.get("resume"),
        metadata_pushes=True,
    )
    router = options.get("router")
    if router is None:
        return _reporting(Driver(make_connection), options)
    responder_options = options.get("responder_options", ResponderOptions()).copy()
    if codec.mime not in CODECS:
        codecs = {codec.mime: codec, **(responder_options.get("codecs") or {})}
        responder_options["codecs"] = codecs
    responder = RouterResponder(to_router(router, "connect", "router"), **responder_options)
    driver = Driver(make_connection, responder)
    responder.begin(driver)
    return _reporting(driver, options)


def require_credentials(value: object) -> None:
    """*value* must be credentials or None; it may be a secret."""
    if value is not None and not isinstance(value, SimpleAuth | BearerToken | OtherCredentials):
        raise TypeError(
            "credentials must be SimpleAuth, BearerToken or OtherCredentials, or a function that "
            f"returns one of them, not {type(value).__name__}"
        )


def _reporting(driver: Driver, options: ClientOptions) -> Driver:
    on_close = options.get("on_close")
    if on_close is not None:
        require_callback("on_close", on_close, 1)
        report_end(driver, on_close)
    return driver


def connect(
    where: "str | ByteStream",
    *,
    codec: "Codec[Element] | None" = None,
    ssl: SSLContext | None = None,
    timeout: Duration = 10.0,
    retry: RetryPolicy | int | None = None,
    **options: Unpack[ClientOptions],
) -> "Opening[Client[Element]]":
    """Connect to *where*, a URI (see `uri`) or any byte stream of anyio.

    The result is awaited, or entered by ``async with``, which closes the client as well.
    *codec* encodes and decodes elements; without it, they are bytes. All other options are in
    `ClientOptions`. It returns when the server has accepted the client. It raises
    `SetupRejected` if the server refuses it, for example its credentials, `CertificateRejected` if
    the TLS certificate of the server is refused, or if the server says that it refuses that of the
    client, and `ConnectionLost` if there is no connection within *timeout* seconds. Servers of
    Python, this library's among them, refuse a client's certificate without a message: that is a
    `ConnectionLost`, too.

    *retry* is the policy for the first connection, and for another one when it is lost; without it,
    neither is repeated. A refused client does not try again, whatever the policy. With
    ``resume=Resumption()``, streams continue over the next transport without loss; one on which the
    server does not answer within *timeout* seconds gives way to another.
    """
    options = checked_options("connect", options, *OF_CONNECT)
    require_uri_or_stream("connect: where", where)
    seconds = to_seconds(timeout, "timeout")
    policy = None if retry is None else RetryPolicy.of(retry)
    opened = open_client(where, codec, ssl, seconds, policy, options, _RECONNECTS)
    return Opening("connect", opened)


async def open_client(
    where: "str | ByteStream",
    codec: "Codec[Any] | None",
    ssl: SSLContext | None,
    seconds: float,
    policy: RetryPolicy | None,
    options: ClientOptions,
    remedy: str = "",
) -> Client[Any]:
    """Connect within *seconds*. *remedy* is what `Ending.remedy` is without a *policy*."""
    chosen: Any = codec or BYTES
    interceptors = checked_outgoing(options.get("interceptors", ()))

    def make_client(driver: Driver, reconnector: Reconnector, *defaults: Any) -> Client[Any]:
        return Client(driver, chosen, reconnector, *defaults, interceptors=interceptors)

    async def make_driver() -> Driver:
        limit.restart()
        with limit.scope():
            return client_driver(chosen, options, await _credentials(options))
        message = f"the function for credentials took more than {limit}"
        raise ConnectionLost(ErrorCode.CONNECTION_ERROR, message.encode())

    limit = TimeLimit(seconds)
    if not isinstance(where, str):
        if options.get("resume") is not None or policy is not None:
            raise ValueError("resume and retry need a URI: a byte stream is there only once")
        reconnector = Reconnector(make_driver, partial(_use_stream, where, limit), None)
        return make_client(await reconnector.connect(), reconnector)
    address = Address.parse(where)
    reconnector = Reconnector(make_driver, Dialer(address, ssl, limit), policy)
    driver = await reconnector.connect()
    driver.ending.remedy = remedy if policy is None else ""
    return make_client(driver, reconnector, address.route, address.prefetch)


async def _credentials(options: ClientOptions) -> Any:
    """The credentials of *options*, or what their function returns."""
    credentials: Any = options.get("credentials")
    if callable(credentials):
        credentials = credentials()
    return await credentials if isawaitable(credentials) else credentials


async def _use_stream(stream: "ByteStream", limit: TimeLimit, driver: Driver) -> None:
    """Connect *driver* over *stream* within *limit*."""
    StreamTransport(driver, stream)
    with limit.scope():
        await driver.confirm()
        if not driver.connection.is_confirmed:
            driver.ending.require_open()
        return
    message = f"no answer to SETUP within {limit}; is RSocket served on that stream?"
    raise ConnectionLost(ErrorCode.CONNECTION_ERROR, message.encode())
