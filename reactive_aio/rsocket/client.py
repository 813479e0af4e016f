"""The client: `connect`, by a URI or over any byte stream."""

from ssl import SSLContext
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from .._core.duration import Duration, to_seconds
from .._core.loop import LoopHandle
from ..retry import RetryPolicy
from .client_options import ClientOptions, client_driver, resolve_credentials
from .driver import Driver, lost_error
from .payloads import BYTES, Codec
from .protocol.errors import ConnectionLost
from .protocol.frames import ErrorCode
from .reconnection import Reconnector
from .requester import Requester
from .transports.bytestream import StreamTransport
from .transports.endpoints import dial
from .uri import Address

if TYPE_CHECKING:
    from anyio.abc import ByteStream

__all__ = ("Client", "connect")

T = TypeVar("T")


class Client(Requester[T]):
    """A requester that may connect again when its connection is lost.

    What is open then fails with `ConnectionLost`, unless the session is resumed; so does whatever
    is asked for before there is another connection (`ready` waits for that).
    """

    def __init__(
        self,
        driver: Driver,
        codec: Codec[T],
        route: str | None = None,
        n: int | None = None,
        link: Reconnector | None = None,
    ) -> None:
        super().__init__(driver, codec, route, n)
        self._link = link
        if link is not None:
            link.renewed = self._renewed

    def _renewed(self, driver: Driver) -> None:
        self._driver = driver

    @property
    def closed(self) -> bool:
        """Whether there is no connection, and none will come."""
        return super().closed and (self._link is None or not self._link.trying)

    async def ready(self) -> None:
        """Wait until there is a connection; fail with `ConnectionLost` if none will come."""
        if self._link is not None and self._driver.close_reason is not None:
            await self._link.ready()
        if self._driver.close_reason is not None:
            raise lost_error(self._driver)

    async def aclose(self) -> None:
        """Close the connection: streams that are open fail; nothing of it is left."""
        if self._link is not None:
            await self._link.aclose()
        await super().aclose()


@overload
async def connect(
    where: "str | ByteStream",
    *,
    ssl: SSLContext | None = None,
    timeout: Duration = 10.0,
    retry: RetryPolicy | int | None = None,
    **terms: Unpack[ClientOptions],
) -> Client[bytes]: ...
@overload
async def connect(
    where: "str | ByteStream",
    *,
    codec: Codec[T],
    ssl: SSLContext | None = None,
    timeout: Duration = 10.0,
    retry: RetryPolicy | int | None = None,
    **terms: Unpack[ClientOptions],
) -> Client[T]: ...
async def connect(
    where: "str | ByteStream",
    *,
    codec: Codec[Any] = BYTES,
    ssl: SSLContext | None = None,
    timeout: Duration = 10.0,
    retry: RetryPolicy | int | None = None,
    **terms: Unpack[ClientOptions],
) -> Client[Any]:
    """Connect to *where*, a URI (see `uri`) or any byte stream of anyio.

    *codec* encodes and decodes elements; all other options are in `ClientOptions`. Credentials that
    the server refuses let the first request fail with `SetupRejected`. A connection that does not
    come about within *timeout* seconds fails with `ConnectionLost`. *retry* says when to connect
    again once the connection was lost, and when to give up; without it, a lost connection stays
    lost. With ``resume=Resumption()``, streams go on over the next transport, and miss nothing.
    """
    if not isinstance(where, str):
        if terms.get("resume") is not None or retry is not None:
            raise ValueError("resume and retry need a URI: a byte stream is there only once")
        driver = client_driver(codec, terms, await resolve_credentials(terms))
        StreamTransport(driver, where)
        return Client(driver, codec)
    address = Address.parse(where)
    limit = to_seconds(timeout, "timeout")

    async def make() -> Driver:
        return client_driver(codec, terms, await resolve_credentials(terms))

    async def reach(driver: Driver) -> None:
        await _within(limit, address, driver, ssl)

    link = Reconnector(make, reach, None if retry is None else RetryPolicy.of(retry))
    return Client(await link.first(), codec, address.route, address.n, link)


async def _within(limit: float, address: Address, driver: Driver, ssl: SSLContext | None) -> None:
    loop_handle = LoopHandle("connect()")
    task = loop_handle.create_task(
        dial(loop_handle.loop, address, driver, ssl), f"rsocket: connects to {address}"
    )
    late = False

    def stop() -> None:
        nonlocal late
        late = task.cancel()

    timer = loop_handle.call_later(limit, stop)
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
