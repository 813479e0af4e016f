"""The operators that call functions with the signals that pass."""

import asyncio
import gc
import logging
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import (
    Flow,
    error,
    from_iterable,
    from_publisher,
    just,
    never,
    range as flow_range,
    to_flow,
)
from reactive_aio.errors import IllegalDemand
from reactive_aio.testing import AsyncSubscriberProbe, PublisherProbe, SubscriberProbe
from tests.cases import Identities, Needs
from tests.operators.ways import SUBSCRIPTIONS, UNBOUNDED, Failed, Sample, collected, in_every_way

Log = list[Any]


def fails(*_: object) -> None:
    raise Failed("a callback")


def ignore(*_: object) -> None:
    """A callback without an effect."""


LOOKS: dict[str, Callable[[Flow[Any]], Flow[Any]]] = {
    "do_on_next": lambda f: f.do_on_next(ignore),
    "do_on_error": lambda f: f.do_on_error(ignore),
    "do_on_complete": lambda f: f.do_on_complete(ignore),
    "do_on_cancel": lambda f: f.do_on_cancel(ignore),
    "do_on_request": lambda f: f.do_on_request(ignore),
    "do_on_discard": lambda f: f.do_on_discard(ignore),
    "do_finally": lambda f: f.do_finally(ignore),
    "log": lambda f: f.log("test"),
    "name": lambda f: f.name("test"),
    "log: requests": lambda f: f.log("test", requests=True),
}


SAMPLES = {
    "do_on_next, raises": Sample(lambda f: f.do_on_next(fails), [1], [Failed]),
    "do_on_complete, raises": Sample(lambda f: f.do_on_complete(fails), [1], [1, Failed]),
    "do_on_error, raises": Sample(lambda f: f.do_on_error(fails), [1], [1, Failed], fails=True),
    "do_finally, raises": Sample(lambda f: f.do_finally(fails), [1], [1, Failed]),
}


def looking(look: Callable[[Flow[Any]], Flow[Any]]) -> Callable[[int], Flow[Any]]:
    return lambda n: look(flow_range(n))


OF_LENGTH: dict[str, Callable[[int], Flow[Any]]] = {
    **{key: looking(look) for key, look in LOOKS.items()},
    "do_finally: pushed": lambda n: flow_range(n).boundary(2).do_finally(ignore),
    "do_finally: within": lambda n: flow_range(n + 1).do_finally(ignore).take(n).do_finally(ignore),
}

FAILING: dict[str, Callable[[], Flow[Any]]] = {
    "do_on_next": lambda: just(1).do_on_next(fails),
    "do_on_complete": lambda: just(1).do_on_complete(fails),
    "do_on_error": lambda: error(Failed).do_on_error(ignore),
    "do_finally": lambda: just(1).map(fails).do_finally(ignore),
    "log": lambda: error(Failed).log("test"),
    "name": lambda: error(Failed).name("test"),
}

IDENTITIES: Identities = {
    "do_on_next": lambda up: up.do_on_next(ignore),
    "do_on_error": lambda up: up.do_on_error(ignore),
    "do_on_complete": lambda up: up.do_on_complete(ignore),
    "do_on_cancel": lambda up: up.do_on_cancel(ignore),
    "do_on_request": lambda up: up.do_on_request(ignore),
    "do_on_discard": lambda up: up.do_on_discard(ignore),
    "do_finally": lambda up: up.do_finally(ignore),
    "log": lambda up: up.log(level=0),
    "name": lambda up: up.name("test"),
}


def endless(look: Callable[[Flow[Any]], Flow[Any]]) -> Callable[[], Flow[Any]]:
    return lambda: look(flow_range(1 << 62))


INFINITE: dict[str, Callable[[], Flow[Any]]] = {key: endless(look) for key, look in LOOKS.items()}


@pytest.mark.parametrize("name", SAMPLES)
async def test_the_same_signals_in_every_way(name: str) -> None:
    await in_every_way(SAMPLES[name])


