"""2.13: a subscriber that raises is cancelled and reported once; others are not affected."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from reactive_aio import Flow
from reactive_aio.errors import Interrupted
from reactive_aio.stage import from_pull
from tests.contract.subscribers import BOTH, SHAPES, UNBOUNDED, Acting, Source, flow, tasks, turns

Shape = Callable[[Source], Flow[int]]
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
both = pytest.mark.parametrize("kind", BOTH)


class Wrong(Exception):
    """What a subscriber raises."""


def raises(_: Acting) -> None:
    raise Wrong


@every_shape
@both
@pytest.mark.parametrize("signal", ["on_subscribe", "on_next", "on_complete"])
async def test_a_subscriber_that_raises_is_cancelled_and_reported(
    shape: Shape, kind: type[Acting], signal: str, expects_loop_errors: list[Any]
) -> None:
    source = Source(3)
    subscriber = kind(UNBOUNDED, acts={signal: raises})
    shape(source).subscribe(subscriber)
    await turns(40)
    expected = {"on_subscribe": [], "on_next": [0], "on_complete": [0, 1, 2, "|"]}[signal]
    assert subscriber.signals == expected
    (told,) = expects_loop_errors
    assert isinstance(told["exception"], Wrong)
    assert told["rule"] == "2.13"
    assert signal in told["message"] or signal == "on_complete"
    assert told["flow"]  # the trail of operators
    assert source.closed == source.opened
    assert tasks() == set()


@every_shape
@both
async def test_raising_in_on_error_is_reported(
    shape: Shape, kind: type[Acting], expects_loop_errors: list[Any]
) -> None:
    def fails(x: int) -> int:
        raise ValueError(x)

    source = Source(3)
    subscriber = kind(UNBOUNDED, on_error=raises)
    shape(source).map(fails).subscribe(subscriber)
    await turns(40)
    assert isinstance(subscriber.error, ValueError)
    assert [type(each["exception"]) for each in expects_loop_errors] == [Wrong]
    assert source.closed == source.opened


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


@both
async def test_a_stop_iteration_of_a_subscriber_is_reported(
    kind: type[Acting], expects_loop_errors: list[Any]
) -> None:
    """It must not look like the end of the source, nor like the end of the drain."""

    def stops(_: Acting) -> None:
        raise StopIteration

    subscriber = kind(UNBOUNDED, on_next=stops)
    flow(3).subscribe(subscriber)
    await turns()
    assert subscriber.signals == [0]
    (told,) = expects_loop_errors
    assert isinstance(told["exception"], StopIteration | RuntimeError)


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


async def test_an_error_at_every_point_of_a_source_fails_the_flow() -> None:
    """1.4: in opening it, in its iterator, in its nth element, in its end."""

    class Broken:
        def __init__(self, at: int) -> None:
            self.at = at

        def __iter__(self) -> "Broken":
            return self

        def __next__(self) -> int:
            if self.at == 0:
                raise Wrong
            self.at -= 1
            return self.at

    def broken(at: int) -> Flow[int]:
        return from_pull(lambda: Broken(at), name="broken")

    for at in range(4):
        for chain in (broken(at), broken(at).boundary(2)):
            subscriber = Acting(UNBOUNDED)
            chain.subscribe(subscriber)
            await subscriber.end()
            assert len(subscriber.elements) == at
            assert isinstance(subscriber.error, Wrong)


async def test_a_cancelled_error_of_a_stage_is_not_a_completion() -> None:
    """A mapper whose own work was cancelled: the subscriber receives the error."""

    async def gives_up(x: int) -> int:
        raise asyncio.CancelledError

    for kind in BOTH:
        subscriber = kind(UNBOUNDED)
        flow(3).map_async(gives_up).subscribe(subscriber)
        await turns(20)
        assert isinstance(subscriber.error, Exception)
        assert tasks() == set()
