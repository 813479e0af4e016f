"""What happens to a reading, from its arrival until it is stored."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import reactive_aio as rx

BATCH = 100
WAIT = 1.0
"""Seconds after which a batch is stored although it is not full."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a sensor has measured."""

    sensor: int
    celsius: float


@dataclass(frozen=True, slots=True)
class Located:
    """A reading, and the room in which its sensor is."""

    room: str
    reading: Reading


def stored(
    readings: rx.Flow[Reading],
    *,
    find_room: Callable[[Reading], Awaitable[str]],
    show: Callable[[Located], object],
    store: Callable[[list[Located]], int],
    set_aside: Callable[[Reading, Exception], object],
) -> rx.Flow[int]:
    """Find the room of each reading, show it, and store batches; emit the size of each batch.

    The readings of one sensor stay in order. One whose room cannot be found in three attempts is
    set aside.
    """

    async def locate(reading: Reading) -> Located:
        return Located(await find_room(reading), reading)

    located = readings.map_async(
        locate,
        concurrency=16,
        ordered=False,
        key=lambda reading: reading.sensor,
        timeout=2,
        retry=rx.RetryPolicy(attempts=3, delay=0.2, only=OSError),
        on_error=set_aside,
    )
    batches = located.do_on_next(show).buffer_timeout(BATCH, WAIT)
    return batches.map_in_thread(store, concurrency=1).name("station")
