"""Large payloads do not delay other frames, and both sides detect a silent peer."""

import asyncio
import socket
from typing import Any

import pytest

from reactive_aio import just, never
from reactive_aio.rsocket import (
    BYTES,
    ClientOptions,
    ConnectionLost,
    Limits,
    Requester,
    RequestRejected,
    Router,
    Server,
    StreamFailed,
    connect,
    loopback,
    serve,
)
from reactive_aio.rsocket.client import client_driver
from reactive_aio.rsocket.link.transports import buffered
from reactive_aio.rsocket.link.transports.memory import MemoryTransport
from reactive_aio.rsocket.link.transports.sockets import MAX_UNSENT
from reactive_aio.rsocket.protocol.frame_reader import FrameReader
from reactive_aio.testing.probes import SubscriberProbe

MIB = 1024 * 1024
router = Router()


@router.route("small")
def small() -> bytes:
    return b"s"


@router.route("large.{size}")
def large(size: int) -> bytes:
    return bytes(size)


@router.route("size")
def size_of(payload: bytes) -> bytes:
    return str(len(payload)).encode()


@router.route("forever")
def forever() -> Any:
    return just(b"1").concat_with(never())


@pytest.mark.parametrize("way", ["to the client", "to the server"])
async def test_a_large_payload_does_not_delay_other_streams(way: str) -> None:
    async with loopback(router) as requester:
        if way == "to the client":
            work = requester.request_response(route=f"large.{12 * MIB}")
        else:
            work = requester.request_response(bytes(12 * MIB), route="size")
        task = asyncio.create_task(work)
        await asyncio.sleep(0)
        for _ in range(5):
            assert await requester.request_response(route="small") == b"s"
        assert not task.done()
        assert len(await task) in (12 * MIB, 8)


class SlowTransport(MemoryTransport):
    """Delivers once a second what was written: about 64 KiB."""

    def _output_changed(self) -> None:
        if not self._is_delivery_scheduled and not self.is_closed:
            self._is_delivery_scheduled = True
            self.driver.loop_handle.call_later(1.0, self._deliver)


async def pair(
    options: ClientOptions, kind: type[MemoryTransport], limits: Limits | None = None
) -> tuple[Requester[bytes], Server, MemoryTransport, MemoryTransport]:
    server = Server(router, limits=limits, max_connections=9)
    near = client_driver(BYTES, options, None)
    one, two = kind(near), kind(server.new_driver())
    one.other, two.other = two, one
    two.driver.attach(two)
    near.attach(one)
    return Requester(near, BYTES), server, one, two


@pytest.mark.virtual_time
@pytest.mark.parametrize("way", ["to the client", "to the server"])
async def test_a_large_payload_on_a_slow_line_does_not_delay_keepalive(way: str) -> None:
    options = ClientOptions(keepalive=3, lifetime=8)  # the payload takes much longer
    requester, server, _, _ = await pair(options, SlowTransport)
    async with server, requester:
        if way == "to the client":
            assert len(await requester.request_response(route=f"large.{6 * MIB}")) == 6 * MIB
        else:
            assert await requester.request_response(bytes(6 * MIB), route="size") == b"6291456"
        assert asyncio.get_running_loop().time() > 40


class SlowAndDeep(MemoryTransport):
    """Delivers 64 KiB a second, and holds several seconds of output as a kernel does."""

    def _output_changed(self) -> None:
        if not self._is_delivery_scheduled and not self.is_closed:
            self._is_delivery_scheduled = True
            self.driver.loop_handle.call_later(1.0, self._deliver)

    def _take_output(self) -> list[bytes]:
        return [self._output.pop(0)]

    def _deliver(self) -> None:
        super()._deliver()
        if self._output:
            self._output_changed()


