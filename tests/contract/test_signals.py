"""Names, coroutines and plain methods mixed, None, 3.9, depth 1, and the order of signals."""

import asyncio
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from reactive_aio import Flow, just
from reactive_aio.errors import NotAnElement
from reactive_aio.spec import Subscription
from reactive_aio.stage import FlowSubscription, InlineStage, from_pull, from_push, push_next
from reactive_aio.testing import SubscriberProbe
from tests.contract.subscribers import (
    BOTH,
    SHAPES,
    UNBOUNDED,
    Acting,
    AsyncActing,
    Source,
    collect,
    flow,
    itself,
    pushed,
    turns,
)
from tests.harness.one_run import in_one_run

Shape = Callable[[Source], Flow[int]]
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
both = pytest.mark.parametrize("kind", BOTH)


# -- plain and coroutine methods -------------------------------------------------------------------
SIGNALS = ("on_subscribe", "on_next", "on_error", "on_complete")


def mixed(asynchronous: set[str]) -> tuple[Any, list[str]]:
    """A subscriber some of whose methods are coroutines, and its log."""
    log: list[str] = []

    def method(name: str) -> Any:
        def plain(self: Any, *args: Any) -> None:
            log.append(name)
            if name == "on_subscribe":
                args[0].request(UNBOUNDED)

        async def slow(self: Any, *args: Any) -> None:
            log.append(f"{name} begins")
            if name == "on_subscribe":
                args[0].request(UNBOUNDED)
            await asyncio.sleep(0)
            log.append(f"{name} ends")

        return slow if name in asynchronous else plain

    return type("Mixed", (), {name: method(name) for name in SIGNALS})(), log


@in_one_run
@every_shape
@pytest.mark.parametrize("number", range(16))
async def test_each_signal_may_be_plain_or_a_coroutine(shape: Shape, number: int) -> None:
    """1.3: each is run to its end before the next begins."""
    asynchronous = {name for bit, name in enumerate(SIGNALS) if number >> bit & 1}
    subscriber, log = mixed(asynchronous)
    shape(Source(2)).subscribe(subscriber)
    expected: list[str] = []
    for name in ("on_subscribe", "on_next", "on_next", "on_complete"):
        expected += [f"{name} begins", f"{name} ends"] if name in asynchronous else [name]
    for _ in range(200):
        if log == expected:
            break
        await asyncio.sleep(0)
    assert log == expected


@every_shape
async def test_an_awaitable_returned_by_a_plain_signal_is_awaited(shape: Shape) -> None:
    """1.3: coroutines, futures and tasks alike."""
    loop = asyncio.get_running_loop()
    inside = 0

    async def slow() -> None:
        nonlocal inside
        inside += 1
        await asyncio.sleep(0)
        inside -= 1

    def later() -> "asyncio.Future[None]":
        future = loop.create_future()
        loop.call_soon(future.set_result, None)
        return future

    kinds: list[Callable[[], object]] = [slow, later, lambda: loop.create_task(slow())]

    def act(self: Acting) -> object:
        assert inside == 0
        return kinds[len(self.signals) % 3]()

    subscriber = Acting(UNBOUNDED, on_subscribe=act, on_next=act, on_complete=act)
    shape(Source(7)).subscribe(subscriber)
    await subscriber.end()
    await turns()
    assert subscriber.elements == list(range(7))
    assert subscriber.is_completed


async def test_other_return_values_of_a_signal_are_ignored() -> None:
    subscriber = Acting(UNBOUNDED, on_next=lambda self: 42, on_complete=lambda self: object())
    flow(3).subscribe(subscriber)
    assert subscriber.signals == [0, 1, 2, "|"]


@every_shape
async def test_subscribe_request_and_cancel_return_none(shape: Shape) -> None:
    subscriber = Acting()
    subscribed: object = shape(Source(9)).subscribe(subscriber)  # type: ignore[func-returns-value]
    requested: object = subscriber.subscription.request(1)  # type: ignore[func-returns-value]
    cancelled: object = subscriber.subscription.cancel()  # type: ignore[func-returns-value]
    assert (subscribed, requested, cancelled) == (None, None, None)
    await turns()


# -- objects that are not subscribers -------------------------------------------------------------
async def test_subscribing_none_is_a_type_error_that_names_the_rule() -> None:
    """1.9."""
    nothing: Any = None
    with pytest.raises(TypeError, match=r"rule 1\.9.*subscribe\(None\)"):
        flow().subscribe(nothing)


async def test_missing_methods_are_a_type_error_that_names_them() -> None:
    class Half:
        def on_subscribe(self, subscription: object) -> None: ...
        def on_next(self, element: object) -> None: ...

    wrong: Any = Half()
    with pytest.raises(TypeError, match=r"1\.9.*'Half'.*on_error, on_complete.*for_each"):
        flow().subscribe(wrong)


