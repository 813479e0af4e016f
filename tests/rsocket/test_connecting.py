"""Connecting: what a refused client learns, and what is tried again."""

import asyncio
import gc
import socket
import ssl
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
import trustme

from reactive_aio import RetryPolicy
from reactive_aio.rsocket import (
    JSON,
    BearerToken,
    CertificateRejected,
    Client,
    ConnectionLost,
    Router,
    SetupRejected,
    connect,
    serve,
)
from reactive_aio.rsocket.link.connecting import TimeLimit, explained
from reactive_aio.rsocket.link.reconnection import Reconnector
from reactive_aio.rsocket.uri import Address
from tests.harness.leftover_checks import Context

from .cut_transport import Bench
from .loop_turns import turns

EAGER = RetryPolicy(attempts=1000, delay=0.001, factor=1)


def echo(payload: Any) -> Any:
    return payload


def echoes() -> Router:
    router = Router()
    router.route("echo")(echo)
    return router


class Keys:
    """The tokens that a server knows, and how often it was asked."""

    def __init__(self, *known: str) -> None:
        self.known = {*known}
        self.calls = 0

    def __call__(self, credentials: Any) -> bool:
        self.calls += 1
        return isinstance(credentials, BearerToken) and credentials.token in self.known


# -- refused by the server -------------------------------------------------------------------------
@pytest.mark.parametrize("transport", ["tcp", "ws"])
async def test_connect_fails_if_the_server_refuses_the_client(transport: str) -> None:
    keys = Keys("right")
    uri = f"{transport}://127.0.0.1:0"
    async with await serve(uri, echoes(), authenticate=keys) as server:
        with pytest.raises(SetupRejected, match="authentication failed"):
            await connect(server.uri, credentials=BearerToken("wrong"))
        async with await connect(
            server.uri, codec=JSON, credentials=BearerToken("right")
        ) as client:
            assert await client.request_response(3, route="echo") == 3


async def test_refused_credentials_are_not_tried_again() -> None:
    keys = Keys()
    async with await serve("tcp://127.0.0.1:0", echoes(), authenticate=keys) as server:
        with pytest.raises(SetupRejected):
            await connect(server.uri, credentials=BearerToken("x"), retry=EAGER)
    assert keys.calls == 1


async def test_credentials_that_are_refused_later_end_the_reconnecting() -> None:
    keys = Keys("x")
    server = await serve("tcp://127.0.0.1:0", echoes(), authenticate=keys)
    async with await connect(server.uri, credentials=BearerToken("x"), retry=EAGER) as client:
        await server.aclose()
        keys.known.clear()
        async with await serve(server.uri, echoes(), authenticate=keys):
            assert isinstance(await client.closed(), SetupRejected)
            assert client.is_closed
            with pytest.raises(SetupRejected):
                await client.ready()
    assert keys.calls == 2


async def test_a_full_server_says_so_and_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    async with await serve("tcp://127.0.0.1:0", echoes(), max_connections=1) as server:
        first = await connect(server.uri)
        for _ in range(2):
            with pytest.raises(ConnectionLost, match="too many connections; try again later") as it:
                await connect(server.uri)
            assert not isinstance(it.value, SetupRejected)
        assert server.refused_connections == server.stats().refused_connections == 2
        [record] = [each for each in caplog.records if "max_connections" in each.getMessage()]
        assert "max_connections=1 are open; raise it" in record.getMessage()
        waiting = asyncio.create_task(connect(server.uri, codec=JSON, retry=EAGER))
        while server.refused_connections < 5:  # noqa: ASYNC110 - until it has tried a few times
            await asyncio.sleep(0)
        await first.aclose()
        async with await waiting as second:
            assert await second.request_response(1, route="echo") == 1


