# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio"]
# ///
"""A service: logs each request, counts by route, and ends in good order on SIGTERM.

    python examples/rsocket_service.py [--port N] [--grace SECONDS]

It serves tcp://127.0.0.1:7000 until Ctrl-C or SIGTERM. Then it accepts nothing more, lets open
streams end for the grace (10 seconds), cancels the others with a reason, and prints what it has
counted. A second signal ends it at once. To try it, in another terminal:

    python -m reactive_aio.rsocket 'tcp://127.0.0.1:7000?route=ticks.5'
"""

import argparse
import asyncio
import logging
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import reactive_aio as rx
from reactive_aio.rsocket import Request, Requester, Router, Server, StreamFailed, serve

logger: Final = logging.getLogger("service")
router = Router()


@router.route("ticks.{count}")
async def ticks(count: int) -> AsyncIterator[str]:
    """Tick *count* times, five times a second."""
    for number in range(count):
        yield f"tick {number}"
        await asyncio.sleep(0.2)


@router.default
def unknown(request: Request) -> str:
    """Answer requests that have no route, or an unknown one."""
    return f"there is no {request.route!r}; try ticks.5"


# -- interceptors and callbacks --------------------------------------------------------------------
async def logged(request: Request, proceed: Callable[[Request], Awaitable[Any]]) -> Any:
    """Log each request with its duration, and the way in which it ends."""
    began = time.monotonic()

    def log(outcome: object) -> None:
        seconds = time.monotonic() - began
        name = f"{request.model.name} {request.route!r}"
        logger.info("%s of %s %s after %.2f s", name, request.address, outcome, seconds)

    try:
        result = await proceed(request)
    except Exception as error:
        log(type(error).__name__)
        raise
    if is_stream(result):
        return result.do_finally(log)
    log("completed")
    return result


def is_stream(result: object) -> bool:
    """Whether the result of a request is a flow, which has not begun yet."""
    return isinstance(result, rx.Flow)


def connected(peer: Requester[Any]) -> None:
    """Note a client that was accepted."""
    logger.info("a client has connected: %s", peer.address)


def disconnected(peer: Requester[Any], reason: StreamFailed) -> None:
    """Note a client that has left, and why."""
    logger.info("a client has disconnected: %s", reason)


# -- the life of the service -----------------------------------------------------------------------
async def close_on_signal(server: Server, grace: float) -> None:
    """Close *server* on SIGTERM or SIGINT: with the grace on the first, at once on the second."""
    signals: asyncio.Queue[signal.Signals] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, signals.put_nowait, each)
    logger.info("%s: open streams may end within %g s", (await signals.get()).name, grace)
    closing = asyncio.create_task(server.aclose(grace))
    second = asyncio.create_task(signals.get())
    await asyncio.wait([closing, second], return_when=asyncio.FIRST_COMPLETED)
    second.cancel()
    await server.aclose(0)  # which ends the grace, if it has not ended
    await closing


def report(server: Server) -> None:
    """Print the counts of each route."""
    for pattern, counts in server.stats().routes.items():
        name = pattern or "(no route)"
        print(
            f"{name}: {counts.requests} requests, {counts.elements} elements, "
            f"{counts.refused} refused, {counts.failed} failed, {counts.lost} lost",
            flush=True,
        )


async def main(port: int, grace: float) -> None:
    """Serve until Ctrl-C. SIGTERM does the same."""
    async with await serve(
        f"tcp://127.0.0.1:{port}",
        router,
        interceptors=[logged],
        on_connect=connected,
        on_close=disconnected,
    ) as server:
        print(f"{server.uri}  stop with Ctrl-C or SIGTERM", flush=True)
        await close_on_signal(server, grace)
    report(server)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--port", type=int, default=7000, help="0 chooses a free one")
    parser.add_argument("--grace", type=float, default=10.0, help="seconds for open streams")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    asyncio.run(main(options.port, options.grace))