def watched(flow: Flow[Any], log: Log, name: str) -> Flow[Any]:
    """Log every signal at one place."""
    return (
        flow.do_on_complete(lambda: log.append(f"{name} complete"))
        .do_on_error(lambda error: log.append(f"{name} error {type(error).__name__}"))
        .do_on_cancel(lambda: log.append(f"{name} cancel"))
        .do_finally(lambda how: log.append(f"{name} {how}"))
    )


# -- what happens at a place -----------------------------------------------------------------------
async def test_each_callback_receives_the_signals_at_its_place() -> None:
    log: Log = []

    def change(flow: Flow[int]) -> Flow[int]:
        return watched(watched(flow, log, "above").take(2), log, "below")

    await in_every_way(Sample(change, [1, 2, 3], [1, 2, "|"]))
    once = ["above cancelled", "above cancel", "below complete", "below completed"]
    assert log == once * SUBSCRIPTIONS


async def test_upstream_of_a_stage_that_fails_the_flow_is_cancelled() -> None:
    log: Log = []

    def change(flow: Flow[int]) -> Flow[int]:
        return watched(watched(flow, log, "above").map(fails), log, "below")

    await in_every_way(Sample(change, [1], [Failed]))
    once = ["above cancelled", "above cancel", "below error Failed", "below failed"]
    assert log == once * SUBSCRIPTIONS


async def test_downstream_of_a_source_that_fails_is_an_error() -> None:
    log: Log = []
    sample = Sample(lambda f: watched(f, log, "below"), [1], [1, Failed], fails=True)
    await in_every_way(sample)
    assert log == ["below error Failed", "below failed"] * SUBSCRIPTIONS


@pytest.mark.parametrize("feed", ["pull", "push", "aiter"])
async def test_a_subscriber_that_cancels(feed: str) -> None:
    log: Log = []
    source = {
        "pull": lambda: flow_range(9),
        "push": lambda: flow_range(9).boundary(2),
        "aiter": lambda: to_flow(numbers()),
    }[feed]()
    flow = watched(watched(source, log, "above").map(str), log, "below")
    probe = SubscriberProbe[str](1).subscribed_to(flow)
    await probe.wait_for_signals(1)
    probe.cancel()
    assert log == ["below cancelled", "below cancel", "above cancelled", "above cancel"]
    probe.cancel()
    await asyncio.sleep(0)
    assert len(log) == 4


async def numbers() -> AsyncIterator[int]:
    for x in range(9):
        await asyncio.sleep(0)
        yield x


class Cancels(SubscriberProbe[Any]):
    """Cancels inside on_next."""

    def on_next(self, element: Any, /) -> None:
        super().on_next(element)
        self.cancel()


class Declines(SubscriberProbe[Any]):
    """Cancels inside on_subscribe."""

    def on_subscribe(self, subscription: Any, /) -> None:
        subscription.cancel()


class Raises(SubscriberProbe[Any]):
    """Raises in on_next (2.13)."""

    def on_next(self, element: Any, /) -> None:
        raise Failed("the subscriber")


async def test_a_subscriber_that_raises_has_cancelled(expects_loop_errors: Log) -> None:
    log: Log = []
    Raises(9).subscribed_to(watched(flow_range(9), log, ""))
    assert log == [" cancelled", " cancel"]
    [context] = expects_loop_errors
    assert "2.13" in context["message"]


async def test_a_request_against_rule_3_9_cancels_upstream() -> None:
    log: Log = []
    probe = SubscriberProbe[int]().subscribed_to(watched(flow_range(9), log, ""))
    probe.request(0)
    assert isinstance(probe.error, IllegalDemand)
    assert log == [" cancelled", " cancel"]


CANCELLING: dict[str, Callable[[Flow[int]], object]] = {
    "within on_subscribe": lambda flow: Declines().subscribed_to(flow),
    "before the first request": lambda flow: SubscriberProbe[int]().subscribed_to(flow).cancel(),
    "within on_next": lambda flow: Cancels(9).subscribed_to(flow),
}


