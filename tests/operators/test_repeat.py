"""repeat and restart: how often, with which delays, and with whose demand."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow, Publisher, RetryPolicy
from reactive_aio.testing import PublisherProbe, SubscriberProbe
from tests.cases import Identities, Needs
from tests.operators.streams import MANY, slow
from tests.operators.ways import Failed

OF_LENGTH: Mapping[str, Callable[[int], Publisher[object]]] = {
    "repeat": lambda n: r.range(n).repeat(1),
    "repeat: of one": lambda n: r.just(1).repeat(n) if n else r.empty().repeat(1),
    "repeat: asynchronous": lambda n: slow(range(n)).repeat(1),
    "restart": lambda n: r.range(n).restart(1),
    "restart: asynchronous": lambda n: slow(range(n)).restart(1),
}

FAILING: Mapping[str, Callable[[], Publisher[object]]] = {
    "repeat": lambda: slow([1], error=Failed()).repeat(3),
    "restart": lambda: slow([1], error=Failed()).restart(2),
}

INFINITE: Mapping[str, Callable[[], Publisher[object]]] = {
    "repeat": lambda: r.range(3).repeat(),
    "repeat: asynchronous": lambda: slow([1, 2]).repeat(),
    "restart": lambda: r.range(3).restart(RetryPolicy(attempts=None)),
    "restart: asynchronous": lambda: slow([1], error=Failed()).restart(RetryPolicy(attempts=None)),
}

IDENTITIES: Identities = {
    "repeat": lambda up: up.repeat(1),
    "restart": lambda up: up.restart(1),
}


async def test_it_never_ends_by_default_and_lets_the_loop_run() -> None:
    assert await r.range(2).repeat().take(5).to_list() == [0, 1, 0, 1, 0]
    probe = SubscriberProbe[int](1).subscribed_to(r.empty().repeat())
    for _ in range(3):
        await asyncio.sleep(0)
    probe.cancel()
    assert probe.signals == []


async def test_the_next_run_starts_with_the_next_demand() -> None:
    source = PublisherProbe[int]()
    probe = SubscriberProbe[int](1).subscribed_to(r.from_publisher(source).repeat())
    source.emit(1)
    source.complete()
    assert len(source.subscribers) == 1
    probe.request(2)
    assert len(source.subscribers) == 2
    assert source.requested == 3
    probe.cancel()


@pytest.mark.virtual_time
async def test_a_policy_sets_the_delays_between_runs() -> None:
    times: list[float] = []
    loop = asyncio.get_running_loop()
    policy = RetryPolicy(attempts=4, delay=1, factor=2, jitter=0)

    def started() -> Flow[int]:
        times.append(loop.time())
        return r.just(1)

    source = r.defer(started)
    assert await source.repeat(policy).to_list() == [1, 1, 1, 1]
    assert times == pytest.approx([0, 1, 3, 7])


@pytest.mark.virtual_time
async def test_no_run_starts_after_the_time_of_a_policy() -> None:
    policy = RetryPolicy(attempts=None, delay=2, factor=1, jitter=0, within=5)
    assert await r.just(1).repeat(policy).to_list() == [1, 1, 1]
    assert asyncio.get_running_loop().time() == pytest.approx(4)


@pytest.mark.virtual_time
async def test_cancelling_between_two_runs_stops_the_clock() -> None:
    policy = RetryPolicy(attempts=None, delay=2, factor=1, jitter=0)
    probe = SubscriberProbe[int](MANY).subscribed_to(r.just(1).repeat(policy))
    await asyncio.sleep(1)
    probe.cancel()
    await asyncio.sleep(9)
    assert probe.signals == [1]


@pytest.mark.parametrize(("name", "argument"), [("repeat", "times"), ("restart", "policy")])
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (0, "at least 1"),
        (-1, "at least 1"),
        ("3", "an int or a RetryPolicy"),
        (True, "an int, not True"),
    ],
)
def test_it_takes_a_number_of_runs_or_a_policy(
    name: str, argument: str, wrong: Any, words: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=f"{name}: {argument} must be {words}"):
        getattr(r.just(1), name)(wrong)


class TestRestart:
    async def test_it_runs_again_after_a_failure_and_fails_with_the_last_one(self) -> None:
        runs = iter([slow([1], error=Failed()), r.just(2), slow([3], error=Failed())])
        seen: list[int] = []
        with pytest.raises(Failed) as caught:
            await r.defer(lambda: next(runs)).restart(3).for_each(seen.append)
        assert seen == [1, 2, 3]
        assert "attempt 1: Failed()\n    attempt 2: completed" in caught.value.__notes__[-1]

    async def test_an_error_that_the_policy_does_not_cover_fails_the_flow(self) -> None:
        policy = RetryPolicy(attempts=None, only=OSError)
        with pytest.raises(Failed):
            await r.error(Failed()).restart(policy).run()

    @pytest.mark.virtual_time
    async def test_the_delays_grow_until_an_element_arrives(self) -> None:
        times: list[float] = []
        loop = asyncio.get_running_loop()

        def started() -> Flow[int]:
            times.append(loop.time())
            return r.just(1) if len(times) == 4 else r.empty()

        policy = RetryPolicy(attempts=None, delay=1, jitter=0, reset=True)
        probe = SubscriberProbe[int](MANY).subscribed_to(r.defer(started).restart(policy))
        await asyncio.sleep(9.5)
        probe.cancel()
        assert times == pytest.approx([0, 1, 3, 7, 8])

    @pytest.mark.virtual_time
    async def test_by_default_it_never_ends_and_waits_between_runs(self) -> None:
        runs: list[int] = []

        def source() -> Flow[int]:
            runs.append(1)
            return r.error(OSError("lost"))

        probe = SubscriberProbe[int](MANY).subscribed_to(r.defer(source).restart())
        await asyncio.sleep(3600)
        probe.cancel()
        assert probe.signals == []
        assert 110 < len(runs) < 260  # up to 30 s, shortened by up to a half

    async def test_the_next_run_starts_with_the_next_demand(self) -> None:
        source = PublisherProbe[int]()
        probe = SubscriberProbe[int](1).subscribed_to(r.from_publisher(source).restart(9))
        source.emit(1)
        source.complete()
        assert len(source.subscribers) == 1
        probe.request(1)
        assert len(source.subscribers) == 2
        probe.cancel()


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Repeat": {
        "subscribe again after a completion": "repeat",
        "subscribe again after an error": "retry",
        "subscribe again however it has ended": "restart",
    },
}


async def example_repeat() -> None:
    print(await r.just("tick", "tock").repeat(2).to_list())


async def example_restart() -> None:
    answers = iter([r.just("hello"), r.error(OSError("connection lost")), r.just("hello again")])
    greetings = r.defer(lambda: next(answers)).restart(RetryPolicy(attempts=3, delay=0.1))
    await greetings.for_each(print)
