"""A healthy client: ``python -m benchmarks.siege.healthy PORT SECONDS`` prints its latencies."""

import asyncio
import json
import sys
import time

from reactive_aio.rsocket import connect


async def main(port: str, seconds: str) -> None:
    """Request one element each 20 ms."""
    took, failed = list[float](), 0
    async with await connect(f"tcp://127.0.0.1:{port}", timeout=60) as client:
        print("ready", flush=True)
        until = time.monotonic() + float(seconds)
        while (began := time.monotonic()) < until:
            try:
                await client.request_response(b"x", route="echo", timeout=30)
            except Exception:
                failed += 1
            took.append(time.monotonic() - began)
            await asyncio.sleep(0.02)
        connecting = time.monotonic()
        async with await connect(f"tcp://127.0.0.1:{port}", timeout=60):
            connected = time.monotonic() - connecting
    took.sort()
    figures = {
        "median": took[len(took) // 2],
        "p99": took[int(len(took) * 0.99)],
        "connect": connected,
        "failed": failed,
    }
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
