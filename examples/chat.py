# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio[websockets]", "starlette>=0.46", "uvicorn>=0.34"]
# ///
"""A chat in the browser: rooms on one WebSocket, with demand in both directions.

    python examples/chat.py [--port N]

Serve until Ctrl-C. At http://127.0.0.1:8000/, a page publishes what its user writes, and subscribes
to the room. A reader that is slow misses the oldest lines, and holds no other back.
"""

import argparse

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route, WebSocketRoute

import reactive_aio as rx
from reactive_aio.asgi import Refused, javascript, websocket

PAGE = """<!doctype html><title>Chat</title><ul id="lines"></ul>
<form><input id="text" autofocus placeholder="Write something"></form>
<script type="module">
import {connect} from "/reactive.js";
const waiting = [];
let wake = () => {};
document.querySelector("form").onsubmit = (event) => {
  event.preventDefault();
  waiting.push(text.value);
  text.value = "";
  wake();
};
const socket = await connect(`ws://${location.host}/live`);
socket.publish("room.lobby", async function* () {
  for (;;) {
    while (waiting.length) yield waiting.shift();
    await new Promise((resolve) => { wake = resolve; });
  }
});
for await (const line of socket.stream("room.lobby")) {
  const item = document.createElement("li");
  item.textContent = line;
  lines.append(item);
}
</script>"""


# A reader that comes later receives the last ten lines.
rooms = {
    name: rx.ReplayProcessor[str](10, capacity=100, overflow="drop_oldest", name=name)
    for name in ("lobby", "kitchen")
}


def join(room: str, incoming: rx.Flow[str]) -> rx.Flow[str]:
    """The lines of *room*, to which the lines of this client are added."""
    if (lines := rooms.get(room)) is None:
        raise Refused(404, f"the rooms are {', '.join(rooms)}")
    said = incoming.map(lambda line: line[:200]).do_on_next(lines.try_emit).filter(lambda _: False)
    return lines.merge_with(said)


async def page(_: Request) -> HTMLResponse:
    """The page of the chat."""
    return HTMLResponse(PAGE)


app = Starlette(
    routes=[
        Route("/", page),
        Route("/reactive.js", endpoint=javascript()),
        WebSocketRoute("/live", endpoint=websocket({"room.{room}": join})),
    ]
)

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8000)
    uvicorn.run(app, port=parser.parse_args().port)
