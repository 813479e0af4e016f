"""A client of WebSockets, with a server on the loop."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from http import HTTPStatus
from typing import Any

import pytest
from recipes.websocket_client import (
    POLICY,
    ConnectionLost,
    from_websocket,
    is_worth_another_attempt,
)
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidStatus, InvalidURI

from tests.recipes.waiting import until

AT_ONCE = replace(POLICY, delay=0)


@asynccontextmanager
async def server(
    handle: Callable[[ServerConnection], Awaitable[None]], **options: Any
) -> AsyncGenerator[str]:
    async with serve(handle, "127.0.0.1", 0, **options) as opened:
        yield f"ws://127.0.0.1:{next(iter(opened.sockets)).getsockname()[1]}"


async def test_a_normal_close_completes_the_flow() -> None:
    async def handle(connection: ServerConnection) -> None:
        for number in range(3):
            await connection.send(str(number))
        await connection.send(b"bytes")

    async with server(handle) as url:
        assert await from_websocket(url).to_list(limit=9) == ["0", "1", "2", b"bytes"]


async def test_a_lost_connection_continues_after_the_last_message() -> None:
    hellos: list[Any] = []

    async def handle(connection: ServerConnection) -> None:
        hello = json.loads(await connection.recv())
        hellos.append(hello)
        first = 0 if hello["after"] is None else int(hello["after"]) + 1
        for number in range(first, min(first + 2, 5)):
            await connection.send(str(number))
        if first + 2 < 5:
            await connection.close(1011)

    def hello(last: str | bytes | None) -> list[str]:
        return [json.dumps({"after": last})]

    async with server(handle) as url:
        messages = await from_websocket(url, hello, retry=AT_ONCE).to_list(limit=9)
    assert messages == ["0", "1", "2", "3", "4"]
    assert hellos == [{"after": None}, {"after": "1"}, {"after": "3"}]


@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_a_consumer_that_is_slow_slows_the_server() -> None:
    sent: list[int] = []

    async def handle(connection: ServerConnection) -> None:
        with suppress(ConnectionClosed):
            for number in range(100_000):
                await connection.send(b"x" * 10_000)
                sent.append(number)

    async with server(handle, compression=None) as url, from_websocket(url).stream() as messages:
        await anext(messages)
        before = -1
        while len(sent) > before:  # what the kernel and both ends buffer
            before = len(sent)
            await asyncio.sleep(0.05)
        assert len(sent) < 5_000


async def test_leaving_the_loop_closes_the_connection() -> None:
    closed: list[int | None] = []

    async def handle(connection: ServerConnection) -> None:
        await connection.send("one")
        await connection.wait_closed()
        closed.append(connection.close_code)

    async with server(handle) as url:
        async with from_websocket(url).stream() as messages:
            assert await anext(messages) == "one"
        await until(lambda: closed)
    assert closed == [1000]


async def test_a_server_that_refuses_the_client_fails_the_flow() -> None:
    async def handle(connection: ServerConnection) -> None: ...

    def refuse(connection: ServerConnection, request: object) -> Any:
        return connection.respond(HTTPStatus.FORBIDDEN, "not you\n")

    async with server(handle, process_request=refuse) as url:
        with pytest.raises(InvalidStatus, match="403"):
            await from_websocket(url).run()


def test_which_errors_are_worth_another_attempt() -> None:
    assert is_worth_another_attempt(ConnectionLost("closed with 1011"))
    assert is_worth_another_attempt(ConnectionRefusedError())
    assert not is_worth_another_attempt(InvalidURI("x", "no"))
    assert not is_worth_another_attempt(ValueError())
