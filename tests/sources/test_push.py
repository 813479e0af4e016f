"""create: an emitter at the mercy of demand, its policies, its end, its threads."""

import asyncio
from collections.abc import Callable, Mapping
from threading import Thread
from typing import Any, cast

import pytest

import reactive_aio as r
from reactive_aio import Emission, Emitter
from reactive_aio.errors import NotAnElement, Overflow
from reactive_aio.spec import Publisher
from reactive_aio.testing import AsyncSubscriberProbe, SubscriberProbe


def counted(n: int) -> Publisher[int]:
    async def emit(to: Emitter[int]) -> None:
        for x in range(n):
            await to.emit(x)

    return r.create(emit, capacity=3)


def poured(n: int) -> Publisher[int]:
    def emit(to: Emitter[int]) -> None:
        for x in range(n):
            to.try_emit(x)
        to.complete()

    return r.create(emit, capacity=max(n, 1))


def failing() -> Publisher[int]:
    def emit(to: Emitter[int]) -> None:
        to.try_emit(1)
        to.fail(OSError("no"))

    return r.create(emit)


def endless() -> Publisher[int]:
    async def emit(to: Emitter[int]) -> None:
        while True:
            await to.emit(1)

    return r.create(emit)


async def raising(to: Emitter[int]) -> None:
    await to.emit(1)
    raise OSError("no")


OF_LENGTH: Mapping[str, Callable[[int], Publisher[Any]]] = {
    "create: coroutine function": counted,
    "create: all at once": poured,
}
FAILING: Mapping[str, Callable[[], Publisher[Any]]] = {
    "create": failing,
    "create: coroutine function": lambda: r.create(raising),
}
INFINITE: Mapping[str, Callable[[], Publisher[Any]]] = {"create": endless}


class Kept:
    """Keeps the emitter of a flow, to emit by hand."""

    def __init__(self, **options: Any) -> None:
        self.emitters: list[Emitter[int]] = []
        self.flow = r.create(self.emitters.append, **options)
        self.probe = SubscriberProbe[int]().subscribed_to(self.flow)

    @property
    def to(self) -> Emitter[int]:
        return self.emitters[0]


class TestDemand:
    async def test_the_function_is_called_with_the_first_request(self) -> None:
        kept = Kept()
        assert kept.emitters == []
        kept.probe.request(1)
        kept.probe.request(1)
        assert len(kept.emitters) == 1
        assert kept.to.requested == 2

    async def test_what_has_demand_arrives_in_the_call(self) -> None:
        kept = Kept()
        kept.probe.request(1)
        assert kept.to.try_emit(1) is Emission.ACCEPTED
        assert kept.probe.signals == [1]
        assert kept.to.try_emit(2)
        assert kept.probe.signals == [1]
        kept.probe.request(1)
        assert kept.probe.signals == [1, 2]

    async def test_emit_waits_for_room_first_come_first_served(self) -> None:
        kept = Kept(capacity=1)
        kept.probe.request(1)
        assert await kept.to.emit(0)
        assert await kept.to.emit(1)
        waiting = [asyncio.ensure_future(kept.to.emit(x)) for x in (2, 3)]
        await asyncio.sleep(0)
        assert not any(task.done() for task in waiting)
        kept.probe.request(9)
        assert await asyncio.gather(*waiting) == [Emission.ACCEPTED] * 2
        assert kept.probe.signals == [0, 1, 2, 3]

    async def test_a_cancelled_waiter_passes_its_turn_on(self) -> None:
        kept = Kept(capacity=1)
        kept.probe.request(1)
        await kept.to.emit(0)
        await kept.to.emit(1)
        first, second = (asyncio.ensure_future(kept.to.emit(x)) for x in (2, 3))
        await asyncio.sleep(0)
        kept.probe.request(2)
        first.cancel()
        assert await second
        assert kept.probe.signals == [0, 1, 3]

    async def test_an_emitter_that_never_waits_does_not_hold_the_loop_up(self) -> None:
        kept = Kept()
        kept.probe.request(2**63)
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.ensure_future(count())
        for x in range(1, 20_000):
            await kept.to.emit(x)
        task.cancel()
        assert turns > 1

    async def test_a_slow_subscriber_is_never_ahead_of_the_capacity(self) -> None:
        outcomes: list[Emission] = []

        def emit(to: Emitter[int]) -> None:
            outcomes.extend(to.try_emit(x) for x in range(10))
            to.complete()

        probe = AsyncSubscriberProbe[int](2**63)
        await probe.subscribed_to(r.create(emit, overflow="wait", capacity=3)).end()
        assert outcomes.count(Emission.ACCEPTED) == 3
        assert probe.signals == [0, 1, 2, "|"]


