"""websocket_messages, with servers that speak whatever they like."""

# pyright: reportUnknownLambdaType=false

import asyncio
import json
import re
import socket as sockets
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.utils import accept_key

from reactive_aio import RetryPolicy, UnicastProcessor, error, from_aiter, just
from reactive_aio.asgi import (
    PeerFailed,
    SocketLost,
    SocketRefused,
    socket_client,
    websocket_messages,
)
from reactive_aio.asgi.socket_client import SocketAddress
from tests.asgi.unread import MORE_THAN_BUFFERS, stop_reading, unread
from tests.harness.outages import proxy_of
from tests.recipes.waiting import SECONDS

Handle = Callable[[ServerConnection], Awaitable[None]]
AT_ONCE = RetryPolicy(attempts=3, only=ConnectionError, reset=True)


@asynccontextmanager
async def server(handle: Handle, **options: Any) -> AsyncGenerator[str]:
    async with serve(handle, "127.0.0.1", 0, **options) as opened:
        yield f"ws://127.0.0.1:{next(iter(opened.sockets)).getsockname()[1]}/feed"


async def silent(connection: ServerConnection) -> None:
    await connection.wait_closed()


# -- what is read ----------------------------------------------------------------------------------
async def test_texts_and_bytes_are_elements_until_a_normal_close() -> None:
    async def handle(connection: ServerConnection) -> None:
        await connection.send("one")
        await connection.send(b"\0two")
        await connection.send(["th", "ree"])  # in fragments

    async with server(handle) as url:
        messages = websocket_messages(url)
        assert await messages.to_list(limit=9) == ["one", b"\0two", "three"]
        assert messages.bound().total == 16


@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_a_slow_subscriber_slows_the_server_and_is_not_taken_for_a_lost_one() -> None:
    sent = 0

    async def handle(connection: ServerConnection) -> None:
        nonlocal sent
        with suppress(ConnectionClosed):
            while True:
                await connection.send(b"x" * 50_000)
                sent += 1

    async with (
        server(handle, compression=None, ping_interval=None) as url,
        websocket_messages(url, keepalive=0.02).stream() as messages,
    ):
        await anext(messages)
        before = -1
        while sent > before:  # what the system and both ends buffer
            before = sent
            await asyncio.sleep(0.05)
        assert sent < 500
        for _ in range(100):
            await anext(messages)


async def test_leaving_the_loop_closes_the_connection() -> None:
    closed = asyncio.get_running_loop().create_future()

    async def handle(connection: ServerConnection) -> None:
        await connection.send("one")
        await connection.wait_closed()
        closed.set_result(connection.close_code)

    async with server(handle) as url:
        assert await websocket_messages(url, just("hello")).first() == "one"
        assert await closed == 1000


# -- what is sent ----------------------------------------------------------------------------------
async def echo(connection: ServerConnection) -> None:
    async for message in connection:
        await connection.send(message)
        if message == "end":
            return


async def test_a_flow_is_sent_while_messages_are_received() -> None:
    outgoing = UnicastProcessor[str | bytes](capacity=4)
    received = list[str | bytes]()

    async def answer(message: str | bytes) -> None:
        received.append(message)
        if len(received) < 3:
            await outgoing.emit(f"{message!r}!")
        else:
            await outgoing.emit("end")

    async with server(echo) as url:
        await outgoing.emit(b"a")
        await websocket_messages(url, outgoing).for_each(answer)
    assert received == [b"a", "b'a'!", "\"b'a'!\"!", "end"]


async def test_a_subscription_continues_after_the_last_message() -> None:
    asked: list[int | None] = []

    async def handle(connection: ServerConnection) -> None:
        after = json.loads(await connection.recv())["after"]
        asked.append(after)
        for number in range(after or 0, 5)[:2]:
            await connection.send(json.dumps({"number": number + 1}))
        await connection.close(1012 if (after or 0) < 4 else 1000)

    def subscribe(last: str | bytes | None) -> list[str]:
        return [json.dumps({"after": None if last is None else json.loads(last)["number"]})]

    async with server(handle) as url:
        found = await websocket_messages(url, subscribe, retry=AT_ONCE).to_list(limit=9)
    assert [json.loads(each)["number"] for each in found] == [1, 2, 3, 4, 5]
    assert asked == [None, 2, 4]


async def test_what_is_sent_is_closed_when_the_server_has_gone() -> None:
    ended = list[str]()

    async def forever() -> AsyncIterator[str]:
        try:
            while True:
                yield "x"
                await asyncio.sleep(0)
        finally:
            ended.append("closed")

    async def handle(connection: ServerConnection) -> None:
        await connection.recv()

    async with server(handle) as url:
        await websocket_messages(url, lambda last: from_aiter(forever)).run()
    assert ended == ["closed"]


