"""Requests: 3.9 for anything but a positive int, depth 1, sums, and the largest demand."""

import asyncio
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from reactive_aio import Flow, UnicastProcessor, empty, from_iterable
from reactive_aio._core.subscription.island import Island
from reactive_aio.stage import Downstream, FlowSubscription, InlineStage, from_pull
from reactive_aio.testing import SubscriberProbe
from tests.contract.subscribers import (
    BOTH,
    SHAPES,
    Acting,
    Source,
    collect,
    flow,
    itself,
    pushed,
    turns,
)
from tests.harness.effort import scaled
from tests.harness.one_run import in_one_run

Shape = Callable[[Source], Flow[int]]
MANY = scaled(1_000_000)
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
both = pytest.mark.parametrize("kind", BOTH)
on_one_loop = pytest.mark.asyncio(loop_factories=["asyncio"])


# -- 3.9 -------------------------------------------------------------------------------------------
WRONG = [0, -1, -(2**80), True, False, 1.0, 0.5, None, "1", b"1", [1], float("nan"), object()]


@in_one_run
@every_shape
@both
@pytest.mark.parametrize("n", WRONG, ids=lambda n: repr(n)[:12])
async def test_a_wrong_request_fails_the_flow_and_is_never_raised(
    shape: Shape, kind: type[Acting], n: Any
) -> None:
    """3.9, 3.16."""
    source = Source()
    subscriber = kind(1)
    shape(source).subscribe(subscriber)
    await subscriber.wait_for_signals(1)
    subscriber.request(n)
    await subscriber.end()
    error = subscriber.error
    assert isinstance(error, ValueError)
    assert "3.9" in str(error)
    assert "non-positive subscription request" in str(error)
    subscriber.request(5)
    await turns(30)
    assert subscriber.signals == [0, error]
    assert source.closed == source.opened


@both
@pytest.mark.parametrize("signal", ["on_subscribe", "on_next"])
async def test_a_wrong_request_inside_a_signal_is_answered_after_it(
    kind: type[Acting], signal: str
) -> None:
    """1.3, 3.9."""
    depth: list[int] = []

    def act(self: Acting) -> None:
        before = len(self.signals)
        self.request(0)
        depth.append(len(self.signals) - before)

    subscriber = kind(2, acts={signal: act})
    flow(9).subscribe(subscriber)
    await subscriber.end()
    assert depth == [0]
    assert isinstance(subscriber.error, ValueError)
    assert subscriber.elements == ([0] if signal == "on_next" else [])


@both
async def test_the_answer_to_a_wrong_request_waits_for_a_suspended_signal(
    kind: type[Acting],
) -> None:
    """1.3, 3.9: on_error does not begin while on_next is under way."""
    for chain in (flow(9), flow(9).boundary(2), flow(9).map_async(itself)):
        go = asyncio.Event()
        log: list[str] = []

        async def rest(_: Acting, go: asyncio.Event = go, log: list[str] = log) -> None:
            await go.wait()
            log.append("on_next ended")

        def failed(_: Acting, log: list[str] = log) -> None:
            log.append("on_error")

        subscriber = kind(3, on_next=rest, on_error=failed)
        chain.subscribe(subscriber)
        await turns()
        subscriber.request(0)
        await turns()
        assert log == []
        go.set()
        await subscriber.end()
        await turns()
        assert log == ["on_next ended", "on_error"]


@in_one_run
@pytest.mark.parametrize("n", [2**63 - 1, 2**63, 2**200])
@every_shape
async def test_huge_requests_are_unbounded_demand(shape: Shape, n: int) -> None:
    """3.17."""
    subscriber = Acting(n, again=n)
    shape(Source(50)).subscribe(subscriber)
    await subscriber.end()
    assert subscriber.elements == list(range(50))
    assert subscriber.is_completed


class Three(int):
    """A subclass of int is an int."""


