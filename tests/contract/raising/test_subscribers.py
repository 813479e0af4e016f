"""2.13: a subscriber that raises is cancelled and reported once; others are not affected."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from reactive_aio import from_aiter
from reactive_aio.errors import Interrupted
from reactive_aio.stage import FlowSubscription, from_pull
from tests.contract.raising.code import Code
from tests.contract.raising.expected import check_nothing_is_left
from tests.contract.raising.kinds import KINDS, QUIET
from tests.contract.raising.observe import Outcome, observe
from tests.contract.subscribers import (
    BOTH,
    SHAPES,
    UNBOUNDED,
    Acting,
    AsyncActing,
    Source,
    flow,
    itself,
    pushed,
    turns,
)
from tests.harness.loops import REAL_LOOPS
from tests.harness.one_run import in_one_run
from tests.harness.pairs import each_pair

both = pytest.mark.parametrize("kind", BOTH)


class Wrong(Exception):
    """What a subscriber raises."""


def raises(_: Acting) -> None:
    raise Wrong


SIGNALS: Final[Mapping[str, list[Any]]] = {
    "on_subscribe": [],
    "on_next": [0],
    "on_complete": [0, 1, 2, "|"],
    "on_error": [-1, ZeroDivisionError],
}
"""What a subscriber has received when the signal raises."""


REPORTED: Final = [
    kind for kind in QUIET if kind not in ("`GeneratorExit`", "own `CancelledError`")
]
"""What every subscriber may raise: of a coroutine function, the others are not reported yet."""
METHODS: Final = {f"{name} of {kind.__name__}": (name, kind) for kind in BOTH for name in SIGNALS}


@in_one_run
@each_pair(method=METHODS, shape=SHAPES, kind=REPORTED, loop=REAL_LOOPS)
def test_a_subscriber_that_raises_is_cancelled_and_reported(
    method: str, shape: str, kind: str, loop: str
) -> None:
    signal, subscriber = METHODS[method]
    source = Source(3)
    expected = KINDS[kind]

    def make(_: Code) -> Any:
        made = SHAPES[shape](source)
        return made.map(lambda x: 1 // (x - 1)) if signal == "on_error" else made

    async def receive(flow: Any, outcome: Outcome) -> None:
        outcome.probe = subscriber(UNBOUNDED, acts={signal: lambda _: outcome.code.fails()})
        flow.subscribe(outcome.probe)
        await turns(40)

    outcome = observe(make, receive, expected.make, REAL_LOOPS[loop])
    assert outcome.probe is not None
    received = outcome.probe.signals
    signals = [type(each) if isinstance(each, Exception) else each for each in received]
    assert signals == SIGNALS[signal]
    (told,) = outcome.contexts
    assert isinstance(told["exception"], (type(expected.make()), *expected.received))
    assert told["rule"] == "2.13"
    assert signal in told["message"] or "terminal signal" in told["message"]
    assert told["flow"]  # the trail of operators
    assert source.closed == source.opened
    check_nothing_is_left(outcome)


@pytest.mark.parametrize(
    ("signal", "error"),
    [
        ("on_subscribe", asyncio.CancelledError),
        ("on_next", GeneratorExit),
        ("on_complete", asyncio.CancelledError),
    ],
)
async def test_what_looks_like_the_end_of_a_coroutine_function_is_reported(
    signal: str, error: type[BaseException], expects_loop_errors: list[Any]
) -> None:
    code = Code(error)
    subscriber = AsyncActing(UNBOUNDED, acts={signal: lambda _: code.fails()})
    from_aiter(code.numbers).take(3).subscribe(subscriber)
    await turns(40)
    assert [type(each["exception"]) for each in expects_loop_errors] == [error]


@pytest.mark.parametrize("error", [asyncio.CancelledError, GeneratorExit])
@pytest.mark.parametrize("signal", SIGNALS)
async def test_what_looks_like_the_end_of_a_function_is_reported(
    signal: str, error: type[BaseException], expects_loop_errors: list[Any]
) -> None:
    for shape in SHAPES.values():
        subscriber = Acting(UNBOUNDED, acts={signal: lambda _: Code(error).fails()})
        made = shape(Source(3))
        made = made.map(lambda x: 1 // (x - 1)) if signal == "on_error" else made
        made.subscribe(subscriber)
        await turns(40)
        (told,) = expects_loop_errors
        assert isinstance(told["exception"], (error, Interrupted, RuntimeError))
        expects_loop_errors.clear()


@both
async def test_raising_does_not_affect_the_caller_of_request(
    kind: type[Acting], expects_loop_errors: list[Any]
) -> None:
    """3.16: request() returns normally, and upstream receives no signal for it."""
    seen: list[int] = []

    def look(x: int) -> int:
        seen.append(x)
        return x

    subscriber = kind(on_next=raises)
    flow(9).map(look).boundary(3).subscribe(subscriber)
    await turns()
    subscriber.request(5)
    await turns(20)
    assert subscriber.signals == [0]
    assert len(expects_loop_errors) == 1
    assert len(seen) <= 3


async def test_a_subscriber_that_raises_does_not_affect_others(
    expects_loop_errors: list[Any],
) -> None:
    chain = flow(5).boundary(2)
    bad, good = Acting(UNBOUNDED, on_next=raises), Acting(UNBOUNDED)
    chain.subscribe(bad)
    chain.subscribe(good)
    await good.end()
    assert good.elements == [0, 1, 2, 3, 4]
    assert bad.signals == [0]
    assert len(expects_loop_errors) == 1


async def test_raising_after_cancel_is_reported(expects_loop_errors: list[Any]) -> None:
    def both_ways(self: Acting) -> None:
        self.cancel()
        raise Wrong

    for kind in BOTH:
        subscriber = kind(UNBOUNDED, on_next=both_ways)
        flow(3).subscribe(subscriber)
        await turns()
        assert subscriber.signals == [0]
    assert [type(each["exception"]) for each in expects_loop_errors] == [Wrong, Wrong]


async def test_a_program_stopping_error_is_raised_and_the_source_is_released() -> None:
    def stops(_: Acting) -> None:
        raise SystemExit(3)

    source = Source()
    subscriber = Acting(on_next=stops)
    source.pull().subscribe(subscriber)
    with pytest.raises(SystemExit):
        subscriber.request(3)
    assert subscriber.signals == [0]
    assert source.closed == 1


async def test_a_program_stopping_error_of_a_cleanup_takes_the_place_of_the_completion() -> None:
    def numbers() -> Iterator[int]:
        try:
            yield 1
        finally:
            raise SystemExit(3)

    subscriber = Acting(2)
    with pytest.raises(SystemExit):
        from_pull(numbers, name="numbers").take(1).subscribe(subscriber)
    assert subscriber.elements == [1]
    assert isinstance(subscriber.error, Interrupted)


class Stopping(FlowSubscription):
    """Stops the program in its first request."""

    def __init__(self, _: object) -> None: ...

    def request(self, n: int, /) -> None:
        raise SystemExit(3)

    def cancel(self) -> None: ...


def stops_at_once(*_: object) -> Any:
    raise SystemExit(3)


@pytest.mark.parametrize(
    "chain",
    [
        from_pull(stops_at_once, name="stops"),
        pushed(stops_at_once),
        pushed(Stopping),
        pushed(Stopping).map_async(itself),
        flow().do_on_request(stops_at_once),
    ],
    ids=["opening", "opening what pushes", "request", "request of a task", "do_on_request"],
)
def test_a_program_stopping_error_of_a_source_is_raised_and_received(chain: Any) -> None:
    subscriber = Acting()

    async def main() -> None:
        chain.subscribe(subscriber)
        subscriber.request(1)
        await turns()

    with pytest.raises(SystemExit):
        asyncio.run(main())
    assert [type(signal) for signal in subscriber.signals] == [Interrupted]


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_program_stopping_error_in_a_task_reaches_the_subscriber_as_interrupted(
    concurrency: int,
) -> None:
    async def stops(x: int) -> int:
        raise SystemExit(3)

    source = Source()
    subscriber = Acting(3)

    async def main() -> None:
        source.pull().map_async(stops, concurrency=concurrency).subscribe(subscriber)
        await asyncio.sleep(3600)

    with pytest.raises(SystemExit):
        asyncio.run(main())
    assert [type(signal) for signal in subscriber.signals] == [Interrupted]
    assert isinstance(subscriber.signals[0].__cause__, SystemExit)
    assert source.closed == 1