FAILURES: dict[str, tuple[Any, type[Exception], str]] = {
    "a failure": (error(ValueError("no more")), ValueError, "no more"),
    "a number": (just(5), TypeError, r"send has a message 5 \(int\), and"),
    "no source": (lambda last: 5, TypeError, "send"),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
async def test_a_failure_of_what_is_sent_fails_the_flow(
    failure: tuple[Any, type[Exception], str],
) -> None:
    send, kind, text = failure
    async with server(silent) as url:
        with pytest.raises(kind, match=text):
            await websocket_messages(url, send, retry=AT_ONCE).run()


async def test_a_function_that_fails_opens_no_connection() -> None:
    def fail(last: str | bytes | None) -> list[str]:
        raise ZeroDivisionError("on purpose")

    with pytest.raises(ZeroDivisionError, match="on purpose"):
        await websocket_messages("ws://127.0.0.1:1/", fail, retry=3).run()


# -- the end ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("code", [1001, 1011, 1013, 3000, 4001])
async def test_the_code_of_a_close_is_that_of_the_error(code: int) -> None:
    async with server(lambda connection: connection.close(code, "so\x1b[2J")) as url:
        with pytest.raises(SocketLost, match=rf"feed: .* closed with {code}: so\\x1b") as raised:
            await websocket_messages(url).run()
    assert (raised.value.code, raised.value.reason) == (code, "so\\x1b[2J")


@pytest.mark.parametrize("code", [1002, 1003, 1007, 1008, 1009, 1010])
async def test_a_server_that_objects_to_what_it_was_sent_is_not_asked_again(code: int) -> None:
    count = 0

    async def handle(connection: ServerConnection) -> None:
        nonlocal count
        count += 1
        await connection.close(code, "not you")

    async with server(handle) as url:
        with pytest.raises(SocketRefused, match=f"closed with {code}: not you") as raised:
            await websocket_messages(url, retry=5).run()
    assert (raised.value.code, count) == (code, 1)


async def test_a_connection_that_is_cut_has_the_code_1006() -> None:
    async def handle(connection: ServerConnection) -> None:
        connection.transport.abort()

    async with server(handle) as url:
        with pytest.raises(SocketLost, match="closed with 1006") as raised:
            await websocket_messages(url).run()
    assert raised.value.code == 1006


async def test_a_message_that_is_too_long_fails_the_flow() -> None:
    async def handle(connection: ServerConnection) -> None:
        await connection.send("x" * 1001)
        await connection.wait_closed()

    async with server(handle) as url:
        with pytest.raises(PeerFailed, match=r"a message of more than 1000 bytes \(max_message=\)"):
            await websocket_messages(url, max_message=1000, retry=3).run()


async def test_a_server_that_answers_no_ping_is_lost() -> None:
    """Such as a machine that is switched off: nothing says so."""

    async def greet(connection: ServerConnection) -> None:
        await connection.send("hello")
        await connection.wait_closed()

    async with server(greet, ping_interval=None) as url, proxy_of(url) as proxy:
        messages = websocket_messages(proxy.url, keepalive=0.05).do_on_next(
            lambda _: proxy.freeze()
        )
        with pytest.raises(SocketLost, match=r"a ping within 0.05 s \(keepalive=\)"):
            await messages.run()


async def test_a_quiet_server_that_answers_pings_is_not_lost() -> None:
    async def handle(connection: ServerConnection) -> None:
        for _ in range(3):
            await asyncio.wait_for(pinged.wait(), 10)
            pinged.clear()
        await connection.send("at last")

    pinged = asyncio.Event()

    class Watched(ServerConnection):
        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            pinged.set()

    async with server(handle, create_connection=Watched) as url:
        assert await websocket_messages(url, keepalive=0.02).to_list(limit=2) == ["at last"]


# -- a server that does not read -------------------------------------------------------------------
async def test_leaving_the_loop_waits_for_no_server_that_does_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket_client, "CLOSE_TIMEOUT", 0.1)

    async def greet(connection: ServerConnection) -> None:
        await connection.recv()
        stop_reading(connection)
        await connection.send("hello")  # when it comes, the client has begun to send the rest

    async with unread(greet) as url:
        messages = websocket_messages(url, just("one", MORE_THAN_BUFFERS))
        first = asyncio.ensure_future(messages.first())
        await asyncio.wait([first], timeout=SECONDS)  # what cleans up is not cancelled
        assert first.done()
        assert first.result() == "hello"


async def test_a_socket_closes_although_the_server_does_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket_client, "CLOSE_TIMEOUT", 0.1)

    async def greet(connection: ServerConnection) -> None:
        stop_reading(connection)
        await connection.send("hello")

    async with unread(greet) as url:
        async with (
            asyncio.timeout(SECONDS),
            SocketAddress("test", url, {}, (), None).opened() as socket,
        ):
            await socket.recv()
            sending = asyncio.ensure_future(socket.send(MORE_THAN_BUFFERS))
            await asyncio.sleep(0)
        await sending