async def test_more_refused_connections_than_are_read_are_closed_at_once() -> None:
    async with await serve("tcp://127.0.0.1:0", echoes(), max_connections=1) as server:
        assert server.address is not None
        async with await connect(server.uri):
            idle = [
                await asyncio.open_connection("127.0.0.1", server.address.port) for _ in range(70)
            ]
            while server.refused_connections < 6:  # noqa: ASYNC110 - until all have arrived
                await asyncio.sleep(0)
            assert server.connections == 1 + 64
            for _, writer in idle:
                writer.close()
                with suppress(ConnectionError):
                    await writer.wait_closed()


# -- the first connection --------------------------------------------------------------------------
@pytest.mark.virtual_time
async def test_the_first_connection_is_retried_by_the_policy() -> None:
    bench = Bench(echoes(), policy=RetryPolicy(attempts=5, delay=2, factor=2, jitter=0))
    bench.down = True
    connecting = asyncio.create_task(bench.client())
    await asyncio.sleep(5)  # attempts at 0, 2 and 6 seconds
    assert not connecting.done()
    bench.down = False
    async with bench.server, await connecting as client:
        assert asyncio.get_running_loop().time() == pytest.approx(6)
        assert await client.request_response(1, route="echo") == 1


@pytest.mark.virtual_time
async def test_the_first_connection_is_given_up_as_the_policy_says() -> None:
    bench = Bench(echoes(), policy=RetryPolicy(attempts=3, delay=1, jitter=0))
    bench.down = True
    with pytest.raises(ConnectionRefusedError):
        await bench.client()
    assert asyncio.get_running_loop().time() == pytest.approx(3)


async def test_without_a_policy_the_first_connection_is_tried_once() -> None:
    bench = Bench(echoes())
    bench.down = True
    with pytest.raises(ConnectionRefusedError):
        await bench.client()


@pytest.mark.parametrize("mistake", [TypeError("x"), ValueError("x"), ImportError("x")])
async def test_a_mistake_of_the_program_is_not_retried(mistake: Exception) -> None:
    calls: list[int] = []

    async def make() -> Any:
        calls.append(1)
        raise mistake

    async def dial(_: Any) -> None: ...

    with pytest.raises(type(mistake)):
        await Reconnector(make, dial, EAGER).connect()
    assert calls == [1]


