"""Tasks, threads, timers and subscriptions that a block leaks are reported; its own are not."""

import asyncio
import re
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Any

import pytest

from reactive_aio import Flow, from_thread, interval, never, range as numbers, to_flow
from reactive_aio.processors import MulticastProcessor
from reactive_aio.testing import PublisherProbe, SubscriberProbe
from reactive_aio.testing.leaks import Snapshot, no_leaks

MANY = 2**63 - 1
KEPT: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    KEPT.clear()


async def numbered() -> AsyncGenerator[int, None]:
    for number in range(9):
        await asyncio.sleep(0)
        yield number


FLOWS: dict[str, Callable[[], Flow[Any]]] = {
    "range": lambda: numbers(9),
    "boundary": lambda: numbers(9).boundary(2),
    "coroutines": lambda: to_flow(numbered()),
    "merge": lambda: numbers(9).merge_with(to_flow(numbered()).boundary(2)),
    "timer": lambda: interval(0.001).take(3),
}


class TestNoFalseAlarm:
    @pytest.mark.parametrize("make", FLOWS.values(), ids=FLOWS)
    async def test_a_flow_that_ends_leaves_nothing(self, make: Callable[[], Flow[Any]]) -> None:
        async with no_leaks():
            probe = SubscriberProbe[Any](MANY).subscribed_to(make())
            await probe.end()

    @pytest.mark.parametrize("make", FLOWS.values(), ids=FLOWS)
    async def test_a_flow_that_is_cancelled_leaves_nothing(
        self, make: Callable[[], Flow[Any]]
    ) -> None:
        async with no_leaks():
            probe = SubscriberProbe[Any](1).subscribed_to(make())
            await probe.wait_for_signals(1)
            probe.cancel()

    async def test_local_variables_of_the_test_are_not_leaks(self) -> None:
        async with no_leaks():
            publisher, probe = PublisherProbe[int](), SubscriberProbe[int](1)
            to_flow(publisher).subscribe(probe)
            with pytest.raises(AssertionError) as caught:
                await probe.next_element(within=0.001)
        assert "an element was expected" in str(caught.value)

    async def test_objects_created_before_the_block_do_not_count(self) -> None:
        publisher = PublisherProbe[int]()
        KEPT.append(publisher)
        task = asyncio.ensure_future(asyncio.sleep(60))
        await asyncio.sleep(0)
        async with no_leaks():
            pass
        task.cancel()

    async def test_idle_workers_of_a_pool_may_stay(self) -> None:
        async with no_leaks():
            await asyncio.to_thread(int)

    async def test_what_joins_the_threads_of_flows_at_the_end_of_the_loop_may_stay(self) -> None:
        async with no_leaks(strict=True):
            await from_thread(lambda: [1, 2]).run()

    async def test_a_window_that_is_freed_with_the_error_of_its_flow(self) -> None:
        async def fails(number: int) -> int:
            if number == 5:
                raise ValueError
            return number

        async def read() -> None:
            async for _ in to_flow(numbered()).map_async(fails).window(3):
                pass

        async with no_leaks():
            with suppress(ValueError):
                await read()
            await asyncio.sleep(0)

    async def test_an_error_of_the_block_is_passed_on(self) -> None:
        async def fail() -> None:
            async with no_leaks():
                KEPT.append(PublisherProbe[int]())
                raise KeyError

        with pytest.raises(KeyError):
            await fail()


async def leak_of(leave: Callable[[], object], *, strict: bool = False) -> str:
    with pytest.raises(AssertionError) as caught:
        async with no_leaks(strict=strict):
            leave()
    return str(caught.value)


class TestLeaks:
    async def test_a_task_is_named_with_where_it_waits(self) -> None:
        tasks: list[asyncio.Task[None]] = []
        words = await leak_of(lambda: tasks.append(asyncio.create_task(asyncio.sleep(60, None))))
        assert "left behind: " in words
        assert "a task still runs:\n" in words
        assert "in sleep: " in words
        tasks[0].cancel()

    @pytest.mark.asyncio(loop_factories=["asyncio"])
    async def test_a_timer_that_is_set(self) -> None:
        timers: list[asyncio.TimerHandle] = []
        loop = asyncio.get_running_loop()
        words = await leak_of(lambda: timers.append(loop.call_later(60, int)))
        assert "a timer is set: <TimerHandle" in words
        timers[0].cancel()

    @pytest.mark.virtual_time
    async def test_a_thread_that_runs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("reactive_aio.testing.leaks.THREADS_END_WITHIN", 0.01)
        stop = threading.Event()
        words = await leak_of(threading.Thread(target=stop.wait, name="worker-7").start)
        stop.set()
        assert "a thread runs: worker-7" in words

    async def test_an_asynchronous_generator_that_was_not_closed(self) -> None:
        generator = numbered()
        before = Snapshot()
        async for _ in generator:
            break
        [words] = await before.leaks()
        await generator.aclose()
        assert words.startswith("an asynchronous generator is not closed: numbered\n")
        assert words.endswith(": yield number")

    @pytest.mark.thorough
    @pytest.mark.usefixtures("unfrozen_objects")
    async def test_a_subscription_that_a_module_keeps(self) -> None:
        words = await leak_of(lambda: KEPT.append({"publisher": PublisherProbe[int]()}))
        assert re.search(r"a subscription is alive: <.*PublisherProbe object", words)
        assert "kept by " in words

    async def test_a_subscription_that_the_loop_keeps(self) -> None:
        handles: list[asyncio.TimerHandle] = []

        def leave() -> None:
            probe = SubscriberProbe[int](1).subscribed_to(never())
            loop = asyncio.get_running_loop()
            handles.append(loop.call_later(60, probe.cancel))

        words = await leak_of(leave)
        assert "a subscription is alive" in words
        assert "SubscriberProbe" in words
        handles[0].cancel()

    async def test_a_subscription_that_a_task_keeps(self) -> None:
        async def wait() -> None:
            await SubscriberProbe[int](1).subscribed_to(never()).end()

        tasks: list[asyncio.Task[None]] = []
        words = await leak_of(lambda: tasks.append(asyncio.create_task(wait())))
        assert "kept by task Task-" in words
        assert "wait()" in words
        tasks[0].cancel()

    async def test_strict_reports_what_only_the_test_keeps(self) -> None:
        news = MulticastProcessor[int]()
        probe = SubscriberProbe[int](1)
        words = await leak_of(lambda: news.subscribe(probe), strict=True)
        assert "kept by a running function -> " in words
        probe.cancel()


@pytest.mark.thorough
@pytest.mark.usefixtures("unfrozen_objects")
async def test_a_snapshot_returns_the_leaks_as_a_list() -> None:
    before = Snapshot()
    assert await before.leaks() == []
    KEPT.append(PublisherProbe[int]())
    [words] = await before.leaks(turns=0)
    assert words.startswith("a subscription is alive")
