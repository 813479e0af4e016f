# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio"]
# ///
"""A sensor that measures 10,000 times a second, and a plot of the last seconds in the terminal.

    python examples/sensor.py [--seconds N]

A thread reads the sensor. Each list of 500 values becomes one column of the plot, which is drawn
ten times a second (`throttle_latest`). If the program is too slow, the oldest values are dropped,
so that the plot stays at the present.
"""

import argparse
import asyncio
import math
import sys
import time
from collections.abc import Iterator

import reactive_aio as rx

RATE = 10_000
BARS = " ▁▂▃▄▅▆▇█"
WIDTH = 60


def measure(seconds: float) -> Iterator[list[float]]:
    """The values of a sensor, as a driver delivers them: a hundred at a time."""
    begin, count = time.perf_counter(), 0
    while count < seconds * RATE:
        time.sleep(max(0.0, begin + count / RATE - time.perf_counter()))
        yield [math.sin(2 * math.pi * (count + i) / RATE) for i in range(100)]
        count += 100


def plot(columns: list[float]) -> str:
    """A line with a bar for each of *columns*, which are from 0 to 1."""
    return "".join(BARS[round(value * (len(BARS) - 1))] for value in columns[-WIDTH:])


async def main(seconds: float = 3.0) -> None:
    """Plot while the sensor is read."""
    chunks = rx.from_thread(lambda: measure(seconds), chunk=1)
    values = chunks.on_backpressure_buffer(200, overflow="drop_oldest").flat_map(list)
    heights = values.buffer(500).map(lambda chunk: (sum(chunk) / len(chunk) + 1) / 2)
    columns = heights.scan(lambda before, height: [*before[-WIDTH:], height], seed=list[float]())
    async for line in columns.map(plot).throttle_latest(0.1):
        sys.stdout.write(f"\r{line:<{WIDTH}}")
        sys.stdout.flush()
    print()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3.0)
    asyncio.run(main(parser.parse_args().seconds))
