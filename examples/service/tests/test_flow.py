"""The flow, without HTTP and without a database."""

import asyncio

from station.flow import BATCH, WAIT, Located, Reading, stored

import reactive_aio as rx


class Rooms:
    """A service that knows rooms, and fails for some sensors."""

    def __init__(self, **failures: int) -> None:
        self.failures = failures
        self.calls: list[int] = []

    async def find(self, reading: Reading) -> str:
        """Answer after a tenth of a second."""
        self.calls.append(reading.sensor)
        await asyncio.sleep(0.1)
        if self.failures.get(f"sensor_{reading.sensor}", 0) > 0:
            self.failures[f"sensor_{reading.sensor}"] -= 1
            raise ConnectionError("no answer")
        return f"room {reading.sensor % 3}"


class Kept:
    """What has become of the readings."""

    def __init__(self, rooms: Rooms, readings: rx.Flow[Reading]) -> None:
        self.batches: list[list[Located]] = []
        self.shown: list[Located] = []
        self.aside: list[tuple[Reading, Exception]] = []
        self.flow = stored(
            readings,
            find_room=rooms.find,
            show=self.shown.append,
            store=self.store,
            set_aside=self.set_aside,
        )

    def set_aside(self, reading: Reading, error: Exception) -> None:
        """Keep a reading that has no room."""
        self.aside.append((reading, error))

    def store(self, batch: list[Located]) -> int:
        """Keep a batch."""
        self.batches.append(batch)
        return len(batch)


async def test_readings_are_stored_in_batches() -> None:
    kept = Kept(Rooms(), rx.range(250).map(lambda n: Reading(n, 20.0)))
    assert await kept.flow.to_list() == [BATCH, BATCH, 50]
    assert len(kept.shown) == 250
    assert kept.batches[0][0] == Located("room 0", Reading(0, 20.0))


async def test_a_batch_does_not_wait_long_for_its_last_reading() -> None:
    few = rx.just(Reading(1, 20.0), Reading(2, 21.0)).concat_with(rx.never())
    kept = Kept(Rooms(), few)
    assert await kept.flow.first() == 2
    assert asyncio.get_running_loop().time() <= 0.1 + WAIT + 0.01


async def test_a_lookup_that_fails_is_repeated() -> None:
    rooms = Rooms(sensor_7=2)
    kept = Kept(rooms, rx.just(Reading(7, 20.0)))
    assert await kept.flow.sum() == 1
    assert rooms.calls == [7, 7, 7]
    assert kept.aside == []


async def test_a_reading_without_a_room_is_set_aside() -> None:
    kept = Kept(Rooms(sensor_7=3), rx.just(Reading(7, 20.0), Reading(8, 21.0)))
    assert await kept.flow.sum() == 1
    assert [(reading.sensor, str(error)) for reading, error in kept.aside] == [(7, "no answer")]


async def test_the_readings_of_a_sensor_stay_in_order() -> None:
    readings = rx.range(40).map(lambda n: Reading(n % 2, float(n)))
    kept = Kept(Rooms(sensor_0=2), readings)
    await kept.flow.run()
    of_one = [each.reading.celsius for each in kept.shown if each.reading.sensor == 0]
    assert of_one == sorted(of_one)
