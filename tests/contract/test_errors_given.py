"""What is given as an error must be one: it is refused in the call, and nothing has happened."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Emission
from reactive_aio.errors import NotAnElement
from reactive_aio.stage import Downstream, FlowSubscription, from_push
from reactive_aio.testing import SubscriberProbe
from tests.harness.one_run import in_one_run

HOT: dict[str, Callable[[], Any]] = {
    "UnicastProcessor": r.UnicastProcessor,
    "MulticastProcessor": r.MulticastProcessor,
    "ReplayProcessor": lambda: r.ReplayProcessor[Any](2),
    "LatestProcessor": lambda: r.LatestProcessor(0),
}
WRONG = pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("no connection", r"not 'no connection'; give it a class: RuntimeError\('no connection'\)"),
        (ValueError, r"not ValueError, which is a class; make an instance: ValueError\(\.\.\.\)"),
        (3, "not 3"),
        (None, "not None"),
    ],
    ids=["a text", "a class", "a number", "None"],
)


@in_one_run
@WRONG
@pytest.mark.parametrize("kind", HOT)
async def test_a_processor_refuses_what_is_no_exception_and_goes_on(
    kind: str, wrong: Any, words: str
) -> None:
    hot = HOT[kind]()
    probe = SubscriberProbe[int](9).subscribed_to(hot)
    with pytest.raises(TypeError, match=rf"{kind}\.fail\(\): an exception is needed, {words}"):
        hot.fail(wrong)
    assert hot.try_emit(1) is Emission.ACCEPTED
    hot.fail(OSError("lost"))
    assert [*map(repr, probe.signals[-2:])] == ["1", "OSError('lost')"]


@WRONG
async def test_an_emitter_refuses_what_is_no_exception_and_goes_on(wrong: Any, words: str) -> None:
    def emit(to: r.Emitter[int]) -> None:
        with pytest.raises(TypeError, match=rf"create\(emit\)\.fail\(\): .* needed, {words}"):
            to.fail(wrong)
        to.try_emit(1)
        to.fail(OSError("lost"))

    probe = SubscriberProbe[int](9).subscribed_to(r.create(emit))
    assert [*map(repr, probe.signals)] == ["1", "OSError('lost')"]


@WRONG
@pytest.mark.parametrize("is_queued", [False, True])
async def test_a_source_that_fails_with_no_exception_does_not_just_complete(
    wrong: Any, words: str, is_queued: bool
) -> None:
    class Fails(FlowSubscription):
        def __init__(self, downstream: Downstream[int]) -> None:
            self._downstream = downstream

        def request(self, n: int, /) -> None:
            self._downstream.fail(wrong)

        def cancel(self) -> None:
            pass

    flow: Any = from_push(Fails, name="mine")
    with pytest.raises(TypeError, match=rf"an exception is needed, {words}"):
        await (flow.boundary(2) if is_queued else flow).to_list()


def test_functions_in_place_of_a_subscriber_are_told_where_they_go() -> None:
    flow: Any = r.just(1)
    for given, named in (((), {"on_next": print}), ((print, print), {})):
        with pytest.raises(TypeError, match=r"takes one subscriber, .*await flow\.do_on_error"):
            flow.subscribe(*given, **named)


@pytest.mark.virtual_time
async def test_none_as_an_element_is_told_what_to_do_instead() -> None:
    async def lines() -> AsyncIterator[Any]:
        yield None

    with pytest.raises(NotAnElement, match="Leave it out, or put another value in its place"):
        await r.from_aiter(lines).to_list()
    hot = r.UnicastProcessor[Any](capacity=1)
    with pytest.raises(NotAnElement, match="leave it out, or emit another value"):
        await hot.emit(None)
