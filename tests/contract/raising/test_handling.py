"""An error of a cleanup is no failure of the work: nothing handles it, and it is told once."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

import pytest

import reactive_aio as r
from reactive_aio.errors import Interrupted
from tests.contract.raising.code import Code
from tests.contract.raising.consumers import CONSUMERS, leave
from tests.contract.raising.expected import check_nothing_is_left
from tests.contract.raising.observe import Outcome, observe
from tests.contract.raising.places import FLOWS
from tests.contract.subscribers import tasks
from tests.harness.one_run import in_one_run
from tests.harness.pairs import each_pair


class CleanupError(Exception):
    """Of a ``finally`` clause."""


Apply = Callable[[Any], Any]
SOURCES: Final = ("iterable", "asynchronous", "boundary", "flat_map")
HANDLING: Final[Mapping[str, Apply]] = {
    "retry": lambda flow: flow.retry(3),
    "restart": lambda flow: flow.restart(1),
    "on_error_resume": lambda flow: flow.on_error_resume([-1]),
    "on_error_resume, asynchronously": lambda flow: flow.on_error_resume(lambda _: [-1]),
    "on_error_return": lambda flow: flow.on_error_return(-1),
    "on_error_map": lambda flow: flow.on_error_map(lambda _: KeyError("mapped")),
    "on_error_complete": lambda flow: flow.on_error_complete(),
    "concat": lambda flow: flow.concat_with([2]),
    "zip": lambda flow: flow.zip_with([1, 2]).map(lambda pair: pair[0]),
    "merge": lambda flow: flow.merge_with([2]),
    "switch_if_empty": lambda flow: flow.filter(lambda _: False).switch_if_empty([1]),
    "flat_map": lambda flow: r.just(0).flat_map(lambda _: flow),
    "named": lambda flow: flow.name("cleanup"),
}
ENDING_EARLY: Final[Mapping[str, Apply]] = {
    "take": lambda flow: flow.take(1),
    "take_while": lambda flow: flow.take_while(lambda x: x < 2),
    "take_until": lambda flow: flow.take(1).take_until(r.never()),
    "zip": lambda flow: flow.zip_with([0]).map(lambda pair: pair[0]),
    "merge": lambda flow: flow.take(1).merge_with(r.empty()),
}
LEAVING: Final[Mapping[str, Apply]] = {
    **ENDING_EARLY,
    "nothing": lambda flow: flow,
    "take, do_finally": lambda flow: flow.take(1).do_finally(lambda _: None),
    "take, share": lambda flow: flow.take(1).share(),
    "share": lambda flow: flow.share(),
    "take, replay": lambda flow: flow.take(1).replay(1),
    "take, cache": lambda flow: flow.take(1).cache(),
    "take, boundary": lambda flow: flow.take(1).boundary(2),
    "pairs": lambda flow: flow.zip_with([0]),
    "window": lambda flow: flow.window(2).take(1),
    "windows": lambda flow: flow.window(2).flat_map(lambda window: window).take(1),
    "group_by": lambda flow: (
        flow.group_by(lambda x: x % 2, max_groups=4).flat_map(lambda group: group).take(1)
    ),
    "flat_map": lambda flow: flow.flat_map(lambda x: [x]).take(1),
    "in flat_map": lambda flow: r.just(1).flat_map(lambda _: flow).take(1),
    "taken in flat_map": lambda flow: r.just(1).flat_map(lambda _: flow.take(1)),
    "concat_map": lambda flow: r.just(1).concat_map(lambda _: flow.take(1)),
    "switch_map": lambda flow: r.just(1).switch_map(lambda _: flow.take(1)),
    "merge": lambda flow: flow.take(1).merge_with([1]),
    "element_at": lambda flow: flow.take(2).skip(1),
    "first": lambda flow: r.from_awaitable(flow.first),
    "any": lambda flow: r.from_awaitable(lambda: flow.any(lambda x: x == 1)),
    "all": lambda flow: r.from_awaitable(lambda: flow.all(lambda x: x == 2)),
    "with_latest_from": lambda flow: flow.take(1).with_latest_from(r.just(1)),
}


def told(outcome: Outcome) -> list[BaseException]:
    """The errors that were raised or reported."""
    return [*outcome.reported, *([outcome.end] if isinstance(outcome.end, BaseException) else [])]


@in_one_run
@each_pair(source=SOURCES, handling=HANDLING, early=ENDING_EARLY)
def test_nothing_handles_it_as_a_failure_of_the_flow(
    source: str, handling: str, early: str
) -> None:
    received: list[Any] = []

    async def run(flow: Any, _: Outcome) -> None:
        await flow.do_on_next(received.append).run()

    outcome = observe(
        lambda code: HANDLING[handling](ENDING_EARLY[early](FLOWS[source](code.failing_cleanup))),
        run,
        CleanupError,
    )
    assert sorted(received) in ([1], [1, 2])
    assert outcome.code.opened == 1
    assert [type(each) for each in told(outcome)] == [CleanupError]


@in_one_run
@pytest.mark.parametrize("leaving", LEAVING)
def test_it_is_told_when_a_flow_is_left_by_break(leaving: str) -> None:
    for source in SOURCES:
        outcome = observe(
            lambda code: LEAVING[leaving](FLOWS[source](code.failing_cleanup)),  # noqa: B023
            leave,
            CleanupError,
        )
        errors = [type(each) for each in told(outcome)]
        assert errors == [CleanupError] * outcome.code.opened, source
        check_nothing_is_left(outcome)


@pytest.mark.parametrize("below", ["boundary", "group_by", "window_timeout"])
async def test_no_function_is_told_of_it_as_a_failure_when_the_flow_is_cancelled(
    below: str,
) -> None:
    """The loop of an asynchronous source has a task, in which the cleanup raises."""
    leave: Mapping[str, Apply] = {
        "boundary": lambda flow: flow.boundary(2),
        "group_by": lambda flow: flow.group_by(bool).flat_map(lambda group: group),
        "window_timeout": lambda flow: flow.window_timeout(2, 5).flat_map(lambda window: window),
    }
    told, ended = list[BaseException](), list[str]()

    def mapped(error: BaseException) -> Exception:
        told.append(error)
        return KeyError("mapped")

    source = r.from_aiter(Code(CleanupError).failing_cleanup).on_error_map(mapped)
    flow = leave[below](source.do_on_error(told.append).do_finally(ended.append))
    with pytest.raises(CleanupError):
        await flow.take(1).to_list()
    assert told == []
    assert ended == ["cancelled"]


# -- when the cleanup runs -------------------------------------------------------------------------
def fails(x: int) -> int:
    return 1 // (2 - x)


ENDING: Final[Mapping[str, Apply]] = {
    "map": lambda flow: flow.map(fails),
    "before concat": lambda flow: flow.map(fails).concat_with([1]),
    "after concat": lambda flow: flow.concat_with([1]).map(fails),
    "merge": lambda flow: flow.merge_with([5, 2]).map(fails),
    "zip": lambda flow: flow.zip_with([5, 2]).map(lambda pair: fails(pair[0])),
    "flat_map": lambda flow: flow.map(fails).flat_map(lambda x: [x]),
    "in flat_map": lambda flow: r.range(2).flat_map(lambda _: flow.map(fails)),
    "boundary": lambda flow: flow.map(fails).boundary(2),
    "map_async": lambda flow: flow.map(fails).map_async(lambda x: asyncio.sleep(0, x)),
    "workers": lambda flow: flow.map(fails).map_async(lambda x: asyncio.sleep(0, x), concurrency=3),
    "from_aiter": lambda flow: r.from_aiter(flow.map(fails).stream()),
    "on_error_resume": lambda flow: (
        flow.map(fails).on_error_resume([0.5]).map(lambda x: 1 / (x - 0.5))
    ),
}


@each_pair(ending=ENDING, consumer=CONSUMERS)
async def test_a_generator_is_closed_while_the_error_that_ended_its_flow_is_kept(
    ending: str, consumer: str
) -> None:
    code = Code(CleanupError)
    gc.disable()
    try:
        with pytest.raises(ZeroDivisionError) as kept:
            await CONSUMERS[consumer](ENDING[ending](r.from_iterable(code.numbers)), Outcome(code))
        await asyncio.sleep(0)
        assert code.opened == code.closed == 1
        assert kept.value.__traceback__ is not None
    finally:
        gc.enable()


TERMINAL: Final[Mapping[str, Apply]] = {
    "to_list": lambda flow: flow.to_list(),
    "for_each": lambda flow: flow.for_each(lambda _: None),
    "first": lambda flow: flow.first(),
    "count": lambda flow: flow.boundary(2).count(),
}


@pytest.mark.parametrize("terminal", TERMINAL)
async def test_a_cancelled_terminal_operator_waits_for_the_cleanup(terminal: str) -> None:
    log: list[str] = []
    begun = asyncio.Event()

    async def source() -> AsyncIterator[int]:
        try:
            begun.set()
            await asyncio.Event().wait()
            yield 1
        finally:
            await asyncio.sleep(0.001)
            log.append("closed")

    consumer = asyncio.ensure_future(TERMINAL[terminal](r.from_aiter(source)))
    await begun.wait()
    consumer.cancel()
    await asyncio.wait([consumer])
    assert consumer.cancelled()
    assert log == ["closed"]
    assert tasks() == set()


HANDLED: dict[str, tuple[Callable[[r.Flow[Any]], r.Flow[Any]], list[object]]] = {
    "on_error_return": (lambda flow: flow.on_error_return("kept"), ["kept"]),
    "on_error_resume": (lambda flow: flow.on_error_resume(["kept"]), ["kept"]),
    "of a function": (lambda flow: flow.on_error_resume(lambda _: ["kept"]), ["kept"]),
    "on_error_complete": (lambda flow: flow.on_error_complete(), []),
    "only": (lambda flow: flow.on_error_return("kept", only=Interrupted), ["kept"]),
}


@in_one_run
@pytest.mark.parametrize("is_read", [False, True])
@pytest.mark.parametrize("operator", HANDLED)
async def test_an_operator_handles_a_cancelled_error_of_a_function(
    operator: str, is_read: bool
) -> None:
    def raises(_: object) -> Any:
        raise asyncio.CancelledError("of its own")

    handle, expected = HANDLED[operator]
    for flow in (
        r.just(1).map(raises),
        r.just(1).boundary(2).map(raises),
        r.just(1).filter(raises),
    ):
        handled = handle(flow)
        found = [x async for x in handled] if is_read else await handled.to_list()
        assert found == expected
