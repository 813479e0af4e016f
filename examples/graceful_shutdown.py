# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio"]
# ///
"""Stop without losing orders: on SIGTERM, nothing more is read, and what was read is saved.

    python examples/graceful_shutdown.py

Serve until Ctrl-C. SIGTERM is the same; a second signal cancels at once. The exit status is 0 if
everything was saved within five seconds, and 75 if not, so that a supervisor can tell them apart.
"""

import asyncio
import sys
from itertools import count

import reactive_aio as rx

saved: list[int] = []


async def save(order: int) -> None:
    """Save *order*, which takes a while."""
    await asyncio.sleep(0.2)
    saved.append(order)
    if order % 50 == 0:
        print(f"saved order {order}; press Ctrl-C to stop", flush=True)


def report(drained: rx.DrainReport) -> None:
    """Say what has become of the orders."""
    print(f"saved {drained.delivered} orders, discarded {drained.discarded}")
    missing = set(range(max(saved, default=0))) - set(saved)
    print(f"missing: {missing or 'none'}")


async def main() -> int:
    """Save orders until the program is asked to stop."""
    numbers = count()  # those of `interval` have gaps where the loop was late
    orders = rx.interval(0.02).map(lambda _: next(numbers)).boundary(64).name("orders")
    return await rx.run_until_signal(
        orders.running(save, concurrency=8), timeout=5, on_drained=report
    )


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