# -- servers that do not answer --------------------------------------------------------------------
@contextmanager
def answering(*answers: bytes) -> Generator[int]:
    """A server that reads a little, answers, and closes; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve_one() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(1000)
                for each in answers:
                    connection.sendall(each)

        thread = threading.Thread(target=serve_one)
        thread.start()
        yield listening.getsockname()[1]
        thread.join()


async def test_a_server_that_closes_without_a_word_leads_to_a_hint() -> None:
    with (
        answering() as port,
        pytest.raises(ConnectionLost, match=r"before it accepted the client.*write tls://"),
    ):
        await connect(f"tcp://127.0.0.1:{port}")


async def test_a_server_that_does_not_answer_leads_to_a_hint() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        port = deaf.getsockname()[1]
        with pytest.raises(ConnectionLost, match=r"no answer to SETUP within 0.05 s.*write tls"):
            await connect(f"tcp://127.0.0.1:{port}", timeout=0.05)


@pytest.mark.parametrize(
    ("served", "tried", "hint"),
    [
        ("tcp", "ws", "write wss:// if TLS is spoken there, or tcp://"),
        ("tls", "tcp", "without TLS[?] write tls://"),
        ("tls", "ws", "write wss://"),
        ("wss", "ws", "write wss://"),
        ("tcp", "tls", "no TLS is spoken there: write tcp://"),
        ("ws", "wss", "no TLS is spoken there: write ws://"),
    ],
)
async def test_the_wrong_transport_is_named(
    served: str, tried: str, hint: str, keys: "Authority", expects_loop_errors: list[Context]
) -> None:
    context = keys.server if served in ("tls", "wss") else None
    trusting = keys.client() if tried in ("tls", "wss") else None
    async with await serve(f"{served}://127.0.0.1:0", echoes(), ssl=context) as server:
        assert server.address is not None
        with pytest.raises(ConnectionLost, match=hint):
            await connect(f"{tried}://127.0.0.1:{server.address.port}", ssl=trusting)
    # Some versions of asyncio report an aborted handshake.
    assert all("transport" in each for each in expects_loop_errors)


# -- certificates ----------------------------------------------------------------------------------
class Authority:
    """A certificate authority, with a server that it vouches for."""

    def __init__(self) -> None:
        self.ca = trustme.CA()
        self.server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._show(self.server, self.ca.issue_cert("localhost", "127.0.0.1"))
        self.strict = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._show(self.strict, self.ca.issue_cert("localhost", "127.0.0.1"))
        self._trust(self.strict)
        self.strict.verify_mode = ssl.CERT_REQUIRED
        self.stranger = self.client()
        self._show(self.stranger, trustme.CA().issue_cert("stranger.example"))

    def client(self) -> ssl.SSLContext:
        """A context that trusts the server, and presents nothing."""
        context = ssl.create_default_context()
        self._trust(context)
        return context

    def _trust(self, context: ssl.SSLContext) -> None:
        context.load_verify_locations(cadata=self.ca.cert_pem.bytes().decode())

    def _show(self, context: ssl.SSLContext, certificate: trustme.LeafCert) -> None:
        with certificate.private_key_and_cert_chain_pem.tempfile() as path:
            context.load_cert_chain(path)


@pytest.fixture(scope="module")
def keys() -> Authority:
    return Authority()


@pytest.mark.parametrize("transport", ["tls", "wss"])
async def test_an_untrusted_server_is_not_tried_again(
    transport: str, keys: Authority, expects_loop_errors: list[Context]
) -> None:
    uri = f"{transport}://127.0.0.1:0"
    async with await serve(uri, echoes(), ssl=keys.server) as server:
        with pytest.raises(CertificateRejected, match="trust its authority"):
            await connect(server.uri, retry=EAGER)
    assert all("transport" in each for each in expects_loop_errors)


@pytest.mark.parametrize("transport", ["tls", "wss"])
async def test_a_missing_client_certificate_is_named_on_both_sides(
    transport: str,
    keys: Authority,
    expects_loop_errors: list[Context],
    caplog: pytest.LogCaptureFixture,
) -> None:
    uri = f"{transport}://127.0.0.1:0"
    async with await serve(uri, echoes(), ssl=keys.strict) as server:
        for _ in range(2):
            with pytest.raises(ConnectionLost, match=r"may require a client certificate.*load_cer"):
                await connect(server.uri, ssl=keys.client())
        assert server.stats().failed_handshakes == 2
        [record] = [each for each in caplog.records if "TLS handshake" in each.getMessage()]
        assert "peer did not return a certificate" in record.getMessage()
        assert "the client needs load_cert_chain" in record.getMessage()
    assert all("transport" in each for each in expects_loop_errors)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("transport", ["tls", "wss"])
async def test_an_untrusted_client_certificate_is_named(
    transport: str, version: ssl.TLSVersion, keys: Authority, expects_loop_errors: list[Context]
) -> None:
    context = keys.stranger
    context.maximum_version = version
    async with await serve(f"{transport}://127.0.0.1:0", echoes(), ssl=keys.strict) as server:
        with pytest.raises(ConnectionLost, match=r"client certificate.* not trust the one"):
            await connect(server.uri, ssl=context)
    assert all("transport" in each for each in expects_loop_errors)


class Alerting:
    """A TLS server that sends its alert, and then waits for the client to close."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self.refusals: list[str] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = self._context.wrap_bio(incoming, outgoing, server_side=True)
        while data := await reader.read(65536):
            incoming.write(data)
            try:
                session.do_handshake()
            except ssl.SSLWantReadError:
                writer.write(outgoing.read())
            except ssl.SSLError as error:
                self.refusals.append(error.reason)
                writer.write(outgoing.read())
                writer.write_eof()
                break
        with suppress(ConnectionError):
            await reader.read()
        writer.close()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("transport", ["tls", "wss"])
