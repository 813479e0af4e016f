# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio[websockets]", "starlette>=0.46", "uvicorn>=0.34"]
# ///
"""A page in a browser subscribes to a Python flow, and controls its rate.

    python examples/rsocket_page.py [--port N]

It serves http://127.0.0.1:8000 until Ctrl-C. The page uses RSocket over WebSocket with packages
from npm, which the first run installs into examples/rsocket_page/. The flow of prices is endless
and could be fast; only the demand of the page limits its rate. When the page cancels or is closed,
the stream ends here as well.
"""

import argparse
import random
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount, WebSocketRoute
from starlette.staticfiles import StaticFiles

import reactive_aio as rx
from reactive_aio.rsocket import Router, asgi_app

PAGE: Final = Path(__file__).with_name("rsocket_page")
SYMBOLS: Final = {"ACME": 120.0, "GLOBEX": 64.0, "INITECH": 18.0, "HOOLI": 310.0}

router = Router()


@dataclass
class Totals:
    """The totals of one connection, counted in Python."""

    requested: int = 0
    made: int = 0
    subscribed: int = 0
    cancelled: int = 0


@router.route("prices.{symbol}")
def prices(symbol: str, user: Totals) -> rx.Flow[dict[str, Any]]:
    """An endless random walk of prices; each is made when it is requested."""
    totals = Totals()
    print(f"{symbol}: subscribed", flush=True)
    user.subscribed += 1

    def requested(n: int) -> None:
        totals.requested += n
        user.requested += n

    def made(_: object) -> None:
        totals.made += 1
        user.made += 1

    def cancelled() -> None:
        user.cancelled += 1
        print(f"{symbol}: cancelled; {totals.requested} requested, {totals.made} made", flush=True)

    return (
        rx.from_iterable(walk(symbol))
        .do_on_next(made)
        .do_on_request(requested)
        .do_on_cancel(cancelled)
    )


def walk(symbol: str) -> Iterator[dict[str, Any]]:
    """Generate a random walk of prices."""
    price = SYMBOLS.get(symbol, 100.0)
    number = 0
    while True:
        number += 1
        price = max(1.0, price * (1 + random.gauss(0, 0.004)))
        yield {"number": number, "symbol": symbol, "price": round(price, 2)}


@router.route("totals")
def totals(user: Totals) -> rx.Flow[dict[str, int]]:
    """The current totals, ten times a second; a page that is slow misses some."""
    return rx.interval(0.1).map(lambda _: asdict(user))


def bundle() -> Path:
    """Bundle page.js and its packages from npm for the browser."""
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("npm is needed for the page: apt install nodejs npm, or see nodejs.org")
    lock, installed = PAGE / "package-lock.json", PAGE / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        print("installing the packages of the page", flush=True)
        subprocess.run([npm, "ci", "--silent", "--no-audit", "--no-fund"], cwd=PAGE, check=True)
    subprocess.run([npm, "run", "--silent", "build"], cwd=PAGE, check=True)
    return PAGE / "dist"


def application(files: Path) -> Starlette:
    """Return the application: the page, and the flows it subscribes to."""
    # Every client is accepted. Its totals are what handlers receive as `user`.
    rsocket = asgi_app(router, authenticate=lambda _: Totals())
    page = StaticFiles(directory=files, html=True)
    return Starlette(routes=[WebSocketRoute("/rsocket", rsocket), Mount("/", page)])


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--port", type=int, default=8000, help="0 chooses a free one")
    port: int = parser.parse_args().port
    app = application(bundle())
    with socket.create_server(("127.0.0.1", port)) as listening:
        print(f"http://127.0.0.1:{listening.getsockname()[1]}  stop with Ctrl-C", flush=True)
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2)
        try:
            uvicorn.Server(config).run(sockets=[listening])
        except KeyboardInterrupt:
            print("ended")


if __name__ == "__main__":
    main()
