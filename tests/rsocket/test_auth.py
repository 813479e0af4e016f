"""Authentication, authorization, and certificates on both sides."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trustme

from reactive_aio import Flow, from_iterable
from reactive_aio.rsocket import (
    JSON,
    BearerToken,
    Client,
    ClientOptions,
    ConnectingClient,
    ConnectionLost,
    OtherCredentials,
    Request,
    RequestInvalid,
    RequestRejected,
    Resumption,
    Router,
    Server,
    Setup,
    SetupRejected,
    SimpleAuth,
    connect,
    loopback,
    serve,
)
from reactive_aio.rsocket.protocol.frames import Error, Payload, RequestFnf
from reactive_aio.rsocket.protocol.metadata import AUTHENTICATION, ROUTING, Credentials, write_auth
from tests.harness.leftover_checks import Context
from tests.harness.outages import proxy_of

from .cut_transport import Bench
from .wire import read, wire

served: list[str] = []
router = Router()


@router.route("me")
def me(request: Request) -> Any:
    served.append(request.route)
    return request.user


@router.route("log")
def log(payload: Any) -> None:
    served.append("log")


@router.route("range.{n}")
def count(n: int) -> Flow[int]:
    return from_iterable(range(n))


@pytest.fixture(autouse=True)
def nothing_served() -> None:
    served.clear()


# -- authentication --------------------------------------------------------------------------------
def knows(credentials: Credentials | None) -> str | None:
    match credentials:
        case SimpleAuth("ann", "secret"):
            return "ann"
        case BearerToken("token"):
            return "robot"
        case OtherCredentials("x.badge", b"7"):
            return "badge 7"
        case _:
            return None


@pytest.mark.parametrize(
    ("credentials", "user"),
    [
        (SimpleAuth("ann", "secret"), "ann"),
        (BearerToken("token"), "robot"),
        (OtherCredentials("x.badge", b"7"), "badge 7"),
    ],
)
@pytest.mark.parametrize("mime", ["message/x.rsocket.composite-metadata.v0", AUTHENTICATION])
async def test_each_type_of_credentials_authenticates_the_client(
    credentials: Credentials, user: str, mime: str
) -> None:
    client = ClientOptions(metadata_mime=mime)
    hello: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def on_connect(peer: Any) -> None:
        hello.set_result(peer._driver.user)

    async with loopback(
        router,
        codec=JSON,
        credentials=credentials,
        client=client,
        authenticate=knows,
        on_connect=on_connect,
    ):
        assert await hello == user


@pytest.mark.parametrize(
    "credentials", [None, SimpleAuth("ann", "wrong"), BearerToken(""), OtherCredentials("x", b"")]
)
async def test_a_refused_client_gets_an_error_and_is_closed(credentials: Any) -> None:
    async with await serve("tcp://127.0.0.1:0", router, authenticate=knows) as server:
        assert server.address is not None
        with pytest.raises(SetupRejected, match="authentication failed"):
            await connect(server.uri, codec=JSON, credentials=credentials)
        async with loopback(
            router, codec=JSON, credentials=credentials, authenticate=knows
        ) as client:  # it does not wait for the answer
            forgotten = asyncio.create_task(client.fire_and_forget(1, route="log"))
            with pytest.raises(SetupRejected, match="authentication failed"):
                await client.request_response(route="me")
            await forgotten
            with pytest.raises(SetupRejected):
                await client.request_stream(route="range.3").to_list(limit=3)
        while server.connections:  # noqa: ASYNC110 - closing the socket takes a few iterations
            await asyncio.sleep(0.001)
        assert served == []


async def test_a_credentials_function_is_called_for_each_connection() -> None:
    made = 0

    async def fresh() -> BearerToken:
        nonlocal made
        made += 1
        await asyncio.sleep(0)
        return BearerToken("token")

    async with (
        await serve("tcp://127.0.0.1:0", router, authenticate=knows) as server,
        await connect(server.uri, codec=JSON, credentials=fresh) as client,
    ):
        assert await client.request_response(route="me") == "robot"
    assert made == 1


@pytest.mark.parametrize("wrong", [b"", b"\x80\0\xffx", b"\x81\xff", b"\x05ab"])
async def test_malformed_credentials_are_refused(wrong: bytes) -> None:
    client = ClientOptions(metadata=((AUTHENTICATION, wrong),))
    async with loopback(router, codec=JSON, client=client, authenticate=knows) as requester:
        with pytest.raises(SetupRejected, match="cannot be read"):
            await requester.request_response(route="me")


async def test_a_failing_hook_refuses_and_its_text_is_not_sent() -> None:
    errors: list[BaseException] = []

    async def check(credentials: object) -> bool:
        raise RuntimeError("the database is swordfish")

    async with loopback(
        router, codec=JSON, authenticate=check, on_error=errors.append
    ) as requester:
        with pytest.raises(SetupRejected) as raised:
            await requester.request_response(route="me")
    assert b"swordfish" not in raised.value.data
    assert isinstance(errors[0], RuntimeError)


async def test_a_refused_client_reads_the_reason_despite_unread_data() -> None:
    """Closing a socket with unread data would reset it."""
    is_called, all_sent = asyncio.Event(), asyncio.Event()

    async def refuse(_: Any) -> bool:
        is_called.set()
        await all_sent.wait()
        return False

    async with await serve("tcp://127.0.0.1:0", Router(), authenticate=refuse) as server:
        assert server.address is not None
        reader, writer = await asyncio.open_connection("127.0.0.1", server.address.port)
        writer.write(wire(Setup()))
        await is_called.wait()
        for number in range(50):
            writer.write(wire(RequestFnf(2 * number + 1, Payload(bytes(10_000)))))
            await asyncio.sleep(0)
        all_sent.set()
        [error] = [each for each in read(await reader.read()) if isinstance(each, Error)]
        assert error.data == b"authentication failed"
        writer.close()
        await writer.wait_closed()


# -- authorization ---------------------------------------------------------------------------------
async def owner(request: Request) -> Any:
    await asyncio.sleep(0)
    match request.credentials:
        case BearerToken("vip"):
            return "vip"
        case _:
            return request.route != "me"


async def test_each_request_may_be_refused() -> None:
    async with loopback(router, codec=JSON, authorize=owner) as requester:
        with pytest.raises(RequestRejected, match="not authorized"):
            await requester.request_response(route="me")
        with pytest.raises(RequestRejected):
            await requester.request_stream(route="me").to_list(limit=1)
        with pytest.raises(RequestRejected):
            await requester.request_channel([1], route="me").to_list(limit=1)
        await requester.fire_and_forget(1, route="me")
        assert await requester.request_stream(route="range.3").to_list(limit=3) == [0, 1, 2]
        assert served == []
        vip = [(AUTHENTICATION, write_auth(BearerToken("vip")))]
        assert await requester.request_response(route="me", metadata=vip) == "vip"


async def test_an_unknown_route_is_reported_only_after_authorization() -> None:
    async with loopback(router, codec=JSON, authorize=lambda _: False) as requester:
        with pytest.raises(RequestRejected):
            await requester.request_response(route="nowhere")
    async with loopback(router, codec=JSON, authorize=lambda _: True) as requester:
        with pytest.raises(RequestInvalid, match="no such route"):
            await requester.request_response(route="nowhere")


async def test_a_synchronous_authorization_sees_data_and_metadata() -> None:
    def small(request: Request) -> bool:
        assert request.item(ROUTING) is not None
        return len(request.data) < 5

    async with loopback(router, codec=JSON, authorize=small) as requester:
        assert await requester.request_response(1, route="range.1") == 0
        with pytest.raises(RequestRejected):
            await requester.request_response("much too long", route="range.1")


@pytest.mark.virtual_time
async def test_a_slow_authorization_refuses_the_request() -> None:
    async def think(request: Request) -> bool:
        await asyncio.Event().wait()
        return True

    async with loopback(router, codec=JSON, authorize=think, auth_timeout=3) as requester:
        with pytest.raises(RequestRejected, match="took too long"):
            await requester.request_response(route="me")
        assert asyncio.get_running_loop().time() == pytest.approx(3)


async def test_a_cancelled_request_cancels_its_authorization() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def think(request: Request) -> bool:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return True

    async with loopback(router, codec=JSON, authorize=think) as requester:
        task = asyncio.create_task(requester.request_response(route="me"))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await ended.wait()


# -- certificates ----------------------------------------------------------------------------------
def shows(context: ssl.SSLContext, certificate: trustme.LeafCert) -> None:
    with certificate.private_key_and_cert_chain_pem.tempfile() as path:
        context.load_cert_chain(path)


class Authority:
    """A certificate authority, and TLS contexts with certificates that it issued."""

    def __init__(self) -> None:
        self.ca = trustme.CA()
        self.server = self._server("localhost", "127.0.0.1")
        self.elsewhere = self._server("elsewhere.example")
        self.verifies = self._server("localhost", "127.0.0.1")
        self._trust(self.verifies)
        self.verifies.verify_mode = ssl.CERT_REQUIRED
        self.anonymous = self._client(None)
        self.ann = self._client(self.ca.issue_cert("ann.example", common_name="ann"))
        self.eve = self._client(self.ca.issue_cert("eve.example", common_name="eve"))
        self.stranger = self._client(trustme.CA().issue_cert("ann.example", common_name="ann"))

    def _trust(self, context: ssl.SSLContext) -> None:
        context.load_verify_locations(cadata=self.ca.cert_pem.bytes().decode())

    def _server(self, *names: str) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        shows(context, self.ca.issue_cert(*names))
        return context

    def _client(self, certificate: trustme.LeafCert | None) -> ssl.SSLContext:
        context = ssl.create_default_context()
        self._trust(context)
        if certificate is not None:
            shows(context, certificate)
        return context


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def by_certificate(credentials: Credentials | None, caller: ConnectingClient) -> str | None:
    assert credentials is None
    assert caller.address is not None
    certificate = caller.certificate or {}
    names = {key: value for [(key, value)] in certificate.get("subject", ())}
    return names.get("commonName")


@pytest.fixture(params=["tls", "wss"])
async def verified(request: pytest.FixtureRequest, authority: Authority) -> AsyncIterator[Server]:
    uri = f"{request.param}://127.0.0.1:0"
    context = authority.verifies
    async with await serve(uri, router, ssl=context, authenticate=by_certificate) as server:
        yield server


async def test_a_certificate_authenticates_the_client(
    verified: Server, authority: Authority
) -> None:
    context = authority.ann
    async with await connect(verified.uri, codec=JSON, ssl=context) as client:
        assert await client.request_response(route="me") == "ann"


async def test_a_client_without_a_certificate_is_refused(
    verified: Server, authority: Authority, expects_loop_errors: list[Context]
) -> None:
    async def ask(context: ssl.SSLContext) -> None:
        async with await connect(verified.uri, codec=JSON, ssl=context) as client:
            await client.request_response(route="me")

    for context in (authority.anonymous, authority.stranger):
        with pytest.raises(ConnectionLost):
            await ask(context)
    assert served == []
    # Some versions of asyncio report an aborted handshake.
    assert all("transport" in each for each in expects_loop_errors)


async def test_the_certificate_must_match_the_host_name(
    authority: Authority, expects_loop_errors: list[Context]
) -> None:
    async with await serve("tls://127.0.0.1:0", router, ssl=authority.elsewhere) as server:
        with pytest.raises(ConnectionLost, match="certificate"):
            await connect(server.uri, ssl=authority.anonymous)
    async with (
        await serve("tls://127.0.0.1:0", router, ssl=authority.server) as server,
        await connect(server.uri, codec=JSON, ssl=authority.anonymous) as client,
    ):
        assert await client.request_response(route="range.1") == 0
    assert all("transport" in each for each in expects_loop_errors)


async def test_a_session_resumes_only_with_its_first_certificate(
    authority: Authority, expects_loop_errors: list[Context]
) -> None:
    context = authority.verifies
    resume = Resumption()
    server = await serve("tls://127.0.0.1:0", router, ssl=context, resume=resume)
    assert server.address is not None
    async with server, proxy_of(server.uri) as proxy:
        uri = proxy.url
        terms = ClientOptions(resume=resume)

        async def dial(context: ssl.SSLContext) -> Client[Any]:
            return await connect(uri, codec=JSON, ssl=context, **terms)

        async with await dial(authority.ann) as ann, await dial(authority.eve) as eve:
            assert await ann.request_stream(route="range.3").to_list(limit=3) == [0, 1, 2]
            proxy.cut()
            assert await ann.request_stream(route="range.3").to_list(limit=3) == [0, 1, 2]
            stolen = ann._driver.connection.setup
            mine = eve._driver.connection
            assert stolen is not None
            assert mine.setup is not None
            object.__setattr__(mine.setup, "token", stolen.token)
            proxy.cut()
            with pytest.raises(ConnectionLost):
                await eve.request_response(route="me")
            assert await ann.request_stream(route="range.3").to_list(limit=3) == [0, 1, 2]

    # asyncio reports a handshake that was cut.
    assert all("transport" in each for each in expects_loop_errors)


async def test_an_unknown_token_resumes_nothing() -> None:
    bench = Bench(router, resume=Resumption())
    async with bench.server, await bench.client() as client:
        await client.request_response(route="range.1")
        setup = client._driver.connection.setup
        assert setup is not None
        object.__setattr__(setup, "token", bytes(16))
        bench.lose()
        with pytest.raises(ConnectionLost):
            await client.request_response(route="range.1")
