"""The figures of named flows: what was delivered, what is held where, what is waited for."""

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow, observe
from reactive_aio._core.observation import registry
from reactive_aio.observe.inspector_feed import Feed
from reactive_aio.testing import PublisherProbe, SubscriberProbe
from tests.contract.raising.consumers import subscribe
from tests.contract.raising.observe import Outcome
from tests.core import test_error_notes as error_notes
from tests.operators.streams import MANY


@pytest.fixture(autouse=True)
def no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_names", {})


def only(flow: Flow[Any]) -> observe.SubscriptionStats:
    [subscription] = flow.stats().subscriptions
    return subscription


async def every_second() -> AsyncIterator[int]:
    for i in range(1000):
        yield i
        await asyncio.sleep(1)


class TestDelivered:
    @pytest.mark.virtual_time
    async def test_an_awaited_source_counts_each_element_in_the_middle_of_a_batch(self) -> None:
        flow = r.from_aiter(every_second).filter(lambda x: x % 2 == 0).name("even")
        async with flow.running() as run:
            for seconds in (1, 2, 7, 20):
                await asyncio.sleep(seconds)
                assert only(flow).delivered == run.delivered

    @pytest.mark.virtual_time
    @pytest.mark.parametrize("concurrency", [1, 3])
    async def test_so_does_every_other_loop(self, concurrency: int) -> None:
        async def work(x: int) -> int:
            await asyncio.sleep(1)
            return x

        for flow in (
            r.interval(1).name("pushed"),
            r.interval(1).boundary(4).name("boundary"),
            r.range(1000).map_async(work, concurrency=concurrency).name("worked"),
            r.range(1000).map_async(work, concurrency=concurrency).buffer(2).name("lists"),
            r.range(1000).map_async(work).flat_map(lambda x: [x] * x).name("many"),
        ):
            async with flow.running() as run:
                for seconds in (0.5, 2, 7):
                    await asyncio.sleep(seconds)
                    assert only(flow).delivered == run.delivered

    @pytest.mark.virtual_time
    async def test_elements_are_counted_that_a_terminal_operator_takes(self) -> None:
        async def work(x: int) -> int:
            await asyncio.sleep(1)
            return x

        for flow in (
            r.range(9).map_async(work).name("taken"),
            r.range(9).map_async(work, concurrency=2).name("taken"),
            r.from_aiter(every_second).name("taken").map(str),
        ):
            for terminal in (flow.run(), flow.for_each(str), flow.to_list()):
                task: asyncio.Task[object] = asyncio.create_task(terminal)
                await asyncio.sleep(3.5)
                assert only(flow).delivered in (3, 4, 6)
                task.cancel()
                await asyncio.wait([task])

    async def test_a_synchronous_flow_is_counted_where_it_pauses(self) -> None:
        flow = r.range(100).name("numbers")
        probe = SubscriberProbe[int](3).subscribed_to(flow)
        assert (only(flow).delivered, only(flow).requested) == (3, 0)
        probe.request(5)
        assert only(flow).delivered == 8
        probe.cancel()

    @pytest.mark.virtual_time
    async def test_the_rate_is_that_since_the_last_look(self) -> None:
        flow = r.interval(0.5).name("ticks")
        async with flow.running():
            await asyncio.sleep(10.25)
            assert only(flow).rate == pytest.approx(20 / 10.25)
            await asyncio.sleep(2)
            assert only(flow).rate == 2
            assert only(flow).rate == 0  # no time has passed


