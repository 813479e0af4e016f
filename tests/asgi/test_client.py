"""The client of the text protocol over sockets, with our server and with scripted ones."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from ssl import PROTOCOL_TLS_SERVER, SSLContext, create_default_context
from typing import Any

import anyio
import pytest
import trustme
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from reactive_aio import Flow, RetryPolicy, defer, just, range as numbers
from reactive_aio.asgi import (
    Peer,
    PeerFailed,
    Refused,
    SocketLost,
    SocketRefused,
    connect,
    from_websocket,
    socket_client,
)
from reactive_aio.asgi.socket_client import SocketAddress
from reactive_aio.asgi.text_protocol.client import SocketMessages
from reactive_aio.asgi.text_protocol.messages import InvalidMessage
from reactive_aio.errors import RuleViolation
from reactive_aio.stage import LoopHandle
from reactive_aio.testing.probes import SubscriberProbe
from tests.asgi.serving import Service, service
from tests.asgi.unread import MORE_THAN_BUFFERS, stop_reading, unread
from tests.harness.leftover_checks import Context, other_tasks
from tests.recipes.waiting import SECONDS

Handler = Callable[[ServerConnection], Awaitable[None]]


@pytest.fixture(scope="module")
def serving() -> Iterator[Service]:
    with service("starlette") as running:
        running.get("/stat")
        yield running


def live(serving: Service) -> str:
    return f"ws://127.0.0.1:{serving.port}/live"


class Script:
    """A server whose handler the test writes; `sockets` is the number of its clients."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.sockets = 0
        self.url = ""

    async def handle(self, socket: ServerConnection) -> None:
        self.sockets += 1
        await self.handler(socket)


@asynccontextmanager
async def scripted(handler: Handler, **options: Any) -> AsyncGenerator[Script]:
    script = Script(handler)
    async with serve(script.handle, "127.0.0.1", 0, close_timeout=1, **options) as server:
        [listening] = server.sockets
        script.url = f"ws://127.0.0.1:{listening.getsockname()[1]}/"
        yield script


async def say(socket: ServerConnection, type: str, **members: Any) -> None:
    await socket.send(json.dumps({"type": type, "id": 1, **members}))


async def receive(socket: ServerConnection) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(await socket.recv())
    return found


# -- elements and demand ---------------------------------------------------------------------------
async def test_a_stream_of_a_server_is_a_flow(serving: Service) -> None:
    flow = from_websocket(live(serving), route="count.1000")
    assert await flow.to_list(limit=1000) == [*range(1000)]
    assert await flow.take(2).to_list(limit=2) == [0, 1], "each subscription has its own socket"


async def test_demand_is_passed_to_the_server() -> None:
    received: list[dict[str, Any]] = []

    async def handler(socket: ServerConnection) -> None:
        received.append(await receive(socket))
        await say(socket, "next", value="a")
        await say(socket, "next", value="b")
        received.append(await receive(socket))
        await say(socket, "next", value="c")
        await say(socket, "complete")

    async with scripted(handler) as script:
        flow: Flow[str] = from_websocket(script.url, {"since": 3}, route="letters")
        elements: list[str] = []
        async with flow.stream(prefetch=1) as stream:
            elements.extend([each async for each in stream])
    assert elements == ["a", "b", "c"]
    assert received[0] == {
        "type": "subscribe", "id": 1, "route": "letters", "n": 1, "params": {"since": 3},
    }  # fmt: skip
    assert received[1] == {"type": "request", "id": 1, "n": 1}


async def test_several_streams_share_a_socket_and_the_client_publishes(serving: Service) -> None:
    async with connect(live(serving), {"shout": just("so", "loud")}) as server:
        shouted, counted, single = await asyncio.gather(
            server.request_stream(route="shout").to_list(limit=9),
            server.request_stream(route="count.100").to_list(limit=100),
            server.request_stream(route="count.1").to_list(limit=1),
        )
        assert (shouted, counted, single) == (["SO", "LOUD"], [*range(100)], [0])
    assert (await serving.settles(0))["outstanding"] == 0


# -- cancellation ----------------------------------------------------------------------------------
async def test_cancelling_the_flow_closes_the_socket_and_cancels_the_stream(
    serving: Service,
) -> None:
    async with from_websocket(live(serving), route="endless").stream() as stream:
        async for _ in stream:
            assert (await serving.stat())["open"] == 1
            break
    assert (await serving.settles(0))["outstanding"] == 0


