"""on_error_*, retry: caught and mapped errors, carried demand, giving up."""

# Where a Publisher is expected of a lambda, pyright does not infer the types of these calls.
# pyright: reportUnknownLambdaType=false

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import pytest

import reactive_aio as r
from reactive_aio import Flow, Publisher, RetryPolicy
from reactive_aio.errors import NotAnElement
from reactive_aio.testing import PublisherProbe, SubscriberProbe
from tests.cases import Identities, Needs
from tests.operators.streams import MANY, slow
from tests.operators.ways import Failed, Sample, in_every_way


class Flaky:
    """Fails after its elements for a number of attempts, then completes."""

    def __init__(self, failures: int, elements: range = range(2)) -> None:
        self.failures = failures
        self.elements = elements
        self.attempts: list[float] = []

    async def __aiter__(self) -> AsyncIterator[int]:
        self.attempts.append(asyncio.get_running_loop().time())
        for element in self.elements:
            yield element
        if len(self.attempts) <= self.failures:
            raise Failed(len(self.attempts))


def once() -> Flow[int]:
    """An empty flow that fails the first time."""
    return r.from_aiter(Flaky(1, range(0)))


OF_LENGTH: Mapping[str, Callable[[int], Publisher[object]]] = {
    # An instance would keep the frames that it was raised in, from CPython 3.13 on all of them.
    "on_error_resume": lambda n: r.error(Failed).on_error_resume(r.range(n)),
    "on_error_resume: function": lambda n: r.error(Failed).on_error_resume(lambda _: range(n)),
    "on_error_resume: asynchronous": lambda n: slow(range(n // 2), error=Failed()).on_error_resume(
        slow(range(n // 2, n))
    ),
    "on_error_return: not needed": lambda n: r.range(n).on_error_return(1),
    "on_error_return": lambda n: slow(range(n)).on_error_return(1),
    "on_error_complete": lambda n: slow(range(n), error=Failed()).on_error_complete(),
    "on_error_map": lambda n: r.range(n).on_error_map(lambda _: Failed()),
    "retry": lambda n: r.range(n).retry(),
    "retry: asynchronous": lambda n: slow(range(n)).retry(2),
    "retry: second attempt": lambda n: once().concat_with(r.range(n)).retry(2),
}

FAILING: Mapping[str, Callable[[], Publisher[object]]] = {
    "on_error_resume": lambda: r.error(Failed()).on_error_resume(r.error(KeyError())),
    "on_error_resume: function": lambda: r.error(Failed()).on_error_resume(lambda _: [1 // 0]),
    "on_error_return": lambda: r.error(Failed()).on_error_return(1, only=KeyError),
    "on_error_complete": lambda: r.error(Failed()).on_error_complete(only=KeyError),
    "on_error_map": lambda: slow([1], error=Failed()).on_error_map(lambda _: KeyError()),
    "retry": lambda: r.error(Failed()).retry(3),
    "retry: asynchronous": lambda: slow([1], error=Failed()).retry(2),
}

INFINITE: Mapping[str, Callable[[], Publisher[object]]] = {
    "on_error_resume": lambda: r.error(Failed()).on_error_resume(
        r.generate(lambda x: (x, x + 1), 0)
    ),
    "on_error_return": lambda: r.generate(lambda x: (x, x + 1), 0).on_error_return(0),
    "on_error_complete": lambda: r.generate(lambda x: (x, x + 1), 0).on_error_complete(),
    "on_error_map": lambda: r.generate(lambda x: (x, x + 1), 0).on_error_map(lambda _: Failed()),
    "retry": lambda: r.generate(lambda x: (x, x + 1), 0).boundary(4).retry(),
}

IDENTITIES: Identities = {
    "on_error_resume": lambda up: up.on_error_resume(r.just(-1), only=KeyError),
    "on_error_return": lambda up: up.on_error_return(-1, only=KeyError),
    "on_error_complete": lambda up: up.on_error_complete(only=KeyError),
    "on_error_map": lambda up: up.on_error_map(lambda error: error),
    "retry": lambda up: up.retry(RetryPolicy(only=KeyError)),
}


class TestResume:
    async def test_the_remaining_demand_is_requested_of_the_fallback(self) -> None:
        source, other = PublisherProbe[int](), PublisherProbe[int]()
        flow = r.from_publisher(source).on_error_resume(other)
        probe = SubscriberProbe[int](5).subscribed_to(flow)
        source.emit(1, 2)
        source.fail(Failed())
        assert other.requested == 3
        other.emit(3)
        other.complete()
        assert probe.signals == [1, 2, 3, "|"]

    @pytest.mark.parametrize("is_async", [False, True])
    async def test_a_fallback_that_fails_shows_the_first_error(self, is_async: bool) -> None:
        def failing(error: Exception) -> Flow[int]:
            return slow([1], error=error) if is_async else r.just(1).concat_with(r.error(error))

        first = Failed()
        flow = failing(first).on_error_resume(failing(KeyError("other")))
        probe = SubscriberProbe[int](5).subscribed_to(flow)
        await probe.end()
        assert isinstance(probe.error, KeyError)
        assert probe.error.__context__ is first

    async def test_a_function_may_raise_the_error_itself(self) -> None:
        first = Failed()

        def fallback(error: BaseException) -> list[int]:
            raise error

        with pytest.raises(Failed) as caught:
            await r.error(first).on_error_resume(fallback).to_list()
        assert caught.value is first
        assert first.__context__ is not first

    async def test_errors_that_are_raised_again_and_again_do_not_collect_others(self) -> None:
        flow = r.error(lambda: Failed(object())).on_error_resume(r.error(KeyError("shared")))
        contexts: list[BaseException | None] = []
        for _ in range(3):
            with pytest.raises(KeyError) as caught:
                await flow.to_list()
            first = caught.value.__context__
            assert isinstance(first, Failed)
            assert first.__context__ is None
            contexts.append(first)
        assert len(set(contexts)) == 3

    async def test_a_function_that_raises_fails_the_flow_and_shows_the_first_error(self) -> None:
        flow = r.error(Failed()).on_error_resume(lambda _: [1 // 0])
        probe = SubscriberProbe[int](5).subscribed_to(flow)
        await probe.end()
        assert isinstance(probe.error, ZeroDivisionError)
        assert isinstance(probe.error.__context__, Failed)

    async def test_synchronous_sources_stay_one_island(self) -> None:
        flow = r.error(Failed()).on_error_resume(r.just(1))
        assert flow.chain.is_pullable
        assert flow.bound().total == 0

    def test_arguments(self) -> None:
        with pytest.raises(NotAnElement):
            r.just(1).on_error_return(None)
        with pytest.raises(TypeError, match="only must be"):
            r.just(1).on_error_resume([1], only="no")  # type: ignore[arg-type]


OTHERS: list[Callable[[Flow[int]], Flow[int]]] = [
    lambda flow: flow.on_error_resume([7], only=(KeyError, OSError)),
    lambda flow: flow.on_error_map(lambda _: OSError(), only=KeyError),
]


@pytest.mark.parametrize("change", OTHERS, ids=["on_error_resume", "on_error_map"])
async def test_an_error_of_another_type_is_passed_on(
    change: Callable[[Flow[int]], Flow[int]],
) -> None:
    await in_every_way(Sample(change, [1], [1, Failed], fails=True))


class TestMap:
    async def test_the_first_error_is_the_cause(self) -> None:
        first = Failed("x")
        with pytest.raises(OSError, match="y") as raised:
            await r.error(first).on_error_map(lambda _: OSError("y")).run()
        assert raised.value.__cause__ is first

    async def test_what_the_function_raises_fails_the_flow(self) -> None:
        with pytest.raises(ZeroDivisionError) as raised:
            await r.error(Failed()).on_error_map(lambda _: 1 // 0).run()  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType]
        assert isinstance(raised.value.__context__, Failed)

    async def test_what_is_not_an_exception_is_refused(self) -> None:
        flow = r.error(Failed()).on_error_map(lambda _: "no")  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType]
        with pytest.raises(TypeError, match="returned str, not an Exception"):
            await flow.run()

    def test_a_coroutine_function_is_refused(self) -> None:
        async def mapper(error: BaseException) -> Exception:
            return OSError(str(error))

        with pytest.raises(TypeError, match="on_error_map"):
            r.just(1).on_error_map(mapper)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@pytest.mark.virtual_time
class TestRetry:
    async def test_the_delay_between_attempts_grows(self) -> None:
        source = Flaky(3)
        policy = RetryPolicy(attempts=4, delay=1, factor=2, jitter=0)
        assert await r.from_aiter(source).retry(policy).to_list(limit=9) == [0, 1] * 4
        assert source.attempts == pytest.approx([0, 1, 3, 7])

    async def test_giving_up_reports_all_attempts(self) -> None:
        flow = r.from_aiter(Flaky(9, range(0))).retry(3)
        probe = SubscriberProbe[int](1).subscribed_to(flow)
        await probe.end()
        assert isinstance(probe.error, Failed)
        assert probe.error.args == (3,)
        assert probe.error.__notes__[-1].splitlines() == [
            "retry: attempt 3 failed with this error, after 0 s",
            "    attempt 1: Failed(1)",
            "    attempt 2: Failed(2)",
        ]

    async def test_an_attempt_that_fails_otherwise_ends_it_with_the_attempts_before(self) -> None:
        errors = iter([Failed(1), OSError("gone")])

        def fails() -> int:
            raise next(errors)

        flow = r.from_callable(fails).retry(RetryPolicy(only=Failed, attempts=9))
        with pytest.raises(OSError, match="gone") as caught:
            await flow.to_list()
        assert "attempt 1: Failed(1)" in "\n".join(caught.value.__notes__)

    async def test_an_error_that_is_not_covered_is_passed_on_unchanged(self) -> None:
        flow = r.from_aiter(Flaky(9)).retry(RetryPolicy(only=KeyError))
        probe = SubscriberProbe[int](9).subscribed_to(flow)
        assert type((await probe.end())[-1]) is Failed

    async def test_the_remaining_demand_is_carried_over_exactly(self) -> None:
        source = PublisherProbe[int]()
        flow = r.from_publisher(source).retry(RetryPolicy(delay=1, jitter=0))
        probe = SubscriberProbe[int](5).subscribed_to(flow)
        source.emit(1, 2)
        source.fail(Failed())
        probe.request(1)
        await asyncio.sleep(2)
        assert source.requests == [5, 4]

    async def test_every_subscription_has_its_own_attempts(self) -> None:
        made: list[Flaky] = []

        def make() -> Flaky:
            made.append(Flaky(2, range(1)))
            return made[-1]

        flow = r.defer(make).retry(2)
        for _ in range(2):
            probe = SubscriberProbe[int](9).subscribed_to(flow)
            error = (await probe.end())[-1]
            assert isinstance(error, Failed)
            assert any(note.startswith("retry: attempt 2") for note in error.__notes__)
        assert len(made) == 4

    async def test_the_time_budget_limits_all_attempts(self) -> None:
        source = Flaky(99, range(0))
        policy = RetryPolicy(attempts=None, delay=1, factor=1, jitter=0, within=4.5)
        probe = SubscriberProbe[int](1).subscribed_to(r.from_aiter(source).retry(policy))
        await probe.end()
        assert source.attempts == pytest.approx([0, 1, 2, 3, 4])

    async def test_with_reset_an_element_resets_the_attempts(self) -> None:
        source = Flaky(6, range(1))
        flow = r.from_aiter(source).retry(RetryPolicy(attempts=2, reset=True))
        assert await flow.count() == 7

    async def test_cancelling_while_it_waits_starts_no_other_attempt(self) -> None:
        source = Flaky(9)
        flow = r.from_aiter(source).retry(RetryPolicy(delay=10, jitter=0))
        probe = SubscriberProbe[int](9).subscribed_to(flow)
        await asyncio.sleep(1)
        probe.cancel()
        await asyncio.sleep(100)
        assert len(source.attempts) == 1

    async def test_many_attempts_in_a_row_do_not_recurse(self) -> None:
        probe = SubscriberProbe[int](MANY).subscribed_to(r.error(Failed()).retry(3000))
        await probe.end()
        assert isinstance(probe.error, Failed)
        [_, note] = probe.error.__notes__
        assert len(note.splitlines()) == 11
        assert "attempt 3000 failed" in note


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Errors": {
        "subscribe again, with delays": "retry",
        "continue with another source": "on_error_resume",
        "end with a last element": "on_error_return",
        "end as if nothing had failed": "on_error_complete",
        "raise another error": "on_error_map",
        "skip an element whose work fails": "map_async for_each",
    },
}


async def example_on_error_resume() -> None:
    numbers = r.just("1", "2", "x").map(int)
    print(await numbers.on_error_resume([0]).to_list())


async def example_on_error_return() -> None:
    numbers = r.just("1", "x", "3").map(int)
    print(await numbers.on_error_return(-1).to_list())


async def example_on_error_map() -> None:
    numbers = r.just("x").map(int)
    try:
        await numbers.on_error_map(lambda error: RuntimeError("not a number")).run()
    except RuntimeError as error:
        print(error, "because:", error.__cause__)


async def example_on_error_complete() -> None:
    numbers = r.just("1", "x", "3").map(int)
    print(await numbers.on_error_complete(only=ValueError).to_list())


async def example_retry() -> None:
    attempts = iter([1, 2, 3])

    def ask() -> str:
        attempt = next(attempts)
        if attempt < 3:
            raise OSError("busy")
        return f"answered at attempt {attempt}"

    policy = r.RetryPolicy(attempts=5, delay=0.1, only=OSError)
    print(await r.from_callable(ask).retry(policy).to_list())
