"""Server-sent events with a position in a file, with a server on the loop."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from recipes.sse_resume import RECONNECT, Position, events

from reactive_aio.asgi import Event
from tests.recipes.http_server import Answer, Request, http_server
from tests.recipes.waiting import until

AT_ONCE = replace(RECONNECT, delay=0)


class Server:
    """Sends *each* events after the one named by the client, of *count*, and closes."""

    def __init__(self, count: int, each: int) -> None:
        self.resumed: list[str | None] = []
        self._count = count
        self._each = each

    def __call__(self, request: Request) -> Answer:
        after = request.headers.get("last-event-id")
        self.resumed.append(after)
        first = int(after or -1) + 1
        if first == self._count:
            return Answer(status=204)
        numbers = range(first, min(first + self._each, self._count))
        body = "".join(f"retry: 1\nid: {n}\ndata: {n * 10}\n\n" for n in numbers)
        return Answer(body.encode(), headers={"content-type": "text/event-stream"})


@pytest.fixture
def position(tmp_path: Path) -> Position:
    return Position(tmp_path / "position")


async def test_each_event_is_worked_on_once_across_lost_connections(
    position: Position, tmp_path: Path
) -> None:
    server, done = Server(count=7, each=2), list[str]()
    async with http_server(server) as url:
        flow = events(url, position, AT_ONCE)
        await flow.ack_after(lambda event: done.append(event.data)).run()
    assert done == [str(10 * n) for n in range(7)]
    assert server.resumed == [None, "1", "3", "5", "6"]
    assert position.last == "6"
    assert (await asyncio.to_thread(Position, tmp_path / "position")).last == "6"


async def test_the_next_run_continues_after_what_was_done(position: Position) -> None:
    server, done, is_first_run = Server(count=6, each=9), list[str](), True

    async def work(event: Event[str]) -> None:
        if event.data == "30" and is_first_run:
            await asyncio.Event().wait()  # it does not end in this run
        done.append(event.data)

    async with http_server(server) as url:
        async with events(url, position, AT_ONCE).ack_after(work).running():
            await until(lambda: done == ["0", "10", "20"])
        is_first_run, connections = False, len(server.resumed)  # it may have reconnected
        await events(url, position, AT_ONCE).ack_after(work).run()
    assert server.resumed[connections] == "2", "leaving the block has saved the position"
    assert done == ["0", "10", "20", "30", "40", "50"]


async def test_an_event_without_an_id_is_refused(position: Position) -> None:
    def answer(_: Request) -> Answer:
        return Answer(b"data: 1\n\n", headers={"content-type": "text/event-stream"})

    async with http_server(answer) as url:
        with pytest.raises(ValueError, match="an event has no id"):
            await events(url, position, AT_ONCE).ack_after(lambda event: None).run()