async def test_a_subclass_of_int_is_demand() -> None:
    subscriber = Acting(Three(3))
    flow(9).subscribe(subscriber)
    assert subscriber.signals == [0, 1, 2]


@both
@pytest.mark.parametrize("signal", ["on_subscribe", "on_next"])
async def test_a_wrong_request_after_a_cancellation_is_silent(
    kind: type[Acting], signal: str
) -> None:
    """3.6: also before the flow has noticed."""

    def act(self: Acting) -> None:
        self.cancel()
        self.request(0)

    for chain in (flow(9), flow(9).boundary(2), flow(9).map_async(itself)):
        subscriber = kind(2, acts={signal: act})
        chain.subscribe(subscriber)
        await turns(20)
        assert subscriber.signals == ([] if signal == "on_subscribe" else [0])


async def test_a_cancellation_after_a_wrong_request_is_silent() -> None:
    """3.12: both inside one signal; the subscriber must receive no more signals."""

    def act(self: Acting) -> None:
        self.request(0)
        self.cancel()

    subscriber = Acting(2, on_next=act)
    loop = asyncio.get_running_loop()
    told: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: told.append(context))
    flow(9).subscribe(subscriber)
    assert subscriber.signals == [0]
    assert [type(context["exception"]).__name__ for context in told] == ["IllegalDemand"]


async def test_without_demand_nothing_is_read() -> None:
    """1.1: not even by a stage that emits ahead of the source."""
    read = list[bool]()

    class Ahead:
        def __iter__(self) -> Iterator[int]:
            read.append(True)
            return iter([7])

    ahead = InlineStage("ahead", params=("elements",), before="emit each $elements")
    subscriber = SubscriberProbe[int]().subscribed_to(flow(3).via(ahead, Ahead()))
    assert not read
    subscriber.request(9)
    assert subscriber.signals == [7, 0, 1, 2, "|"]


class Ignoring(FlowSubscription):
    def request(self, n: int, /) -> None: ...
    def cancel(self) -> None: ...


# -- completion ------------------------------------------------------------------------------------
@pytest.mark.parametrize("when", ["in request", "in on_next"])
@pytest.mark.parametrize("kind", ["in the caller", "in a task"])
async def test_completion_with_the_last_requested_element_needs_no_demand(
    kind: str, when: str
) -> None:
    """1.5: of a list, for which two elements were requested."""
    pushing = list[Downstream[int]]()

    class Two(FlowSubscription):
        def __init__(self, downstream: Downstream[int]) -> None:
            pushing.append(downstream)

        def request(self, n: int, /) -> None:
            if when == "in request":
                pushing[0].push([1, 2])
                pushing[0].complete()

        def cancel(self) -> None: ...

    subscriber = Acting(on_next=lambda _: pushing[0].complete())
    source = pushed(Two) if kind == "in the caller" else pushed(Two).map_async(itself)
    source.buffer(2).concat_with(empty()).subscribe(subscriber)
    subscriber.request(1)
    await turns()
    if when == "in on_next":
        pushing[0].push([1, 2])
    await turns()
    assert subscriber.signals == [[1, 2], "|"]


# -- depth 1 ---------------------------------------------------------------------------------------
@on_one_loop
async def test_many_requests_in_a_row_do_not_recurse() -> None:
    """3.3."""
    subscriber = SubscriberProbe[int](1, again=1)
    from_iterable(range(MANY)).subscribe(subscriber)
    await subscriber.end()
    assert len(subscriber.signals) == MANY + 1


@every_shape
async def test_an_element_requested_inside_on_next_arrives_after_it(shape: Shape) -> None:
    """3.3: the depth is one, however deep the chain."""
    depth = deepest = 0

    def act(self: Acting) -> None:
        nonlocal depth, deepest
        depth += 1
        deepest = max(deepest, depth)
        self.request(1)
        depth -= 1

    subscriber = Acting(1, on_next=act)
    chain = shape(Source(300))
    for _ in range(50):
        chain = chain.map(abs)
    chain.subscribe(subscriber)
    await subscriber.end()
    assert deepest == 1
    assert len(subscriber.elements) == 300