async def test_cancelling_a_stream_of_a_shared_socket_leaves_the_others(serving: Service) -> None:
    async with connect(live(serving)) as server:
        async with server.request_stream(route="endless").stream() as stream:
            await anext(aiter(stream))
        assert await server.request_stream(route="count.3").to_list(limit=3) == [0, 1, 2]
        await serving.settles(0)


class Silent:
    """Answers no handshake, and waits until the client has closed its socket."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.closed = asyncio.Event()

    async def __call__(self, connection: ServerConnection, request: Request) -> None:
        self.reached.set()
        await connection.wait_closed()
        self.closed.set()


async def unused(socket: ServerConnection) -> None:
    pytest.fail("no handshake ends")


async def test_a_cancelled_attempt_to_connect_leaves_nothing() -> None:
    silent = Silent()
    async with scripted(unused, process_request=silent) as script:
        task = asyncio.ensure_future(from_websocket(script.url, route="x").to_list(limit=1))
        await silent.reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(silent.closed.wait(), 10)


async def test_a_server_that_does_not_answer_in_time_is_a_lost_connection() -> None:
    silent = Silent()
    async with scripted(unused, process_request=silent) as script:
        with pytest.raises(SocketLost, match=r"/: no socket within 0.5 s"):
            await from_websocket(script.url, route="x", timeout=0.5).to_list(limit=1)
        await asyncio.wait_for(silent.closed.wait(), 10)


@pytest.mark.parametrize("is_flow", [True, False], ids=["from_websocket", "connect"])
async def test_a_cancelled_scope_of_anyio_closes_the_socket(
    serving: Service, is_flow: bool
) -> None:
    with anyio.CancelScope() as scope:
        if is_flow:
            async for _ in from_websocket(live(serving), route="ticks"):
                scope.cancel()
        else:
            async with connect(live(serving)) as server:
                async for _ in server.request_stream(route="ticks"):
                    scope.cancel()
    assert (await serving.settles(0))["open"] == 0
    if closing := other_tasks():  # those of the client, which closes its socket after the scope
        await asyncio.wait(closing)


async def test_a_second_cancellation_while_the_socket_closes_leaves_nothing() -> None:
    entered, closed = asyncio.Event(), asyncio.Event()

    async def handler(socket: ServerConnection) -> None:
        await socket.wait_closed()
        closed.set()

    async def enter(url: str) -> None:
        async with connect(url):
            entered.set()
            await asyncio.Event().wait()

    async with scripted(handler) as script:
        task = asyncio.ensure_future(enter(script.url))
        await entered.wait()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(closed.wait(), 10)


# -- errors ----------------------------------------------------------------------------------------
async def test_an_error_of_the_stream_has_its_status(serving: Service) -> None:
    async with connect(live(serving)) as server:
        with pytest.raises(PeerFailed, match="the server's stream failed: there is no") as raised:
            await server.request_stream(route="unknown").to_list(limit=1)
        assert raised.value.status == 404
        with pytest.raises(PeerFailed, match="the stream failed") as raised:
            await server.request_stream(route="fails").to_list(limit=9)
        assert raised.value.status == 500


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(host: str, status: int) -> None:
    """The headers of the handshake may be credentials, whatever their names are."""

    async def handler(socket: ServerConnection) -> None:
        raise AssertionError("the redirect was followed")

    seen: list[str] = []

    def redirect(connection: ServerConnection, request: Request) -> Response | None:
        seen.append(request.path)
        if request.path == "/elsewhere":
            return None
        answer = connection.respond(HTTPStatus(status), "go on")
        answer.headers["Location"] = f"ws://u:pw@{host}:{port}/elsewhere?key=pw"
        return answer

    async with scripted(handler, process_request=redirect) as script:
        port = int(script.url.strip("/").rpartition(":")[2])
        flow = from_websocket(script.url, route="x", headers={"x-api-key": "k3y"})
        with pytest.raises(PeerFailed, match=r"it redirects to ws://\*\*\*@.*not foll") as raised:
            await flow.to_list(limit=1)
    assert raised.value.status == status
    assert "pw" not in str(raised.value)
    assert seen == ["/"]


async def test_a_refused_handshake_has_the_status_of_the_answer() -> None:
    def refuse(connection: ServerConnection, request: Request) -> Response:
        return connection.respond(HTTPStatus.FORBIDDEN, '{"status":403,"detail":"not you"}')

    async with scripted(unused, process_request=refuse) as script:
        with pytest.raises(PeerFailed, match="the handshake failed: not you") as raised:
            await from_websocket(script.url, route="x").to_list(limit=1)
    assert raised.value.status == 403


async def test_a_port_where_nothing_listens_is_a_connection_error() -> None:
    with pytest.raises(ConnectionError, match=r"ws://127.0.0.1:1/: no socket: "):
        await from_websocket("ws://127.0.0.1:1/", route="x").to_list(limit=1)


@pytest.fixture(scope="module")
def contexts() -> tuple[SSLContext, SSLContext]:
    """The context of a server, and one of a client that trusts it."""
    authority: Any = trustme.CA()
    serving = SSLContext(PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(serving)
    trusting = create_default_context()
    authority.configure_trust(trusting)
    return serving, trusting


async def test_tls_is_verified_by_the_context_that_is_given(
    contexts: tuple[SSLContext, SSLContext], expects_loop_errors: list[Context]
) -> None:
    """The server's loop may report the handshake that its client ends."""
    serving, trusting = contexts

    async def handler(socket: ServerConnection) -> None:
        await receive(socket)
        await say(socket, "complete")

    async with scripted(handler, ssl=serving) as script:
        url = script.url.replace("ws:", "wss:")
        assert await from_websocket(url, route="x", ssl=trusting).to_list(limit=1) == []
        with pytest.raises(SocketLost, match="certificate verify failed"):
            await from_websocket(url, route="x").to_list(limit=1)