async def test_a_subscriber_that_reads_nothing_itself_does_not_lose_the_server() -> None:
    """An echo that cannot send does not read; only the subscriber can end that."""
    is_rested, received = asyncio.Event(), asyncio.Event()

    async def greet(connection: ServerConnection) -> None:
        stop_reading(connection)
        await connection.send("hello")
        await is_rested.wait()
        connection.transport.resume_reading()
        assert await connection.recv() == MORE_THAN_BUFFERS
        received.set()

    async def rest(message: str | bytes) -> str | bytes:
        await asyncio.sleep(0.1)  # several times *keepalive*
        is_rested.set()
        await received.wait()
        return message

    async with unread(greet) as url, asyncio.timeout(SECONDS):
        messages = websocket_messages(url, just(MORE_THAN_BUFFERS), keepalive=0.02)
        assert await messages.map_async(rest).first() == "hello"


# -- the handshake ---------------------------------------------------------------------------------
async def test_a_number_of_attempts_counts_lost_connections_in_a_row() -> None:
    async with server(silent) as url:
        pass
    with pytest.raises(SocketLost, match="no socket"):
        await websocket_messages(url, retry=RetryPolicy(attempts=2)).run()
    # What is refused is not repeated, although a number is that of all attempts.
    asked = 0

    def refuse(connection: ServerConnection, request: Request) -> Response:
        nonlocal asked
        asked += 1
        return connection.respond(HTTPStatus.UNAUTHORIZED, "who are you?\n")

    async with server(silent, process_request=refuse) as url:
        with pytest.raises(PeerFailed, match="the handshake failed: who are you") as raised:
            await websocket_messages(url, retry=5).run()
    assert (raised.value.status, asked) == (401, 1)


async def test_credentials_follow_no_redirect() -> None:
    seen: list[str] = []

    def redirect(connection: ServerConnection, request: Request) -> Response:
        seen.append(request.headers["X-Api-Key"])
        answer = connection.respond(HTTPStatus.FOUND, "")
        answer.headers["Location"] = other
        return answer

    async with server(silent) as other, server(silent, process_request=redirect) as url:
        with pytest.raises(PeerFailed, match=f"it redirects to {re.escape(other)}"):
            await websocket_messages(url, headers={"X-Api-Key": "k"}).run()
    assert seen == ["k"]


FOREIGN: dict[str, tuple[bytes, type[Exception], str]] = {
    "a greeting": (b"SSH-2.0-OpenSSH_9.6\r\n", PeerFailed, "does not speak WebSocket: .*SSH-2.0"),
    "a page": (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", PeerFailed, "failed: hi"),
    "another upgrade": (
        b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n",
        PeerFailed,
        "does not speak WebSocket: .*h2c",
    ),
    "a frame that is none": (b"\x83\x01a", PeerFailed, "does not speak WebSocket: invalid opcode"),
    "a frame for servers": (b"\x81\x81aaaab", PeerFailed, "WebSocket: incorrect masking"),
    "bytes for a text": (b"\x81\x01\xff", PeerFailed, "WebSocket: .*start byte"),
    "a frame that is too long": (b"\x81\x7f" + b"\0\1" * 4, PeerFailed, "more than 1048576 bytes"),
    "nothing": (b"", SocketLost, "no socket within 0.05 s"),
    "an end": (b"!", SocketLost, "no socket: "),
}


@pytest.mark.parametrize("foreign", FOREIGN.values(), ids=FOREIGN)
async def test_a_server_that_speaks_something_else_fails_with_what_it_said(
    foreign: tuple[bytes, type[Exception], str],
) -> None:
    answer, kind, text = foreign
    left = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        if answer[:1] in (b"\x81", b"\x83"):
            key = re.search(r"Sec-WebSocket-Key: (\S+)", head)
            assert key
            accept = f"Sec-WebSocket-Accept: {accept_key(key[1])}"
            upgrade = "HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            writer.write(f"{upgrade}{accept}\r\n\r\n".encode())
        writer.write(answer.strip(b"!"))
        if answer != b"!":
            await reader.read()  # it waits for the client to leave
        writer.close()
        left.set()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        timeout = 10 if answer else 0.05
        with pytest.raises(kind, match=text):
            await websocket_messages(f"ws://127.0.0.1:{port}/", timeout=timeout).run()
        await left.wait()


async def test_the_subprotocol_is_offered() -> None:
    async def handle(connection: ServerConnection) -> None:
        await connection.send(str(connection.subprotocol))

    async with server(handle, subprotocols=["graphql-ws"]) as url:
        found = websocket_messages(url, subprotocols=["mqtt", "graphql-ws"])
        assert await found.first() == "graphql-ws"


async def test_nothing_is_opened_before_the_first_request() -> None:
    with sockets.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        websocket_messages(f"ws://127.0.0.1:{listening.getsockname()[1]}/")
        with pytest.raises(BlockingIOError):
            listening.accept()