@pytest.mark.parametrize("when", CANCELLING)
async def test_it_is_cancelled_once_whenever_the_subscriber_cancels(when: str) -> None:
    for source in (flow_range(9), flow_range(9).boundary(2), to_flow(numbers())):
        log: Log = []
        CANCELLING[when](watched(source, log, ""))
        for _ in range(5):
            await asyncio.sleep(0)
        assert log == [" cancelled", " cancel"]


ENDING_AT_ONCE: list[tuple[Flow[Any], list[str]]] = [
    (error(Failed), [" error Failed", " failed"]),
    (just(), [" complete", " completed"]),
]


@pytest.mark.parametrize("asking", ["unbounded", "coroutines", "async for"])
@pytest.mark.parametrize(("source", "expected"), ENDING_AT_ONCE, ids=str)
async def test_a_source_that_ends_at_once(
    source: Flow[int], expected: list[str], asking: str
) -> None:
    log: Log = []
    await collected(watched(source, log, ""), asking)
    assert log == expected


# -- leaving async for -----------------------------------------------------------------------------
@pytest.mark.parametrize("pushed", [False, True])
async def test_callbacks_for_a_break_run_before_the_next_statement(pushed: bool) -> None:
    log: Log = []
    source = flow_range(9).boundary(2) if pushed else flow_range(9)
    async for _ in watched(source, log, ""):
        break
    assert log == [" cancelled", " cancel"]


@pytest.mark.parametrize("pushed", [False, True])
async def test_an_exception_in_the_loop_body_cancels(pushed: bool) -> None:
    log: Log = []
    source = flow_range(9).boundary(2) if pushed else flow_range(9)
    try:
        async for _ in watched(source, log, ""):
            raise Failed("the loop")
    except Failed:
        gc.collect()  # the exception's traceback refers to the loop's iterator
    gc.collect()
    assert log == [" cancelled", " cancel"]


@pytest.mark.parametrize("pushed", [False, True])
async def test_the_cancellation_of_the_task_cancels(pushed: bool) -> None:
    log: Log = []

    async def consume() -> None:
        source = never().start_with(1)
        if pushed:
            source = source.boundary(2)
        async for _ in watched(source, log, ""):
            pass

    task = asyncio.create_task(consume())
    for _ in range(5):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gc.collect()
    assert log == [" cancelled", " cancel"]


async def test_leaving_a_stream_cancels() -> None:
    log: Log = []
    async with watched(flow_range(9), log, "").stream() as elements:
        async for _ in elements:
            break
    assert log == [" cancelled", " cancel"]


async def test_an_asynchronous_subscriber_finishes_its_element_first() -> None:
    log: Log = []

    class Slow(AsyncSubscriberProbe[int]):
        async def on_next(self, element: int, /) -> None:  # type: ignore[override]
            await super().on_next(element)
            log.append(element)

    flow = flow_range(2).do_on_complete(lambda: log.append("complete"))
    await Slow(UNBOUNDED, turns=3).subscribed_to(flow).end()
    assert log == [0, 1, "complete"]


# -- exactly once, in order ------------------------------------------------------------------------
@pytest.mark.parametrize("asking", ["unbounded", "one by one", "coroutines", "async for"])
async def test_do_finally_comes_before_the_terminal_signal(asking: str) -> None:
    log: Log = []
    flow = flow_range(2).do_finally(log.append).boundary(2).do_finally(log.append)
    await collected(flow, asking)
    assert log == ["completed", "completed"]


async def test_a_completion_passes_downstream_and_a_cancellation_upstream() -> None:
    log: Log = []
    flow = flow_range(3).do_finally(lambda _: log.append("upper"))
    flow = flow.map(str).do_finally(lambda _: log.append("lower"))  # type: ignore[assignment]
    await collected(flow, "unbounded")
    SubscriberProbe[Any](1).subscribed_to(flow).cancel()
    assert log == ["upper", "lower", "lower", "upper"]