@pytest.mark.virtual_time
async def test_output_that_leaves_is_a_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    """A keepalive waits for 7 seconds in the buffers, and so does its answer."""
    monkeypatch.setattr(buffered, "HIGH_WATER", 7 * 64 * 1024)
    options = ClientOptions(keepalive=3, lifetime=8)
    requester, server, _, _ = await pair(options, SlowAndDeep)
    async with server, requester:
        assert await requester.request_response(bytes(3 * MIB), route="size") == b"3145728"
        assert asyncio.get_running_loop().time() > 40


@pytest.mark.skipif(not hasattr(socket, "TCP_NOTSENT_LOWAT"), reason="the platform has no limit")
@pytest.mark.parametrize("uri", ["tcp://127.0.0.1:0", "ws://127.0.0.1:0"])
async def test_the_kernel_holds_little_that_it_has_not_sent(uri: str) -> None:
    async with await serve(uri, router) as server, await connect(server.uri) as client:
        assert await client.request_response(route="small") == b"s"
        [served] = server._drivers
        for driver in (served, client._driver):
            tcp = driver.get_extra_info("socket")
            unsent = tcp.getsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT)
            assert unsent == MAX_UNSENT


class Lossy(MemoryTransport):
    """Delivers what is written, until `lossy` is set."""

    lossy = False

    def write(self, data: bytes, /) -> None:
        if not self.lossy:
            super().write(data)


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("lifetime", "cap", "noticed"), [(40, 600, 40), (3600, 60, 60)], ids=["requested", "capped"]
)
async def test_a_silent_client_is_disconnected(lifetime: int, cap: int, noticed: int) -> None:
    options = ClientOptions(keepalive=10, lifetime=lifetime)
    client, server, near, _ = await pair(options, Lossy, Limits(max_lifetime=cap))
    async with server:
        probe: SubscriberProbe[Any] = SubscriberProbe(request=3)
        client.request_stream(route="forever").subscribe(probe)
        await probe.wait_for_signals(1)
        assert isinstance(near, Lossy)
        near.lossy = True
        await asyncio.sleep(noticed - 1)
        assert server.connections == 1
        await asyncio.sleep(8)
        assert server.connections == 0
        await client.aclose()


@pytest.mark.virtual_time
async def test_a_silent_server_is_disconnected() -> None:
    client, server, _, far = await pair(ClientOptions(keepalive=10, lifetime=40), Lossy)
    async with server, client:
        probe: SubscriberProbe[Any] = SubscriberProbe(request=3)
        client.request_stream(route="forever").subscribe(probe)
        await probe.wait_for_signals(1)
        assert isinstance(far, Lossy)
        far.lossy = True
        await probe.end()
        assert isinstance(probe.error, ConnectionLost)
        assert asyncio.get_running_loop().time() == pytest.approx(40)


@pytest.mark.parametrize("mtu", [64, 1000])
async def test_no_frame_is_longer_than_the_mtu(mtu: int) -> None:
    splitter, lengths = FrameReader(), list[int]()
    async with loopback(router, limits=Limits(mtu=mtu)) as requester:
        transport: Any = requester._driver.line.transport
        received = transport.other.driver.data_received

        def look(data: bytes) -> None:
            splitter.feed(data)
            while (frame := splitter.next()) is not None:
                lengths.append(len(frame))
            received(data)

        transport.other.driver.data_received = look
        assert await requester.request_response(bytes(5000), route="size") == b"5000"
    setup, *rest = lengths  # SETUP cannot be fragmented
    assert setup > 64
    assert max(rest) <= mtu
    assert len(rest) >= 5000 // mtu


async def test_limits_apply_to_one_connection() -> None:
    limits = Limits(max_payload=1000, max_streams=2)
    async with loopback(router, limits=limits) as requester:
        with pytest.raises(StreamFailed):
            await requester.request_response(bytes(200_000), route="size")
    async with loopback(router, limits=limits) as requester:
        probes = [SubscriberProbe[Any](request=1) for _ in range(2)]
        for probe in probes:
            requester.request_stream(route="forever").subscribe(probe)
        with pytest.raises(RequestRejected, match="2 streams are open"):
            await requester.request_response(route="small")
