# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio"]
# ///
"""Many producers, one slow consumer: backpressure from the `async for` to the last coroutine.

    python examples/two_sides.py

Three sensors emit into a processor with `await emit`, which waits while 8 readings are held. The
consumer is slow, and cancels after 20 readings: the producers are notified, and all tasks end.
"""

import asyncio

import reactive_aio as rx


async def sensor(name: str, readings: "rx.UnicastProcessor[str]") -> int:
    """Emit until the subscriber cancels; return the number of accepted readings."""
    accepted = 0
    while await readings.emit(f"{name}:{accepted}"):
        accepted += 1
    return accepted


async def main() -> None:
    """Run both sides, and check that the producers were never more than 8 ahead."""
    readings: rx.UnicastProcessor[str] = rx.UnicastProcessor(capacity=8)
    producers = [asyncio.create_task(sensor(name, readings)) for name in ("a", "b", "c")]
    seen: list[str] = []
    async with readings.take(20).stream() as elements:
        async for reading in elements:
            await asyncio.sleep(0.001)  # a slow consumer
            seen.append(reading)
    accepted = sum(await asyncio.gather(*producers))
    print(f"consumed {len(seen)}, accepted {accepted}: at most 8 were held")
    assert len(seen) == 20
    assert accepted <= 20 + 8


if __name__ == "__main__":
    asyncio.run(main())
