"""Whatever a function of the user raises reaches the consumer: nothing waits for ever."""

import asyncio
from typing import Any

import pytest

from reactive_aio import Flow
from reactive_aio.errors import Interrupted
from reactive_aio.stage import from_pull
from reactive_aio.testing import SubscriberProbe
from tests.contract.raising.code import Code
from tests.contract.raising.consumers import CONSUMERS
from tests.contract.raising.expected import check_nothing_is_left, check_received
from tests.contract.raising.kinds import KINDS
from tests.contract.raising.observe import NOTHING, Outcome, observe
from tests.contract.raising.places import PLACES
from tests.contract.subscribers import UNBOUNDED
from tests.harness.loops import REAL_LOOPS
from tests.harness.one_run import in_one_run
from tests.harness.pairs import each_pair

WITHOUT_END = ("from_iterable: __next__", "start_with")
"""Places where a ``StopIteration`` is the end of the elements, as Python has it."""
RAISED_IN_PLACE = ("`GeneratorExit`", "`KeyboardInterrupt`")
"""What the consumer may receive as it is, if its own task runs the function."""


@in_one_run
@each_pair(place=PLACES, kind=KINDS, consumer=CONSUMERS, loop=REAL_LOOPS)
def test_it_reaches_the_consumer(place: str, kind: str, consumer: str, loop: str) -> None:
    expected, ended = KINDS[kind], list[str]()

    def make(code: Code) -> Any:
        return PLACES[place](code).do_finally(ended.append)

    outcome = observe(make, CONSUMERS[consumer], expected.make, REAL_LOOPS[loop])
    check_nothing_is_left(outcome)
    # A thread ends with its error, and a signal is not raised: nothing else stops.
    assert outcome.stops is (expected.stops and not place.startswith(("thread", "signal")))
    assert len(ended) == 1
    if kind == "`StopIteration`" and place in WITHOUT_END:
        assert outcome.end is None
    elif outcome.end == NOTHING:  # it was raised to the subscriber, which made the request
        assert (place, kind) == ("do_on_request", "`KeyboardInterrupt`")
    else:
        check_received(outcome, expected)
        if consumer == "subscribe" and kind in RAISED_IN_PLACE:
            assert not isinstance(outcome.end, type(expected.make()))
        assert ended[0] in expected.ended


@in_one_run
@pytest.mark.asyncio(loop_factories=["asyncio"])
@pytest.mark.parametrize("place", PLACES)
async def test_an_own_cancellation_is_translated_before_anything_sees_it(place: str) -> None:
    """The callbacks and policies of a flow receive what its consumer does."""
    for consume in CONSUMERS.values():
        code = Code(asyncio.CancelledError)
        seen, received = list[BaseException](), list[Any]()
        flow = PLACES[place](code).do_on_error(seen.append).retry(2).do_on_error(seen.append)
        await consume(flow.on_error_return("failed").do_on_next(received.append), Outcome(code))
        assert received[-1] == "failed"
        assert len(seen) in (2, 3)  # a source that serves one subscription fails otherwise then
        assert isinstance(seen[0], Interrupted)
        assert not any(isinstance(each, asyncio.CancelledError) for each in seen)


async def test_an_error_at_every_point_of_a_source_fails_the_flow() -> None:
    """1.4: in its first element, in its nth element, in its end."""

    class Broken:
        def __init__(self, at: int) -> None:
            self.at = at

        def __iter__(self) -> "Broken":
            return self

        def __next__(self) -> int:
            if self.at == 0:
                raise ValueError
            self.at -= 1
            return self.at

    def broken(at: int) -> Flow[int]:
        return from_pull(lambda: Broken(at), name="broken")

    for at in range(4):
        for chain in (broken(at), broken(at).boundary(2)):
            probe = SubscriberProbe[int](UNBOUNDED).subscribed_to(chain)
            await probe.end()
            assert len(probe.elements) == at
            assert isinstance(probe.error, ValueError)
