"""LatestProcessor: its value is read, awaited and subscribed to."""

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any, cast

import pytest

from reactive_aio import Emission, LatestProcessor
from reactive_aio.errors import EmptyFlow, NotAnElement
from reactive_aio.testing import SubscriberProbe

MANY = 2**63 - 1


async def test_a_subscriber_receives_the_value_and_what_follows() -> None:
    value = LatestProcessor(1)
    probe = SubscriberProbe[int](MANY).subscribed_to(value)
    assert value.try_emit(2) is Emission.ACCEPTED
    assert value.update(lambda x: x + 1) == 3
    assert probe.elements == [1, 2, 3]
    assert value.value == 3


async def test_an_update_after_the_end_changes_nothing() -> None:
    value = LatestProcessor(1)
    value.complete()
    assert value.update(lambda x: x + 1) == 1
    assert value.value == 1


async def test_a_slow_subscriber_receives_the_latest() -> None:
    value = LatestProcessor(0)
    probe = SubscriberProbe[int](1).subscribed_to(value)
    for x in range(1, 5):
        assert value.try_emit(x) is Emission.ACCEPTED
    assert await value.emit(5) is Emission.ACCEPTED
    probe.request(MANY)
    value.complete()
    assert await probe.end() == [0, 5, "|"]
    assert await value.to_list() == [5]


async def test_a_change_is_awaited() -> None:
    value = LatestProcessor(0)
    both = asyncio.gather(value.changed(), value.wait_for(lambda x: x > 1))
    await asyncio.sleep(0)
    value.try_emit(1)
    await asyncio.sleep(0)
    assert not both.done()
    value.try_emit(2)
    assert (await both)[1] == 2
    assert await value.wait_for(lambda x: x == 2) == 2


async def test_another_thread_changes_it() -> None:
    value = LatestProcessor(0)
    SubscriberProbe[int](MANY).subscribed_to(value)
    changed = asyncio.ensure_future(value.changed())
    await asyncio.sleep(0)
    assert await asyncio.to_thread(value.emit_threadsafe, 1)
    assert await changed == 1


async def test_the_end_fails_a_wait() -> None:
    value = LatestProcessor(0)
    waiting = asyncio.ensure_future(value.changed())
    await asyncio.sleep(0)
    value.complete()
    with pytest.raises(EmptyFlow, match="LatestProcessor has completed"):
        await waiting
    value = LatestProcessor(0)
    value.fail(OSError("no"))
    with pytest.raises(OSError, match="no"):
        await value.wait_for(lambda x: x == 1)
    assert value.value == 0


def test_a_name_is_a_text() -> None:
    wrong: Any = 3
    with pytest.raises(TypeError, match="LatestProcessor: name must be a str, not 3"):
        LatestProcessor(1, name=wrong)


def test_none_is_refused() -> None:
    with pytest.raises(NotAnElement):
        LatestProcessor(cast("Any", None))


async def test_waits_that_time_out_leave_nothing() -> None:
    value = LatestProcessor(0)
    waits = value.changed, lambda: value.wait_for(bool), value.wait_for_subscribers
    for wait in waits:
        before = living_futures()
        for _ in range(10):
            await wait_and_cancel(wait())
        assert living_futures() <= before + 1


async def wait_and_cancel(wait: Coroutine[Any, Any, object]) -> None:
    waiting = asyncio.ensure_future(wait)
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


def living_futures() -> int:
    gc.collect()
    return sum(type(each) is asyncio.Future for each in gc.get_objects())
