"""What may be asked of the other end of a connection, by either side."""

from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from ..coerce import Source, to_flow
from ..stage import Inlet, from_push
from .driver import Driver, lost_error
from .exchange import Call, ChannelOut, Inflow, answer
from .payloads import Codec
from .protocol.frames import Payload
from .protocol.metadata import Item, write_composite, write_routing
from .protocol.mime import ROUTING

if TYPE_CHECKING:
    from ..flow import Flow
    from ..spec import Subscription

__all__ = ("Requester",)

T = TypeVar("T")
Metadata = tuple[Item | tuple[str, bytes], ...]


class Requester(Generic[T]):
    """One connection, and what may be asked of the other end. Leave it by ``async with``."""

    def __init__(
        self, driver: Driver, codec: Codec[T], route: str | None = None, n: int | None = None
    ) -> None:
        self._driver = driver
        self._codec = codec
        self._route = route
        self._n = n

    def __repr__(self) -> str:
        return f"<Requester {self._driver.connection!r}>"

    # -- the four models ---------------------------------------------------------------------------
    async def request_response(
        self, payload: T | None = None, *, route: str | None = None, metadata: Metadata = ()
    ) -> T:
        """Ask for one element. To be cancelled while waiting cancels the request."""
        driver = self._open()
        asked = self._payload(payload, route, metadata)
        call = Call(driver, self._codec.decode)
        stream_id = driver.connection.request_response(asked)
        driver.receivers[stream_id] = call
        driver.plan()
        try:
            answered: T = await call.future
            return answered
        finally:
            if driver.receivers.get(stream_id) is call:
                del driver.receivers[stream_id]
                driver.connection.cancel(stream_id)
                driver.plan()

    async def fire_and_forget(
        self, payload: T | None = None, *, route: str | None = None, metadata: Metadata = ()
    ) -> None:
        """Send a request that nobody answers; waits while much waits to be sent."""
        asked = self._payload(payload, route, metadata)
        await self._open().room()
        driver = self._open()
        driver.connection.fire_and_forget(asked)
        driver.plan()

    def request_stream(
        self, payload: T | None = None, *, route: str | None = None, metadata: Metadata = ()
    ) -> "Flow[T]":
        """Ask for a stream, anew for each subscription, when its subscriber first asks.

        The other end is asked for as much as the subscriber asks for, no more and no less.
        """
        asked = self._payload(payload, route, metadata)

        def begin(inflow: Inflow, n: int) -> None:
            inflow.bind(inflow.driver.connection.request_stream(asked, n))

        def open(inlet: Inlet[T]) -> "Subscription":
            return Inflow(self._driver, inlet, self._codec.decode, begin)

        flow: Flow[T] = from_push(open, name=self._name("request_stream", route), holds=None)
        return flow if self._n is None else flow.boundary(self._n)

    def request_channel(
        self, source: Source[T], *, route: str | None = None, metadata: Metadata = ()
    ) -> "Flow[T]":
        """Send the elements of *source*, as the other end asks for them, and get its elements.

        The channel is opened by the first element of *source*. A source that is empty gets none
        back. One that fails fails the channel; the other end is not told why.
        """
        items = self._items(route, metadata)
        encode = self._codec.encode

        def opened(payload: Payload, n: int) -> int:
            first = Payload(payload.data, items)
            return self._driver.connection.request_channel(first, n)

        def begin(inflow: Inflow, n: int) -> None:
            del n
            out = ChannelOut(
                inflow, lambda each: Payload(encode(each)), opened, lambda each: answer(each, False)
            )
            out.attach(to_flow(source))

        def open(inlet: Inlet[T]) -> "Subscription":
            return Inflow(self._driver, inlet, self._codec.decode, begin)

        return from_push(open, name=self._name("request_channel", route), holds=None)

    def metadata_push(self, *metadata: Item | tuple[str, bytes]) -> None:
        """Send metadata that concerns the whole connection."""
        driver = self._open()
        driver.connection.metadata_push(write_composite(metadata))
        driver.plan()

    # -- the end -----------------------------------------------------------------------------------
    @property
    def closed(self) -> bool:
        return self._driver.ended is not None

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
        if self._driver.ended is not None:
            raise lost_error(self._driver)
        return self._driver

    def _name(self, what: str, route: str | None) -> str:
        return f"{what}({route or self._route or ''})"

    def _payload(self, payload: T | None, route: str | None, metadata: Metadata) -> Payload:
        data = b"" if payload is None else self._codec.encode(payload)
        return Payload(data, self._items(route, metadata))

    def _items(self, route: str | None, metadata: Metadata) -> bytes | None:
        route = self._route if route is None else route
        routing = () if route is None else ((ROUTING, write_routing(route)),)
        return write_composite((*routing, *metadata)) or None
