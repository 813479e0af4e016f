# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio", "fastapi>=0.115", "uvicorn>=0.34"]
# ///
"""FastAPI and server-sent events: one ticker for all clients.

    python examples/ticker.py [--port N]

Serve until Ctrl-C. `share` subscribes to the ticker when the first client comes, and cancels it
when the last one leaves. A slow client misses prices, and holds no other back. In a terminal:

    curl -N 'http://127.0.0.1:8000/prices?n=5'
"""

import argparse
import random

import uvicorn
from fastapi import FastAPI, Response

import reactive_aio as rx
from reactive_aio.asgi import sse


def move(price: float, _: int) -> float:
    """The price after another tick."""
    return round(max(1.0, price + random.uniform(-1, 1)), 2)


ticker = (
    rx.interval(0.2)
    .scan(move, seed=100.0)
    .map(lambda price: {"symbol": "ACME", "price": price})
    .share(overflow="drop_oldest", capacity=16)
    .name("ticker")
)
app = FastAPI()


@app.get("/prices")
def prices() -> Response:
    """The prices from now on; ``?n=5`` ends after five."""
    return sse(ticker, event="price", count_parameter="n")


@app.get("/flows")
def flows() -> dict[str, int]:
    """How many clients read the ticker, and how many have left."""
    stats = ticker.stats()
    return {"clients": len(stats.subscriptions), "left": stats.cancelled + stats.completed}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8000)
    uvicorn.run(app, port=parser.parse_args().port)
