# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio"]
# ///
"""Many producers, one slow consumer: backpressure from the `async for` to the last coroutine.

    python examples/two_sides.py

Three sensors emit into a processor with `await emit`, which waits while 8 readings are held. The
consumer takes its time, and leaves after 20: the producers are told, and nothing is left running.
"""

import asyncio

import reactive_aio as rx


async def sensor(name: str, readings: "rx.UnicastProcessor[str]") -> int:
    """Emit until nobody listens any more; return how many readings were taken."""
    taken = 0
    while await readings.emit(f"{name}:{taken}"):
        taken += 1
    return taken


async def main() -> None:
    """Run both sides, and check that the producers never ran ahead."""
    readings: rx.UnicastProcessor[str] = rx.UnicastProcessor(capacity=8)
    producers = [asyncio.create_task(sensor(name, readings)) for name in ("a", "b", "c")]
    seen: list[str] = []
    async with readings.take(20).stream() as elements:
        async for reading in elements:
            await asyncio.sleep(0.001)  # a slow consumer
            seen.append(reading)
    taken = sum(await asyncio.gather(*producers))
    print(f"consumed {len(seen)}, taken in {taken}: at most 8 were held")
    assert len(seen) == 20
    assert taken <= 20 + 8


if __name__ == "__main__":
    asyncio.run(main())
