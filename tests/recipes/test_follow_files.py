"""Files followed and sent, with real files and a server on the loop."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
from recipes.follow_files import AGAIN, followed, post

import reactive_aio as r
from tests.recipes.http_server import Answer, Request, http_server
from tests.recipes.waiting import until


@pytest.fixture
async def client() -> AsyncGenerator[httpx.AsyncClient]:
    async with httpx.AsyncClient(verify=False, trust_env=False) as opened:
        yield opened


class Lines:
    """A server that keeps what it accepts, after *failures* without an answer."""

    def __init__(self, failures: int = 0) -> None:
        self.received: list[dict[str, Any]] = []
        self.failures = failures

    def __call__(self, request: Request) -> Answer | None:
        if self.failures:
            self.failures -= 1
            return None
        assert request.headers["content-type"] == "application/x-ndjson"
        self.received += [json.loads(line) for line in request.body.splitlines()]
        return Answer(status=204)

    def of(self, path: Path) -> list[str]:
        return [each["line"] for each in self.received if each["file"] == str(path)]


async def append(path: Path, data: bytes) -> None:
    def write() -> None:
        with path.open("ab") as file:
            file.write(data)

    await asyncio.to_thread(write)


async def test_lines_of_several_files_arrive_in_their_order(
    tmp_path: Path, client: httpx.AsyncClient
) -> None:
    one, other = tmp_path / "one.log", tmp_path / "other.log"
    await append(one, b"1\n2\n")
    await append(other, b"a\n")
    server = Lines(failures=1)
    async with http_server(server) as url:
        batches = followed([one, other], poll=0.01).buffer_timeout(100, 0.02)
        async with batches.running(post(client, url), retry=AGAIN) as run:
            await until(lambda: len(server.received) == 3)
            await append(one, b"3\nunfinished")
            await append(other, b"not \xff UTF-8\n")
            await until(lambda: len(server.received) == 5)
            await asyncio.to_thread(one.rename, tmp_path / "one.log.1")
            await append(one, b"after the rotation\n")
            await until(lambda: "after the rotation" in server.of(one))
            report = await run.drain()
    assert report.is_complete
    assert server.of(one) == ["1", "2", "3", "unfinished", "after the rotation"]
    assert server.of(other) == ["a", "not \\xff UTF-8"]


async def test_a_batch_that_the_server_refuses_fails_the_flow(
    tmp_path: Path, client: httpx.AsyncClient
) -> None:
    path = tmp_path / "one.log"
    await append(path, b"1\n")
    async with http_server(lambda request: Answer(status=400)) as url:
        batches = followed([path]).buffer_timeout(100, 0.02)
        with pytest.raises(httpx.HTTPStatusError, match="400"):
            await batches.for_each(post(client, url), retry=r.RetryPolicy(attempts=3, only=OSError))
