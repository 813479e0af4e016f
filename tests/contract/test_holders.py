"""do_on_discard: what each holder gives back, and what none does."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, cast

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.processors import UnicastProcessor
from reactive_aio.stage import Downstream, FlowSubscription, from_push
from reactive_aio.testing import PublisherProbe, SubscriberProbe
from tests.harness.one_run import in_one_run
from tests.operators.streams import MANY, slow
from tests.operators.ways import Failed

pytestmark = pytest.mark.virtual_time

Make = Callable[[Flow[Any]], Flow[Any]]


def numbers(count: int = 9) -> Flow[int]:
    return r.range(count)


def hidden(flow: Flow[Any]) -> Flow[Any]:
    """The same elements, which no operator can pull."""
    return r.from_publisher(Hidden(flow))


class Hidden:
    """A publisher that is not a flow."""

    def __init__(self, flow: Flow[Any]) -> None:
        self._flow = flow

    def subscribe(self, subscriber: Any, /) -> None:
        self._flow.subscribe(subscriber)


async def cancelled(flow: Flow[Any], request: int = 2, seconds: float = 0.5) -> list[object]:
    """What *flow* gives back when it is cancelled after a time."""
    discarded: list[object] = []
    probe = SubscriberProbe[object](request).subscribed_to(flow.do_on_discard(discarded.append))
    await asyncio.sleep(seconds)
    assert not discarded
    probe.cancel()
    await asyncio.sleep(100)
    return discarded


async def ended(flow: Flow[Any], request: int = MANY) -> tuple[list[object], list[object]]:
    """What *flow* delivers, and what it has given back at its end."""
    discarded: list[object] = []
    probe = SubscriberProbe[object](request).subscribed_to(flow.do_on_discard(discarded.append))
    await probe.end()
    await asyncio.sleep(100)
    return list(probe.elements), discarded


def fails_at(number: object) -> Callable[[Any], Any]:
    def function(element: object) -> object:
        if element == number:
            raise Failed
        return element

    return function


# Random pipelines account for what is discarded; below is what they leave out: elements in several
# lists, values made of elements, functions that fail in their own ways.
CANCELLED: dict[str, tuple[Callable[[], Flow[Any]], list[object]]] = {
    # name: the flow, and what it gives back when it is cancelled after two elements
    "boundary: two": (lambda: numbers().boundary(3).map(str).boundary(2), ["2", "3", 4, 5, 6]),
    "buffer: overlapping": (
        lambda: slow([*range(4)], every=0.1).concat_with(r.never()).buffer(2, step=1),
        [],
    ),
    "sliding_window": (
        lambda: numbers(2).concat_with(r.never()).boundary(9).sliding_window(3),
        [0, 1],
    ),
    "sliding_window: the elements after a window": (
        lambda: numbers(5).concat_with(r.never()).boundary(9).sliding_window(3, step=2),
        [],
    ),
    "pairwise": (lambda: r.just(1).concat_with(r.never()).boundary(9).pairwise(), [1]),
    "pairwise: after a pair": (
        lambda: r.just(1, 2).concat_with(r.never()).boundary(9).pairwise(),
        [],
    ),
    "take_last": (lambda: numbers(5).take_last(4), [3, 4]),
    "merge: priority": (
        lambda: r.merge(hidden(numbers(3)), [], prefetch=4, priority=[2, 1]),
        [2],
    ),
    "zip": (lambda: hidden(numbers(4)).zip_with(slow([7]).concat_with(r.never())), [1]),
    "combine_latest": (lambda: r.combine_latest(r.just(1), r.never()), [1]),
    "with_latest_from": (lambda: r.never().with_latest_from(r.just(1)), [1]),
    "flat_map: what waits for its function": (
        lambda: hidden(numbers(3)).flat_map(lambda _: r.never(), concurrency=1, prefetch=1),
        [0],
    ),
    "switch_map": (lambda: r.just(1).switch_map(lambda _: hidden(numbers(9))), []),
}


@in_one_run
@pytest.mark.parametrize("name", CANCELLED)
async def test_a_holder_gives_back_what_it_holds_when_it_is_cancelled(name: str) -> None:
    make, expected = CANCELLED[name]
    assert sorted(await cancelled(make()), key=repr) == sorted(expected, key=repr)


ENDED: dict[str, tuple[Callable[[], Flow[Any]], list[object]]] = {
    # name: the flow, and what it has given back when it has ended by itself
    "pairwise": (lambda: r.just(1).pairwise(), [1]),
    "sliding_window": (lambda: numbers(4).sliding_window(3, step=2), [3]),
    "sliding_window: none": (lambda: numbers(2).sliding_window(3), [0, 1]),
    "sliding_window: partial": (lambda: numbers(4).sliding_window(3, step=2, partial=True), []),
    "take_last": (lambda: numbers(5).take_last(2), []),
    "zip": (lambda: numbers(5).zip_with([1]), [1]),
    "zip: pushed": (lambda: hidden(numbers(5)).zip_with([1], prefetch=3), [1, 2]),
    "zip: of holders": (lambda: numbers(3).skip_last(1).zip_with(numbers(9)), [2]),
    "combine_latest": (lambda: r.combine_latest(r.just(1), r.empty()), [1]),
    "race": (lambda: r.race(slow([1], every=0.1), slow([2, 3], every=0.2).buffer(2)), []),
    "timeout": (
        lambda: slow([1, 2], every=0.1).concat_with(r.never()).buffer(3).timeout(1, fallback=[]),
        [1, 2],
    ),
    "window: its subscriber cancels": (
        lambda: hidden(numbers(4)).window(3).flat_map(lambda w: w.take(1)),
        [1, 2],
    ),
    "window: it has no subscriber": (
        lambda: hidden(numbers(3)).window(3).flat_map(lambda _: []),
        [0, 1, 2],
    ),
    # -- a function of the flow fails
    "filter": (lambda: numbers(9).filter(fails_at(0)), [0]),
    "buffer_until": (lambda: numbers(9).buffer_until(fails_at(2)), [2]),
    "buffer_until: its list is too long": (
        lambda: numbers(3).buffer_until(lambda _: False, limit=2),
        [0, 1, 2],
    ),
    "map: after a buffer": (
        lambda: numbers(4).buffer(2).map(fails_at([2, 3])),
        [[2, 3]],
    ),
    "map_async: with later results": (
        lambda: numbers(3).map_async(fails_late, concurrency=3),
        [0, 1, 2],
    ),
    "flat_map": (lambda: hidden(numbers(4)).flat_map(fails_to_make(1)), [1, 2, 3]),
    "flat_map: of iterables": (lambda: numbers(4).flat_map(fails_to_make(1)), [1]),
    "switch_map": (lambda: numbers(3).switch_map(fails_to_make(1)), [0, 1, 2]),
    "combine_latest: its function": (
        lambda: r.combine_latest(r.just(7), numbers(3), combine=lambda _, x: fails_at(1)(x)),
        [1, 2],
    ),
    "with_latest_from: its function": (
        lambda: hidden(numbers(3)).with_latest_from(r.just(7), combine=lambda x, _: fails_at(1)(x)),
        [1, 2],
    ),
    "group_by": (lambda: hidden(numbers(4)).group_by(fails_at(0)), [0, 1, 2, 3]),
    "buffer_timeout": (
        lambda: hidden(numbers(3)).buffer_timeout(9, 1, weight=fails_at(1), max_weight=9),
        [0, 1, 2],
    ),
}


async def fails_late(element: int) -> int:
    if not element:
        await asyncio.sleep(5)
        raise Failed
    return element


def fails_to_make(number: int) -> Callable[[int], list[int]]:
    return lambda x: [fails_at(number)(x)]


@in_one_run
@pytest.mark.parametrize("name", ENDED)
async def test_a_holder_gives_back_what_it_holds_when_the_flow_ends(name: str) -> None:
    make, expected = ENDED[name]
    _, discarded = await ended(make())
    assert sorted(discarded, key=repr) == sorted(expected, key=repr)


async def test_the_first_element_that_a_function_fails_with_is_given_back() -> None:
    discarded: list[object] = []
    with pytest.raises(Failed):
        await numbers().flat_map(fails_at(0)).do_on_discard(discarded.append).to_list()
    assert discarded == [0]


# -- where a hook is ------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["flat_map", "concat_map", "switch_map"])
async def test_an_element_is_given_back_when_its_source_fails_and_not_when_it_is_empty(
    name: str,
) -> None:
    discarded: list[int] = []
    sources = [r.empty().boundary(1), r.error(Failed()).boundary(1)]
    flow = getattr(slow([0, 1]), name)(lambda x: sources[x])
    with pytest.raises(Failed):
        await flow.do_on_discard(discarded.append).to_list()
    assert discarded == [1]


async def test_only_what_is_held_upstream_of_a_hook_is_given_to_it() -> None:
    first, second = list[object](), list[object]()
    upper = numbers(3).skip_last(1).do_on_discard(first.append)
    flow = upper.map(str).skip_last(1).do_on_discard(second.append)
    assert await flow.to_list() == ["0"]
    assert (first, second) == ([2], [2, "1"])


async def test_a_hook_reaches_the_islands_upstream_of_it_and_no_others() -> None:
    first, second = list[object](), list[object]()
    flow = numbers().boundary(3).do_on_discard(first.append).boundary(2)
    probe = SubscriberProbe[int](1).subscribed_to(flow.do_on_discard(second.append))
    await asyncio.sleep(1)
    probe.cancel()
    assert sorted(cast("list[int]", first)) == [3, 4]
    assert sorted(cast("list[int]", second)) == [1, 2, 3, 4]


async def test_operators_that_pass_elements_on_may_follow_a_hook_at_the_end() -> None:
    discarded: list[object] = []
    flow = numbers(4).take_last(3).do_on_discard(discarded.append).name("last").do_finally(str)
    probe = SubscriberProbe[int](1).subscribed_to(flow)
    probe.cancel()
    assert discarded == [2, 3]


async def test_a_function_that_subscribes_to_another_flow_does_not_pass_the_hook_on() -> None:
    discarded: list[object] = []
    other: list[object] = []

    async def work(element: int) -> int:
        async for x in r.just("a", "b", "c").boundary(3):
            other.append(x)
            break
        return element

    flow = numbers(2).map_async(work).do_on_discard(discarded.append)
    assert await flow.to_list() == [0, 1]
    assert (other, discarded) == (["a", "a"], [])


async def test_with_only_a_hook_receives_the_instances_of_a_type() -> None:
    texts, both = list[object](), list[object]()
    flow = numbers(9).boundary(4).map(str).boundary(3)
    flow = flow.do_on_discard(texts.append, only=str).do_on_discard(both.append, only=(str, int))
    probe = SubscriberProbe[object](1).subscribed_to(flow)
    await asyncio.sleep(1)
    probe.cancel()
    assert sorted(texts, key=repr) == ["1", "2"]
    assert sorted(both, key=repr) == ["1", "2", 3, 4, 5, 6]


@pytest.mark.parametrize("only", [1, (), (int, "str")])
def test_only_must_be_a_type_or_several(only: Any) -> None:
    with pytest.raises(TypeError, match=r"^do_on_discard: only must be a type or a tuple of types"):
        numbers().do_on_discard(print, only=only)


async def test_a_flow_without_a_hook_runs_the_same_loop_as_ever() -> None:
    plain = numbers().boundary(3).buffer(2).map(len)
    hooked = plain.do_on_discard(print)
    for flow in (plain, hooked):
        await SubscriberProbe[int](MANY).subscribed_to(flow).end()
    [ordinary], [discarding] = ([*each.chain.loops()] for each in (plain, hooked))
    assert "D." not in ordinary.text
    assert "due" not in ordinary.text
    assert "D.give(1, kept_1)" in discarding.text


def test_explain_shows_the_loops_that_give_elements_back() -> None:
    shown = numbers().buffer(2).boundary(3).do_on_discard(print).explain(code=True)
    assert "D.give(1, kept_1)" in shown
    assert shown.count("D = S.discards") == 2


# -- what a hook does -----------------------------------------------------------------------------
async def test_an_error_of_a_hook_is_reported_and_the_rest_is_given(
    expects_loop_errors: list[dict[str, Any]],
) -> None:
    discarded: list[object] = []

    def raises(element: object) -> None:
        discarded.append(element)
        if element == 3:
            raise Failed

    probe = SubscriberProbe[int](2).subscribed_to(numbers().boundary(5).do_on_discard(raises))
    await asyncio.sleep(1)
    probe.cancel()
    assert discarded == [2, 3, 4]
    [reported] = expects_loop_errors
    assert isinstance(reported["exception"], Failed)
    assert reported["message"].startswith("do_on_discard")
    expects_loop_errors.clear()


async def test_a_hook_may_cancel_the_flow_again() -> None:
    probe = SubscriberProbe[int](1)
    discarded: list[object] = []

    def cancels(element: object) -> None:
        discarded.append(element)
        probe.cancel()

    probe.subscribed_to(numbers().boundary(3).do_on_discard(cancels))
    await asyncio.sleep(1)
    probe.cancel()
    assert discarded == [1, 2]


async def test_a_call_gives_its_element_back_after_its_cleanup() -> None:
    log: list[object] = []

    async def work(element: int) -> int:
        try:
            await asyncio.sleep(9)
        finally:
            await asyncio.sleep(1)
            log.append("cleaned up")
        return element

    for concurrency in (1, 2):
        flow = r.just("x").map_async(cast("Any", work), concurrency=concurrency)
        probe = SubscriberProbe[object](1).subscribed_to(flow.do_on_discard(log.append))
        await asyncio.sleep(1)
        probe.cancel()
        assert log == []
        await asyncio.sleep(2)
        assert log == ["cleaned up", "x"]
        log.clear()


async def test_a_result_that_comes_after_the_end_is_given_back() -> None:
    async def stubborn(element: object) -> object:
        if not element:
            return element
        try:
            await asyncio.sleep(9)
        except asyncio.CancelledError:
            return "late"
        return "in time"

    for flow in (
        numbers(3).map_async(stubborn, concurrency=2),
        numbers(3).flat_map(lambda x: r.from_awaitable(partial(stubborn, x)), concurrency=2),
    ):
        assert await cancelled(flow, request=1) == ["late", "late"]


async def test_an_element_that_a_publisher_sends_after_the_end_is_given_back() -> None:
    discarded: list[object] = []
    source = PublisherProbe[int]()
    flow = r.from_publisher(source).boundary(4).do_on_discard(discarded.append)
    probe = SubscriberProbe[int](1).subscribed_to(flow)
    await asyncio.sleep(1)
    probe.cancel()
    source.emit(1)
    assert discarded == [1]


class Pushing(FlowSubscription):
    """A source that pushes more than was requested, and after its cancellation."""

    def __init__(self, downstream: Downstream[int]) -> None:
        self.downstream = downstream

    def request(self, n: int, /) -> None:
        self.downstream.push([1, 2])

    def cancel(self) -> None:
        self.downstream.push([3])
        self.downstream.push([4])


async def test_elements_that_were_not_requested_are_discarded_as_those_after_the_end_are() -> None:
    opened: list[Pushing] = []

    def open(downstream: Downstream[int]) -> Pushing:
        opened.append(Pushing(downstream))
        return opened[-1]

    delivered, discarded = await ended(from_push(open, name="pushing"), request=1)
    assert (delivered, discarded) == ([], [3, 4, 1, 2])
    opened[0].downstream.push([5])
    assert discarded[4:] == [5]


async def test_what_a_function_makes_that_has_cancelled_the_flow_is_discarded() -> None:
    discarded: list[object] = []
    probe = SubscriberProbe[object](MANY)

    def cancels(*_: object) -> str:
        probe.cancel()
        return "made"

    flow = r.combine_latest(slow([1], every=0.1), r.just(2), combine=cancels)
    probe.subscribed_to(flow.do_on_discard(discarded.append, only=str))
    await asyncio.sleep(1)
    assert discarded == ["made"]


@pytest.mark.parametrize(
    "source", [r.just(b"a\nb\n"), slow([b"a\nb\n"])], ids=["pulled", "awaited"]
)
async def test_an_element_that_waits_for_its_delivery_is_discarded(source: Flow[bytes]) -> None:
    discarded: list[object] = []
    probe = SubscriberProbe[str](1)
    flow = source.lines().do_on_next(lambda x: probe.cancel() if x == "a" else None)
    probe.subscribed_to(flow.do_on_discard(discarded.append))
    await asyncio.sleep(1)
    assert (probe.elements, discarded) == ([], ["a"])


async def test_elements_offered_to_a_queue_whose_subscriber_has_failed_are_discarded() -> None:
    discarded, delivered = list[object](), list[object]()
    flow = hidden(numbers(6)).on_backpressure_buffer(9).map(fails_at(2))
    with suppress(Failed):
        async with flow.do_on_discard(discarded.append).stream(prefetch=3) as elements:
            async for element in elements:
                delivered.append(element)
    assert (delivered, discarded) == ([0, 1], [2, 3, 4, 5])


async def test_elements_after_one_whose_drop_fails_are_discarded() -> None:
    discarded: list[object] = []
    flow = hidden(numbers(5)).on_backpressure_buffer(1, overflow="drop_oldest", on_drop=fails_at(1))
    probe = SubscriberProbe[int](1).subscribed_to(flow.do_on_discard(discarded.append))
    await asyncio.sleep(1)
    probe.request(1)
    await probe.end()
    assert (probe.elements, discarded) == ([0, 2], [3, 4])


async def test_a_flow_of_many_operators_gives_elements_back() -> None:
    flow = numbers(3).skip_last(1)
    for _ in range(200):
        flow = flow.map(abs)
    assert await ended(flow) == ([0, 1], [2])


# -- consumers ------------------------------------------------------------------------------------
async def test_what_async_for_has_requested_ahead_is_given_to_a_hook_at_the_end() -> None:
    discarded: list[object] = []
    taken: list[int] = []
    flow = hidden(numbers(100)).do_on_discard(discarded.append)
    async for number in flow:
        taken.append(number)
        if number == 10:
            break
    gc.collect()
    assert len(discarded) > 2
    assert [*taken, *sorted(cast("list[int]", discarded))] == [*range(11 + len(discarded))]


async def test_what_a_stream_holds_is_given_to_a_hook_at_the_end_only() -> None:
    for ends in (False, True):
        discarded: list[object] = []
        flow = hidden(numbers(100)).do_on_discard(discarded.append)
        async with (flow if ends else flow.map(str)).stream(prefetch=8) as elements:
            await anext(elements)
        assert len(discarded) == (7 if ends else 0)


async def test_an_element_for_which_first_could_not_return_is_given_back() -> None:
    discarded: list[object] = []

    async def cleaning() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            raise Failed

    with pytest.raises(Failed):
        await r.from_aiter(cleaning).do_on_discard(discarded.append).first()
    assert discarded == [1]


async def test_an_element_that_arrives_as_first_is_cancelled_is_given_back() -> None:
    discarded: list[object] = []
    source = PublisherProbe[int]()
    flow = r.from_publisher(source).do_on_discard(discarded.append)
    task = asyncio.create_task(cast("Any", flow.first()))
    await source.expect_subscriber()
    await source.expect_request(1)
    source.emit(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert discarded == [1]


async def test_an_element_that_a_failing_cleanup_keeps_from_first_is_given_back() -> None:
    discarded: list[object] = []

    def cleaning() -> Iterator[int]:
        try:
            yield 1
        finally:
            raise Failed

    with pytest.raises(Failed):
        await r.from_iterable(cleaning()).do_on_discard(discarded.append).first()
    assert discarded == [1]


async def test_the_element_of_an_iterator_that_is_dropped_meanwhile_is_delivered() -> None:
    discarded: list[object] = []
    flow = slow(range(9), every=0.1).do_on_discard(discarded.append)
    assert await anext(aiter(flow)) == 0
    await asyncio.sleep(1)
    assert 0 not in discarded


async def test_for_each_gives_back_what_it_has_not_handed_to_its_function() -> None:
    discarded, handled = list[object](), list[int]()

    async def handle(number: int) -> None:
        handled.append(number)
        await asyncio.sleep(1 if number < 2 else 9)

    flow = hidden(numbers()).do_on_discard(discarded.append)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(3):
            await flow.for_each(handle, concurrency=2, ordered=True)
    assert not {*discarded} & {*handled}
    assert [*handled, *discarded] == [*range(len(handled) + len(discarded))]


# -- hot sources, threads -------------------------------------------------------------------------
SHARED: dict[str, Make] = {
    "share": lambda flow: flow.share(),
    "replay": lambda flow: flow.replay(2),
    "cache": lambda flow: flow.cache(),
}


@pytest.mark.parametrize("make", SHARED.values(), ids=SHARED)
async def test_what_waits_for_one_of_several_subscribers_is_not_given(make: Make) -> None:
    flow = make(numbers(5))
    other = SubscriberProbe[int](1).subscribed_to(flow)
    assert await cancelled(flow, request=1) == []
    other.cancel()


@pytest.mark.parametrize("make", [SHARED["replay"], SHARED["cache"]])
async def test_what_is_kept_for_a_later_subscriber_is_not_given(make: Make) -> None:
    assert await cancelled(make(numbers(5)), request=1) == []


def behind_nothing(flow: Flow[int]) -> Flow[int]:
    return flow


def behind_a_boundary(flow: Flow[int]) -> Flow[int]:
    return flow.boundary(2)


@pytest.mark.parametrize("above", [behind_nothing, behind_a_boundary])
async def test_what_waits_for_the_only_subscriber_of_share_is_given(above: Make) -> None:
    assert sorted(await cancelled(above(numbers(5)).share(), request=1), key=repr) == [1, 2, 3, 4]


async def test_what_an_operator_after_share_holds_is_given() -> None:
    flow = numbers(5).share().boundary(3)
    assert sorted(await cancelled(flow, request=1), key=repr) == [1, 2, 3, 4]


async def test_a_processor_for_one_subscriber_gives_back_what_it_holds() -> None:
    queue: UnicastProcessor[int] = UnicastProcessor(8)
    for number in range(4):
        queue.try_emit(number)
    assert await cancelled(queue) == [2, 3]


async def test_a_publisher_that_fails_discards_what_waits_in_a_processor() -> None:
    source = PublisherProbe[int]()
    queue: UnicastProcessor[int] = UnicastProcessor(8)
    source.subscribe(queue)
    discarded: list[object] = []
    probe = SubscriberProbe[int](1).subscribed_to(queue.do_on_discard(discarded.append))
    await asyncio.sleep(1)
    source.emit(1, 2, 3)
    source.fail(Failed())
    await probe.end()
    assert (probe.elements, discarded) == ([1], [2, 3])


async def test_create_gives_back_what_other_threads_have_emitted() -> None:
    async def emit(to: r.Emitter[int]) -> None:
        for number in range(3):
            to.try_emit(number)
        for number in range(3, 5):
            to.emit_threadsafe(number)
        await asyncio.sleep(9)

    discarded = await cancelled(r.create(emit, capacity=2, overflow="wait"), request=1)
    assert sorted(cast("list[int]", discarded)) == [1, 2, 3, 4]


async def test_what_an_overflow_drops_is_not_discarded() -> None:
    dropped: list[int] = []
    flow = numbers(4).on_backpressure_buffer(2, on_drop=dropped.append)
    assert await cancelled(flow, request=1) == [1, 2]
    assert dropped == [3]


@pytest.mark.parametrize("count", [3, 100])
async def test_what_was_delivered_before_an_error_of_the_source_is_not_given_back(
    count: int,
) -> None:
    def failing() -> Iterator[int]:
        yield from range(count)
        raise Failed

    discarded: list[int] = []
    flow = r.from_iterable(failing()).filter(bool).do_on_discard(discarded.append)
    probe = SubscriberProbe[int](MANY).subscribed_to(flow)
    await probe.end()
    assert isinstance(probe.error, Failed)
    assert probe.elements == [*range(1, count)]
    assert not discarded


@pytest.mark.parametrize("count", [3, 100])
async def test_the_element_with_which_a_stage_raises_is_given_back_and_no_other(count: int) -> None:
    discarded: list[int] = []
    flow = r.range(200).map(lambda x: 1 // (count - x) and x).do_on_discard(discarded.append)
    probe = SubscriberProbe[int](MANY).subscribed_to(flow)
    await probe.end()
    assert isinstance(probe.error, ZeroDivisionError)
    assert discarded == [count]


async def test_an_element_whose_signal_is_cancelled_while_it_is_awaited_was_delivered() -> None:
    class Awaited(SubscriberProbe[int]):
        def on_next(self, element: int, /) -> Any:
            super().on_next(element)
            return asyncio.sleep(10)

    discarded: list[int] = []
    probe = Awaited(MANY)
    r.range(9).do_on_discard(discarded.append).subscribe(probe)
    await asyncio.sleep(5)
    probe.cancel()
    await asyncio.sleep(100)
    assert probe.elements == [0]
    assert not discarded


@pytest.mark.parametrize(
    ("flow", "given_back"),
    [
        (r.just("b", "c").start_with("a").take(1), []),
        (r.just("b", "c").take(0).default_if_empty("a").take(1), []),
        (r.just("a", "b").take_last(2).take(1), ["b"]),
        (r.just("a", "b", "c").buffer(2).take(2), []),
        (r.just("a", "b").start_with("c").take(1).merge_with(r.just("d")), []),
    ],
)
async def test_an_element_that_came_out_last_is_not_given_back(
    flow: Flow[Any], given_back: list[str]
) -> None:
    """Also where an operator emits it ahead of the others, after them, or among several."""
    back: list[Any] = []
    whole = flow.do_on_discard(back.append)
    assert [each async for each in whole] == await flow.to_list()
    assert back == given_back
    await whole.to_list()
    assert back == given_back * 2