async def test_elements_emitted_at_the_end_by_a_stage_come_first() -> None:
    log: Log = []
    flow = flow_range(3).do_finally(lambda _: log.append("upper")).buffer(2)
    flow = flow.do_on_next(log.append).do_finally(lambda _: log.append("lower"))
    probe = SubscriberProbe[list[int]](1).subscribed_to(flow)
    assert log == [[0, 1]]
    probe.request(1)
    assert log == [[0, 1], "upper", [2], "lower"]


async def test_cancelled_while_the_rest_waits_for_demand() -> None:
    log: Log = []
    flow = watched(watched(flow_range(3), log, "above").take_last(2), log, "below")
    probe = SubscriberProbe[int](1).subscribed_to(flow)
    assert log == ["above complete", "above completed"]
    probe.cancel()
    assert log[2:] == ["below cancelled", "below cancel"]


async def test_each_subscription_reports_its_own_end() -> None:
    log: Log = []
    flow = flow_range(3).do_finally(log.append)
    one = SubscriberProbe[int](1).subscribed_to(flow)
    await collected(flow, "unbounded")
    one.cancel()
    assert log == ["completed", "cancelled"]


async def test_callbacks_run_in_the_context_of_the_subscriber() -> None:
    variable: ContextVar[str] = ContextVar("variable", default="other")
    log: Log = []
    flow = flow_range(3).do_finally(lambda _: log.append(variable.get()))
    flow = flow.do_on_request(lambda _: log.append(variable.get()))
    token = variable.set("subscriber")
    probe = SubscriberProbe[int]().subscribed_to(flow)
    variable.reset(token)
    probe.request(1)
    probe.cancel()
    assert log == ["subscriber", "subscriber"]


# -- callbacks that raise --------------------------------------------------------------------------
async def test_an_error_of_a_callback_at_completion_fails_the_flow_downstream() -> None:
    log: Log = []
    flow = watched(watched(just(1), log, "above").do_on_complete(fails), log, "below")
    signals = await collected(flow, "unbounded")
    assert isinstance(signals[-1], Failed)
    assert log[:2] == ["above complete", "above completed"]
    assert log[2:] == ["below error Failed", "below failed"]


@pytest.mark.parametrize("asking", ["unbounded", "coroutines", "async for"])
async def test_an_error_of_a_callback_at_a_failure_has_the_failure_as_its_context(
    asking: str,
) -> None:
    first = ValueError("first")

    def passes_on(error: BaseException) -> None:
        raise error

    for source in (error(first), error(first).boundary(2)):
        log: Log = []
        [found] = await collected(source.do_on_error(fails).do_on_error(log.append), asking)
        assert isinstance(found, Failed)
        assert found.__context__ is first
        assert log == [found]
        assert await collected(source.do_on_error(passes_on), asking) == [first]
        assert first.__context__ is None


@pytest.mark.parametrize("way", ["cancel", "break", "take"])
async def test_an_error_of_a_callback_at_a_cancellation_is_reported(
    way: str, expects_loop_errors: Log
) -> None:
    log: Log = []
    flow = watched(flow_range(9), log, "above").do_on_cancel(fails)
    match way:
        case "cancel":
            SubscriberProbe[int](1).subscribed_to(flow).cancel()
        case "break":
            async for _ in flow:
                break
        case _:
            assert await collected(flow.take(1), "unbounded") == [0, "|"]
    assert log == ["above cancelled", "above cancel"]
    [context] = expects_loop_errors
    assert isinstance(context["exception"], Failed)


async def test_a_callback_at_a_cancellation_may_fail_the_flow() -> None:
    """The callbacks that this has cancelled are not called again."""
    log: Log = []
    probe = SubscriberProbe[int](1)

    def second_fails(n: int) -> None:
        if n == 2:
            raise Failed

    flow = watched(flow_range(9), log, "above").do_on_cancel(lambda: probe.request(2))
    probe.subscribed_to(flow.do_on_request(second_fails).take(1))
    assert log == ["above cancelled", "above cancel"]
    assert [type(each) for each in probe.signals] == [int, Failed]