@on_one_loop
async def test_a_request_inside_on_next_resumes_no_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """3.3, 3.4: it is an addition, since the loop that runs reads the demand again."""
    resumed: list[object] = []
    resume = Island.resume

    def counting(island: Island, elements: tuple[object, ...] | None = None, /) -> Any:
        resumed.append(elements)
        return resume(island, elements)

    monkeypatch.setattr(Island, "resume", counting)
    probe = SubscriberProbe[int](1, again=1).subscribed_to(from_iterable(range(100)))
    assert await probe.end() == [*range(100), "|"]
    assert resumed == []


@on_one_loop
async def test_many_requests_before_the_first_element_add_up() -> None:
    """3.8, 3.17."""
    subscriber = SubscriberProbe[int]().subscribed_to(flow(10).boundary(2))
    for _ in range(MANY):
        subscriber.request(1)
    await subscriber.end()
    assert subscriber.elements == list(range(10))


_LISTS = InlineStage("lists", each="emit each [x] * 5")


async def test_lists_of_elements_are_delivered_within_demand() -> None:
    """1.1."""
    subscriber = SubscriberProbe[int](3).subscribed_to(from_iterable(range(10)).via(_LISTS))
    assert subscriber.elements == [0, 0, 0]
    subscriber.request(9)
    assert subscriber.elements == [0] * 5 + [1] * 5 + [2] * 2
    subscriber.request(100)
    await subscriber.end()
    assert subscriber.elements == [x for x in range(10) for _ in range(5)]


async def test_an_element_is_not_taken_when_there_is_no_demand_left() -> None:
    """1.1: a stage may request more than it passes on."""
    pushing = list[Downstream[int]]()

    def opened(downstream: Downstream[int]) -> FlowSubscription:
        pushing.append(downstream)
        return Ignoring()

    eager = InlineStage("eager", each="x = x", demand="need *= 3")
    subscriber = SubscriberProbe[int](1).subscribed_to(pushed(opened).via(eager))
    for x in range(2):
        pushing[0].push([x])
    assert pushing[0].try_push(2) is None
    subscriber.request(5)
    assert subscriber.elements == [0, 1]


async def test_two_hundred_boundaries_in_a_row_do_not_exhaust_the_stack() -> None:
    """3.3: subscription, elements, completion and cancellation."""
    chain = from_iterable(range(20))
    for _ in range(200):
        chain = chain.boundary(2)
    assert (await collect(chain)) == [*range(20), "|"]
    source = Source()
    chain = source.pull()
    for _ in range(200):
        chain = chain.boundary(2)
    subscriber = SubscriberProbe[int](3).subscribed_to(chain)
    await subscriber.wait_for_signals(3)
    subscriber.cancel()
    assert source.closed == 1
    assert subscriber.signals == [0, 1, 2]


async def test_an_element_passes_sixty_processors() -> None:
    """3.3: one that is emitted too deeply in others waits, and is not lost."""
    hot = [UnicastProcessor[int]() for _ in range(60)]
    for above, below in pairwise(hot):
        SubscriberProbe[int](9).subscribed_to(above.do_on_next(below.try_emit))
    last = SubscriberProbe[int](9).subscribed_to(hot[-1])
    for x in range(3):
        hot[0].try_emit(x)
    assert last.signals == [0, 1, 2]


async def test_an_error_passes_two_hundred_boundaries() -> None:
    def broken() -> Any:
        yield 1
        raise ValueError("deep")

    chain: Flow[int] = from_pull(broken, name="broken")
    for _ in range(200):
        chain = chain.boundary(2)
    one, error = await collect(chain)
    assert one == 1
    assert str(error) == "deep"
