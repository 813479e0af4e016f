"""Whatever a function of the user raises reaches the consumer: nothing waits for ever."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Any, cast

import pytest

import reactive_aio as r
from reactive_aio.errors import Interrupted
from reactive_aio.testing import PublisherProbe, SubscriberProbe
from tests.contract.outcomes import NOTHING, Consume, collect, iterate, observe, subscribe
from tests.harness.loops import REAL_LOOPS, LoopFactory

Raise = Callable[[], BaseException]


class OwnError(BaseException):
    """An exception that is not an Exception."""


KINDS: dict[str, tuple[Raise, type[BaseException]]] = {
    "Exception": (lambda: ValueError("wrong"), ValueError),
    "BaseExceptionGroup": (lambda: BaseExceptionGroup("several", [OwnError()]), BaseExceptionGroup),
    "custom": (OwnError, OwnError),
    "CancelledError": (asyncio.CancelledError, Interrupted),
    "GeneratorExit": (GeneratorExit, RuntimeError),
}
"""What is raised, and what the consumer receives."""


def functions(error: Raise) -> dict[str, Callable[[], Any]]:
    """A flow for each place where a function of the user raises *error*."""

    def opens(*_: object) -> Any:
        raise error()

    def maps(x: int) -> int:
        if x == 2:
            raise error()
        return x + 1

    async def maps_async(x: int) -> int:
        await asyncio.sleep(0)
        return maps(x)

    def generator() -> Iterator[int]:
        yield 1
        raise error()

    async def async_generator() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(0)
        raise error()

    async def fails() -> AsyncIterator[int]:
        yield 1
        raise OSError

    async def fails_at(x: int) -> int:
        raise OSError

    class Iterates:
        def __iter__(self) -> "Iterates":
            return self

        def __next__(self) -> int:
            raise error()

    class Opens:
        def __iter__(self) -> Iterator[int]:
            raise error()

    def emits(to: Any) -> None:
        to.try_emit(1)
        raise error()

    async def emits_async(to: Any) -> None:
        await to.emit(1)
        raise error()

    class Manager:
        def __enter__(self) -> int:
            return 1

        def __exit__(self, *_: object) -> None:
            pass

    class Enters(Manager):
        def __enter__(self) -> int:
            raise error()

    class Exits(Manager):
        def __exit__(self, *_: object) -> None:
            raise error()

    class EntersAsync(contextlib.AsyncExitStack):
        async def __aenter__(self) -> Any:
            raise error()

    def one(_: Any) -> list[int]:
        return [1]

    def opens_flow(_: Any) -> list[int]:
        raise error()

    using: Any = r.using
    defer: Any = r.defer
    from_callable: Any = r.from_callable
    create: Any = r.create
    generate: Any = r.generate
    five, awaited = r.range(5), r.from_aiter(async_generator)
    return {
        "from_iterable": lambda: r.from_iterable(Iterates()),
        "from_iterable: __iter__": lambda: r.from_iterable(Opens()),
        "error": lambda: r.error(opens),
        "start_with": lambda: r.from_iterable(Opens()).start_with([1]),
        "from_aiter": lambda: awaited,
        "from_awaitable": lambda: r.from_awaitable(lambda: maps_async(2)),
        "from_callable": lambda: from_callable(opens),
        "from_thread": lambda: r.from_thread(generator),
        "generate": lambda: generate(opens, 1),
        "defer": lambda: defer(opens),
        "create": lambda: create(emits),
        "create: coroutine": lambda: create(emits_async),
        "using: enter": lambda: using(Enters, one),
        "using: exit": lambda: using(Exits, one),
        "using: asynchronous enter": lambda: using(EntersAsync, one),
        "using: flow": lambda: using(Manager, opens_flow),
        "map": lambda: five.map(maps),
        "map after a boundary": lambda: five.boundary(2).map(maps),
        "map before a boundary": lambda: five.map(maps).boundary(2),
        "filter": lambda: five.filter(maps),
        "scan": lambda: five.scan(lambda _, x: maps(x), seed=1),
        "map_async": lambda: five.map_async(maps_async),
        "map_async: concurrent": lambda: five.map_async(maps_async, concurrency=4),
        "filter_async": lambda: five.filter_async(maps_async),
        "flat_map": lambda: five.flat_map(lambda x: [maps(x)]),
        "flat_map: generator": lambda: five.flat_map(lambda _: generator()),
        "flat_map: asynchronous": lambda: five.flat_map(lambda _: awaited),
        "do_on_next": lambda: five.do_on_next(maps),
        "do_on_complete": lambda: five.do_on_complete(opens),
        "do_on_request": lambda: five.do_on_request(opens),
        "do_finally": lambda: five.do_finally(opens),
        "do_on_error": lambda: r.error(OSError).do_on_error(opens),
        "do_on_error: async": lambda: r.from_aiter(fails).do_on_error(opens),
        "do_on_error: pushed": lambda: r.from_aiter(fails).boundary(2).do_on_error(opens),
        "do_on_error: followed": lambda: r.from_aiter(fails).concat_with([]).do_on_error(opens),
        "on_error_resume": lambda: r.error(OSError).on_error_resume(opens),
        "on_error_map": lambda: r.error(OSError).on_error_map(opens),
        "map_async: on_error": lambda: five.map_async(fails_at, on_error=opens),
        "map_async: key": lambda: five.map_async(maps_async, key=opens),
        "map_async: timeout": lambda: five.map_async(maps_async, timeout=9, concurrency=2),
        "merge": lambda: r.merge(awaited, five),
        "concat": lambda: r.concat(five, awaited),
        "zip": lambda: r.zip(awaited, five),
        "then": lambda: awaited.then([1]),
        "timeout": lambda: awaited.timeout(5),
        "buffer_timeout": lambda: awaited.buffer_timeout(3, 5),
        "on_backpressure_buffer": lambda: awaited.on_backpressure_buffer(3),
    }


async def consume(flow: Any) -> None:
    async for _ in flow:
        pass


async def receive(flow: Any) -> None:
    end = (await SubscriberProbe[Any](99).subscribed_to(flow).end())[-1]
    if isinstance(end, BaseException):
        raise end


WAYS: dict[str, Callable[[Any], Any]] = {
    "to_list": lambda flow: flow.to_list(),
    "async for": consume,
    "subscribe": receive,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", functions(OwnError))
async def test_it_reaches_the_consumer(place: str, kind: str, way: str) -> None:
    (error, received), outcomes = KINDS[kind], list[str]()
    flow = functions(error)[place]().do_finally(outcomes.append)
    consumer = asyncio.ensure_future(WAYS[way](flow))
    await asyncio.wait([consumer])
    assert not consumer.cancelled()
    raised = consumer.exception()
    if kind == "GeneratorExit":  # a generator of the user turns it into the end of the generator
        received, outcomes = BaseException, ["failed"]
    assert isinstance(raised, received), raised
    assert outcomes == ["failed"]


HANDLED: dict[str, tuple[Callable[[r.Flow[Any]], r.Flow[Any]], list[object]]] = {
    "on_error_return": (lambda flow: flow.on_error_return("kept"), ["kept"]),
    "on_error_resume": (lambda flow: flow.on_error_resume(["kept"]), ["kept"]),
    "on_error_resume of a function": (lambda flow: flow.on_error_resume(lambda _: ["kept"]),
                                      ["kept"]),
    "on_error_complete": (lambda flow: flow.on_error_complete(), []),
    "only": (lambda flow: flow.on_error_return("kept", only=Interrupted), ["kept"]),
}  # fmt: skip


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


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", functions(asyncio.CancelledError))
async def test_an_own_cancellation_is_translated_before_anything_sees_it(
    place: str, way: str
) -> None:
    """The callbacks and policies of a flow receive what its consumer does."""
    seen: list[BaseException] = []
    made = functions(asyncio.CancelledError)[place]()
    flow = made.do_on_error(seen.append).retry(2).do_on_error(seen.append).on_error_return("failed")
    assert (await flow.to_list())[-1] == "failed"
    await WAYS[way](flow)
    assert len(seen) in (
        4,
        6,
    )  # a source that serves one subscription fails otherwise the next time
    assert isinstance(seen[0], Interrupted)
    assert not any(isinstance(each, asyncio.CancelledError) for each in seen)


@pytest.mark.parametrize("make_loop", REAL_LOOPS.values(), ids=REAL_LOOPS)
@pytest.mark.parametrize("way", [subscribe, collect, iterate], ids=lambda way: way.__name__)
@pytest.mark.parametrize("place", functions(OwnError))
def test_a_keyboard_interrupt_stops_the_program_and_reaches_the_consumer(
    place: str, way: Consume, make_loop: LoopFactory
) -> None:
    outcome = observe(way, lambda: functions(KeyboardInterrupt)[place](), make_loop)
    assert outcome.stops is (place != "from_thread")  # the thread ends, and the flow fails
    assert outcome.reported == []
    if way is subscribe and place == "do_on_request":
        assert outcome.end == NOTHING  # it is raised to the subscriber, which made the request
    else:
        assert isinstance(outcome.end, (Interrupted, KeyboardInterrupt)), outcome.end


# -- callbacks of the end --------------------------------------------------------------------------
class Source:
    """A source in each of its kinds, and whether it was closed."""

    def __init__(self) -> None:
        self.is_closed = False

    def __iter__(self) -> Generator[int, None, None]:
        try:
            yield from range(1, 10)
        finally:
            self.is_closed = True

    async def iterate(self) -> AsyncIterator[int]:
        with contextlib.closing(self.__iter__()) as numbers:
            for number in numbers:
                yield number
                await asyncio.sleep(0)

    def listen(self, to: Any) -> None:
        def close() -> None:
            self.is_closed = True

        to.on_cancel(close)
        to.try_emit(1)

    def flows(self) -> dict[str, Any]:
        create: Any = r.create
        return {
            "iterable": r.from_iterable(self),
            "asynchronous": r.from_aiter(self.iterate),
            "boundary": r.from_aiter(self.iterate).boundary(2),
            "create": create(self.listen),
            "thread": r.from_thread(lambda: iter(self)),
        }


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what a thread may do."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def leave(flow: Any) -> None:
    async for _ in flow:
        break


async def leave_stream(flow: Any) -> None:
    async with flow.stream() as elements:
        async for _ in elements:
            break


async def cancel(flow: Any) -> None:
    probe = SubscriberProbe[Any](1).subscribed_to(flow)
    await probe.next_element()
    probe.cancel()


LEAVE: dict[str, Callable[[Any], Any]] = {
    "break": leave,
    "stream": leave_stream,
    "first": lambda flow: flow.first(),
    "take": lambda flow: flow.take(1).run(),
    "boundary": lambda flow: flow.boundary(2).first(),
    "cancel": cancel,
}


@pytest.mark.parametrize("way", LEAVE)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hook", ["do_finally", "do_on_cancel"])
@pytest.mark.parametrize("name", Source().flows())
async def test_a_callback_that_raises_at_a_cancellation_is_reported_and_the_source_closed(
    name: str, hook: str, kind: str, way: str, expects_loop_errors: list[Any]
) -> None:
    error, outcomes, source = KINDS[kind][0](), list[str](), Source()

    def fail(*_: object) -> None:
        raise error

    flow = source.flows()[name].do_finally(outcomes.append)
    await LEAVE[way](getattr(flow, hook)(fail))
    await until(lambda: source.is_closed and bool(expects_loop_errors))
    assert outcomes == ["cancelled"]
    assert [each["exception"] for each in expects_loop_errors] == [error]
    assert "a callback raised when its flow was cancelled" in expects_loop_errors[0]["message"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hook", ["do_finally", "do_on_error", "do_on_complete"])
@pytest.mark.parametrize("name", ["iterable", "asynchronous", "boundary"])
async def test_what_a_callback_raises_at_the_end_reaches_the_consumer(
    name: str, hook: str, kind: str, way: str
) -> None:
    error, received = KINDS[kind]
    source, outcomes = Source(), list[str]()

    def fail(*_: object) -> None:
        raise error()

    def fails_at_three(x: int) -> float:
        return 1 / (3 - x)

    # It completes, or fails, while the source could go on.
    flow = source.flows()[name]
    flow = flow.take(2) if hook == "do_on_complete" else flow.map(fails_at_three)
    consumer = asyncio.ensure_future(
        WAYS[way](getattr(flow, hook)(fail).do_finally(outcomes.append))
    )
    await asyncio.wait([consumer])
    assert not consumer.cancelled()
    assert isinstance(consumer.exception(), received), consumer.exception()
    assert outcomes == ["failed"]
    await until(lambda: source.is_closed)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_callback_of_on_cancel_that_raises_is_reported_and_the_others_are_called(
    kind: str, expects_loop_errors: list[Any]
) -> None:
    error, called = KINDS[kind][0](), list[str]()

    def fail() -> None:
        raise error

    def listen(to: r.Emitter[int]) -> None:
        to.on_cancel(fail)
        to.on_cancel(lambda: called.append("second"))
        to.try_emit(1)
        to.try_emit(2)

    discarded = list[int]()
    assert await r.create(listen).do_on_discard(discarded.append).first() == 1
    assert (called, discarded) == (["second"], [2])
    assert [each["exception"] for each in expects_loop_errors] == [error]


# -- sources around a task group -------------------------------------------------------------------
class ChildFailed(Exception):
    """Of a task that a source has started."""


async def in_a_task_group() -> AsyncIterator[int]:
    async with asyncio.TaskGroup():
        for number in range(100):
            await asyncio.sleep(0)
            yield number


async def with_a_child_that_fails() -> AsyncIterator[int]:
    async def fail() -> None:
        await asyncio.sleep(0.01)
        raise ChildFailed

    async with asyncio.TaskGroup() as group:
        group.create_task(fail())
        for number in range(100):
            await asyncio.sleep(0)
            yield number


LEAVING: dict[str, tuple[Callable[[Any], Any], object]] = {
    "take": (lambda flow: flow.take(3).to_list(), [0, 1, 2]),
    "first": (lambda flow: flow.first(), 0),
    "boundary": (lambda flow: flow.boundary(2).take(3).to_list(), [0, 1, 2]),
    "take before a boundary": (lambda flow: flow.take(3).boundary(2).to_list(), [0, 1, 2]),
    "merge": (lambda flow: flow.take(2).merge_with([7]).count(), 3),
    "concat": (lambda flow: flow.take(2).concat_with([7]).to_list(), [0, 1, 7]),
    "zip": (lambda flow: flow.zip_with([1]).to_list(), [(0, 1)]),
}


@pytest.mark.parametrize("way", LEAVING)
async def test_a_task_group_in_a_source_is_left_without_an_error(way: str) -> None:
    leave, result = LEAVING[way]
    assert await leave(r.from_aiter(in_a_task_group)) == result


async def test_the_failure_of_a_flow_is_not_hidden_by_the_end_of_its_task_group() -> None:
    with pytest.raises(ZeroDivisionError):
        await r.from_aiter(in_a_task_group).map(lambda x: 1 // (2 - x)).to_list()


def children_of(group: Any) -> list[BaseException]:
    return [*group.exceptions]


async def test_a_child_that_fails_while_the_flow_waits_for_demand_fails_the_flow() -> None:
    for flow in (
        r.from_aiter(with_a_child_that_fails),
        r.from_aiter(with_a_child_that_fails).map(str),
    ):
        probe = SubscriberProbe[Any](2).subscribed_to(flow)
        error = (await probe.end())[-1]
        assert isinstance(error, ExceptionGroup)
        assert [type(each) for each in children_of(cast("Any", error))] == [ChildFailed]


# -- what flat_map has taken of its sources --------------------------------------------------------
MAPS: dict[str, Callable[[Any, Any], Any]] = {
    "flat_map": lambda flow, mapper: flow.flat_map(mapper),
    "concat_map": lambda flow, mapper: flow.concat_map(mapper),
}
ABOVE: dict[str, Callable[[], Any]] = {
    "synchronous": lambda: r.just(0),
    "asynchronous": lambda: r.timer(0.001),
}


def taken_before(error: Raise) -> Callable[[Any], Iterator[int]]:
    def parts(_: Any) -> Iterator[int]:
        yield 1
        yield 2
        raise error()

    return parts


@pytest.mark.parametrize("above", ABOVE)
@pytest.mark.parametrize("operator", MAPS)
@pytest.mark.parametrize("kind", KINDS)
async def test_elements_taken_before_it_are_delivered(kind: str, operator: str, above: str) -> None:
    error, received = KINDS[kind]
    flow = MAPS[operator](ABOVE[above](), taken_before(error))
    probe = SubscriberProbe[int](99).subscribed_to(flow)
    assert isinstance((await probe.end())[-1], received)
    assert probe.elements == [1, 2]


@pytest.mark.parametrize("make_loop", REAL_LOOPS.values(), ids=REAL_LOOPS)
@pytest.mark.parametrize("above", ABOVE)
@pytest.mark.parametrize("operator", MAPS)
def test_elements_taken_before_a_keyboard_interrupt_are_discarded(
    operator: str, above: str, make_loop: LoopFactory
) -> None:
    discarded: list[int] = []

    def make() -> Any:
        flow = MAPS[operator](ABOVE[above](), taken_before(KeyboardInterrupt))
        return flow.do_on_discard(discarded.append)

    outcome = observe(subscribe, make, make_loop)
    assert outcome.stops
    assert outcome.probe is not None
    assert outcome.probe.elements + discarded == [1, 2]


@pytest.mark.parametrize("kind", KINDS)
async def test_elements_that_wait_are_delivered_before_the_error_of_a_mapper(kind: str) -> None:
    error, received = KINDS[kind]
    waiting, outer = PublisherProbe[int](), PublisherProbe[int]()

    def mapper(x: int) -> Any:
        if x:
            raise error()
        return r.from_publisher(waiting)

    flow = r.from_publisher(outer).flat_map(mapper)
    probe = SubscriberProbe[int](1).subscribed_to(flow)
    outer.emit(0)
    waiting.emit(1, 2)
    outer.emit(3)
    await asyncio.sleep(0)
    assert probe.signals == [1]
    probe.request(5)
    assert isinstance((await probe.end())[-1], received)
    assert probe.elements == [1, 2]


@pytest.mark.parametrize("kind", [each for each in KINDS if each != "GeneratorExit"])
async def test_the_cleanup_of_an_iterable_does_not_replace_the_error(
    kind: str, expects_loop_errors: list[Any]
) -> None:
    error, reported = KINDS[kind]
    failing, outer = PublisherProbe[int](), PublisherProbe[int]()

    def endless() -> Iterator[int]:
        try:
            while True:
                yield 0
        finally:
            raise error()

    sources: list[Any] = [r.from_publisher(failing), endless()]
    flow: Any = r.from_publisher(outer).flat_map(lambda x: sources[x])
    probe = SubscriberProbe[int](1).subscribed_to(flow)
    outer.emit(0, 1)
    await asyncio.sleep(0)
    failing.emit(2)
    failing.fail(ChildFailed())
    probe.request(5)
    assert isinstance((await probe.end())[-1], ChildFailed)
    assert probe.elements == [0, 2]
    assert [type(each["exception"]) for each in expects_loop_errors] == [reported]


# -- errors of a cleanup ---------------------------------------------------------------------------
async def test_the_error_of_a_cleanup_after_break_is_reported(
    expects_loop_errors: list[Any],
) -> None:
    async def source() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            raise ValueError("in finally")

    async for _ in r.from_aiter(source):
        break
    await asyncio.sleep(0.01)
    assert [str(each["exception"]) for each in expects_loop_errors] == ["in finally"]