class TestOverflow:
    @pytest.mark.parametrize(
        ("overflow", "outcomes", "left"),
        [
            ("wait", ["ACCEPTED", "REFUSED"], [0, 1]),
            ("drop_newest", ["ACCEPTED", "DROPPED"], [0, 1]),
            ("drop_oldest", ["ACCEPTED", "ACCEPTED"], [0, 2]),
        ],
    )
    async def test_each_policy(self, overflow: str, outcomes: list[str], left: list[int]) -> None:
        kept = Kept(capacity=1, overflow=overflow)
        kept.probe.request(1)
        kept.to.try_emit(0)
        assert [kept.to.try_emit(x).name for x in (1, 2)] == outcomes
        kept.probe.request(9)
        kept.to.complete()
        assert kept.probe.signals == [*left, "|"]

    async def test_fail_ends_behind_what_is_held_and_tells_the_emitter(self) -> None:
        kept = Kept(capacity=1)
        kept.probe.request(1)
        told: list[str] = []
        kept.to.on_cancel(lambda: told.append("gone"))
        outcomes = [kept.to.try_emit(x).name for x in range(4)]
        assert outcomes == ["ACCEPTED", "ACCEPTED", "OVERFLOWED", "ENDED"]
        assert told == ["gone"]
        assert kept.probe.signals == [0]
        kept.probe.request(1)
        assert kept.probe.elements == [0, 1]
        assert isinstance(kept.probe.error, Overflow)

    async def test_latest_gives_a_slow_subscriber_the_newest(self) -> None:
        kept = Kept(overflow="latest")
        kept.probe.request(1)
        for x in range(9):
            assert kept.to.try_emit(x)
        kept.probe.request(5)
        assert kept.probe.signals == [0, 8]

    @pytest.mark.parametrize(("name", "value"), [("capacity", 0), ("overflow", "drop")])
    def test_bad_arguments_are_refused_at_once(self, name: str, value: object) -> None:
        with pytest.raises(ValueError, match=f"create: {name}"):
            r.create(print, **cast("Any", {name: value}))

    def test_the_emitter_must_be_a_function(self) -> None:
        with pytest.raises(TypeError, match="create: emitter"):
            r.create(cast("Any", [1]))

    async def test_none_is_refused_in_the_call_rule_2_13(self) -> None:
        kept = Kept()
        kept.probe.request(1)
        with pytest.raises(NotAnElement):
            kept.to.try_emit(cast("Any", None))
        with pytest.raises(NotAnElement):
            kept.to.fail(cast("Any", None))


class TestEnd:
    async def test_completion_waits_behind_what_is_held(self) -> None:
        kept = Kept()
        kept.probe.request(1)
        kept.to.try_emit(1)
        kept.to.try_emit(2)
        kept.to.complete()
        assert kept.to.try_emit(3) is Emission.ENDED
        assert kept.probe.signals == [1]
        kept.probe.request(1)
        assert kept.probe.signals == [1, 2, "|"]

    async def test_the_first_end_counts_rule_1_7(self) -> None:
        kept = Kept()
        kept.probe.request(1)
        kept.to.complete()
        kept.to.fail(OSError())
        kept.to.complete()
        assert kept.probe.signals == ["|"]

    async def test_a_function_that_raises_fails_the_flow_rule_1_4(self) -> None:
        def emit(to: Emitter[int]) -> None:
            to.try_emit(1)
            raise OSError("no")

        probe = SubscriberProbe[int](5).subscribed_to(r.create(emit))
        assert probe.elements == [1]
        assert isinstance(probe.error, OSError)

    async def test_cancelling_calls_back_and_ends_the_emitter_rule_3_12(self) -> None:
        kept = Kept()
        kept.probe.request(1)
        told: list[int] = []
        kept.to.on_cancel(lambda: told.append(1))
        kept.probe.cancel()
        kept.probe.cancel()
        kept.to.on_cancel(lambda: told.append(2))
        assert told == [1, 2]
        assert kept.to.is_done
        assert kept.to.try_emit(1) is await kept.to.emit(1) is Emission.ENDED

    async def test_completing_does_not_call_back(self) -> None:
        kept = Kept()
        kept.probe.request(1)
        kept.to.on_cancel(lambda: pytest.fail("nobody cancelled"))
        kept.to.complete()

    async def test_a_callback_that_raises_is_reported(
        self, expects_loop_errors: list[dict[str, Any]]
    ) -> None:
        kept = Kept()
        kept.probe.request(1)
        kept.to.on_cancel(lambda: 1 // 0)
        kept.probe.cancel()
        assert isinstance(expects_loop_errors[0]["exception"], ZeroDivisionError)

    async def test_aclose_waits_for_the_cleanup_of_a_coroutine_function(self) -> None:
        log: list[str] = []

        async def emit(to: Emitter[int]) -> None:
            try:
                while True:
                    await to.emit(1)
            finally:
                await asyncio.sleep(0)
                log.append("clean")

        async with r.create(emit).stream() as elements:
            async for _ in elements:
                break
        assert log == ["clean"]

    async def test_who_waits_for_room_is_told_that_it_has_ended(self) -> None:
        kept = Kept(capacity=1)
        kept.probe.request(1)
        await kept.to.emit(0)
        await kept.to.emit(1)
        task = asyncio.ensure_future(kept.to.emit(2))
        await asyncio.sleep(0)
        kept.probe.cancel()
        assert await task is Emission.ENDED

    async def test_each_subscription_has_an_emitter_of_its_own(self) -> None:
        flow = cast("r.Flow[int]", counted(3))
        assert [await flow.to_list() for _ in range(2)] == [[0, 1, 2]] * 2


class TestThreads:
    async def test_elements_of_a_thread_arrive_in_order(self) -> None:
        def emit(to: Emitter[int]) -> None:
            def work() -> None:
                for x in range(100):
                    while to.emit_threadsafe(x) is Emission.REFUSED:
                        pass
                to.complete()

            Thread(target=work).start()

        assert await r.create(emit, capacity=4, overflow="wait").to_list() == list(range(100))

    async def test_no_more_than_the_capacity_wait_for_the_loop(self) -> None:
        kept = Kept(capacity=2)
        kept.probe.request(9)
        outcomes: list[Emission] = []
        thread = Thread(target=lambda: outcomes.extend(map(kept.to.emit_threadsafe, range(4))))
        thread.start()
        thread.join()
        assert [outcome.name for outcome in outcomes] == ["ACCEPTED"] * 2 + ["REFUSED"] * 2
        kept.to.complete()
        assert kept.probe.signals == [0, 1, "|"]