async def test_a_lost_socket_fails_its_streams_with_the_reason() -> None:
    async def handler(socket: ServerConnection) -> None:
        await receive(socket)
        await socket.close(1012, "back soon")

    async with scripted(handler) as script:
        with pytest.raises(SocketLost, match="closed with 1012: back soon; subscribe again"):
            await from_websocket(script.url, route="x").to_list(limit=1)


async def test_an_error_of_the_whole_socket_is_the_reason_of_its_end() -> None:
    async def handler(socket: ServerConnection) -> None:
        await receive(socket)
        await socket.send('{"type":"error","status":429,"detail":"too many"}')
        await socket.close(1008)

    async with scripted(handler) as script:
        with pytest.raises(SocketRefused, match="the connection is closed with 1008: too many"):
            await from_websocket(script.url, route="x").to_list(limit=1)


@pytest.mark.parametrize("code", [1002, 1003, 1007, 1008, 1009, 1010, 1001, 1011, 1012])
async def test_what_a_server_objects_to_is_not_sent_to_the_next_socket(code: int) -> None:
    async def handler(socket: ServerConnection) -> None:
        await receive(socket)
        await socket.close(code, "why")

    is_refused = code not in (1001, 1011, 1012)
    policy = RetryPolicy(attempts=2, delay=0.001, only=ConnectionError)
    async with scripted(handler) as script:
        with pytest.raises((SocketRefused, SocketLost)) as caught:
            await from_websocket(script.url, route="x").retry(policy).to_list(limit=1)
        assert script.sockets == (1 if is_refused else 2)
    assert type(caught.value) is (SocketRefused if is_refused else SocketLost)
    assert (caught.value.code, caught.value.reason) == (code, "why")


