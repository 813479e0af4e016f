"""create: the emitter, demand, overflow policies, ends, threads."""

import asyncio
from collections.abc import Callable, Mapping
from itertools import count
from threading import Thread
from typing import Any, cast

import pytest

import reactive_aio as r
from reactive_aio import Emission, Emitter
from reactive_aio._core import time_slice
from reactive_aio.errors import NotAnElement, Overflow
from reactive_aio.spec import Publisher
from reactive_aio.testing import AsyncSubscriberProbe, SubscriberProbe
from tests.cases import Needs


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


class EmitterHandle:
    """Keeps the emitter of a flow, so that the test can emit."""

    def __init__(self, **options: Any) -> None:
        self.emitters: list[Emitter[int]] = []
        self.flow = r.create(self.emitters.append, **options)
        self.probe = SubscriberProbe[int]().subscribed_to(self.flow)

    @property
    def to(self) -> Emitter[int]:
        return self.emitters[0]


class TestDemand:
    async def test_the_function_is_called_with_the_first_request(self) -> None:
        handle = EmitterHandle()
        assert handle.emitters == []
        handle.probe.request(1)
        handle.probe.request(1)
        assert len(handle.emitters) == 1
        assert handle.to.requested == 2

    async def test_an_element_with_demand_arrives_in_the_call(self) -> None:
        handle = EmitterHandle()
        handle.probe.request(1)
        assert handle.to.try_emit(1) is Emission.ACCEPTED
        assert handle.probe.signals == [1]
        assert handle.to.try_emit(2)
        assert handle.probe.signals == [1]
        handle.probe.request(1)
        assert handle.probe.signals == [1, 2]

    async def test_emit_waits_for_room_first_come_first_served(self) -> None:
        handle = EmitterHandle(capacity=1)
        handle.probe.request(1)
        assert await handle.to.emit(0)
        assert await handle.to.emit(1)
        waiting = [asyncio.ensure_future(handle.to.emit(x)) for x in (2, 3)]
        await asyncio.sleep(0)
        assert not any(task.done() for task in waiting)
        handle.probe.request(9)
        assert await asyncio.gather(*waiting) == [Emission.ACCEPTED] * 2
        assert handle.probe.signals == [0, 1, 2, 3]

    async def test_emit_waits_while_a_coroutine_processes_elements(self) -> None:
        outcomes: list[Emission] = []

        async def emit(to: Emitter[int]) -> None:
            for x in range(9):
                outcomes.append(await to.emit(x))  # noqa: PERF401 - one after the other

        flow = r.create(emit, capacity=2, overflow="wait")
        probe = AsyncSubscriberProbe[int](2**63 - 1).subscribed_to(flow)
        assert await probe.end() == [*range(9), "|"]
        assert outcomes == [Emission.ACCEPTED] * 9

    async def test_a_cancelled_waiter_lets_the_next_one_emit(self) -> None:
        handle = EmitterHandle(capacity=1)
        handle.probe.request(1)
        await handle.to.emit(0)
        await handle.to.emit(1)
        first, second = (asyncio.ensure_future(handle.to.emit(x)) for x in (2, 3))
        await asyncio.sleep(0)
        handle.probe.request(2)
        first.cancel()
        assert await second
        assert handle.probe.signals == [0, 1, 3]

    async def test_an_emitter_that_never_waits_yields_to_the_loop(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seconds = count()
        monkeypatch.setattr(time_slice, "_clock", lambda: next(seconds))  # each slice is over
        handle = EmitterHandle()
        handle.probe.request(2**63)
        turns = 0

        async def turn() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.ensure_future(turn())
        for x in range(1000):
            await handle.to.emit(x)
        task.cancel()
        assert turns > 1

    @pytest.mark.parametrize("count", [1, 100])
    async def test_an_emission_after_the_end_suspends_the_emitter(
        self, count: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its coroutine is cancelled there, and does not go on for the rest of its time slice."""
        monkeypatch.setattr(time_slice, "_clock", lambda: 0.0)  # a slice that has begun is not over
        outcomes = list[Emission]()

        async def emitter(to: Emitter[int]) -> None:
            while len(outcomes) < 1000:
                outcomes.append(await to.emit(1))

        assert await r.create(emitter).take(count).to_list() == [1] * count
        assert outcomes == [Emission.ACCEPTED] * count


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
        handle = EmitterHandle(capacity=1, overflow=overflow)
        handle.probe.request(1)
        handle.to.try_emit(0)
        assert [handle.to.try_emit(x).name for x in (1, 2)] == outcomes
        handle.probe.request(9)
        handle.to.complete()
        assert handle.probe.signals == [*left, "|"]

    async def test_overflow_fails_after_the_elements_held_and_ends_the_emitter(self) -> None:
        handle = EmitterHandle(capacity=1)
        handle.probe.request(1)
        told: list[str] = []
        handle.to.on_cancel(lambda: told.append("gone"))
        outcomes = [handle.to.try_emit(x).name for x in range(4)]
        assert outcomes == ["ACCEPTED", "ACCEPTED", "OVERFLOWED", "ENDED"]
        assert told == ["gone"]
        assert handle.probe.signals == [0]
        handle.probe.request(1)
        assert handle.probe.elements == [0, 1]
        assert isinstance(handle.probe.error, Overflow)

    @pytest.mark.parametrize(("name", "value"), [("capacity", 0), ("overflow", "drop")])
    def test_bad_arguments_are_refused_at_once(self, name: str, value: object) -> None:
        with pytest.raises(ValueError, match=f"create: {name}"):
            r.create(print, **cast("Any", {name: value}))

    async def test_what_is_called_on_a_cancellation_is_a_plain_function(self) -> None:
        async def coroutine_function() -> None: ...

        handle = EmitterHandle()
        handle.probe.request(1)

        def of_an_element(x: object) -> None: ...

        wrong: list[Any] = [coroutine_function, 5, of_an_element]
        for each in wrong:
            with pytest.raises(TypeError, match=r"^on_cancel: callback "):
                handle.to.on_cancel(each)
        assert handle.to.try_emit(1)

    async def test_an_awaitable_result_after_a_cancellation_is_reported(
        self, expects_loop_errors: list[Any]
    ) -> None:
        async def coroutine_function() -> None: ...

        handle = EmitterHandle()
        handle.probe.request(1)
        handle.to.on_cancel(lambda: coroutine_function())
        handle.probe.cancel()
        (told,) = expects_loop_errors
        assert "nothing would await; start a task of your own" in str(told["exception"])

    def test_the_emitter_must_be_a_function(self) -> None:
        with pytest.raises(TypeError, match="create: emitter"):
            r.create(cast("Any", [1]))

    async def test_none_is_refused_in_the_call_rule_2_13(self) -> None:
        handle = EmitterHandle()
        handle.probe.request(1)
        with pytest.raises(NotAnElement):
            handle.to.try_emit(cast("Any", None))
        with pytest.raises(NotAnElement):
            handle.to.fail(cast("Any", None))


class TestEnd:
    async def test_completion_follows_the_elements_held(self) -> None:
        handle = EmitterHandle()
        handle.probe.request(1)
        handle.to.try_emit(1)
        handle.to.try_emit(2)
        handle.to.complete()
        assert handle.to.try_emit(3) is Emission.ENDED
        assert handle.probe.signals == [1]
        handle.probe.request(1)
        assert handle.probe.signals == [1, 2, "|"]

    async def test_the_first_end_counts_rule_1_7(self) -> None:
        handle = EmitterHandle()
        handle.probe.request(1)
        handle.to.complete()
        handle.to.fail(OSError())
        handle.to.complete()
        assert handle.probe.signals == ["|"]

    async def test_cancelling_calls_back_and_ends_the_emitter_rule_3_12(self) -> None:
        handle = EmitterHandle()
        handle.probe.request(1)
        told: list[int] = []
        handle.to.on_cancel(lambda: told.append(1))
        handle.probe.cancel()
        handle.probe.cancel()
        handle.to.on_cancel(lambda: told.append(2))
        assert told == [1, 2]
        assert handle.to.is_done
        assert handle.to.try_emit(1) is await handle.to.emit(1) is Emission.ENDED

    async def test_completing_does_not_call_back(self) -> None:
        handle = EmitterHandle()
        handle.probe.request(1)
        handle.to.on_cancel(lambda: pytest.fail("there was no cancellation"))
        handle.to.complete()

    async def test_a_callback_that_raises_is_reported(
        self, expects_loop_errors: list[dict[str, Any]]
    ) -> None:
        handle = EmitterHandle()
        handle.probe.request(1)
        handle.to.on_cancel(lambda: 1 // 0)
        handle.probe.cancel()
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

    async def test_a_waiting_emit_returns_when_the_flow_ends(self) -> None:
        handle = EmitterHandle(capacity=1)
        handle.probe.request(1)
        await handle.to.emit(0)
        await handle.to.emit(1)
        task = asyncio.ensure_future(handle.to.emit(2))
        await asyncio.sleep(0)
        handle.probe.cancel()
        assert await task is Emission.ENDED


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
        handle = EmitterHandle(capacity=2, overflow="wait")
        handle.probe.request(9)
        outcomes: list[Emission] = []
        thread = Thread(target=lambda: outcomes.extend(map(handle.to.emit_threadsafe, range(4))))
        thread.start()
        thread.join()
        assert [outcome.name for outcome in outcomes] == ["ACCEPTED"] * 2 + ["REFUSED"] * 2
        handle.to.complete()
        assert handle.probe.signals == [0, 1, "|"]


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Make a flow": {
        "from callbacks, listeners or other code that pushes": "create",
    },
}


async def example_create() -> None:
    def listen(to: r.Emitter[str]) -> None:
        timer = asyncio.get_running_loop().call_later(0.1, to.try_emit, "clicked")
        to.on_cancel(timer.cancel)

    print(await r.create(listen).first())
