"""The options of map_async and for_each: keys, attempts, time limits, failures."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest

import reactive_aio as r
from reactive_aio import Flow, RetryPolicy
from reactive_aio.errors import NotAnElement, TimedOut
from tests.operators.streams import slow
from tests.operators.ways import Failed

pytestmark = pytest.mark.virtual_time

Make = Callable[[int], Flow[int]]
MADE: dict[str, Make] = {"pulled": lambda n: r.range(n), "pushed": lambda n: slow(range(n))}
FEEDS = pytest.mark.parametrize("make", MADE.values(), ids=MADE)


def now() -> float:
    return asyncio.get_running_loop().time()


def divmod_list(x: int) -> list[int]:
    return [*divmod(x, 2)]


class Service:
    """Fails the first so many times for an element, and takes a second each time."""

    def __init__(self, failures: dict[int, int]) -> None:
        self._failures = Counter(failures)
        self.calls: list[int] = []
        self.running: Counter[int] = Counter()
        self.most: Counter[int] = Counter()

    async def __call__(self, x: int) -> int:
        self.calls.append(x)
        self.running[x % 2] += 1
        self.most[x % 2] = max(self.most[x % 2], self.running[x % 2])
        try:
            await asyncio.sleep(1)
            if self._failures[x]:
                self._failures[x] -= 1
                raise Failed(x)
            return x
        finally:
            self.running[x % 2] -= 1


class TestKeys:
    @FEEDS
    @pytest.mark.parametrize("ordered", [True, False])
    async def test_one_at_a_time_for_each_key(self, make: Make, ordered: bool) -> None:
        service = Service({})
        began = now()
        flow = make(8).map_async(service, concurrency=8, ordered=ordered, key=lambda x: x % 2)
        assert sorted(await flow.to_list()) == [*range(8)]
        assert service.most == {0: 1, 1: 1}
        assert now() - began == pytest.approx(4)
        assert [x for x in service.calls if x % 2] == [1, 3, 5, 7]

    async def test_a_retried_element_keeps_its_turn(self) -> None:
        service = Service({0: 2})
        flow = r.range(4).map_async(service, concurrency=4, key=lambda x: x % 2, retry=3)
        assert await flow.to_list() == [0, 1, 2, 3]
        assert [x for x in service.calls if not x % 2] == [0, 0, 0, 2]

    async def test_an_unhashable_key_is_named(self) -> None:
        with pytest.raises(TypeError, match=r"map_async: .* cannot be hashed"):
            await r.range(2).map_async(Service({}), key=cast("Any", divmod_list)).run()

    async def test_a_failing_key_fails_the_flow(self) -> None:
        with pytest.raises(ZeroDivisionError):
            await r.range(2).map_async(Service({}), key=lambda x: 1 // x, on_error="skip").run()


class TestRetry:
    @FEEDS
    async def test_only_the_failed_element_is_tried_again(self, make: Make) -> None:
        service = Service({1: 1, 2: 2})
        assert await make(4).map_async(service, concurrency=4, retry=3).to_list() == [0, 1, 2, 3]
        assert Counter(service.calls) == {0: 1, 1: 2, 2: 3, 3: 1}

    async def test_it_waits_as_the_policy_says(self) -> None:
        policy = RetryPolicy(attempts=3, delay=5, jitter=0)
        began = now()
        assert await r.just(0).map_async(Service({0: 2}), retry=policy).to_list() == [0]
        assert now() - began == pytest.approx(3 + 5 + 10)

    async def test_the_last_error_is_raised_with_the_attempts(self) -> None:
        with pytest.raises(Failed) as raised:
            await r.just(7).map_async(Service({7: 9}), retry=2).run()
        notes = "\n".join(raised.value.__notes__)
        assert "attempt 2 failed with this error" in notes
        assert "with the element 7" in notes

    async def test_a_leaving_consumer_cancels_a_wait(self) -> None:
        policy = RetryPolicy(attempts=None, delay=10**6, maximum=10**6, within=10**9)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await r.just(0).map_async(Service({0: 9}), retry=policy).run()


class TestTimeout:
    async def test_each_attempt_has_the_whole_time(self) -> None:
        times = [9.0, 9.0, 1.0]

        async def work(x: int) -> int:
            await asyncio.sleep(times.pop(0))
            return x

        began = now()
        assert await r.just(1).map_async(work, timeout=5, retry=3).to_list() == [1]
        assert now() - began == pytest.approx(11)

    async def test_the_error_says_what_took_too_long(self) -> None:
        async def work(_: int) -> int:
            await asyncio.sleep(9)
            return 1

        with pytest.raises(TimedOut, match=r"map_async: .*work took longer than 5 s"):
            await r.just(1).map_async(work, timeout=5).run()

    async def test_a_timeout_of_the_function_itself_is_not_replaced(self) -> None:
        async def work(_: int) -> int:
            raise TimeoutError("mine")

        with pytest.raises(TimeoutError, match="mine"):
            await r.just(1).map_async(work, timeout=5).run()


class TestOnError:
    @FEEDS
    @pytest.mark.parametrize("concurrency", [1, 4])
    async def test_a_failed_element_is_left_out(self, make: Make, concurrency: int) -> None:
        flow = make(5).map_async(Service({1: 1, 4: 1}), concurrency=concurrency, on_error="skip")
        assert await flow.to_list() == [0, 2, 3]

    @pytest.mark.parametrize("kind", ["plain", "coroutine"])
    async def test_a_handler_receives_the_element_and_the_error(self, kind: str) -> None:
        letters: list[tuple[int, str]] = []

        def plain(x: int, error: Exception) -> None:
            letters.append((x, repr(error)))

        async def awaited(x: int, error: Exception) -> None:
            await asyncio.sleep(1)
            plain(x, error)

        handler: Any = plain if kind == "plain" else awaited
        flow = r.range(5).map_async(Service({3: 9}), concurrency=2, retry=2, on_error=handler)
        assert await flow.to_list() == [0, 1, 2, 4]
        assert letters == [(3, "Failed(3)")]

    async def test_a_failing_handler_fails_the_flow(self) -> None:
        def handler(_x: int, _error: Exception) -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError) as raised:
            await r.range(5).map_async(Service({3: 9}), on_error=handler).run()
        assert isinstance(raised.value.__context__, Failed)

    async def test_a_function_of_the_wrong_kind_is_not_left_out(self) -> None:
        function: Any = str
        with pytest.raises(TypeError, match="use map for a plain function"):
            await r.range(3).map_async(function, on_error="skip").run()

        async def nothing(_: int) -> None: ...

        with pytest.raises(NotAnElement, match="map_async"):
            await r.range(3).map_async(nothing, on_error="skip").run()

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ({"on_error": "ignore"}, "on_error must be 'fail', 'skip' or a function"),
            ({"on_error": divmod_list}, "on_error is called with 2 arguments"),
            ({"limiter": 3}, "limiter must be a Limit"),
            ({"limiter": r.RateLimit}, "not the class RateLimit; make one of it"),
            ({"timeout": 0}, "timeout must be more than 0"),
            ({"retry": "3"}, "policy must be a RetryPolicy or an int"),
            ({"key": 3}, "key must be a function"),
        ],
    )
    def test_wrong_arguments_are_refused(self, arguments: dict[str, Any], words: str) -> None:
        with pytest.raises((TypeError, ValueError), match=words):
            r.just(1).map_async(Service({}), **arguments)


class TestForEach:
    async def test_it_returns_the_number_of_successes(self) -> None:
        letters: list[int] = []
        count = await r.range(9).for_each(
            Service({2: 1, 5: 9}),
            concurrency=3,
            key=lambda x: x,
            retry=2,
            timeout=60,
            on_error=lambda x, _: letters.append(x),
        )
        assert (count, letters) == (8, [5])

    async def test_a_plain_function_may_fail_as_well(self) -> None:
        assert await r.range(4).for_each(lambda x: 1 // x, on_error="skip") == 3

    async def test_an_error_is_raised_with_the_element(self) -> None:
        with pytest.raises(Failed) as raised:
            await r.range(4).for_each(Service({2: 9}), concurrency=2, retry=2)
        assert "with the element 2" in "\n".join(raised.value.__notes__)


async def test_nothing_is_left_of_a_cancelled_flow() -> None:
    ended: list[int] = []

    async def work(x: int) -> int:
        try:
            await asyncio.sleep(100)
        finally:
            ended.append(x)
        return x

    def run() -> Coroutine[Any, Any, None]:
        return r.range(9).map_async(work, concurrency=3, key=lambda _: 1, on_error="skip").run()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(5):
            await run()
    assert ended == [0]