BROKEN: dict[str, tuple[list[Any], type[Exception], str]] = {
    "null": ([{"value": None}], TypeError, "the server sent null"),
    "too many": ([{"value": 1}, {"value": 2}], RuleViolation, "sent more than was requested"),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
async def test_a_server_that_breaks_a_rule_is_cancelled(
    broken: tuple[list[Any], type[Exception], str],
) -> None:
    messages, kind, text = broken
    answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def handler(socket: ServerConnection) -> None:
        await receive(socket)
        for members in messages:
            await say(socket, "next", **members)
        answer.set_result((await receive(socket))["type"])

    async with scripted(handler) as script, connect(script.url) as server:
        probe = SubscriberProbe[int]()
        server.request_stream(route="x").subscribe(probe)
        probe.request(1)
        assert await answer == "cancel"
        assert isinstance(probe.error, kind)
        assert text in str(probe.error)


async def test_a_binary_message_closes_the_socket() -> None:
    codes: list[int | None] = []

    async def handler(socket: ServerConnection) -> None:
        await receive(socket)
        await socket.send(b"\0")
        await socket.wait_closed()
        codes.append(socket.close_code)

    async with scripted(handler) as script:
        with pytest.raises(PeerFailed, match=r"it sent b'\\x00' \(messages are text\)"):
            await from_websocket(script.url, route="x").to_list(limit=1)
    assert codes == [1003]


FOREIGN: dict[str, tuple[str, int]] = {
    "other JSON": ('{"key": 1}', 1002),
    "another type": ('{"type": "trade", "price": 3}', 1002),
    "another error": ('{"type": "error", "message": "no such channel"}', 1002),
    "a list": ("[1, 2]", 1007),
    "a text": ("hello", 1007),
    "a long text": ("hello" * 99, 1007),
}


@pytest.mark.parametrize("foreign", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_server_that_speaks_something_else_is_not_silence(
    foreign: tuple[str, int], when: str
) -> None:
    message, code = foreign
    codes: list[int | None] = []
    answers: list[str] = []

    async def handler(socket: ServerConnection) -> None:
        if when == "after":
            await receive(socket)
        with suppress(ConnectionClosed):
            for _ in range(5):
                await socket.send(message)
            while True:
                answers.append(str(await socket.recv()))
        codes.append(socket.close_code)

    policy = RetryPolicy(attempts=3, only=ConnectionError)
    seen = re.escape(repr(message[:80]))
    async with scripted(handler) as script:
        flow = from_websocket(script.url, route="x").retry(policy)
        with pytest.raises(PeerFailed, match=f"does not speak reactive-streams.v1: it sent {seen}"):
            await flow.to_list(limit=1)
        assert script.sockets == 1, "the next socket would see the same"
    assert codes == [code]
    assert sum('"error"' in each for each in answers) == 1


async def test_a_server_that_accepts_anything_and_says_nothing_is_not_a_quiet_stream() -> None:
    async def handler(socket: ServerConnection) -> None:
        with suppress(ConnectionClosed):
            while True:
                await socket.recv()

    policy = RetryPolicy(attempts=3, only=ConnectionError)
    text = "it accepted no subprotocol, and sent nothing within 0.05 s"
    async with scripted(handler) as script:
        flow = from_websocket(script.url, route="x", timeout=0.05)
        # The opening of a socket may take longer on a busy machine; it is tried again.
        with pytest.raises((PeerFailed, SocketLost), match=f"{text}|no socket within"):
            await flow.retry(policy).to_list(limit=1)


class QuietSocket:
    """The socket of a server that sends *messages*, and then nothing."""

    def __init__(self, subprotocol: str | None, *messages: str) -> None:
        self.subprotocol = subprotocol
        self._messages = [*messages]

    async def recv(self) -> str:
        if not self._messages:
            await asyncio.Event().wait()
        return self._messages.pop()

    async def send(self, text: str) -> None:
        pass


@pytest.mark.virtual_time
async def test_a_quiet_stream_of_a_server_that_speaks_the_protocol_is_waited_for() -> None:
    knows, answers = QuietSocket("reactive-streams.v1"), QuietSocket(None, "{}")
    for socket in (knows, answers, QuietSocket(None)):
        address = SocketAddress("test", "ws://localhost", {}, (), None)
        messages = SocketMessages(LoopHandle("test"), socket, address)
        if socket is not knows:
            await messages.send({"type": "websocket.send", "text": "{}"})
        if socket is answers:
            await messages.receive()
        if socket.subprotocol is None and socket is not answers:
            with pytest.raises(InvalidMessage, match="sent nothing within 10 s"):
                await messages.receive()
            continue
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await messages.receive()


async def test_a_message_that_is_too_long_closes_the_socket() -> None:
    async def handler(socket: ServerConnection) -> None:
        await receive(socket)
        await say(socket, "next", value="x" * 1000)
        await socket.wait_closed()

    async with scripted(handler) as script:
        flow = from_websocket(script.url, route="x", max_message=500)
        policy = RetryPolicy(attempts=3, only=ConnectionError)
        with pytest.raises(PeerFailed, match="a message of more than 500 bytes") as caught:
            await flow.retry(policy).to_list(limit=1)
        assert (caught.value.status, script.sockets) == (413, 1)


# -- reconnecting ----------------------------------------------------------------------------------
async def test_retry_reconnects_and_resumes_where_the_payload_says() -> None:
    asked: list[Any] = []

    async def handler(socket: ServerConnection) -> None:
        params = (await receive(socket))["params"]
        asked.append(params)
        await say(socket, "next", value=params["after"] + 1)
        if params["after"] < 2:
            socket.transport.abort()
        await say(socket, "complete")

    last = 0

    def keep(element: int) -> None:
        nonlocal last
        last = element

    policy = RetryPolicy(attempts=2, only=ConnectionError, reset=True)
    async with scripted(handler) as script:
        flow = defer(
            lambda: from_websocket(script.url, {"after": last}, route="x").do_on_next(keep)
        ).retry(policy)
        assert await flow.to_list(limit=9) == [1, 2, 3]
    assert asked == [{"after": 0}, {"after": 1}, {"after": 2}]
    assert script.sockets == 3


async def test_a_refusal_is_not_retried_by_a_policy_for_connections(serving: Service) -> None:
    policy = RetryPolicy(attempts=5, only=ConnectionError)
    with pytest.raises(PeerFailed) as raised:
        await from_websocket(live(serving), route="unknown").retry(policy).to_list(limit=1)
    notes: list[str] = getattr(raised.value, "__notes__", [])
    assert not [each for each in notes if "attempt 1:" in each], "there was one attempt"


async def test_leaving_the_block_fails_the_streams_that_are_open(serving: Service) -> None:
    async with connect(live(serving)) as server:
        open_stream = asyncio.ensure_future(
            server.request_stream(route="ticks").for_each(lambda _: None)
        )
        await server.request_stream(route="count.1").to_list(limit=1)
    with pytest.raises(SocketLost):
        await open_stream
    with pytest.raises(SocketLost):
        await server.request_stream(route="count.1").to_list(limit=1)


# -- a server that does not read -------------------------------------------------------------------
class Shouting:
    """A client of a server that subscribes to a route of it, and then does not read.

    `has_filled` is set when a message is being sent that does not fit into the buffers.
    """

    def __init__(self) -> None:
        self.has_filled = asyncio.Event()

    async def greet(self, socket: ServerConnection) -> None:
        stop_reading(socket)
        await say(socket, "subscribe", route="shout", n=1)

    def encode(self, text: str) -> str:
        self.has_filled.set()
        return json.dumps(text)

    @asynccontextmanager
    async def connected(self, **options: Any) -> AsyncGenerator[Peer]:
        routes = {"shout": just(MORE_THAN_BUFFERS)}
        async with (
            unread(self.greet) as url,
            asyncio.timeout(SECONDS),
            connect(url, routes, encode=self.encode, **options) as server,
        ):
            await self.has_filled.wait()
            yield server


async def test_leaving_the_block_waits_for_no_server_that_does_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket_client, "CLOSE_TIMEOUT", 0.1)
    async with Shouting().connected():
        pass


async def test_a_server_that_reads_no_ping_is_lost() -> None:
    async with Shouting().connected(keepalive=0.2) as server:
        with pytest.raises(SocketLost, match=r"1006: the server has read nothing for 0\.2 s"):
            await server.request_stream(route="count").to_list(limit=1)


# -- publishing ------------------------------------------------------------------------------------
async def test_a_failure_of_a_published_flow_does_not_leak_its_text() -> None:
    errors: list[BaseException] = []

    def failing() -> Flow[Any]:
        return numbers(1).map(lambda _: 1 / 0)

    def refusing() -> Flow[Any]:
        raise Refused(403, "not this one")

    for publish, detail in ((failing, "the stream failed"), (refusing, "not this one")):
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

        async def handler(
            socket: ServerConnection, answer: asyncio.Future[dict[str, Any]] = answer
        ) -> None:
            await say(socket, "subscribe", route="mine", n=1)
            answer.set_result(await receive(socket))

        async with (
            scripted(handler) as script,
            connect(script.url, {"mine": publish}, on_error=errors.append),
        ):
            assert (await answer)["detail"] == detail
    assert [type(each) for each in errors] == [ZeroDivisionError]
