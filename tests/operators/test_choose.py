"""race, switch_if_empty and take_until: who is chosen, until when, and what is cancelled."""

# Where a Publisher is expected of a lambda, pyright does not infer the types of these calls.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

import asyncio
import gc
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Publisher
from reactive_aio.errors import AlreadySubscribed
from reactive_aio.testing import PublisherProbe, SubscriberProbe
from tests.cases import Identities, Needs
from tests.operators.streams import MANY, slow
from tests.operators.ways import Failed, Sample, in_every_way

OF_LENGTH: Mapping[str, Callable[[int], Publisher[object]]] = {
    "race": lambda n: r.race(r.never(), r.range(n)),
    "race: asynchronous": lambda n: r.race(slow(range(n)), r.never()),
    "switch_if_empty": lambda n: r.range(n).switch_if_empty([]),
    "switch_if_empty: other": lambda n: r.empty().switch_if_empty(r.range(n)),
    "switch_if_empty: asynchronous": lambda n: slow([]).switch_if_empty(slow(range(n))),
    "take_until": lambda n: r.range(n).take_until(r.never()),
    "take_until: asynchronous": lambda n: slow(range(n)).take_until(asyncio.Event()),
}

FAILING: Mapping[str, Callable[[], Publisher[object]]] = {
    "race": lambda: r.race(r.never(), slow([1], error=Failed())),
    "switch_if_empty": lambda: slow([1], error=Failed()).switch_if_empty([2]),
    "switch_if_empty: other": lambda: r.empty().switch_if_empty(slow([1], error=Failed())),
    "take_until": lambda: slow([1], error=Failed()).take_until(r.never()),
    "take_until: moment": lambda: r.never().take_until(slow([], error=Failed())),
}

INFINITE: Mapping[str, Callable[[], Publisher[object]]] = {
    "race": lambda: r.race(r.generate(lambda x: (x, x + 1), 0), r.never()),
    "switch_if_empty": lambda: r.empty().switch_if_empty(r.generate(lambda x: (x, x + 1), 0)),
    "take_until": lambda: r.generate(lambda x: (x, x + 1), 0).take_until(r.never()),
}

IDENTITIES: Identities = {
    "race": lambda up: r.race(up, r.never()),
    "switch_if_empty": lambda up: up.switch_if_empty([]),
    "take_until": lambda up: up.take_until(r.never()),
}


@pytest.mark.filterwarnings("error")
async def test_a_coroutine_that_a_flow_does_not_come_to_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    never_awaited: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", never_awaited.append)

    async def moment() -> int:
        return 1

    assert await r.range(5).take_until(moment()).first() == 0
    sources = iter((r.just(1), r.never()))
    flow = r.defer(lambda: next(sources)).take_until(moment())
    assert await flow.to_list() == [1]
    with pytest.raises(AlreadySubscribed, match="given a coroutine, which serves one"):
        await flow.run()
    r.just(1).take_until(moment())
    r.from_awaitable(moment())
    gc.collect()
    assert never_awaited == []


class TestRace:
    async def test_the_first_signal_decides_and_the_others_are_cancelled(self) -> None:
        one, two = PublisherProbe[int](), PublisherProbe[int]()
        flow = r.race(r.from_publisher(one), r.from_publisher(two))
        probe = SubscriberProbe[int](9).subscribed_to(flow)
        assert (one.requested, two.requested) == (1, 1)
        two.emit(7)
        assert (one.cancel_count, two.cancel_count) == (1, 0)
        assert two.requested == 9
        two.emit(8)
        two.complete()
        assert await probe.end() == [7, 8, "|"]

    @pytest.mark.parametrize("how", ["complete", "fail"])
    async def test_an_end_counts_as_the_first_signal(self, how: str) -> None:
        one, two = PublisherProbe[int](), PublisherProbe[int]()
        flow = r.race(r.from_publisher(one), r.from_publisher(two))
        probe = SubscriberProbe[int](9).subscribed_to(flow)
        if how == "fail":
            two.fail(Failed())
        else:
            two.complete()
        await probe.end()
        assert isinstance(probe.error, Failed) == (how == "fail")
        assert one.cancel_count == 1

    async def test_a_source_that_has_an_element_at_once_wins_before_the_others_start(self) -> None:
        log: list[str] = []
        flow = r.race([1, 2], slow([3], log=log))
        assert await flow.to_list() == [1, 2]
        assert log == []

    async def test_cancelling_before_the_first_signal_cancels_all(self) -> None:
        sources = [PublisherProbe[int]() for _ in range(3)]
        flow = r.race(*(r.from_publisher(each) for each in sources))
        SubscriberProbe[int](9).subscribed_to(flow).cancel()
        assert [each.cancel_count for each in sources] == [1, 1, 1]

    def test_a_race_needs_a_source(self) -> None:
        with pytest.raises(TypeError, match="at least one"):
            r.race()
        with pytest.raises(TypeError, match=r"unpack it: race\(\*sources\)"):
            r.race([r.just(1), r.just(2)])


