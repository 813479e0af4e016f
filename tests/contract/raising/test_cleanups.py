"""Errors of a cleanup are raised to the consumer that awaits it, and are reported otherwise.

The first error wins: what a cleanup raises replaces neither the failure of the flow nor a
cancellation.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pytest

import reactive_aio as r
from reactive_aio.errors import Interrupted, show_elements
from reactive_aio.testing import PublisherProbe, SubscriberProbe
from tests.contract.raising.code import Code
from tests.contract.raising.consumers import AWAITING, NOT_AWAITING, iterate
from tests.contract.raising.expected import (
    check_nothing_is_left,
    check_raised_by_cleanup,
    check_reported,
)
from tests.contract.raising.kinds import KINDS, QUIET
from tests.contract.raising.observe import Consume, Outcome, observe
from tests.contract.raising.places import CLEANUPS, FLOWS, Place, quiet
from tests.contract.subscribers import turns
from tests.harness.loops import REAL_LOOPS
from tests.harness.one_run import in_one_run
from tests.harness.pairs import each_pair

Reports = list[dict[str, Any]]


class CleanupError(Exception):
    """Of a ``finally`` clause."""


BETWEEN: Final[Mapping[str, Callable[[Any], Any]]] = {
    "nothing": lambda flow: flow,
    "boundary": lambda flow: flow.boundary(2),
    "boundary in a task": lambda flow: flow.boundary(2).map_async(lambda x: asyncio.sleep(0, x)),
    "merge": lambda flow: flow.merge_with(r.never(), prefetch=1),
    "concat": lambda flow: flow.concat_with(r.never()),
    "retry": lambda flow: flow.retry(2),
    "flat_map": lambda flow: r.just(0).flat_map(lambda _: flow),
    "using": lambda flow: r.using(lambda: contextlib.nullcontext(1), lambda _: flow),
}
"""What is between the cleanup and the consumer."""


async def fail_in_the_body(flow: Any, _: Outcome) -> None:
    async with flow.stream() as elements:
        async for _ in elements:
            raise KeyError("the body")


def fails_at_once(_: object) -> int:
    raise KeyError("a stage")


FAILING: Final[Mapping[str, Consume]] = {
    "a stage": lambda flow, _: flow.map(fails_at_once).to_list(),
    "a later stage": lambda flow, _: flow.boundary(2).map(fails_at_once).to_list(),
    "the body of async with": fail_in_the_body,
}


async def cancelled_when(begun: asyncio.Event, consuming: Coroutine[Any, Any, object]) -> None:
    consumer = asyncio.ensure_future(consuming)
    await begun.wait()
    consumer.cancel()
    await asyncio.wait([consumer])
    assert consumer.cancelled()


async def cancelled_in_a_call(flow: Any, _: Outcome) -> None:
    begun = asyncio.Event()

    async def wait(_: int) -> None:
        begun.set()
        await asyncio.Event().wait()

    await cancelled_when(begun, flow.for_each(wait))


@dataclass(frozen=True)
class Way:
    """How a consumer leaves a flow."""

    consume: Consume
    awaits: bool = False
    """It awaits the cleanup, and has no error of its own to raise."""
    end: type[BaseException] | None = None
    """Its own error: the first one wins."""


WAYS: Final[Mapping[str, Way]] = {
    **{name: Way(consume, awaits=True) for name, consume in AWAITING.items()},
    **{name: Way(consume) for name, consume in NOT_AWAITING.items()},
    **{name: Way(consume, end=KeyError) for name, consume in FAILING.items()},
    "cancelled in a call": Way(cancelled_in_a_call),
}
HOOKS: Final[Mapping[str, Callable[[Any, Code], Any]]] = {
    "do_finally": lambda flow, code: flow.do_finally(code.fails),
    "do_on_cancel": lambda flow, code: flow.do_on_cancel(code.fails),
}


def hooked(flow: Place, hook: str) -> Place:
    return lambda code: HOOKS[hook](flow(code), code)


QUIET_FLOWS: Final[Mapping[str, Place]] = {
    **{name: quiet(flow) for name, flow in FLOWS.items()},
    "create": lambda code: r.create(code.listens),
}
CALLBACKS: Final[Mapping[str, Place]] = {
    f"{hook} of {name}": hooked(flow, hook) for hook in HOOKS for name, flow in QUIET_FLOWS.items()
}
"""Flows with a function that is called when the flow is cancelled, and raises."""
CASES: Final[Mapping[str, Place]] = {**CLEANUPS, **CALLBACKS}


@in_one_run
@each_pair(case=CASES, between=BETWEEN, way=WAYS, kind=QUIET, loop=REAL_LOOPS)
def test_it_is_raised_where_the_cleanup_is_awaited_and_reported_elsewhere(
    case: str, between: str, way: str, kind: str, loop: str
) -> None:
    """What a callback raises is reported: nobody awaits it."""
    left, expected = WAYS[way], KINDS[kind]
    outcome = observe(
        lambda code: BETWEEN[between](CASES[case](code)),
        left.consume,
        expected.make,
        REAL_LOOPS[loop],
    )
    if left.awaits and case in CLEANUPS:
        check_raised_by_cleanup(outcome, expected)
    else:
        assert type(outcome.end) is (left.end or type(None))
        check_reported(outcome, expected)
    if case in CALLBACKS:  # no kind of error is taken for the cancellation that it answers
        (told,) = outcome.contexts
        assert type(told["exception"]) is type(expected.make())
        assert "a callback raised when its flow was cancelled" in told["message"]
    assert not outcome.stops
    check_nothing_is_left(outcome)


@in_one_run
@each_pair(cleanup=CLEANUPS, way=AWAITING, loop=REAL_LOOPS)
def test_a_keyboard_interrupt_of_a_cleanup_stops_the_program(
    cleanup: str, way: str, loop: str
) -> None:
    outcome = observe(CLEANUPS[cleanup], AWAITING[way], KeyboardInterrupt, REAL_LOOPS[loop])
    assert outcome.stops
    assert outcome.end is None or isinstance(outcome.end, (Interrupted, KeyboardInterrupt))
    check_nothing_is_left(outcome)


async def test_it_is_reported_if_the_wait_for_it_is_cancelled(expects_loop_errors: Reports) -> None:
    begun = asyncio.Event()

    async def source() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            begun.set()
            await asyncio.sleep(0)
            raise CleanupError

    await cancelled_when(begun, r.from_aiter(source).first())
    await turns()
    assert [type(each["exception"]) for each in expects_loop_errors] == [CleanupError]


async def test_that_of_an_iterable_in_flat_map_does_not_replace_the_error_of_another(
    expects_loop_errors: Reports,
) -> None:
    for kind in (KINDS[name] for name in QUIET):
        failing, outer = PublisherProbe[int](), PublisherProbe[int]()
        sources: list[Any] = [r.from_publisher(failing), iter(Code(kind.make).failing_cleanup)]
        flow: Any = r.from_publisher(outer).flat_map(lambda x: sources[x])  # noqa: B023
        probe = SubscriberProbe[int](1).subscribed_to(flow)
        outer.emit(0, 1)
        await asyncio.sleep(0)
        failing.emit(2)
        failing.fail(KeyError("another"))
        probe.request(5)
        assert isinstance((await probe.end())[-1], KeyError)
        assert probe.elements == [1, 2]
        check_reported(Outcome(Code(kind.make), contexts=[*expects_loop_errors]), kind)
        expects_loop_errors.clear()


async def test_that_of_an_iterable_is_raised_by_async_for_unless_the_flow_has_failed(
    expects_loop_errors: Reports,
) -> None:
    def flow() -> Any:
        return CLEANUPS["iterable"](Code(CleanupError))

    with pytest.raises(CleanupError):
        await iterate(flow().take(1), Outcome(Code(CleanupError)))
    assert not expects_loop_errors
    with pytest.raises(KeyError):
        await iterate(flow().map(fails_at_once), Outcome(Code(CleanupError)))
    assert [type(each["exception"]) for each in expects_loop_errors] == [CleanupError]


# -- several, and what the error says --------------------------------------------------------------
SOURCES: Final = (CLEANUPS["asynchronous"], CLEANUPS["iterable"])


async def test_several_are_raised_as_a_group() -> None:
    code = Code(CleanupError)
    flow = r.merge(CLEANUPS["asynchronous"](code), CLEANUPS["slow"](code), prefetch=1)
    with pytest.raises(ExceptionGroup) as caught:
        await flow.first()
    assert [type(each) for each in caught.value.exceptions] == [CleanupError] * 2


async def test_the_error_has_the_result_in_a_note() -> None:
    for source in SOURCES:
        with pytest.raises(CleanupError) as caught:
            await source(Code(CleanupError)).skip(3).first()
        assert "the flow had a result: 4" in "\n".join(caught.value.__notes__)


async def test_the_note_leaves_the_result_out_like_an_element() -> None:
    show_elements(False)
    try:
        with pytest.raises(CleanupError) as caught:
            await SOURCES[0](Code(CleanupError)).map(lambda _: "sec" + "ret").first()
        assert "secret" not in "\n".join(caught.value.__notes__)
    finally:
        show_elements(True)


@pytest.mark.parametrize("kind", QUIET)
async def test_that_of_on_cancel_of_create_is_reported_and_the_others_are_called(
    kind: str, expects_loop_errors: list[Any]
) -> None:
    error, called = KINDS[kind].make(), list[str]()

    def listen(to: r.Emitter[int]) -> None:
        to.on_cancel(Code(lambda: error).fails)
        to.on_cancel(lambda: called.append("second"))
        to.try_emit(1)
        to.try_emit(2)

    discarded = list[int]()
    assert await r.create(listen).do_on_discard(discarded.append).first() == 1
    assert (called, discarded) == (["second"], [2])
    assert [each["exception"] for each in expects_loop_errors] == [error]
