"""ReplayProcessor: what a later subscriber receives first."""

import asyncio
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Emission, ReplayProcessor
from reactive_aio.testing import PublisherProbe, SubscriberProbe

MANY = 2**63 - 1


def fed(*elements: int, **arguments: Any) -> ReplayProcessor[int]:
    hot = ReplayProcessor[int](2, **arguments)
    for element in elements:
        assert hot.try_emit(element)
    return hot


async def test_a_later_subscriber_receives_the_last_elements_first() -> None:
    hot = fed(1, 2, 3)
    probe = SubscriberProbe[int](1).subscribed_to(hot)
    assert probe.elements == [2]
    hot.try_emit(4)
    probe.request(MANY)
    assert probe.elements == [2, 3, 4]
    hot.complete()
    assert probe.is_completed


async def test_after_the_end_it_receives_them_and_the_end() -> None:
    hot = fed(1, 2, 3)
    hot.complete()
    assert await hot.to_list() == await hot.to_list() == [2, 3]
    hot = fed(1)
    hot.fail(OSError("no"))
    probe = SubscriberProbe[int](MANY).subscribed_to(hot)
    await probe.end()
    assert probe.elements == [1]
    assert isinstance(probe.error, OSError)


@pytest.mark.virtual_time
async def test_old_elements_are_not_repeated() -> None:
    hot = ReplayProcessor[int](9, ttl=5)
    for element in range(3):
        hot.try_emit(element)
        await asyncio.sleep(2)
    hot.complete()
    assert await hot.to_list() == [1, 2]


async def test_a_refused_element_is_not_repeated() -> None:
    hot = fed(1, capacity=2)
    slow = SubscriberProbe[int]().subscribed_to(hot)
    assert hot.try_emit(2)
    assert hot.try_emit(3) is Emission.REFUSED
    assert SubscriberProbe[int](MANY).subscribed_to(hot).elements == [1, 2]
    slow.request(1)
    assert hot.try_emit(3)
    assert slow.elements == [1]
    slow.request(MANY)
    assert slow.elements == [1, 2, 3]


async def test_a_subscriber_that_joins_inside_a_signal_receives_each_element_once() -> None:
    hot = fed()
    later = SubscriberProbe[int](MANY)

    def act(x: int) -> None:
        if x == 2:
            later.subscribed_to(hot)

    SubscriberProbe[int](MANY).subscribed_to(hot.do_on_next(act))
    for x in (1, 2, 3):
        hot.try_emit(x)
    assert later.elements == [1, 2, 3]


async def test_a_publisher_upstream_is_kept_without_a_subscriber() -> None:
    source, hot = PublisherProbe[int](), fed()
    r.from_publisher(source).subscribe(hot)
    probe = SubscriberProbe[int](MANY).subscribed_to(hot)
    source.emit(1, 2, 3)
    probe.cancel()
    assert source.cancel_count == 0
    source.emit(4)
    assert SubscriberProbe[int](MANY).subscribed_to(hot).elements == [3, 4]


async def test_under_latest_only_the_last_one_is_repeated() -> None:
    assert SubscriberProbe[int](MANY).subscribed_to(fed(1, 2, overflow="latest")).elements == [2]


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="ReplayProcessor: n must be at least 1"):
        ReplayProcessor[int](0)
    with pytest.raises(ValueError, match="ReplayProcessor: ttl must be more than 0"):
        ReplayProcessor[int](1, ttl=0)