async def test_a_class_is_a_type_error_that_says_so() -> None:
    wrong: Any = SubscriberProbe
    with pytest.raises(TypeError, match=r"'SubscriberProbe' is a class; subscribe an instance"):
        flow().subscribe(wrong)


async def test_an_instance_with_methods_of_its_own_is_looked_at_each_time() -> None:
    def negated(x: int) -> None:
        probes[1].on_next(-x)

    probes = [SubscriberProbe[int](9) for _ in range(2)]
    whole, plain = (
        cast("Any", SimpleNamespace(**{name: getattr(probe, name) for name in SIGNALS}))
        for probe in probes
    )
    plain.on_next = negated
    half: Any = SimpleNamespace(on_next=whole.on_next)
    flow().subscribe(whole)
    flow().subscribe(plain)
    assert [probe.signals for probe in probes] == [[0, 1, 2, "|"], [0, -1, -2, "|"]]
    with pytest.raises(TypeError, match="on_error"):
        flow().subscribe(half)


async def test_a_class_whose_on_next_was_replaced_is_looked_at_again() -> None:
    class Patched(AsyncActing):
        async def on_next(self, element: Any, /) -> None:  # type: ignore[override]
            await super().on_next(element)

    assert await Patched(9).subscribed_to(flow(2)).end() == [0, 1, "|"]
    Patched.on_next = Acting.on_next  # type: ignore[method-assign]
    assert await Patched(9).subscribed_to(flow(2)).end() == [0, 1, "|"]


def test_without_a_loop_on_error_receives_the_reason() -> None:
    """1.9: on_subscribe first, then the error."""

    class Plain:
        def __init__(self) -> None:
            self.signals: list[object] = []

        def on_subscribe(self, subscription: Subscription, /) -> None:
            subscription.request(1)
            subscription.cancel()
            self.signals.append("subscribed")

        def on_next(self, element: object, /) -> None:
            self.signals.append(element)

        def on_error(self, error: BaseException, /) -> None:
            self.signals.append(str(error))

        def on_complete(self) -> None:
            self.signals.append("|")

    subscriber = Plain()
    flow().subscribe(subscriber)
    assert subscriber.signals[0] == "subscribed"
    assert "running asyncio event loop" in str(subscriber.signals[1])
    assert len(subscriber.signals) == 2


def test_without_a_loop_subscribing_a_coroutine_subscriber_raises() -> None:
    class Slow:
        async def on_subscribe(self, subscription: Subscription, /) -> None: ...
        async def on_next(self, element: object, /) -> None: ...
        async def on_error(self, error: BaseException, /) -> None: ...
        async def on_complete(self) -> None: ...

    with pytest.raises(RuntimeError, match="running asyncio event loop"):
        flow().subscribe(Slow())


# -- None ------------------------------------------------------------------------------------------
def none_of(x: object) -> Any:
    return None


async def none_async(x: object) -> Any:
    return None


@pytest.mark.parametrize(
    ("made", "advice"),
    [
        (lambda: flow().map(none_of), "map produced None.*filter_map"),
        (lambda: flow().map_async(none_async), "map_async produced None"),
        (lambda: from_pull(lambda: iter([1, None]), name="holes"), "the source produced None"),
        (lambda: flow().boundary(2).map(none_of).boundary(2), "map produced None"),
    ],
)
async def test_none_is_not_an_element_and_the_error_names_the_stage(made: Any, advice: str) -> None:
    """2.13."""
    *_, error = await collect(made())
    assert isinstance(error, NotAnElement)
    with pytest.raises(TypeError, match=advice):
        raise error


async def test_a_pushed_none_fails_the_flow() -> None:
    def open(downstream: Any) -> Any:
        class Pushing(FlowSubscription):
            def request(self, n: int, /) -> None:
                downstream.push([None])

            def cancel(self) -> None: ...

        return Pushing()

    (error,) = await collect(pushed(open))
    assert isinstance(error, NotAnElement)


async def test_what_precedes_a_pushed_none_is_delivered() -> None:
    """2.13: also where a container takes whole lists."""

    def open(downstream: Any) -> Any:
        class Pushing(FlowSubscription):
            def request(self, n: int, /) -> None:
                downstream.push([1, 2, None, 3])

            def cancel(self) -> None: ...

        return Pushing()

    found = list[int]()

    async def read() -> None:
        async with pushed(open).stream(prefetch=8) as elements:
            async for element in elements:
                found.append(element)

    with pytest.raises(NotAnElement):
        await read()
    assert found == [1, 2]


async def test_an_element_that_cannot_be_created_fails_the_flow_after_the_earlier_ones() -> None:
    """1.4: of a source that makes its elements as they are requested."""

    def elements() -> Iterator[int]:
        yield from (0, 1)
        raise LookupError("the third")

    def open(downstream: Any) -> Any:
        class Pushing(FlowSubscription):
            def request(self, n: int, /) -> None:
                push_next(downstream, elements(), 5)

            def cancel(self) -> None:
                cancelled.append(self)

        return Pushing()

    cancelled = list[Any]()
    *before, error = await collect(pushed(open))
    assert before == [0, 1]
    assert isinstance(error, LookupError)
    assert len(cancelled) == 1


