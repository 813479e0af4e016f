"""The client: `connect` opens a connection, by a URI or over any byte stream."""

from functools import partial
from inspect import isawaitable
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar, Unpack

from anyio import move_on_after

from .._core.arguments import Duration, to_seconds
from ..retry import RetryPolicy
from .driver import Driver
from .payloads import BYTES, Codec
from .protocol.connection import Connection
from .protocol.errors import ConnectionLost
from .protocol.frames import ErrorCode, Payload, Setup
from .protocol.limits import Limits
from .protocol.metadata import (
    AUTHENTICATION,
    COMPOSITE_METADATA,
    Credentials,
    MetadataItem,
    write_auth,
)
from .reconnection import Reconnector
from .request import write_items
from .requester import Requester
from .responder import CODECS, ResponderOptions, RouterResponder
from .routing import Router
from .transports.bytestream import StreamTransport
from .transports.endpoints import dial
from .uri import Address

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyio.abc import ByteStream
    from typing_extensions import TypeVar as TypeVarWithDefault

    from .protocol.resume import Resumption

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
    ) -> None:
        super().__init__(driver, codec, route, prefetch)
        self._reconnector = reconnector
        reconnector.on_reconnect = self._replace_driver

    def _replace_driver(self, driver: Driver) -> None:
        self._driver = driver

    @property
    def is_closed(self) -> bool:
        """Whether there is no connection and the client does not reconnect."""
        return super().is_closed and not self._reconnector.may_reconnect

    async def ready(self) -> None:
        """Wait for a connection; raise `ConnectionLost` if the client does not reconnect."""
        if self._driver.close_reason is not None:
            await self._reconnector.wait()
        self._driver.require_open()

    async def aclose(self) -> None:
        """Close the connection; open streams fail."""
        await self._reconnector.aclose()
        await super().aclose()


class ClientOptions(TypedDict, total=False):
    """The options of `connect`."""

    credentials: "Credentials | Callable[[], Any] | None"
    """The client's credentials, or a function, possibly a coroutine function, that returns them.
    The function is called once for each connection."""
    keepalive: Duration
    """The interval between two KEEPALIVE frames: 20 seconds."""
    lifetime: Duration
    """How long either side may be silent before the other closes the connection: 90 seconds."""
    limits: Limits | None
    """The bounds of the connection."""
    router: Router | None
    """The router that serves requests of the server."""
    responder_options: ResponderOptions
    """How *router* is served."""
    lease: bool
    """Whether requests in both directions need leases. Those of the server get
    `ResponderOptions.leases`."""
    resume: "Resumption | None"
    """Whether, and how long, the session outlives its transport."""
    metadata_mime: str
    """The MIME type of metadata, for servers that do not support composite metadata."""
    metadata: "tuple[MetadataItem | tuple[str, bytes], ...]"
    """Additional metadata of the SETUP."""
    data: bytes
    """The data of the SETUP."""


_OPTIONS: Final = ClientOptions.__annotations__.keys()


def client_driver(
    codec: Codec[Any], options: ClientOptions, credentials: Credentials | None
) -> Driver:
    """The driver of a client's connection, without a transport."""
    if unknown := options.keys() - _OPTIONS:
        raise TypeError(f"unknown {', '.join(sorted(unknown))}; known are {', '.join(_OPTIONS)}")
    items = list(options.get("metadata", ()))
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
        Connection, setup, limits=options.get("limits"), resumption=options.get("resume")
    )
    router = options.get("router")
    if router is None:
        return Driver(make_connection)
    responder_options = options.get("responder_options", ResponderOptions()).copy()
    if codec.mime not in CODECS:
        codecs = {codec.mime: codec, **(responder_options.get("codecs") or {})}
        responder_options["codecs"] = codecs
    responder = RouterResponder(router, **responder_options)
    driver = Driver(make_connection, responder)
    responder.begin(driver)
    return driver


async def connect(
    where: "str | ByteStream",
    *,
    codec: "Codec[Element] | None" = None,
    ssl: SSLContext | None = None,
    timeout: Duration = 10.0,
    retry: RetryPolicy | int | None = None,
    **options: Unpack[ClientOptions],
) -> "Client[Element]":
    """Connect to *where*, a URI (see `uri`) or any byte stream of anyio.

    *codec* encodes and decodes elements; without it, they are bytes. All other options are in
    `ClientOptions`. If the server refuses the credentials, the first request fails with
    `SetupRejected`. Without a connection within *timeout* seconds, `connect` raises
    `ConnectionLost`. *retry* is the policy by which the client reconnects once the connection was
    lost; without it, the client does not reconnect. With ``resume=Resumption()``, streams continue
    over the next transport without loss.
    """

    chosen: Any = codec or BYTES

    async def make_driver() -> Driver:
        credentials: Any = options.get("credentials")
        if callable(credentials):
            credentials = credentials()
        if isawaitable(credentials):
            credentials = await credentials
        return client_driver(chosen, options, credentials)

    if not isinstance(where, str):
        if options.get("resume") is not None or retry is not None:
            raise ValueError("resume and retry need a URI: a byte stream is there only once")

        async def use_stream(driver: Driver) -> None:
            StreamTransport(driver, where)

        reconnector = Reconnector(make_driver, use_stream, None)
        return Client(await reconnector.connect(), chosen, reconnector)
    address = Address.parse(where)
    limit = to_seconds(timeout, "timeout")

    async def dial_address(driver: Driver) -> None:
        message = f"{address}: no connection within {limit} s"
        try:
            with move_on_after(limit):
                await dial(driver.loop_handle.event_loop, address, driver, ssl)
                return
        except OSError as error:
            message = f"{address}: {error}"
            raise ConnectionLost(ErrorCode.CONNECTION_ERROR, message.encode()) from error
        raise ConnectionLost(ErrorCode.CONNECTION_ERROR, message.encode())

    policy = None if retry is None else RetryPolicy.of(retry)
    reconnector = Reconnector(make_driver, dial_address, policy)
    return Client(await reconnector.connect(), chosen, reconnector, address.route, address.prefetch)
