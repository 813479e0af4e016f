"""A client of WebSockets, with a server on the loop."""

import argparse
from typing import Any

import pytest
from recipes.websocket_client import main
from websockets.asyncio.server import ServerConnection, serve


async def test_messages_are_printed_across_lost_connections(
    capsys: pytest.CaptureFixture[str],
) -> None:
    hellos: list[Any] = []

    async def handle(connection: ServerConnection) -> None:
        hellos.append(await connection.recv())
        await connection.send(f"message {len(hellos)}")
        await connection.close(1001 if len(hellos) == 1 else 1000)

    async with serve(handle, "127.0.0.1", 0) as server:
        url = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
        assert await main(argparse.Namespace(url=url, send=["hello"])) == 0
    assert hellos == ["hello", "hello"]
    assert capsys.readouterr().out == "message 1\nmessage 2\n"