@pytest.mark.virtual_time
class TestHeld:
    async def test_each_part_says_what_it_holds(self) -> None:
        async def slow(x: int) -> int:
            await asyncio.sleep(60)
            return x

        source = r.from_aiter(every_second).boundary(5)
        flow = source.map_async(slow, concurrency=2).name("orders")
        async with flow.running():
            await asyncio.sleep(30)
            stats = only(flow)
        workers, boundary = stats.parts
        assert (workers.name, workers.calls, workers.held) == (
            "map_async(slow, concurrency=2)",
            2,
            0,
        )
        assert boundary.name == "boundary(5)"
        assert 0 < boundary.held == stats.held <= 5
        assert stats.requested is None

    async def test_a_processor_and_a_created_flow_hold_for_their_subscriber(self) -> None:
        hub = r.UnicastProcessor[int](capacity=9)
        probe = SubscriberProbe[int](1).subscribed_to(flow := hub.name("hub"))
        for i in range(4):
            hub.try_emit(i)
        assert only(flow).parts[0].held == 3
        probe.cancel()

    async def test_retries_are_counted(self) -> None:
        flow = r.error(OSError).retry(r.RetryPolicy(attempts=None, delay=1, factor=1, jitter=0))
        async with flow.name("again").running():
            await asyncio.sleep(4.5)
            [part] = only(flow.name("again")).parts
            assert part.retries == 5

    async def test_many_upstreams_are_cut(self) -> None:
        flow = r.range(200).flat_map(lambda _: r.interval(1), concurrency=200).boundary(9)
        async with flow.name("many").running():
            await asyncio.sleep(3)
            assert len(only(flow.name("many")).parts) <= 64


@pytest.mark.virtual_time
class TestWaiting:
    async def test_it_waits_for_demand_of_its_subscriber(self) -> None:
        flow = r.range(9).name("numbers")
        probe = SubscriberProbe[int](1).subscribed_to(flow)
        assert only(flow).idle == 0
        await asyncio.sleep(4)
        assert only(flow).idle == 4
        assert only(flow).waits_for == "demand of its subscriber"
        probe.request(1)
        assert only(flow).idle == 0
        probe.cancel()

    async def test_it_waits_for_elements_of_an_operator(self) -> None:
        flow = r.from_publisher(PublisherProbe[int]()).boundary(2).name("quiet")
        async with flow.running():
            assert only(flow).waits_for == "elements of boundary(2)"

    async def test_it_waits_for_a_function_of_the_user(self) -> None:
        async def save(_: int) -> int:
            return await wait_for_disk()

        async def wait_for_disk() -> int:
            await asyncio.sleep(9)
            return 1

        flow = r.just(1).map_async(save).name("saving")
        async with flow.running():
            await asyncio.sleep(1)
            assert "wait_for_disk (" in only(flow).waits_for
            assert "test_figures.py:" in only(flow).waits_for

    async def test_it_waits_for_an_asynchronous_source(self) -> None:
        for flow in (r.from_aiter(every_second).name("slow"), r.from_queue(asyncio.Queue[int]())):
            named = flow.name("slow")
            probe = SubscriberProbe[int](MANY).subscribed_to(named)
            await asyncio.sleep(0.5)
            assert "every_second" in only(named).waits_for or "from_queue" in only(named).waits_for
            probe.cancel()
            await asyncio.sleep(0.5)


