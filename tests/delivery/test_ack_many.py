"""ack_many: one call acknowledges all elements whose work was done since the call before."""

import asyncio
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio.delivery import BatchFailed, deliveries
from reactive_aio.errors import TimedOut
from tests.operators.ways import Failed

pytestmark = pytest.mark.virtual_time


class Broker:
    """Notes the lists that are acknowledged, each *seconds* after the call."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.lists: list[list[int]] = []
        self.nacked: list[int] = []
        self._seconds = seconds
        self._is_called = False

    async def ack(self, elements: list[int]) -> None:
        assert not self._is_called, "one call after another"
        self._is_called = True
        await asyncio.sleep(self._seconds)
        self._is_called = False
        self.lists.append(elements)

    async def nack(self, element: int, error: Exception) -> None:
        self.nacked.append(element)

    @property
    def acked(self) -> list[int]:
        return [element for each in self.lists for element in each]


def nothing(_: object) -> None:
    """Work that is done at once."""


async def second(_: object) -> None:
    await asyncio.sleep(1)


async def test_elements_of_a_list_are_acknowledged_together() -> None:
    broker = Broker()
    await deliveries(r.range(7), ack_many=broker.ack).buffer(3).ack_after(nothing).run()
    assert broker.lists == [[0, 1, 2, 3, 4, 5], [6]], "two lists in one turn of the loop"


async def test_what_is_done_during_a_call_is_acknowledged_by_the_next_one() -> None:
    broker = Broker(seconds=3.25)
    await deliveries(r.range(9), ack_many=broker.ack).ack_after(second).run()
    assert broker.lists == [[0], [1, 2, 3], [4, 5, 6], [7, 8]]


async def test_a_plain_function_will_do() -> None:
    lists: list[list[int]] = []
    await deliveries(range(4), ack_many=lists.append).ack_after(nothing).run()
    assert sorted(element for each in lists for element in each) == [0, 1, 2, 3]


async def test_elements_are_held_until_the_call_has_returned() -> None:
    broker, requested = Broker(seconds=10), list[int]()
    source = r.range(9).do_on_next(requested.append)
    async with deliveries(source, ack_many=broker.ack, limit=4).ack_after(nothing).running():
        await asyncio.sleep(5)
        assert (requested, broker.acked) == ([0, 1, 2, 3], [])
        await asyncio.sleep(6)
        assert broker.acked
        assert len(requested) == 4 + len(broker.acked)


async def test_elements_that_fail_are_nacked_one_by_one() -> None:
    broker = Broker()

    def write(values: list[int]) -> None:
        raise BatchFailed({1: Failed("one of them")})

    flow = deliveries(r.range(3), ack_many=broker.ack, nack=broker.nack).buffer(3)
    await flow.ack_after(write, on_error="skip").run()
    assert (broker.acked, broker.nacked) == ([0, 2], [1])


async def test_a_buried_element_is_acknowledged_with_the_others() -> None:
    broker, buried = Broker(), list[int]()

    def parse(n: int) -> int:
        if n == 1:
            raise ValueError("never")
        return n

    flow = deliveries(r.range(3), ack_many=broker.ack)
    flow = flow.nack_on_error(1, dead_letter=lambda n, error: buried.append(n))
    await flow.map(parse).ack_after(nothing).run()
    assert (sorted(broker.acked), buried) == ([0, 1, 2], [1])


async def test_a_call_that_fails_is_the_last_one_and_fails_the_flow() -> None:
    calls: list[list[int]] = []

    async def ack(elements: list[int]) -> None:
        calls.append(elements)
        await asyncio.sleep(2)
        raise OSError("no connection")

    with pytest.raises(OSError, match="no connection"):
        await deliveries(r.range(9), ack_many=ack).ack_after(second).run()
    await asyncio.sleep(100)
    assert calls == [[0]]


async def test_a_call_that_takes_too_long_fails_the_flow() -> None:
    flow = deliveries(r.range(9), ack_many=Broker(seconds=60).ack, ack_timeout=5)
    with pytest.raises(TimedOut, match=r"Broker\.ack took longer than 5 s"):
        await flow.ack_after(nothing).run()


async def test_what_is_done_is_acknowledged_after_a_cancellation() -> None:
    broker, sent = Broker(seconds=10), list[int]()
    source = r.range(9).do_on_next(sent.append)
    flow = deliveries(source, ack_many=broker.ack, nack=broker.nack)
    async with flow.ack_after(second, concurrency=2).stream() as values:
        async for value in values:
            if value == 2:
                break
    assert broker.lists[0] == [0, 1], "both in one turn of the loop"
    assert 2 in broker.acked
    assert sorted([*broker.acked, *broker.nacked]) == sent


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ack": nothing, "ack_many": nothing}, "ack and ack_many are both given; give one"),
        ({"ack_many": nothing, "ack_concurrency": 2}, "one call of ack_many follows another"),
        ({"ack_many": 3}, "ack_many must be a function, not 3"),
        ({"ack_many": nothing, "nack": nothing}, "nack is called with 2 arguments"),
        ({"nack": print}, "nack is given without ack or ack_many"),
    ],
)
def test_a_wrong_argument(options: dict[str, object], message: str) -> None:
    start: Any = deliveries
    with pytest.raises(TypeError, match=message):
        start(r.range(3), **options)
