"""What do many WebSockets cost: idle, active, and as subscribers to one hot flow?

All servers but that of the package websockets are uvicorn, with its default for WebSockets.
"""

from importlib import import_module

from ..crowds.questions import ActiveConnections, FanOut, IdleConnections, Latency, Server
from .wire import EchoWire, TextWire

import_module("uvicorn")  # without it, these questions are left out

END = "benchmarks.asgi.ends.sockets"
ECHO, TEXT = EchoWire(), TextWire()
BARE = Server(
    "an ASGI app that echoes", f"{END} --uvicorn", ECHO, "hand-written", is_demanded=False
)
STARLETTE = Server("Starlette `WebSocket`", f"{END} --starlette", ECHO, "peer", is_demanded=False)
WEBSOCKETS = Server("websockets", f"{END} --websockets", ECHO, "peer", is_demanded=False)
OURS = f"{END} --reactive_aio"

idle = IdleConnections(
    "Text protocol: memory of an idle WebSocket at the server",
    [BARE, Server("an idle socket of `websocket`", OURS, TEXT), STARLETTE, WEBSOCKETS],
    unit="KiB",
)

active = ActiveConnections(
    "Text protocol: a stream of one element, one in flight on each of 1,000 WebSockets",
    [BARE, Server("a stream of one element by `websocket`", OURS, TEXT), STARLETTE, WEBSOCKETS],
)

latency = Latency(
    "Text protocol: p99 of a stream of one element on 1,000 WebSockets, at half load",
    [
        BARE,
        Server("a stream of one element at half load, p99", OURS, TEXT),
        STARLETTE,
        WEBSOCKETS,
    ],
)

fan_out = FanOut(
    "Text protocol: a hot flow with 1,000 subscribers",
    [
        BARE,
        Server("a hot flow to 1,000 sockets of `websocket`", OURS, TEXT),
        Server('the same, one takes 100/s, `overflow="wait"`', OURS, TEXT, slow=1),
        Server(
            'the same, one takes 100/s, `overflow="drop_oldest"`',
            OURS,
            TextWire(hot="dropping"),
            fan="drop",
            slow=1,
        ),
        STARLETTE,
        WEBSOCKETS,
    ],
)