async def test_an_error_of_a_callback_at_a_request_fails_the_flow() -> None:
    log: Log = []
    flow = watched(watched(flow_range(9), log, "above").do_on_request(fails), log, "below")
    probe = SubscriberProbe[int](1).subscribed_to(flow)
    assert isinstance(probe.error, Failed)
    assert log == ["above cancelled", "above cancel", "below error Failed", "below failed"]


async def test_the_callback_receives_the_error_of_the_subscriber() -> None:
    def stray(_: int) -> int:
        raise StopIteration

    for asking in ("unbounded", "coroutines", "async for"):
        log: Log = []
        [found] = await collected(just(1).map(stray).do_on_error(log.append), asking)
        assert isinstance(found, RuntimeError)
        assert log == [found]


# -- requests --------------------------------------------------------------------------------------
async def test_each_request_is_reported_before_it_takes_effect() -> None:
    log: Log = []
    flow = flow_range(9).do_on_request(lambda n: log.append(f"request({n})")).do_on_next(log.append)
    probe = SubscriberProbe[int](2).subscribed_to(flow)
    probe.request(1)
    probe.request(0)
    assert log == ["request(2)", 0, 1, "request(1)", 2]
    probe.request(5)
    assert len(log) == 5


async def test_requests_are_reported_upwards_and_on_both_sides_of_a_boundary() -> None:
    log: Log = []
    flow = flow_range(4).do_on_request(lambda n: log.append(("source", n))).boundary(3)
    flow = flow.do_on_request(lambda n: log.append(("upper", n)))
    flow = flow.map(abs).do_on_request(lambda n: log.append(("lower", n)))
    await collected(flow, "one by one")
    assert log[:2] == [("lower", 1), ("upper", 1)]
    assert next(n for name, n in log if name == "source") == 3


async def test_async_for_requests_larger_and_larger_windows() -> None:
    log: Log = []
    async for _ in flow_range(20).do_on_request(log.append):
        pass
    assert log == [1, 2, 4, 8, 16]


async def test_a_request_of_another_thread_is_seen_on_the_thread_of_the_loop() -> None:
    log: Log = []
    flow = flow_range(3).do_on_request(lambda _: log.append(threading.get_ident()))
    probe = SubscriberProbe[int]().subscribed_to(flow)
    await asyncio.to_thread(probe.request, UNBOUNDED)
    await probe.end()
    assert log == [threading.get_ident()]