class TestNames:
    async def test_the_ends_are_counted(self) -> None:
        await r.from_aiter(every_second).take(1).name("ends").run()
        async with r.never().name("ends").running():
            pass
        with pytest.raises(OSError, match="lost"):
            await r.error(OSError("lost")).boundary(2).name("ends").run()
        stats = r.empty().name("ends").stats()
        assert (stats.started, stats.completed, stats.failed, stats.cancelled) == (3, 1, 1, 1)
        assert stats.last_error.startswith(
            "OSError: lost\nin the flow: >>error(OSError('lost'))<< → boundary(2) → name('ends')"
        )
        assert not stats.subscriptions

    @pytest.mark.parametrize("case", error_notes.TRAILS)
    async def test_the_last_error_marks_the_failing_stage(self, case: str) -> None:
        make, trail, element = error_notes.TRAILS[case]
        flow = make().name("failing")
        error = await error_notes.error_of(flow)
        first, shown, *rest = flow.stats().last_error.splitlines()
        assert first == f"ValueError: {error}"
        assert shown == f"in the flow: {trail} → name('failing')"
        assert f'    File "{error_notes.__file__}", line ' in "\n".join(rest)
        assert (f"    with the element {element}" in rest) == bool(element)
        assert error.__notes__ == ["\n".join([shown, *rest])], "it is annotated once"

    async def test_an_exception_without_notes_has_the_failing_stage_as_well(self) -> None:
        class Frozen(Exception):
            def add_note(self, note: str, /) -> None:
                raise AttributeError("frozen")

        def fails(_: object) -> None:
            raise Frozen

        flow = r.just(1).map(fails).name("frozen")
        with pytest.raises(Frozen):
            await subscribe(flow, Outcome())
        assert "just(1) → >>map(" in flow.stats().last_error

    async def test_a_subscriber_that_raises_has_cancelled(
        self, expects_loop_errors: list[dict[str, Any]]
    ) -> None:
        class Raising(SubscriberProbe[int]):
            def on_next(self, element: int, /) -> None:
                raise KeyError(element)

        r.just(1).name("raising").subscribe(Raising(1))
        assert r.just(1).name("raising").stats().cancelled == 1
        expects_loop_errors.clear()

    def test_a_flow_without_a_name_has_no_figures(self) -> None:
        with pytest.raises(ValueError, match=r'stats: the flow has no name; .* name\("\.\.\."\)'):
            r.just(1).stats()

    async def test_a_subscription_that_is_freed_has_no_figures(self) -> None:
        r.just(1, 2).name("freed").subscribe(SubscriberProbe[int](1))
        assert registry.named_flow("freed").started == 1
        gc.collect()
        assert not r.just(1).name("freed").stats().subscriptions

    async def test_the_last_name_counts(self) -> None:
        flow = r.never().name("first").name("second")
        async with flow.running():
            assert flow.stats().name == "second"
            assert [*observe.snapshot().flows] == ["second"]

    async def test_names_without_a_subscription_are_forgotten_beyond_a_thousand(self) -> None:
        async with r.never().name("kept").running():
            for i in range(1500):
                SubscriberProbe[int](1).subscribed_to(r.just(1).name(f"user {i}"))
            names = observe.snapshot().flows
            assert len(names) <= 1000
            assert "kept" in names
            assert "user 1499" in names


class TestSnapshot:
    async def test_a_named_processor_is_part_of_it(self) -> None:
        news = r.MulticastProcessor[int](name="news")
        nameless = r.MulticastProcessor[int]()
        assert nameless.stats().name == "MulticastProcessor"
        async with news.running():
            news.try_emit(1)
            [stats] = [each for each in observe.snapshot().processors if each.name == "news"]
        assert (stats.accepted, stats.subscribers) == (1, 1)
        assert isinstance(stats, r.ProcessorStats)

    async def test_what_the_process_has_lost_is_part_of_it(self) -> None:
        before = observe.snapshot().losses
        hub = r.MulticastProcessor[int](name="hub without subscribers")
        hub.try_emit(1)
        lost = observe.snapshot().losses - before
        assert lost.elements == {"hub without subscribers: no_subscriber": 1}

    async def test_a_flow_without_a_name_is_not(self) -> None:
        async with r.never().running():
            assert not observe.snapshot().flows


