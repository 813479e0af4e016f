"""What `flat_map` has taken of its sources arrives before the error of one, or is given back."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio.testing import PublisherProbe, SubscriberProbe
from tests.contract.raising.consumers import subscribe
from tests.contract.raising.kinds import KINDS, QUIET
from tests.contract.raising.observe import observe
from tests.harness.loops import REAL_LOOPS
from tests.harness.pairs import each_pair

MAPS: dict[str, Callable[[Any, Any], Any]] = {
    "flat_map": lambda flow, mapper: flow.flat_map(mapper),
    "concat_map": lambda flow, mapper: flow.concat_map(mapper),
}
ABOVE: dict[str, Callable[[], Any]] = {
    "synchronous": lambda: r.just(0),
    "asynchronous": lambda: r.timer(0.001),
}


def taken_before(error: Callable[[], BaseException]) -> Callable[[Any], Iterator[int]]:
    def parts(_: Any) -> Iterator[int]:
        yield 1
        yield 2
        raise error()

    return parts


@pytest.mark.parametrize("above", ABOVE)
@pytest.mark.parametrize("operator", MAPS)
async def test_elements_taken_before_it_are_delivered(operator: str, above: str) -> None:
    for kind in (KINDS[name] for name in QUIET):
        flow = MAPS[operator](ABOVE[above](), taken_before(kind.make))
        probe = SubscriberProbe[int](99).subscribed_to(flow)
        assert isinstance((await probe.end())[-1], kind.received)
        assert probe.elements == [1, 2]


@each_pair(operator=MAPS, above=ABOVE, loop=REAL_LOOPS)
def test_elements_taken_before_a_keyboard_interrupt_are_discarded(
    operator: str, above: str, loop: str
) -> None:
    discarded: list[int] = []

    def make(_: object) -> Any:
        flow = MAPS[operator](ABOVE[above](), taken_before(KeyboardInterrupt))
        return flow.do_on_discard(discarded.append)

    outcome = observe(make, subscribe, KeyboardInterrupt, REAL_LOOPS[loop])
    assert outcome.stops
    assert outcome.probe is not None
    assert outcome.probe.elements + discarded == [1, 2]


@pytest.mark.parametrize("kind", QUIET)
async def test_elements_that_wait_are_delivered_before_the_error_of_a_mapper(kind: str) -> None:
    waiting, outer = PublisherProbe[int](), PublisherProbe[int]()

    def mapper(x: int) -> Any:
        if x:
            raise KINDS[kind].make()
        return r.from_publisher(waiting)

    flow = r.from_publisher(outer).flat_map(mapper)
    probe = SubscriberProbe[int](1).subscribed_to(flow)
    outer.emit(0)
    waiting.emit(1, 2)
    outer.emit(3)
    await asyncio.sleep(0)
    assert probe.signals == [1]
    probe.request(5)
    assert isinstance((await probe.end())[-1], KINDS[kind].received)
    assert probe.elements == [1, 2]
