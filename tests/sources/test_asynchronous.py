"""Async iterables, awaitables, queues, publishers: demand, subscriptions, cleanup, violations."""

import asyncio
import copy
import sys
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from contextlib import suppress
from typing import Any, cast

import anyio
import pytest
from anyio import BrokenResourceError, EndOfStream, WouldBlock, create_memory_object_stream

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.errors import AlreadySubscribed, NotAnElement, RuleViolation
from reactive_aio.spec import Publisher, Subscriber
from reactive_aio.testing import AsyncSubscriberProbe, PublisherProbe, SubscriberProbe
from tests.cases import Needs


async def numbers(n: int, log: list[str] | None = None) -> AsyncIterator[int]:
    try:
        for x in range(n):
            await asyncio.sleep(0)
            yield x
    finally:
        if log is not None:
            await asyncio.sleep(0)
            log.append("closed")


async def broken() -> AsyncIterator[int]:
    yield 1
    raise OSError("broken")


async def forever() -> AsyncIterator[int]:
    while True:
        yield 1


async def given(x: int) -> int:
    await asyncio.sleep(0)
    return x


class Awaited:
    def __await__(self) -> Generator[None, None, int]:
        return given(1).__await__()


async def failing() -> int:
    raise OSError("no")


class Receiving:
    """A stream of *n* numbers, which may be left open."""

    def __init__(self, n: int) -> None:
        self._rest = iter(range(n))

    async def receive(self) -> int:
        await asyncio.sleep(0)
        element = next(self._rest, None)
        if element is None:
            raise EndOfStream
        return element

    async def __aiter__(self) -> AsyncIterator[int]:
        with suppress(EndOfStream):
            while True:
                yield await self.receive()


def filled(*elements: Any, bound: int = 0) -> asyncio.Queue[Any]:
    queue: asyncio.Queue[Any] = asyncio.Queue(bound)
    for element in elements:
        queue.put_nowait(element)
    return queue


def queued(n: int) -> Publisher[Any]:
    return r.defer(lambda: r.from_queue(filled(*range(n), "end"), end="end"))


class Foreign:
    """A foreign publisher, made of a function that drives the subscriber."""

    def __init__(self, act: Callable[[Any], None]) -> None:
        self.act = act
        self.cancelled = 0
        self.requested = 0

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        self.act(subscriber)

    def request(self, n: int, /) -> None:
        self.requested += n

    def cancel(self) -> None:
        self.cancelled += 1


class Wrapped:
    """A foreign publisher that conforms."""

    def __init__(self, inner: Publisher[Any]) -> None:
        self.inner = inner

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        self.inner.subscribe(subscriber)


def endless() -> Publisher[int]:
    return r.from_publisher(Wrapped(r.generate(lambda n: (n, n + 1), 0)))