# -- the order of signals --------------------------------------------------------------------------
@in_one_run
@every_shape
@both
async def test_no_signal_is_sent_before_on_subscribe_has_returned(
    shape: Shape, kind: type[Acting]
) -> None:
    """1.3, 1.9: however early it was requested."""
    seen: list[int] = []

    def act(self: Acting) -> None:
        self.request(5)
        seen.append(len(self.signals))

    subscriber = kind(3, on_subscribe=act)
    shape(Source(4)).subscribe(subscriber)
    await subscriber.end()
    assert seen == [0]
    assert subscriber.elements == [0, 1, 2, 3]


async def test_completion_needs_no_demand_if_the_end_is_known() -> None:
    """1.5, 2.9."""
    subscriber = SubscriberProbe[int]()
    flow(0).subscribe(subscriber)
    assert subscriber.signals == ["|"]
    exact = SubscriberProbe[int](3)
    flow(3).map(abs).subscribe(exact)
    assert exact.signals == [0, 1, 2, "|"]


async def test_a_failure_needs_no_demand() -> None:
    """1.4, 2.10: the source cannot even be opened."""

    def cannot() -> Any:
        raise OSError("closed today")

    pulled: Flow[Any] = from_pull(cannot, name="shop")
    pushed: Flow[Any] = from_push(lambda _: cannot(), name="shop")
    for chain in (pulled, pulled.map(abs), pushed.map_async(abs)):
        subscriber = SubscriberProbe[int]()
        chain.subscribe(subscriber)
        assert isinstance(subscriber.error, OSError)


@every_shape
async def test_the_elements_before_an_error_arrive(shape: Shape) -> None:
    """1.4: an error overtakes nothing."""

    def wrong(x: int) -> int:
        if x == 5:
            raise ValueError(x)
        return x

    subscriber = SubscriberProbe[int](1, again=1)
    shape(Source(9)).map(wrong).subscribe(subscriber)
    await subscriber.end()
    assert subscriber.elements == [0, 1, 2, 3, 4]
    assert isinstance(subscriber.error, ValueError)


@in_one_run
@pytest.mark.parametrize("error", [StopIteration("x"), StopAsyncIteration("x")])
@every_shape
async def test_no_exception_of_a_user_truncates_a_flow(shape: Shape, error: BaseException) -> None:
    """1.4: those that mean an end to Python are failures here."""

    def wrong(x: int) -> int:
        if x == 2:
            raise error
        return x

    signals = await collect(shape(Source(5)).map(wrong))
    assert signals[:-1] == [0, 1]
    assert isinstance(signals[-1], Exception)
    with pytest.raises((RuntimeError, StopAsyncIteration)):
        async for _ in shape(Source(5)).map(wrong):
            pass
    with pytest.raises((RuntimeError, StopAsyncIteration)):
        async for _ in shape(Source(5)).map(wrong).boundary(2):
            pass


_THRICE = InlineStage("thrice", each="emit each (x, x, x)")


@both
async def test_every_part_of_the_last_element_arrives(kind: type[Acting]) -> None:
    """1.5: the source is known to have ended, and a stage still has something in hand."""
    for chain in (flow(2), flow(2).boundary(1), flow(2).map_async(itself)):
        for request, again in ((1, 1), (2, 1), (4, 0), (UNBOUNDED, 0)):
            subscriber = kind(request, again)
            chain.via(_THRICE).subscribe(subscriber)
            await turns(20)
            if not again:
                subscriber.request(9)
            await subscriber.end()
            assert subscriber.signals == [0, 0, 0, 1, 1, 1, "|"]


async def test_one_flow_serves_many_subscribers_at_once() -> None:
    """1.10, 1.11: cold, each from the beginning."""
    chain = flow(30).map(abs).boundary(4).map(abs)
    probes = [SubscriberProbe[int](1, again=1).subscribed_to(chain) for _ in range(5)]
    for probe in probes:
        await probe.end()
        assert probe.elements == list(range(30))


async def test_an_exception_that_cannot_be_annotated_is_delivered() -> None:
    """1.4."""

    class Frozen(Exception):
        def __setattr__(self, name: str, value: object) -> None:
            raise AttributeError(name)

    def wrong(x: int) -> int:
        raise Frozen

    (error,) = await collect(just(1).map(wrong).boundary(1))
    assert isinstance(error, Frozen)


async def test_a_group_of_errors_is_delivered_as_it_is() -> None:
    group = ExceptionGroup("several", [ValueError(1), OSError(2)])

    def fail(_: int) -> int:
        raise group

    with pytest.raises(ExceptionGroup) as raised:
        await just(1).map(fail).boundary(2).to_list()
    assert raised.value is group
