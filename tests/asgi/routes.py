"""Routes for the tests of sockets, and a connected socket."""

import asyncio
from typing import Any

from reactive_aio import Flow, range as numbers
from reactive_aio.asgi import websocket
from reactive_aio.rsocket import Router
from tests.asgi.calls import SocketCall

MOST = 2**53 - 1
router = Router()


@router.route("count.{n}")
def count(n: int) -> Flow[int]:
    return numbers(n)


@router.route("one")
async def one(payload: dict[str, Any]) -> Any:
    await asyncio.sleep(0)
    return payload["x"]


@router.route("plus")
def plus(incoming: Flow[int]) -> Flow[int]:
    return incoming.map(lambda each: each + 1)


@router.route("list")
def listed() -> list[int]:
    return [1, 2]


@router.route("nothing")
def nothing() -> None:
    """Completes at once."""


async def connected(routes: Any = router, **options: Any) -> SocketCall:
    """Connect a socket, and wait until it is accepted or refused."""
    handshake = {name: options.pop(name) for name in ("query", "headers", "subprotocols", "denial")
                 if name in options}  # fmt: skip
    call = SocketCall(websocket(routes, **options), **handshake)
    await call.until(lambda: call.sent)
    return call
