"""What may be asked of the other end of a connection, by either side."""

from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeAlias, TypeVar, overload

from .._core.duration import Duration, to_seconds
from ..coerce import Source, to_flow
from ..stage import Downstream, from_push
from .driver import Driver, lost_error
from .lease_wait import (
    TimedInboundStream,
    begin_stream,
    deadline_passed,
    fail,
    late,
    leased,
    when_leased,
)
from .protocol.errors import NoLease
from .protocol.frames import Payload, PayloadTuple
from .protocol.metadata import MetadataItem, write_mime_types, write_routing
from .protocol.mime import ACCEPT_MIME_TYPES, COMPOSITE_METADATA, MIME_TYPE, ROUTING
from .request_metadata import deadline_item, write_items
from .stream_adapters import ChannelSender, InboundStream, answer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._core.loop import Future, TimerHandle
    from ..flow import Flow
    from ..spec import Subscription
    from .payloads import Codec

__all__ = ("Requester",)

T = TypeVar("T")
U = TypeVar("U")
Metadata: TypeAlias = "Sequence[MetadataItem | tuple[str, bytes]]"
_NO_METADATA: Final = ()
_KEPT: Final = 256


class Requester(Generic[T]):
    """One connection, and what may be asked of the other end. Leave it by ``async with``.

    All four models take a *route*, items of *metadata* to be sent along, and a *codec* where the
    types of a request are not those of the connection. A *timeout* is told to the other end, which
    gives up as well. Where the other end grants leases, requests wait for one.
    """

    def __init__(
        self, driver: Driver, codec: "Codec[T]", route: str | None = None, n: int | None = None
    ) -> None:
        self._driver = driver
        self._codec = codec
        self._route = route
        self._n = n
        self._usual: dict[str | None, bytes | None] = {}
        """The metadata of requests that say no more than a route; of up to 256 routes."""

    def __repr__(self) -> str:
        return f"<Requester {self._driver.connection!r}>"

    # -- the four models ---------------------------------------------------------------------------
    @overload
    async def request_response(
        self,
        payload: T | None = None,
        *,
        route: str | None = None,
        metadata: Metadata = _NO_METADATA,
        timeout: Duration | None = None,
    ) -> T: ...
    @overload
    async def request_response(
        self,
        payload: Any = None,
        *,
        codec: "Codec[U]",
        route: str | None = None,
        metadata: Metadata = _NO_METADATA,
        timeout: Duration | None = None,
    ) -> U: ...
    async def request_response(
        self,
        payload: Any = None,
        *,
        codec: "Codec[Any] | None" = None,
        route: str | None = None,
        metadata: Metadata = _NO_METADATA,
        timeout: Duration | None = None,
    ) -> Any:
        """Ask for one element. To be cancelled while waiting cancels the request.

        Fails with `TimedOut` when *timeout* seconds have passed, lease and answer included.
        """
        driver = self._driver
        if driver.close_reason is not None:
            raise lost_error(driver)
        limit = None if timeout is None else to_seconds(timeout, "timeout")
        if codec is None and limit is None and not metadata and route in self._usual:
            codec = self._codec  # this is `_payload`, by a call less: a twentieth of a request
            asked = (b"" if payload is None else codec.encode(payload)), self._usual[route]
        else:
            asked = self._payload(payload, codec, route, metadata, limit)
            codec = codec or self._codec
        call: Future[bytes] = driver.loop_handle.loop.create_future()
        timer: TimerHandle | None = None
        if limit is not None:
            timer = driver.loop_handle.call_later(limit, fail, call, late(limit))
        stream_id = 0
        try:
            while not stream_id:
                try:
                    stream_id = driver.connection.request_response(asked)
                except NoLease:
                    await leased(driver, call)
            driver.responses[stream_id] = call
            driver.send_request()
            data = await call
        except BaseException as error:
            if driver.responses.get(stream_id) is call:  # nobody waits for it any more
                del driver.responses[stream_id]
                driver.connection.cancel(stream_id)
                driver.schedule_turn()
            if limit is not None and deadline_passed(error):
                raise late(limit) from None
            raise
        finally:
            if timer is not None:
                timer.cancel()
        return data if codec.decode is bytes else codec.decode(data)

    async def fire_and_forget(
        self,
        payload: Any = None,
        *,
        codec: "Codec[Any] | None" = None,
        route: str | None = None,
        metadata: Metadata = _NO_METADATA,
    ) -> None:
        """Send a request that nobody answers; waits while much waits to be sent."""
        asked = self._payload(payload, codec, route, metadata, None)
        await self._open().drain()
        driver = self._open()
        while True:
            try:
                driver.connection.fire_and_forget(asked)
                break
            except NoLease:
                await leased(driver)
        driver.schedule_turn()

    @overload
    def request_stream(
        self,
        payload: T | None = None,
        *,
        route: str | None = None,
        metadata: Metadata = _NO_METADATA,
        timeout: Duration | None = None,
    ) -> "Flow[T]": ...
    @overload
    def request_stream(
        self,
        payload: Any = None,
        *,
        codec: "Codec[U]",
        route: str | None = None,
        metadata: Metadata = _NO_METADATA,
        timeout: Duration | None = None,
    ) -> "Flow[U]": ...
    def request_stream(
        self,
        payload: Any = None,
        *,
        codec: "Codec[Any] | None" = None,
        route: str | None = None,
        metadata: Metadata = _NO_METADATA,
        timeout: Duration | None = None,
    ) -> "Flow[Any]":
        """Ask for a stream, anew for each subscription, when its subscriber first asks.

        The other end is asked for as much as the subscriber asks for, no more and no less. The
        stream fails with `TimedOut` unless it ends within *timeout* seconds from then.
        """
        limit = None if timeout is None else to_seconds(timeout, "timeout")
        asked = self._payload(payload, codec, route, metadata, limit)

        def start(inflow: InboundStream, n: int) -> int:
            return inflow.driver.connection.request_stream(asked, n)

        open = self._opener(codec, partial(begin_stream, start), limit)
        flow: Flow[Any] = from_push(open, name=self._name("request_stream", route), holds=None)
        return flow if self._n is None else flow.boundary(self._n)

    @overload
    def request_channel(
        self,
        source: Source[T],
        *,
        route: str | None = None,
        metadata: Metadata = _NO_METADATA,
        timeout: Duration | None = None,
    ) -> "Flow[T]": ...
    @overload
    def request_channel(
        self,
        source: Source[Any],
        *,
        codec: "Codec[U]",
        route: str | None = None,
        metadata: Metadata = _NO_METADATA,
        timeout: Duration | None = None,
    ) -> "Flow[U]": ...
    def request_channel(
        self,
        source: Source[Any],
        *,
        codec: "Codec[Any] | None" = None,
        route: str | None = None,
        metadata: Metadata = _NO_METADATA,
        timeout: Duration | None = None,
    ) -> "Flow[Any]":
        """Send the elements of *source*, as the other end asks for them, and get its elements.

        The channel is opened by the first element of *source*. A source that is empty gets none
        back. One that fails fails the channel; the other end is not told why.
        """
        limit = None if timeout is None else to_seconds(timeout, "timeout")
        items = self._items(codec, route, metadata, limit)
        encode = (codec or self._codec).encode

        def begin(inflow: InboundStream) -> None:
            def opened(payload: Payload, n: int) -> int:
                first = Payload(payload.data, items)
                return inflow.driver.connection.request_channel(first, n)

            out = ChannelSender(
                inflow, lambda each: Payload(encode(each)), opened, lambda each: answer(each, False)
            )
            out.attach(to_flow(source))

        open = self._opener(codec, partial(when_leased, begin), limit)
        return from_push(open, name=self._name("request_channel", route), holds=None)

    def metadata_push(self, *metadata: MetadataItem | tuple[str, bytes]) -> None:
        """Send metadata that concerns the whole connection."""
        driver = self._open()
        driver.connection.metadata_push(write_items(self._metadata_mime, metadata) or b"")
        driver.schedule_turn()

    # -- the end -----------------------------------------------------------------------------------
    @property
    def closed(self) -> bool:
        return self._driver.close_reason is not None

    async def aclose(self) -> None:
        """Close the connection: streams that are open fail; nothing of it is left."""
        await self._driver.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    # -- inside ------------------------------------------------------------------------------------
    def _open(self) -> Driver:
        if self._driver.close_reason is not None:
            raise lost_error(self._driver)
        return self._driver

    def _opener(
        self,
        codec: "Codec[Any] | None",
        begin: "Callable[[InboundStream, int], None]",
        limit: float | None,
    ) -> "Callable[[Downstream[Any]], Subscription]":
        decode = (codec or self._codec).decode

        def open(downstream: Downstream[Any]) -> "Subscription":
            if limit is None:
                return InboundStream(self._driver, downstream, decode, begin)
            return TimedInboundStream(self._driver, downstream, decode, begin, limit)

        return open

    def _name(self, what: str, route: str | None) -> str:
        return f"{what}({route or self._route or ''})"

    def _payload(
        self,
        payload: Any,
        codec: "Codec[Any] | None",
        route: str | None,
        metadata: Metadata,
        limit: float | None,
    ) -> PayloadTuple:
        data = b"" if payload is None else (codec or self._codec).encode(payload)
        if metadata or codec is not None or limit is not None:
            return data, self._items(codec, route, metadata, limit)
        try:
            return data, self._usual[route]
        except KeyError:
            items = self._items(None, route, _NO_METADATA, None)
        if len(self._usual) >= _KEPT:
            self._usual.clear()
        self._usual[route] = items
        return data, items

    @property
    def _metadata_mime(self) -> str:
        setup = self._driver.connection.setup
        return COMPOSITE_METADATA if setup is None else setup.metadata_mime

    def _items(
        self,
        codec: "Codec[Any] | None",
        route: str | None,
        metadata: Metadata,
        limit: float | None,
    ) -> bytes | None:
        route = self._route if route is None else route
        items = [] if route is None else [(ROUTING, write_routing(route))]
        if codec is not None and codec.mime != self._codec.mime:
            mime = write_mime_types(codec.mime)
            items += [(MIME_TYPE, mime), (ACCEPT_MIME_TYPES, mime)]
        if limit is not None:
            items.append(deadline_item(limit))
        return write_items(self._metadata_mime, [*items, *metadata])