class TestSwitchIfEmpty:
    async def test_another_source_follows_an_empty_one(self) -> None:
        def change(flow: r.Flow[int]) -> r.Flow[int]:
            return flow.switch_if_empty([7, 8])

        await in_every_way(Sample(change, [], [7, 8, "|"]))
        await in_every_way(Sample(change, [1, 2], [1, 2, "|"]))
        await in_every_way(Sample(change, [], [Failed], fails=True))

    async def test_the_other_source_gets_the_demand_that_is_outstanding(self) -> None:
        first, other = PublisherProbe[int](), PublisherProbe[int]()
        flow = r.from_publisher(first).switch_if_empty(r.from_publisher(other))
        probe = SubscriberProbe[int](3).subscribed_to(flow)
        assert not other.subscribers
        first.complete()
        assert other.requested == 3
        other.emit(1)
        other.complete()
        assert await probe.end() == [1, "|"]


async def done() -> None:
    await asyncio.sleep(5)


async def late() -> AsyncIterator[int]:
    await asyncio.sleep(5)
    yield 1


def event() -> asyncio.Event:
    happened = asyncio.Event()
    asyncio.get_running_loop().call_later(5, happened.set)
    return happened


MOMENTS: Mapping[str, Callable[[], Any]] = {
    "a coroutine": done,
    "a task": lambda: asyncio.ensure_future(done()),
    "an event": event,
    "a flow": lambda: r.timer(5),
    "a flow that completes": lambda: r.timer(5).filter(lambda _: False),
    "an asynchronous iterable": late,
}


@pytest.mark.virtual_time
class TestTakeUntil:
    @pytest.mark.parametrize("kind", MOMENTS)
    async def test_the_flow_completes_at_the_moment(self, kind: str) -> None:
        log: list[str] = []
        flow = slow(range(9), every=2, log=log).take_until(MOMENTS[kind]())
        assert await flow.to_list() == [0, 1]
        assert asyncio.get_running_loop().time() == pytest.approx(5)
        assert log == ["opened", "closed"]

    async def test_after_the_moment_no_element_passes_and_the_source_does_not_start(self) -> None:
        log: list[str] = []
        happened = asyncio.Event()
        happened.set()
        assert await slow([1], log=log).take_until([1]).to_list() == []
        assert log == []
        assert await slow([1], every=1).take_until(happened).to_list() == []

    def test_an_event_of_threads_is_refused(self) -> None:
        event: Any = threading.Event()
        with pytest.raises(TypeError, match=r"take_until: .* event of threads, .* asyncio\.Event"):
            r.range(2).take_until(event)

    async def test_the_end_of_the_source_cancels_the_moment(self) -> None:
        moment = PublisherProbe[int]()
        flow = r.range(2).take_until(r.from_publisher(moment))
        assert await SubscriberProbe[int](9).subscribed_to(flow).end() == [0, 1, "|"]
        assert (moment.requested, moment.cancel_count) == (1, 1)

    async def test_a_task_is_not_cancelled_with_the_flow(self) -> None:
        task = asyncio.ensure_future(done())
        assert await r.range(2).take_until(task).to_list() == [0, 1]
        await asyncio.sleep(6)
        assert task.done()
        assert not task.cancelled()

    async def test_a_coroutine_serves_one_subscription(self) -> None:
        flow = r.never().take_until(done())
        assert await flow.to_list() == []
        with pytest.raises(AlreadySubscribed, match="take_until was given a coroutine"):
            await flow.to_list()

    async def test_a_moment_that_fails_fails_the_flow(self) -> None:
        probe = SubscriberProbe[int](MANY)
        probe.subscribed_to(slow(range(9), every=2).take_until(slow([], every=5, error=Failed())))
        await probe.end()
        assert isinstance(probe.error, Failed)

    def test_something_else_is_refused_by_name(self) -> None:
        with pytest.raises(TypeError, match="take_until: 7"):
            r.range(2).take_until(7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Keep some elements": {
        "until something happens: an event, a time, another flow": "take_until",
    },
    "Combine flows": {
        "only the one that is first to respond": "race",
        "another one, or a default, if there are no elements": "switch_if_empty default_if_empty",
    },
}


async def example_race() -> None:
    slow, fast = r.timer(0.3, "mirror 1"), r.timer(0.1, "mirror 2")
    print(await r.race(slow, fast).to_list())


async def example_switch_if_empty() -> None:
    cached = r.just("a", "b").filter(lambda key: key == "c")
    print(await cached.switch_if_empty(r.just("from the database")).to_list())


async def example_take_until() -> None:
    closing = asyncio.Event()
    asyncio.get_running_loop().call_later(0.25, closing.set)
    print(await r.interval(0.1).take_until(closing).to_list())