@pytest.mark.virtual_time
class TestReport:
    async def test_it_says_what_is_held_and_what_is_waited_for(self) -> None:
        async def work(x: int) -> int:
            await asyncio.sleep(60)
            return x

        flow = r.interval(1).boundary(8).map_async(work, concurrency=2).name("orders")
        async with flow.running():
            await asyncio.sleep(20)
            observe.report()
            await asyncio.sleep(2)
            text = observe.report()
        lines = text.splitlines()
        assert lines[0] == "orders: 1 running"
        assert lines[1].startswith("  interval(1) → boundary(8) → map_async(")
        assert lines[2].startswith("    0 delivered, 0.0/s, holds ")
        assert "its oldest element is 2.0 s old; waits for elements of map_async(" in lines[2]
        assert "(since 22.0 s)" in lines[2]
        figures = "holds 0, unlimited requested, 2 calls run, its oldest element is 2.0 s old"
        assert lines[3].endswith(figures)
        assert lines[4].startswith("        in TestReport.test_it_says_what_is_held")
        assert lines[5].startswith("    ║ boundary(8): holds ")
        assert lines[5].endswith("its oldest element is 2.0 s old")
        assert "  lost: 13 by interval" in lines

    async def test_it_has_the_last_error_and_the_processors(self) -> None:
        with pytest.raises(OSError, match="lost"):
            await r.error(OSError("lost")).boundary(2).name("orders").run()
        news = r.MulticastProcessor[int](name="news")
        news.try_emit(1)
        text = observe.report()
        first, last_error = text.splitlines()[:2]
        assert first == "orders: 0 running, 1 failed, 0 delivered in all"
        assert last_error.startswith(f'  last error: OSError in error, File "{__file__}", line ')
        assert "lost" not in last_error, "a message may quote an element"
        assert "news: 0 subscribers, 0 accepted, holds 0" in text
        assert "1 dropped by no_subscriber" in text

    @pytest.mark.parametrize("is_retried", [False, True])
    async def test_it_has_no_elements(self, is_retried: bool) -> None:
        """As `serve` and the inspector promise; what is returned for the program has them."""

        def parse(card: str) -> int:
            raise KeyError(card)

        cards = [f"4111-{number}" for number in range(9)]
        flow = r.from_iterable(cards).boundary(8).map(parse)
        if is_retried:
            flow = flow.retry(1)
        with pytest.raises(KeyError):
            await flow.name("orders").run()
        text = observe.report()
        assert "last error: KeyError" in text
        states: Any = Feed(1.0, None).states(None)
        async with aclosing(states):
            page = json.dumps(await anext(states))
        assert "KeyError" in page
        assert "4111" not in text + page
        assert "4111-0" in r.empty().name("orders").stats().last_error

    async def test_without_names_it_says_how_to_give_one(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("reactive_aio.observe.snapshots.named_processors", list)
        monkeypatch.setattr("reactive_aio.observe.snapshots.losses", lambda: r.Losses({}, 0))
        assert observe.report() == 'no flow has a name; give it one with flow.name("...")'


class TestCountsInTheMiddleOfABatch:
    """Where a source or a stage ends a batch early, what was delivered is counted."""

    SIZES = pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 20, 100])

    @staticmethod
    async def delivered(flow: Flow[int], name: str) -> int:
        await SubscriberProbe[int](1 << 62).subscribed_to(flow.name(name)).end()
        return flow.name(name).stats().delivered

    @SIZES
    async def test_when_the_source_ends(self, count: int) -> None:
        def source() -> Iterator[int]:
            yield from range(count)

        assert await self.delivered(r.from_iterable(source()), f"generator {count}") == count
        assert await self.delivered(r.from_iterable([*range(count)]), f"list {count}") == count
        assert await self.delivered(r.range(count), f"range {count}") == count
        evens = r.range(count).filter(lambda x: not x & 1)
        assert await self.delivered(evens, f"evens {count}") == (count + 1) // 2

    @SIZES
    async def test_when_the_source_raises(self, count: int) -> None:
        def source() -> Iterator[int]:
            yield from range(count)
            raise OSError

        assert await self.delivered(r.from_iterable(source()), f"raising {count}") == count

    @SIZES
    async def test_when_a_stage_raises_or_ends(self, count: int) -> None:
        failing = r.range(200).map(lambda x: 1 // (count - x) and x)
        assert await self.delivered(failing, f"failing {count}") == count
        assert await self.delivered(r.range(200).take(count + 1), f"take {count}") == count + 1
        while_less = r.range(200).take_while(lambda x: x < count)
        assert await self.delivered(while_less, f"while {count}") == count

    @pytest.mark.virtual_time
    async def test_while_a_signal_is_awaited_after_the_source_has_ended(self) -> None:
        class Awaited(SubscriberProbe[int]):
            def on_next(self, element: int, /) -> Any:
                super().on_next(element)
                return asyncio.sleep(10) if element == 19 else None

        flow = r.range(20).name("awaited")
        probe = Awaited(1 << 62)
        flow.subscribe(probe)
        assert flow.stats().delivered in (19, 20)
        await probe.end()
        assert flow.stats().delivered == 20
