"""What do many connections over TCP cost: idle, active, and as subscribers to one hot flow?"""

from ..crowds.questions import ActiveConnections, FanOut, IdleConnections, Latency, Server
from .wire import RawWire, RSocketWire

ROUTED, PLAIN = RSocketWire(is_routed=True), RSocketWire(is_routed=False)
RAW = Server("raw asyncio, 32 bytes a frame", "raw", RawWire(), "hand-written", is_demanded=False)
OTHERS = [
    Server("rsocket-js", "js", PLAIN, "peer"),
    Server("PyPI rsocket", "pypi", PLAIN, "peer"),
]

idle = IdleConnections(
    "RSocket: memory of an idle connection at the server",
    [RAW, Server("an idle RSocket connection", "ours", ROUTED), *OTHERS],
    unit="KiB",
)

active = ActiveConnections(
    "RSocket: request and response, one in flight on each of 1,000 connections",
    [
        RAW,
        Server("`request_response` on 1,000 connections", "ours", ROUTED),
        Server("`request_response` on 1,000 connections, uvloop", "ours --uvloop", ROUTED),
        *OTHERS,
    ],
)

latency = Latency(
    "RSocket: p99 of request and response on 1,000 connections, at half load",
    [
        RAW,
        Server("`request_response` at half load, p99", "ours", ROUTED),
        Server("`request_response` at half load, p99, uvloop", "ours --uvloop", ROUTED),
        *OTHERS,
    ],
)

DROPPING = RSocketWire(is_routed=True, hot="dropping")

fan_out = FanOut(
    "RSocket: a hot flow with 1,000 subscribers",
    [
        RAW,
        Server("a hot flow to 1,000 RSocket subscribers", "ours", ROUTED),
        Server('the same, one takes 100/s, `overflow="wait"`', "ours", ROUTED, slow=1),
        Server(
            'the same, one takes 100/s, `overflow="drop_oldest"`',
            "ours",
            DROPPING,
            fan="drop",
            slow=1,
        ),
    ],
)
