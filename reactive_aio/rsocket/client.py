"""The client: `connect`, by a URI or over any byte stream."""

from ssl import SSLContext
from typing import TYPE_CHECKING, Any, TypeVar, overload

from .._core.duration import seconds
from .._core.loop import Door
from .driver import Driver, Responder
from .payloads import BYTES, Codec
from .protocol.connection import Connection
from .protocol.errors import ConnectionLost
from .protocol.frames import ErrorCode, Payload, Setup
from .protocol.limits import Limits
from .protocol.metadata import Credentials, write_auth, write_composite
from .protocol.mime import AUTHENTICATION, COMPOSITE_METADATA
from .requester import Requester
from .responder import RouterResponder
from .routing import Router
from .transports.addressed import dial
from .transports.bytestream import StreamTransport
from .uri import Address

if TYPE_CHECKING:
    from datetime import timedelta

    from anyio.abc import ByteStream

__all__ = ("connect", "dialled")

T = TypeVar("T")


def dialled(
    codec: Codec[Any],
    *,
    credentials: Credentials | None = None,
    keepalive: "float | timedelta" = 20.0,
    lifetime: "float | timedelta" = 90.0,
    limits: Limits | None = None,
    router: Router | None = None,
) -> Driver:
    """A client's driver, to be attached to a transport."""
    items = [] if credentials is None else [(AUTHENTICATION, write_auth(credentials))]
    setup = Setup(
        keepalive=max(1, int(seconds(keepalive, "keepalive") * 1000)),
        lifetime=max(1, int(seconds(lifetime, "lifetime") * 1000)),
        metadata_mime=COMPOSITE_METADATA,
        data_mime=codec.mime,
        payload=Payload(b"", write_composite(items) or None),
    )
    responder: Responder | None = None if router is None else RouterResponder(router)
    return Driver(lambda now: Connection(setup, now, limits=limits), responder)


@overload
async def connect(
    where: "str | ByteStream",
    *,
    ssl: SSLContext | None = None,
    credentials: Credentials | None = None,
    keepalive: "float | timedelta" = 20.0,
    lifetime: "float | timedelta" = 90.0,
    timeout: "float | timedelta" = 10.0,
    limits: Limits | None = None,
    router: Router | None = None,
) -> Requester[bytes]: ...
@overload
async def connect(
    where: "str | ByteStream",
    *,
    codec: Codec[T],
    ssl: SSLContext | None = None,
    credentials: Credentials | None = None,
    keepalive: "float | timedelta" = 20.0,
    lifetime: "float | timedelta" = 90.0,
    timeout: "float | timedelta" = 10.0,
    limits: Limits | None = None,
    router: Router | None = None,
) -> Requester[T]: ...
async def connect(
    where: "str | ByteStream",
    *,
    codec: Codec[Any] = BYTES,
    ssl: SSLContext | None = None,
    credentials: Credentials | None = None,
    keepalive: "float | timedelta" = 20.0,
    lifetime: "float | timedelta" = 90.0,
    timeout: "float | timedelta" = 10.0,
    limits: Limits | None = None,
    router: Router | None = None,
) -> Requester[Any]:
    """Connect to *where*, a URI (see `uri`) or any byte stream of anyio.

    *codec* says what elements are. *credentials* are shown to the server, which may refuse them:
    then the first request fails with `SetupRejected`. *router* serves the requests of the server.
    A connection that does not come about within *timeout* seconds fails with `ConnectionLost`.
    """
    driver = dialled(
        codec,
        credentials=credentials,
        keepalive=keepalive,
        lifetime=lifetime,
        limits=limits,
        router=router,
    )
    if not isinstance(where, str):
        StreamTransport(driver, where)
        return Requester(driver, codec)
    address = Address.parse(where)
    await _within(seconds(timeout, "timeout"), address, driver, ssl)
    return Requester(driver, codec, address.route, address.n)


async def _within(limit: float, address: Address, driver: Driver, ssl: SSLContext | None) -> None:
    door = Door("connect()")
    task = door.spawn(dial(door.loop, address, driver, ssl), f"rsocket: connects to {address}")
    late = False

    def stop() -> None:
        nonlocal late
        late = task.cancel()

    timer = door.later(limit, stop)
    try:
        await task
    except OSError as error:
        raise ConnectionLost(ErrorCode.CONNECTION_ERROR, f"{address}: {error}".encode()) from error
    except BaseException:
        if not (late and task.cancelled()):
            task.cancel()
            raise
        message = f"{address}: no connection within {limit} s".encode()
        raise ConnectionLost(ErrorCode.CONNECTION_ERROR, message) from None
    finally:
        timer.cancel()