OF_LENGTH: Mapping[str, Callable[[int], Publisher[Any]]] = {
    "from_aiter: generator function": lambda n: r.from_aiter(lambda: numbers(n)),
    "from_aiter: stream": lambda n: r.defer(lambda: r.from_aiter(r.range(n).boundary(2).stream())),
    "from_aiter: function that makes a flow": lambda n: r.from_aiter(
        lambda: r.range(n).boundary(2)
    ),
    "from_awaitable": lambda n: r.range(n).flat_map(lambda x: r.from_awaitable(lambda: given(x))),
    "from_queue": queued,
    "from_anyio": lambda n: r.defer(lambda: r.from_anyio(Receiving(n))),
    "from_publisher": lambda n: r.from_publisher(Wrapped(r.range(n))),
    "from_publisher: over a boundary": lambda n: r.from_publisher(Wrapped(r.range(n).boundary(2))),
}
FAILING: Mapping[str, Callable[[], Publisher[Any]]] = {
    "from_aiter": lambda: r.from_aiter(broken),
    "from_awaitable": lambda: r.from_awaitable(failing),
    "from_queue": lambda: r.defer(lambda: r.from_queue(filled(1, None))),
    "from_publisher": lambda: r.from_publisher(Wrapped(r.range(3).map(lambda x: 1 // (1 - x)))),
}
INFINITE: Mapping[str, Callable[[], Publisher[Any]]] = {
    "from_aiter": lambda: r.from_aiter(forever),
    "from_publisher": endless,
}


class TestFromAnyio:
    async def test_it_receives_by_demand_and_closes_the_stream(self) -> None:
        send, receive = create_memory_object_stream[int](1)
        probe = SubscriberProbe[int](1).subscribed_to(r.from_anyio(receive))
        await send.send(1)
        await probe.wait_for_signals(1)
        send.send_nowait(2)
        with pytest.raises(WouldBlock):
            send.send_nowait(3)
        probe.cancel()
        await asyncio.sleep(0)
        with pytest.raises(BrokenResourceError):
            await send.send(4)
        send.close()

    async def test_a_clone_serves_another_subscription(self) -> None:
        send, receive = create_memory_object_stream[int](9)
        flow = r.from_anyio(receive.clone())
        for x in range(3):
            send.send_nowait(x)
        assert await flow.take(1).to_list() == [0]
        with pytest.raises(AlreadySubscribed, match=r"stream\.clone\(\)"):
            await flow.to_list()
        send.close()
        assert await r.from_anyio(receive).to_list() == [1, 2]

    async def test_a_subscription_that_is_cancelled_before_it_receives_leaves_the_stream(
        self,
    ) -> None:
        send, receive = create_memory_object_stream[int](9)
        flow = r.from_anyio(receive)
        SubscriberProbe[int](1).subscribed_to(flow).cancel()
        await asyncio.sleep(0)
        send.send_nowait(1)
        send.close()
        assert await flow.to_list() == [1]

    def test_another_object_is_refused(self) -> None:
        with pytest.raises(TypeError, match="from_anyio: stream must be a stream of anyio"):
            r.from_anyio(cast("Any", asyncio.Queue()))


READ_AGAIN: dict[str, Callable[[Flow[int]], Flow[Any]]] = {
    "from_aiter": lambda flow: r.from_aiter(flow),
    "from_publisher": lambda flow: r.from_publisher(flow),
    "stream": lambda flow: r.from_aiter(flow.stream()),
    "prefetch=3": lambda flow: r.from_aiter(flow.stream(prefetch=3)),
    "a function that makes a flow": lambda flow: r.from_aiter(lambda: flow),
    "merge": lambda flow: r.merge(flow.stream(), [], prefetch=4),
    "zip": lambda flow: r.zip(flow.stream(), r.generate(lambda n: (n, n), 0), prefetch=4),
    "concat": lambda flow: r.concat(flow.stream(prefetch=2), []),
}


@pytest.mark.virtual_time
class TestAFlowThatIsReadAgain:
    """A source that is given a flow, or what iterates one, holds what its `bound` says."""

    @pytest.mark.parametrize("read_again", READ_AGAIN.values(), ids=READ_AGAIN)
    async def test_it_holds_as_many_elements_as_its_bound_says(
        self, read_again: Callable[[Flow[int]], Flow[Any]]
    ) -> None:
        made = taken = most = 0

        def count(_: int) -> None:
            nonlocal made
            made += 1

        flow = read_again(r.range(1000).do_on_next(count).map_async(given))
        async for _ in flow.stream(prefetch=1):
            taken += 1
            await asyncio.sleep(0.01 if taken > 600 else 0)
            most = max(most, made - taken)
        assert taken == 1000
        assert most <= cast("int", flow.bound().total) + 1  # the one that the stream requests

    @pytest.mark.parametrize("read_again", READ_AGAIN.values(), ids=READ_AGAIN)
    async def test_its_bound_names_what_the_flow_holds(
        self, read_again: Callable[[Flow[int]], Flow[Any]]
    ) -> None:
        names = [name for name, _ in read_again(r.range(9).boundary(7)).bound().parts]
        made_later = read_again is READ_AGAIN["a function that makes a flow"]
        assert ("boundary(7)" in names) is not made_later

    @pytest.mark.parametrize(
        "name", ["from_aiter", "from_publisher", "stream", "a function that makes a flow"]
    )
    async def test_it_takes_no_element_away_that_its_reader_has_not_asked_for(
        self, name: str
    ) -> None:
        queue = filled(*range(9))
        async for element in READ_AGAIN[name](r.from_queue(queue)):
            if element == 3:
                break
        assert queue.qsize() == 5

    async def test_a_flow_is_returned_unchanged(self) -> None:
        flow = r.range(3)
        assert r.from_aiter(flow) is flow
        assert r.from_publisher(flow) is flow


class TestFromAiter:
    async def test_a_generator_serves_one_subscription_rule_1_11(self) -> None:
        flow = r.from_aiter(numbers(2))
        assert await flow.to_list() == [0, 1]
        with pytest.raises(AlreadySubscribed, match=r"1\.11"):
            await flow.to_list()

    async def test_it_is_advanced_only_by_demand(self) -> None:
        pulled: list[int] = []

        async def source() -> AsyncIterator[int]:
            for x in range(9):
                pulled.append(x)
                yield x

        probe = SubscriberProbe[int]().subscribed_to(r.from_aiter(source))
        await asyncio.sleep(0)
        assert pulled == []
        probe.request(2)
        await probe.wait_for_signals(2)
        await asyncio.sleep(0)
        assert pulled == [0, 1]
        probe.cancel()

    async def test_a_function_that_makes_something_else_fails_the_flow(self) -> None:
        flow: Flow[int] = r.from_aiter(cast("Any", lambda: given(1)))
        with pytest.raises(TypeError, match="from_awaitable"):
            await flow.to_list()

    @pytest.mark.parametrize("wrong", [[1], "abc"])
    def test_a_synchronous_iterable_is_refused(self, wrong: Any) -> None:
        with pytest.raises(TypeError, match=r"from_aiter: .* use from_iterable, or from_thread"):
            r.from_aiter(wrong)

    def test_what_is_not_iterable_at_all_is_refused(self) -> None:
        with pytest.raises(
            TypeError, match=r"from_aiter: source must be a function, not 5 \(int\)"
        ):
            r.from_aiter(cast("Any", 5))

    @pytest.mark.parametrize("make", [lambda: given, lambda: given(1), lambda: Awaited()])
    def test_what_makes_one_result_is_refused(self, make: Callable[[], Any]) -> None:
        with pytest.raises(TypeError, match=r"from_aiter: .* use from_awaitable for its result"):
            r.from_aiter(make())


class TestFromAwaitable:
    async def test_a_coroutine_function_is_called_for_each_subscription(self) -> None:
        flow = r.from_awaitable(lambda: given(7))
        probe = SubscriberProbe[int](1).subscribed_to(flow)
        assert await probe.end() == [7, "|"]
        assert await flow.single() == 7

    async def test_a_bare_coroutine_serves_one_subscription_rule_1_11(self) -> None:
        flow = r.from_awaitable(given(7))
        assert await flow.single() == 7
        with pytest.raises(AlreadySubscribed, match=r"1\.11"):
            await flow.single()

    async def test_nothing_is_awaited_before_the_first_request(self) -> None:
        called: list[int] = []

        async def work() -> int:
            called.append(1)
            return 1

        probe = AsyncSubscriberProbe[int]().subscribed_to(r.from_awaitable(work))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert called == []
        probe.request(1)
        assert await probe.end() == [1, "|"]

    async def test_a_future_serves_many_and_is_not_cancelled_with_them(self) -> None:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        flow = r.from_awaitable(future)
        leaver, stayer = (SubscriberProbe[int](1).subscribed_to(flow) for _ in range(2))
        await asyncio.sleep(0)
        leaver.cancel()
        await asyncio.sleep(0)
        assert not future.cancelled()
        future.set_result(5)
        assert await stayer.end() == [5, "|"]
        assert await flow.single() == 5

    async def test_it_can_be_copied_with_what_it_is_a_part_of(self) -> None:
        settings = {"orders": r.from_awaitable(lambda: asyncio.sleep(0, 1))}
        assert await copy.deepcopy(settings)["orders"].single() == 1

    async def test_cancel_cancels_the_awaitable(self) -> None:
        log: list[str] = []

        async def work() -> int:
            try:
                await asyncio.Event().wait()
            finally:
                log.append("cancelled")
            return 1

        task = asyncio.ensure_future(r.from_awaitable(work).single())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)
        assert log == ["cancelled"]

    async def test_none_fails_the_flow_rule_2_13(self) -> None:
        with pytest.raises(NotAnElement, match="from_awaitable produced None"):
            await r.from_awaitable(lambda: asyncio.sleep(0)).run()

    def test_something_that_is_not_awaitable_is_refused(self) -> None:
        with pytest.raises(TypeError, match=r"^from_awaitable: 5 .* cannot be awaited"):
            r.from_awaitable(cast("Any", 5))


class TestFromQueue:
    async def test_the_end_element_completes(self) -> None:
        end = object()
        assert await r.from_queue(filled(1, 2, end, 3), end=end).to_list() == [1, 2]

    async def test_elements_are_taken_only_by_demand(self) -> None:
        queue = filled(1, 2, 3)
        probe = SubscriberProbe[int](2).subscribed_to(r.from_queue(queue))
        await probe.wait_for_signals(2)
        await asyncio.sleep(0)
        assert queue.qsize() == 1
        probe.cancel()

    async def test_cancelling_while_it_waits_loses_no_element(self) -> None:
        queue = filled()
        probe = SubscriberProbe[int](1).subscribed_to(r.from_queue(queue))
        await asyncio.sleep(0)
        queue.put_nowait(1)
        probe.cancel()
        await asyncio.sleep(0)
        assert (queue.qsize(), probe.signals) == (1, [])

    @pytest.mark.skipif(sys.version_info < (3, 13), reason="queues can be shut down from 3.13 on")
    async def test_shutting_the_queue_down_completes(self) -> None:
        queue = filled(1)
        cast("Any", queue).shutdown()
        assert await r.from_queue(queue).to_list() == [1]

    def test_something_else_is_refused(self) -> None:
        with pytest.raises(TypeError, match="from_queue: queue must be"):
            r.from_queue(cast("Any", [1]))


def probe_of(act: Callable[[Any], None], demand: int = 5) -> tuple[SubscriberProbe[Any], Foreign]:
    foreign = Foreign(act)
    return SubscriberProbe[Any](demand).subscribed_to(r.from_publisher(foreign)), foreign


class TestDoor:
    @pytest.mark.parametrize("wrong", [None, 5, "abc", [1]])
    def test_something_without_subscribe_is_refused(self, wrong: Any) -> None:
        with pytest.raises(TypeError, match=r"from_publisher: .* not a publisher"):
            r.from_publisher(wrong)

    async def test_demand_and_cancellation_are_passed_through(self) -> None:
        foreign = PublisherProbe[int]()
        probe = SubscriberProbe[int]().subscribed_to(r.from_publisher(foreign))
        assert foreign.requests == []
        probe.request(3)
        foreign.emit(1, 2)
        assert (foreign.requested, probe.signals) == (3, [1, 2])
        probe.cancel()
        assert foreign.cancel_count == 1

    async def test_unbounded_demand_is_requested_in_windows(self) -> None:
        foreign = PublisherProbe[int]()
        flow = r.from_publisher(foreign)
        probe = SubscriberProbe[int](2**63).subscribed_to(flow)
        assert foreign.requested == flow.bound().total == 256
        foreign.emit(*range(256))
        assert len(await probe.wait_for_signals(256)) == 256
        assert foreign.requested > 256


def too_early(s: Any) -> None:
    s.on_next(1)


def completed_too_early(s: Any) -> None:
    s.on_complete()


def twice(s: Any) -> None:
    s.on_subscribe(PublisherProbe[Any]())
    s.on_subscribe(PublisherProbe[Any]())


def no_subscription(s: Any) -> None:
    s.on_subscribe(object())


def no_exception(s: Any) -> None:
    s.on_subscribe(PublisherProbe[Any]())
    s.on_error("no")


class TestMisbehaviour:
    @pytest.mark.parametrize(
        ("act", "rule"),
        [
            (too_early, "1.9"),
            (completed_too_early, "1.9"),
            (twice, "2.12"),
            (no_subscription, "1.9"),
            (no_exception, "2.13"),
        ],
    )
    async def test_a_violated_rule_fails_the_flow_by_its_name(
        self, act: Callable[[Any], None], rule: str
    ) -> None:
        probe, _ = probe_of(act)
        assert isinstance(probe.error, RuleViolation)
        assert (probe.error.rule, probe.elements) == (rule, [])

    async def test_more_than_was_requested_rule_1_1(self) -> None:
        foreign = PublisherProbe[int]()
        probe = SubscriberProbe[int](2).subscribed_to(r.from_publisher(foreign))
        foreign.emit(1, 2, 3, 4)
        assert probe.elements == [1, 2]
        assert cast("Any", probe.error).rule == "1.1"
        assert foreign.cancel_count == 1

    async def test_a_second_subscription_is_cancelled_and_so_is_the_first_rule_2_5(self) -> None:
        foreign, second = PublisherProbe[int](), PublisherProbe[int]()
        SubscriberProbe[int](2).subscribed_to(r.from_publisher(foreign))
        foreign.subscriber.on_subscribe(second)
        assert (foreign.cancel_count, second.cancel_count) == (1, 1)

    async def test_a_coroutine_function_is_refused_as_subscribe_rule_1_9(self) -> None:
        class Wrong:
            async def subscribe(self, _: Any, /) -> None:
                """Never runs."""

        probe = SubscriberProbe[Any](1).subscribed_to(r.from_publisher(cast("Any", Wrong())))
        assert "plain" in str(probe.error)

    async def test_the_failure_of_one_subscription_does_not_affect_another(self) -> None:
        foreign = PublisherProbe[int]()
        flow = r.from_publisher(foreign)
        good = SubscriberProbe[int](5).subscribed_to(flow)
        bad = SubscriberProbe[int]().subscribed_to(flow)
        foreign.subscribers[1].on_next(1)
        foreign.subscribers[0].on_next(1)
        assert (good.signals, cast("Any", bad.error).rule) == ([1], "1.1")


class TestReading:
    """`to_flow`, with which operators accept any kind of source."""

    @pytest.mark.parametrize("wrong", ["abc", b"abc", 5, None, print])
    def test_something_that_is_not_a_source_is_refused_with_a_remedy(self, wrong: Any) -> None:
        from reactive_aio import to_flow

        with pytest.raises(TypeError, match=r"merge: .* cannot be read as a flow[;,] "):
            to_flow(wrong, name="merge")

    def test_a_coroutine_is_refused_with_a_remedy(self) -> None:
        from reactive_aio import to_flow

        async def work() -> int:
            return 1

        coroutine = work()
        with pytest.raises(TypeError, match="from_awaitable"):
            to_flow(cast("Any", coroutine))
        coroutine.close()

    async def test_every_source_is_read(self) -> None:
        from reactive_aio import to_flow

        flow = r.range(3)
        assert to_flow(flow) is flow
        for source in ([0, 1, 2], range(3), Wrapped(flow), flow.boundary(1).stream()):
            assert await to_flow(cast("Any", source)).to_list() == [0, 1, 2]


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Make a flow": {
        "from an asynchronous generator or iterable": "from_aiter",
        "from a coroutine, a future or a task": "from_awaitable",
        "from an `asyncio.Queue`": "from_queue",
        "from a stream of anyio": "from_anyio",
        "from a publisher of another library": "from_publisher",
    },
}


async def example_from_aiter() -> None:
    async def lines() -> AsyncIterator[str]:
        for line in ("tea", "milk"):
            await asyncio.sleep(0.1)
            yield line

    print(await r.from_aiter(lines).map(str.upper).to_list())


async def example_from_awaitable() -> None:
    async def answer() -> int:
        await asyncio.sleep(0.1)
        return 42

    print(await r.from_awaitable(answer).to_list())


async def example_from_queue() -> None:
    queue: asyncio.Queue[str] = asyncio.Queue(10)
    for job in ("a", "b", "end"):
        await queue.put(job)
    print(await r.from_queue(queue, end="end").to_list())


async def example_from_anyio() -> None:
    send, receive = anyio.create_memory_object_stream[str](10)
    async with send:
        await send.send("a")
        await send.send("b")
    print(await r.from_anyio(receive).to_list())


async def example_from_publisher() -> None:
    processor = r.UnicastProcessor[str]()  # or that of another library
    processor.try_emit("a")
    processor.complete()
    print(await r.from_publisher(processor).to_list())