# -- log -------------------------------------------------------------------------------------------
async def test_log_writes_each_signal(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    flow = from_iterable("ab").log("orders", level=logging.DEBUG, requests=True)
    await collected(flow, "unbounded")
    await collected(flow.take(1), "unbounded")
    await collected(error(ValueError("no")).log(logger=logging.getLogger("mine")), "unbounded")
    assert [(record.name, record.getMessage()) for record in caplog.records] == [
        ("reactive_aio", f"orders: request({UNBOUNDED})"),
        ("reactive_aio", "orders: on_next('a')"),
        ("reactive_aio", "orders: on_next('b')"),
        ("reactive_aio", "orders: on_complete"),
        ("reactive_aio", f"orders: request({UNBOUNDED})"),
        ("reactive_aio", "orders: on_next('a')"),
        ("reactive_aio", "orders: cancel"),
        ("mine", "flow: on_error(ValueError('no'))"),
    ]


# -- what it costs, and what is refused ------------------------------------------------------------
def test_a_chain_without_side_effects_has_no_code_for_them() -> None:
    plain = flow_range(3).map(str).filter(bool)
    loop = plain.chain.compiled_loop("sync", "call")
    assert loop.end_hooks is None
    assert "H." not in loop.text
    assert not plain.chain.request_hooks
    assert plain.chain.is_pullable
    assert plain.do_finally(ignore).chain.is_pullable
    assert plain.bound().total == plain.do_finally(ignore).do_on_request(ignore).bound().total == 0


def test_callbacks_for_the_end_cost_nothing_per_element() -> None:
    def body(flow: Flow[Any]) -> list[str]:
        text = flow.chain.compiled_loop("sync", "call").text
        start = text.index("for x in islice(src, size):")
        lines = text[start : text.index("if x is END:")].splitlines()
        return [line.partition("  # ")[0].strip().replace("_2", "_1") for line in lines]

    assert body(flow_range(3).do_finally(ignore).map(str)) == body(flow_range(3).map(str))


@pytest.mark.parametrize("name", [key for key in LOOKS if key.startswith("do_")])
def test_a_callback_is_a_function(name: str) -> None:
    operator: Any = getattr(just(1), name)
    with pytest.raises(TypeError, match=f"{name}: callback must be a function"):
        operator(3)


def test_a_level_is_a_number() -> None:
    with pytest.raises(TypeError, match="level"):
        just(1).log(level="INFO")  # type: ignore[arg-type]


async def test_any_error_of_upstream_is_passed_on_unchanged() -> None:
    """Even a StopIteration: as a signal it is an error, not an end."""
    source: PublisherProbe[int] = PublisherProbe()
    stray = StopIteration("signalled")
    told: list[BaseException] = []
    flow = from_publisher(source).do_on_error(told.append).do_finally(lambda _: None)
    probe = SubscriberProbe[int](1).subscribed_to(flow)
    source.fail(stray)
    assert await probe.end() == [stray]
    assert told == [stray]


async def test_a_name_is_shown_in_error_notes_and_explanations() -> None:
    flow = from_iterable([0]).name("orders").map(lambda x: 1 // x)
    assert "name('orders')" in flow.explain()
    with pytest.raises(ZeroDivisionError) as raised:
        await flow.to_list()
    assert "name('orders') → >>map(" in raised.value.__notes__[0]


def test_a_name_is_a_text() -> None:
    with pytest.raises(TypeError, match="name: text must be a str"):
        just(1).name(7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Errors": {
        "see an error that passes": "do_on_error",
        "know which part of a flow failed": "name",
    },
    "Side effects": {
        "with each element, in passing": "do_on_next",
        "at the end, whatever it is": "do_finally",
        "at a completion, an error, a cancellation, a request": (
            "do_on_complete do_on_error do_on_cancel do_on_request"
        ),
        "with each element that is held when the flow ends, to close it": "do_on_discard",
        "log every signal": "log",
        "name a part of a flow in logs and errors": "name",
    },
}


async def example_do_on_next() -> None:
    seen: list[int] = []
    await r.range(3).do_on_next(seen.append).run()
    print(seen)


async def example_do_on_error() -> None:
    numbers = r.just("x").map(int).do_on_error(lambda error: print("failed:", error))
    print(await numbers.on_error_return(0).to_list())


async def example_do_on_complete() -> None:
    print(await r.range(3).do_on_complete(lambda: print("complete")).to_list())


async def example_do_on_cancel() -> None:
    numbers = r.range(100).do_on_cancel(lambda: print("cancelled"))
    print(await numbers.take(2).to_list())


async def example_do_on_request() -> None:
    flow = r.range(100).do_on_request(lambda n: print("requested:", n))
    print(await flow.boundary(8).take(2).to_list())


async def example_do_on_discard() -> None:
    rooms = r.from_iterable(["a", "b", "c", "d"]).boundary(4)
    async for room in rooms.do_on_discard(lambda room: print("give back", room)):
        print("enter", room)
        if room == "b":
            break


async def example_do_finally() -> None:
    async for n in r.range(100).do_finally(print):
        if n == 2:
            break
    print("the loop has ended")


async def example_log() -> None:
    logger = logging.Logger("shop")
    logger.addHandler(logging.StreamHandler(sys.stdout))
    await r.just("tea", "milk").log("orders", logger=logger).run()


async def example_name() -> None:
    orders = r.just("3", "x").map(int).name("orders")
    try:
        await orders.run()
    except ValueError as error:
        print(error.__notes__[-1].partition("\n    File")[0])
