"""Recipes run as their programs run them: they print what they read, and drain at SIGTERM."""

import asyncio
import json
import os
import signal
from argparse import Namespace
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from nats.aio.client import Client
from recipes import (
    follow_files,
    http_pages,
    kafka_log,
    nats_jetstream,
    postgres_copy,
    postgres_outbox,
    redis_streams,
    sse_resume,
    websocket_client,
)
from redis.asyncio import Redis
from websockets.asyncio.server import ServerConnection, serve

from reactive_aio.connectors import Message, kafka, postgres
from tests.harness.servers import KafkaServer, NatsServer, PostgresServer, RedisServer
from tests.recipes.http_server import Answer, Request, http_server
from tests.recipes.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("process_goes_on")]

Main = Callable[[Namespace], Awaitable[int]]
Captured = pytest.CaptureFixture[str]


async def run_until(
    is_so: Callable[[str], object], main: Main, captured: Captured, **options: Any
) -> str:
    """Run a program until *is_so* of what it has printed, then end it; return what it printed."""
    printed: list[str] = []
    running = asyncio.ensure_future(main(Namespace(**options)))

    def is_enough() -> object:
        printed.append(captured.readouterr().out)
        return is_so("".join(printed)) or running.done()

    await until(is_enough)
    assert not running.done(), running
    os.kill(os.getpid(), signal.SIGTERM)
    assert await running == 0
    return "".join([*printed, captured.readouterr().out])


def printing(text: str) -> Callable[[str], bool]:
    return lambda printed: text in printed


async def test_redis_streams(redis_server: RedisServer, capsys: Captured) -> None:
    url = redis_server.database()
    async with Redis.from_url(url) as redis:  # pyright: ignore[reportUnknownMemberType]
        await redis.xadd("events", {"word": "hello"})
    options = {"redis": url, "stream": "events", "group": "g"}
    printed = await run_until(printing("hello"), redis_streams.main, capsys, **options)
    assert "drained in" in printed


async def test_postgres(postgres_server: PostgresServer, capsys: Captured) -> None:
    url = await asyncio.to_thread(postgres_server.database)
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(postgres.TABLE.format("outbox"))
        await connection.execute("create table archive (topic text, payload text)")
        insert = "insert into outbox (topic, payload) values ($1, $2)"
        await connection.executemany(insert, [("orders", "one"), ("orders", "two")])
        query, columns = "select topic, payload from outbox order by id", ["topic", "payload"]
        copied = {"query": query, "table": "archive", "columns": columns, "batch": 10}
        assert await postgres_copy.main(Namespace(postgres=url, **copied)) == 0
        assert "2 rows copied into archive" in capsys.readouterr().out
        await run_until(printing("orders two"), postgres_outbox.main, capsys, postgres=url)
        assert await connection.fetchval("select count(*) from outbox") == 0
        assert await connection.fetchval("select count(*) from archive") == 2
    finally:
        await connection.close()


async def test_nats_jetstream(nats_server: NatsServer, capsys: Captured) -> None:
    subject = nats_server.subject()
    options = {"nats": nats_server.url, "subject": subject, "stream": subject, "durable": "d"}
    client: Any = Client()
    await client.connect(nats_server.url)
    try:
        await nats_jetstream.require_stream(client.jetstream(), subject, subject)
        await client.jetstream().publish(subject, b"hello")
    finally:
        await client.close()
    printed = await run_until(printing("hello"), nats_jetstream.main, capsys, **options)
    assert "drained in" in printed


async def test_kafka_log(kafka_server: KafkaServer, capsys: Captured) -> None:
    topic = kafka_server.topic()
    async with kafka.producer(kafka_server.url) as producer:
        await kafka.sink(producer, topic)([Message(b"hello")])
    options = {"servers": kafka_server.url, "group": "g", "topics": [topic]}
    printed = await run_until(printing("b'hello'"), kafka_log.main, capsys, **options)
    assert "drained in" in printed


async def test_http_pages(capsys: Captured) -> None:
    async with http_server(lambda _: Answer(json.dumps(["a", "b", "c"]).encode())) as url:
        await http_pages.main(Namespace(url=url, first=2))
    assert capsys.readouterr().out == "a\nb\n"


@pytest.fixture
def position(tmp_path: Path) -> sse_resume.Position:
    return sse_resume.Position(tmp_path / "position")


async def test_sse_resume(position: sse_resume.Position, capsys: Captured) -> None:
    def answer(request: Request) -> Answer:
        body = b"" if "last-event-id" in request.headers else b"id: 1\ndata: hello\n\n"
        return Answer(body + b"retry: 100000\n\n", headers={"content-type": "text/event-stream"})

    async with http_server(answer) as url:
        await run_until(printing("1 hello"), sse_resume.main, capsys, url=url, state=position)
    assert position.last == "1"


async def test_websocket_client(capsys: Captured) -> None:
    async def echo(connection: ServerConnection) -> None:
        async for message in connection:
            await connection.send(f"not {message!r}")

    async with serve(echo, "127.0.0.1", 0) as server:
        url = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
        await run_until(printing("not 'hi'"), websocket_client.main, capsys, url=url, send=["hi"])


async def test_follow_files(tmp_path: Path, capsys: Captured) -> None:
    received: list[bytes] = []

    def answer(request: Request) -> Answer:
        received.append(request.body)
        return Answer(status=204)

    path = tmp_path / "a.log"
    await asyncio.to_thread(path.write_text, "one\ntwo\n")
    async with http_server(answer) as url:
        options = {"files": [path], "to": url, "batch": 2}
        printed = await run_until(lambda _: received, follow_files.main, capsys, **options)
    assert [json.loads(line)["line"] for line in b"".join(received).splitlines()] == ["one", "two"]
    assert "drained in" in printed