async def test_a_client_whose_certificate_is_refused_by_an_alert_does_not_try_again(
    transport: str, version: ssl.TLSVersion, keys: Authority, expects_loop_errors: list[Context]
) -> None:
    context = keys.client()
    context.maximum_version = version
    server = Alerting(keys.strict)
    async with await asyncio.start_server(server, "127.0.0.1", 0) as listening:
        uri = f"{transport}://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        with pytest.raises(CertificateRejected, match="load_cert_chain"):
            await connect(uri, ssl=context, retry=EAGER)
    assert server.refusals == ["PEER_DID_NOT_RETURN_A_CERTIFICATE"]
    assert all("transport" in each for each in expects_loop_errors)


async def test_clients_without_tls_are_logged_by_the_server(
    keys: Authority, expects_loop_errors: list[Context], caplog: pytest.LogCaptureFixture
) -> None:
    async with await serve("tls://127.0.0.1:0", echoes(), ssl=keys.server) as server:
        with pytest.raises(ConnectionLost):
            await connect(server.uri.replace("tls://", "tcp://"))
        assert server.stats().failed_handshakes == 1
    async with await serve("tls://127.0.0.1:0", echoes(), ssl=keys.server) as other:
        with pytest.raises(ConnectionLost):
            await connect(other.uri.replace("tls://", "tcp://"))
        assert (server.stats().failed_handshakes, other.stats().failed_handshakes) == (1, 1)
    assert "the client speaks no TLS: tls:// or wss:// is required" in caplog.text
    assert all("transport" in each for each in expects_loop_errors)


def test_an_alert_about_a_certificate_is_permanent() -> None:
    address = Address.parse("tls://there:1")
    for text in (
        "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] tlsv13 alert certificate required",
        "[SSL: TLSV1_ALERT_UNKNOWN_CA] tlsv1 alert unknown ca",
        "[SSL: SSLV3_ALERT_BAD_CERTIFICATE] sslv3 alert bad certificate",
    ):
        error = explained(address, ssl.SSLError(1, text))
        assert isinstance(error, CertificateRejected)
        assert "load_cert_chain" in str(error)
    other = explained(address, ssl.SSLError(1, "[SSL: TLSV1_ALERT_INTERNAL_ERROR] internal error"))
    assert not isinstance(other, CertificateRejected)


async def test_a_slow_authentication_delays_connect() -> None:
    may_decide = asyncio.Event()

    async def decide(_: Any) -> bool:
        await may_decide.wait()
        return True

    async with await serve("tcp://127.0.0.1:0", echoes(), authenticate=decide) as server:
        connecting: asyncio.Task[Client[bytes]] = asyncio.create_task(connect(server.uri))
        await turns()
        assert not connecting.done()
        may_decide.set()
        async with await connecting as client:
            assert await client.request_response(b"1", route="echo") == b"1"


async def test_the_timeout_includes_the_function_for_credentials() -> None:
    async def credentials() -> None:
        await asyncio.Event().wait()

    with pytest.raises(ConnectionLost, match=r"the function for credentials took more than 0.05 s"):
        await connect("tcp://127.0.0.1:1", timeout=0.05, credentials=credentials)


@pytest.mark.virtual_time
async def test_a_connection_gets_the_time_that_its_credentials_leave() -> None:
    limit = TimeLimit(4)
    limit.restart()
    await asyncio.sleep(3)
    with limit.scope():
        await asyncio.Event().wait()
    assert asyncio.get_running_loop().time() == 4


@pytest.mark.parametrize("turns_before", range(12))
async def test_a_cancelled_attempt_by_websocket_leaves_no_error(turns_before: int) -> None:
    async with await serve("ws://127.0.0.1:0", echoes()) as server:
        connecting = asyncio.create_task(connect(server.uri))
        for _ in range(turns_before):
            await asyncio.sleep(0)
        connecting.cancel()
        await asyncio.wait([connecting])
        if not connecting.cancelled():
            await connecting.result().aclose()
        while server.connections:  # noqa: ASYNC110 - sockets take a few turns
            await asyncio.sleep(0.001)
        gc.collect()
        await asyncio.sleep(0)
