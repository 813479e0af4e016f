"""Mistakes in how a flow is written are answered with operator, cause and remedy."""

import asyncio
import inspect
import logging
import pickle
import re
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import coroutine
from typing import Any, cast, is_typeddict

import pytest

import reactive_aio as r
from reactive_aio import Flow, asgi, rsocket, spark
from reactive_aio._core import option_names
from reactive_aio._shared import foreign_names
from reactive_aio.connectors import kafka, mqtt, nats, postgres, rabbitmq, redis_streams
from reactive_aio.delivery import DeliveryFlow
from reactive_aio.errors import AlreadySubscribed, WrongLoop
from reactive_aio.testing import SubscriberProbe
from tests.harness.one_run import in_one_run

FLOW: Any = r.just(1)  # untyped: a type checker reports these mistakes


async def coroutine_function(x: object = 1) -> object:
    return x


async def generator_function(x: object = 1) -> AsyncIterator[object]:
    yield x


def plain_generator_function(x: object = 1) -> Iterator[object]:
    yield x


def none() -> None:
    pass


def same(x: object) -> object:
    return x


def two(a: object, b: object) -> object:
    return a, b


def mistaken(*_: object) -> Any:
    """A plain function that returns a coroutine."""
    return coroutine_function()


def returns_a_flow(_: object) -> Any:
    return FLOW


def three(a: object, b: object, c: object) -> None:
    pass


def counted() -> Iterator[int]:
    yield 1


class Endless:
    """An iterator, whose class is not a function of one."""

    def __aiter__(self) -> "Endless":
        return self

    async def __anext__(self) -> int:
        return 1


PLAIN: dict[str, Callable[[Any], object]] = {
    "map": lambda f: FLOW.map(f),
    "filter": lambda f: FLOW.filter(f),
    "filter_map": lambda f: FLOW.filter_map(f),
    "scan": lambda f: FLOW.scan(f),
    "transform": lambda f: FLOW.transform(f),
    "take_while": lambda f: FLOW.take_while(f),
    "skip_while": lambda f: FLOW.skip_while(f),
    "distinct": lambda f: FLOW.distinct(f),
    "distinct_until_changed": lambda f: FLOW.distinct_until_changed(f),
    "do_on_next": lambda f: FLOW.do_on_next(f),
    "do_on_error": lambda f: FLOW.do_on_error(f),
    "do_on_complete": lambda f: FLOW.do_on_complete(f),
    "do_on_cancel": lambda f: FLOW.do_on_cancel(f),
    "do_on_request": lambda f: FLOW.do_on_request(f),
    "do_on_discard": lambda f: FLOW.do_on_discard(f),
    "do_finally": lambda f: FLOW.do_finally(f),
    "from_callable": r.from_callable,
    "generate": lambda f: r.generate(f, 1),
    "error": r.error,
    "from_thread": r.from_thread,
}
"""Functions that must be plain ones, given to what calls them."""

MAY_GENERATE: dict[str, Callable[[Any], object]] = {
    "flat_map": lambda f: FLOW.flat_map(f),
    "defer": r.defer,
    "on_error_resume": lambda f: FLOW.on_error_resume(f),
    "using": lambda f: r.using(lambda: cast("Any", None), f),
}
"""Functions that return a source."""

ASYNC: dict[str, Callable[[Any], object]] = {
    "map_async": lambda f: FLOW.map_async(f),
    "filter_async": lambda f: FLOW.filter_async(f),
    "create": r.create,
}

TERMINAL: dict[str, Callable[[Any], Any]] = {
    "min": lambda f: FLOW.min(key=f),
    "max": lambda f: FLOW.max(key=f),
    "reduce": lambda f: FLOW.reduce(f),
    "to_dict": lambda f: FLOW.to_dict(f),
    "any": lambda f: FLOW.any(f),
    "all": lambda f: FLOW.all(f),
}


@in_one_run
@pytest.mark.parametrize("name", [*PLAIN, *MAY_GENERATE])
def test_a_coroutine_function_is_refused_where_it_would_not_be_awaited(name: str) -> None:
    with pytest.raises(TypeError, match=f"^{name}: .* is a coroutine function; "):
        (PLAIN | MAY_GENERATE)[name](coroutine_function)


@pytest.mark.parametrize("name", TERMINAL)
async def test_a_terminal_operator_refuses_a_coroutine_function(name: str) -> None:
    with pytest.raises(TypeError, match=f"^{name}: .* is a coroutine function; "):
        await TERMINAL[name](coroutine_function)


CALLING: dict[str, Callable[[Any], Any]] = {
    "for_each": lambda f: FLOW.for_each(f),
    "running": lambda f: FLOW.running(f),
    "map_in_thread": lambda f: FLOW.map_in_thread(f),
    "map_in_process": lambda f: FLOW.map_in_process(f),
    "from_awaitable": r.from_awaitable,
}
"""Functions that may be of either kind, or that threads call."""

GENERATED: dict[str, Callable[[Any], Any]] = {
    name: call
    for name, call in (PLAIN | ASYNC | TERMINAL | CALLING).items()
    if name != "from_thread"  # which reads what it yields
}


class Generating:
    def __call__(self, x: object = 1) -> Iterator[object]:
        yield x


class GeneratingAsync:
    async def __call__(self, x: object = 1) -> AsyncIterator[object]:
        yield x

    async def method(self, x: object = 1) -> AsyncIterator[object]:
        yield x


@in_one_run
@pytest.mark.parametrize("name", GENERATED)
@pytest.mark.parametrize(
    "function",
    [plain_generator_function, Generating(), partial(plain_generator_function),
     generator_function, GeneratingAsync(), GeneratingAsync().method,
     partial(GeneratingAsync())],
    ids=["plain", "plain object", "plain partial", "asynchronous", "asynchronous object",
         "method", "partial of an object"],
)  # fmt: skip
async def test_a_generator_function_is_refused_where_its_body_would_not_run(
    name: str, function: Any
) -> None:
    with pytest.raises(
        TypeError, match=rf"^{name}: \w+ cannot be an? .*generator function, .*; (use|leave out) "
    ):
        await GENERATED[name](function)


@in_one_run
@pytest.mark.parametrize("name", ["create", "from_awaitable", "from_callable", "generate"])
@pytest.mark.parametrize(
    ("function", "remedy"),
    [(plain_generator_function, "use defer"), (generator_function, "use from_aiter")],
)
def test_a_source_names_the_one_that_reads_a_generator(
    name: str, function: object, remedy: str
) -> None:
    with pytest.raises(TypeError, match=f"^{name}: .*; {remedy}$"):
        GENERATED[name](function)


def test_a_thread_iterates_over_a_plain_generator_alone() -> None:
    r.from_thread(counted)
    with pytest.raises(TypeError, match=r"^from_thread: generator_function .* use from_aiter$"):
        r.from_thread(cast("Any", generator_function))


async def test_a_generator_that_a_function_of_for_each_returns_is_refused() -> None:
    def plain(x: object) -> object:
        return plain_generator_function(x)

    def asynchronous(x: object) -> object:
        return generator_function(x)

    for function in (plain, asynchronous):
        with pytest.raises(TypeError, match=r"^for_each: .*, which nothing would read; .*flat_map"):
            await FLOW.for_each(function)


def test_a_class_is_no_generator_function_although_its_instances_are() -> None:
    FLOW.map(Generating)
    FLOW.map(GeneratingAsync)


async def test_a_generator_function_that_can_be_awaited_is_a_coroutine_function() -> None:
    @coroutine
    def bare(x: int) -> Any:
        yield from asyncio.sleep(0).__await__()
        return x + 1

    assert await FLOW.map_async(bare).to_list() == [2]


@pytest.mark.parametrize("name", [*MAY_GENERATE])
@pytest.mark.parametrize("function", [generator_function, plain_generator_function])
def test_a_generator_function_is_a_source(name: str, function: Any) -> None:
    MAY_GENERATE[name](function)


@in_one_run
@pytest.mark.parametrize("name", [*PLAIN, *MAY_GENERATE, *ASYNC])
def test_a_function_with_other_arguments_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{name}: .* argument.*, and three takes 3"):
        (PLAIN | MAY_GENERATE | ASYNC)[name](three)


def test_the_number_of_arguments_is_that_of_the_call() -> None:
    class Methods:
        def plain(self, x: object) -> object:
            return x

        @classmethod
        def of_class(cls, x: object) -> object:
            return x

        def __call__(self, x: object) -> object:
            return x

    def optional(x: object, y: object = 1, *, z: object = 2) -> object:
        return x, y, z

    accepted: list[Any] = [
        Methods().plain, Methods.of_class, Methods(), str, len, print, mistaken, optional
    ]  # fmt: skip
    for each in accepted:
        FLOW.map(each)
    with pytest.raises(
        TypeError, match=r"^map: mapper is called with 1 argument, .*none takes none$"
    ):
        FLOW.map(none)
    with pytest.raises(TypeError, match=r"takes 2; to unpack a tuple: lambda x: f\(\*x\)"):
        FLOW.map(two)


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("name", ["map_async", "filter_async"])
async def test_a_plain_function_is_refused_when_it_has_returned(
    name: str, concurrency: int
) -> None:
    flow = getattr(FLOW, name)(same, concurrency=concurrency)
    plain = name.removesuffix("_async")
    with pytest.raises(
        TypeError, match=rf"^{name}: .* and same returned an object of type int; use {plain} for a"
    ):
        await flow.to_list()


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_a_type_error_of_the_function_itself_is_unchanged(concurrency: int) -> None:
    async def wrong_inside(x: object) -> None:
        await cast("Any", 5)

    with pytest.raises(TypeError, match=r"^object int can't be used in|^'int' object can't be awa"):
        await FLOW.map_async(wrong_inside, concurrency=concurrency).to_list()


@pytest.mark.parametrize("name", ["map_async", "filter_async", "flat_map"])
def test_concurrency_is_at_least_one(name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}: concurrency must be at least 1, not 0"):
        getattr(FLOW, name)(same, concurrency=0)


@pytest.mark.parametrize("combine", [r.merge, r.concat, r.zip])
@pytest.mark.parametrize("kind", [list, tuple])
def test_a_list_of_sources_has_to_be_unpacked(combine: Any, kind: type) -> None:
    with pytest.raises(TypeError, match=rf"^{combine.__name__}: .* unpack it: .*\(\*sources\)"):
        combine(kind([FLOW, FLOW]))
    combine([1, 2])


@pytest.mark.parametrize("method", ["merge_with", "concat_with", "zip_with"])
def test_a_list_of_sources_has_to_be_unpacked_for_methods_too(method: str) -> None:
    with pytest.raises(TypeError, match=rf"^{method}: .* unpack it: {method}\(\*sources\)"):
        getattr(FLOW, method)([FLOW, FLOW])


def test_what_can_neither_be_awaited_nor_called_is_refused() -> None:
    untyped: Any = 3
    with pytest.raises(TypeError, match=r"^from_awaitable: 3 \(int\) cannot be awaited"):
        r.from_awaitable(untyped)


async def test_a_function_that_returns_nothing_to_await_names_its_source() -> None:
    message = r"^from_awaitable: source must be .* returned an object of type int; use from_call"
    for flow in (r.from_awaitable(lambda: cast("Any", 3)), r.range(2).flat_map(
        lambda x: r.from_awaitable(lambda: cast("Any", x))
    )):  # fmt: skip
        with pytest.raises(TypeError, match=message):
            await flow.to_list()


@pytest.mark.parametrize("duration", [0.35, 2, timedelta(seconds=1)])
def test_take_until_takes_a_moment_and_no_duration(duration: Any) -> None:
    remedy = re.escape(f"give timer({duration!r})")
    with pytest.raises(TypeError, match=rf"^take_until: .* is a duration, .*; {remedy}$"):
        FLOW.take_until(duration)


@pytest.mark.parametrize("kind", [r.UnicastProcessor, r.MulticastProcessor])
async def test_a_producer_that_sends_signals_is_told_what_to_call(kind: Any) -> None:
    for signal, given, call in (("on_next", (1,), r"try_emit\(element\)"),
                                ("on_complete", (), r"complete\(\)")):  # fmt: skip
        hot = kind()
        probe = SubscriberProbe[int](9).subscribed_to(hot)
        getattr(hot, signal)(*given)
        with pytest.raises(RuntimeError, match=rf"no publisher, calls {call}"):
            raise probe.signals[-1]


def test_a_function_may_not_require_more_than_its_arguments() -> None:
    def scaled(x: int, *, by: int) -> int:
        return x * by

    def halved(x: int, *, by: int = 2) -> int:
        return x // by

    with pytest.raises(TypeError, match=r"^map: mapper is called with 1 argument, .* requires by="):
        FLOW.map(scaled)
    FLOW.map(halved)


@pytest.mark.parametrize("attempts", [0, -1])
def test_a_retry_has_at_least_one_attempt(attempts: int) -> None:
    with pytest.raises(ValueError, match=f"^retry: the first attempt counts, .* not {attempts}"):
        FLOW.retry(attempts)


def test_a_serial_executor_awaits_no_handler() -> None:
    async def handler(error: BaseException) -> None: ...

    untyped: Any = handler
    with pytest.raises(TypeError, match=r"^SerialExecutor: on_error must be a plain function"):
        r.SerialExecutor(on_error=untyped)


def test_a_thread_is_given_an_iterable_and_a_plain_interrupt() -> None:
    with pytest.raises(TypeError, match=r"^from_thread: 3 \(int\), which is not an iterable"):
        r.from_thread(cast("Any", 3))
    with pytest.raises(TypeError, match=r"^from_thread: interrupt must be a plain function"):
        r.from_thread([1], interrupt=coroutine_function)


async def test_a_function_for_a_thread_returns_an_iterable() -> None:
    with pytest.raises(TypeError, match=r"^from_thread: mistaken returned .* use from_awaitable"):
        await r.from_thread(mistaken).to_list()
    asynchronous: Any = lambda: generator_function()  # noqa: E731
    with pytest.raises(TypeError, match=r"^from_thread: <lambda> returned .* use from_aiter"):
        await r.from_thread(asynchronous).to_list()


def test_a_source_of_something_else_refuses_a_flow() -> None:
    with pytest.raises(TypeError, match=r"from_iterable: <Flow just\(1\)> .* use from_aiter"):
        r.from_iterable(FLOW)
    with pytest.raises(TypeError, match=r"from_awaitable: <Flow just\(1\)> .* first\(\)"):
        r.from_awaitable(FLOW)


@pytest.mark.parametrize("options", [{}, {"concurrency": 2}, {"retry": 1}], ids=str)
async def test_map_async_names_flat_map_to_a_function_that_returns_a_flow(
    options: dict[str, int],
) -> None:
    with pytest.raises(TypeError, match=r"^map_async: .* use flat_map to read the flow"):
        await FLOW.map_async(returns_a_flow, **options).run()


async def test_for_each_refuses_a_flow_that_nothing_would_read() -> None:
    with pytest.raises(TypeError, match=r"^for_each: .* <Flow just\(1\)>, .*flat_map\(function\)"):
        await FLOW.for_each(returns_a_flow)


def test_an_exception_type_is_not_a_retry_policy() -> None:
    for wrong in (ValueError, (OSError, ValueError)):
        with pytest.raises(TypeError, match=r"^retry: policy .* RetryPolicy\(only=\.\.\.\)"):
            FLOW.retry(wrong)
    for other in ("3", 2.5, True, None):
        with pytest.raises(TypeError, match=r"^retry: policy must be a RetryPolicy or"):
            FLOW.retry(other)


async def test_a_class_is_not_a_subscriber() -> None:
    class Printer:
        def on_subscribe(self, subscription: object) -> None: ...
        def on_next(self, element: object) -> None: ...
        def on_error(self, error: BaseException) -> None: ...
        def on_complete(self) -> None: ...

    with pytest.raises(TypeError, match=r"^rule 1\.9: 'Printer' is a class; .*Printer\(\.\.\.\)"):
        FLOW.subscribe(Printer)


async def test_functions_are_no_subscriber() -> None:
    subscribe: Any = FLOW.subscribe
    for given, named in (((print, print, print), {}), ((print,), {"on_error": print})):
        with pytest.raises(TypeError, match=r"^rule 1.9: .* one subscriber, .*for_each\(f\)$"):
            subscribe(*given, **named)


async def test_a_coroutine_that_is_no_source_is_closed() -> None:
    made: list[Any] = []

    def called(x: object) -> Any:
        made.append(coroutine_function(x))
        return made[0]

    with pytest.raises(TypeError, match=r"^flat_map: .*wrap it: from_awaitable\(\.\.\.\)"):
        await FLOW.flat_map(called).run()
    assert inspect.getcoroutinestate(made[0]) == inspect.CORO_CLOSED


def test_a_flow_is_made_by_a_source() -> None:
    mistaken: Any = [1, 2]
    with pytest.raises(TypeError, match=r"^Flow\(list\) makes no flow; call a source: just"):
        Flow(mistaken)


def test_each_of_several_error_types_is_a_type() -> None:
    mistaken: Any = (OSError, "TimeoutError")
    with pytest.raises(TypeError, match=r"^only must be exception types or a predicate, not \("):
        r.RetryPolicy(only=mistaken)


def test_a_name_is_not_empty() -> None:
    with pytest.raises(ValueError, match=r"^name: text must not be empty"):
        FLOW.name("")


def test_a_time_source_names_itself() -> None:
    with pytest.raises(TypeError, match=r"^interval: initial_delay must be seconds .* not '1'"):
        r.interval(1, initial_delay=cast("Any", "1"))
    with pytest.raises(ValueError, match=r"^interval: overflow must be one of"):
        r.interval(1, overflow=cast("Any", "buffer"))
    with pytest.raises(ValueError, match=r"^timer: delay must be 0 or more seconds, not -1$"):
        r.timer(-1)
    with pytest.raises(
        ValueError, match=r"^timer: delay must be a finite number of seconds, 0 or more, not inf$"
    ):
        r.timer(float("inf"))
    with pytest.raises(
        ValueError, match=r"^interval: period must be a finite number of seconds, more than 0, not"
    ):
        r.interval(float("nan"))


def test_the_prefetch_of_a_stream_is_a_number_of_elements() -> None:
    with pytest.raises(ValueError, match=r"^stream: prefetch must be at least 1, not 0$"):
        FLOW.stream(prefetch=0)
    with pytest.raises(TypeError, match=r"^stream: prefetch must be an int, not 'x' \(str\)$"):
        FLOW.stream(prefetch="x")


def test_log_takes_a_logger() -> None:
    logger = logging.getLogger("orders")
    with pytest.raises(TypeError, match=r"^log: logger must be a logger .*, not 3 \(int\)$"):
        FLOW.log(logger=3)
    with pytest.raises(TypeError, match=r"^log: name must be a str, .*; a logger is given as"):
        FLOW.log(logger)
    FLOW.log(logger=logging.LoggerAdapter(logger))


@pytest.mark.parametrize(
    ("make", "remedy"),
    [
        (lambda: r.from_aiter(generator_function()), "generator function: from_aiter(generator_f"),
        (lambda: r.from_aiter(aiter(Endless())), "function that makes one: from_aiter(lambda: …)"),
        (lambda: r.from_iterable(counted()), "generator function: defer(counted)"),
        (lambda: r.from_iterable(x for x in "a"), "function that makes one: defer(lambda: …)"),
    ],
)
async def test_a_second_subscription_to_an_iterator_says_what_serves_several(
    make: Callable[[], Flow[Any]], remedy: str
) -> None:
    flow = make()
    await flow.first()
    with pytest.raises(AlreadySubscribed, match=re.escape(remedy)):
        await flow.first()


async def test_an_unhashable_key_is_named() -> None:
    flow = r.just([1], [2])
    with pytest.raises(TypeError, match=r"^to_dict: \[1\] cannot be hashed; return a key"):
        await flow.to_dict(cast("Any", same))
    with pytest.raises(TypeError, match=r"^distinct: \[1\] \(list\) cannot be hashed; give a key"):
        await flow.distinct().to_list()


# -- names of other libraries ----------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "ours"),
    [("tap", "do_on_next"), ("catch", "on_error_resume"), ("flatMap", "flat_map"),
     ("collect", "to_list"), ("buffer_count", "buffer"), ("distinctUntilChanged",
     "distinct_until_changed"), ("mergeMap", "flat_map"), ("doOnNext", "do_on_next")],
)  # fmt: skip
def test_an_unknown_attribute_says_what_it_is_called_here(name: str, ours: str) -> None:
    with pytest.raises(
        AttributeError, match=f"no attribute '{name}'; here it is called {ours}"
    ) as e:
        getattr(FLOW, name)
    assert e.value.name == name
    assert not hasattr(FLOW, name)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Observable", "here it is called Flow"),
        ("fromIterable", "here it is called from_iterable"),
        ("from_", "here it is called from_iterable"),
        ("of", "here it is called just"),
        ("map", r"it is a method of a flow here: flow.map\(\)"),
        ("flatMapLatest", r"it is a method of a flow here: flow.switch_map\(\)"),
    ],
)
def test_the_package_says_what_a_name_of_another_library_is_called(name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=f"^module 'reactive_aio' .* '{name}'; {hint}$") as e:
        getattr(r, name)
    assert e.value.name == name
    assert e.value.obj is r


@pytest.mark.parametrize("name", ["nonsense", "_Observable", "__wrapped__"])
def test_the_package_says_nothing_more_of_other_names(name: str) -> None:
    with pytest.raises(AttributeError, match=f"^module 'reactive_aio' has no attribute '{name}'$"):
        getattr(r, name)


def test_other_unknown_attributes_have_the_usual_message() -> None:
    with pytest.raises(AttributeError, match=r"^'Flow' object has no attribute 'nonsense'$"):
        FLOW.nonsense  # noqa: B018


@pytest.mark.parametrize("name", ["publish_on", "subscribeOn", "observe_on"])
def test_what_is_left_out_on_purpose_says_what_takes_its_place(name: str) -> None:
    with pytest.raises(AttributeError, match=f"{name}': there are no schedulers; from_thread"):
        getattr(FLOW, name)


@in_one_run
@pytest.mark.parametrize(("name", "reason"), foreign_names.NO_EQUIVALENT.items())
def test_what_is_left_out_on_purpose_says_why(name: str, reason: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(f"{name}': {reason}")):
        getattr(FLOW, name)
    assert name not in foreign_names.FOREIGN_NAMES


@in_one_run
@pytest.mark.parametrize(("name", "ours"), foreign_names.FOREIGN_NAMES.items())
def test_each_foreign_name_stands_for_an_operator(name: str, ours: str) -> None:
    assert callable(getattr(Flow, ours))
    assert not hasattr(Flow, name), "it is a name of ours"
    assert name == name.lower(), "snake case"


# -- options of other libraries --------------------------------------------------------------------
ROOMS: tuple[Any, ...] = (
    r, asgi, rsocket, spark, kafka, mqtt, nats, postgres, rabbitmq, redis_streams
)  # fmt: skip


def parameters_of_the_package() -> set[str]:
    exported: list[Any] = [getattr(room, name) for room in ROOMS for name in room.__all__]
    options = {name for each in exported if is_typeddict(each) for name in each.__annotations__}
    of_requester = [getattr(rsocket.Requester, name) for name in dir(rsocket.Requester)]
    methods = [*vars(Flow).values(), *(each for each in of_requester if inspect.isfunction(each))]
    functions = [each for each in (*exported, *methods) if inspect.isroutine(each)]
    classes = [each for each in exported if inspect.isclass(each) and "__init__" in vars(each)]
    named = [inspect.signature(each).parameters for each in (*functions, *classes)]
    return options.union(*named)


@in_one_run
@pytest.mark.parametrize(
    ("call", "there", "here"),
    [
        (FLOW.map_async, "max_concurrency", "concurrency"),
        (FLOW.map_async, "maxConcurrency", "concurrency"),
        (FLOW.map_async, "retries", "retry"),
        (FLOW.map_async, "concurency", "concurrency"),
        (FLOW.flat_map, "task_limit", "concurrency"),
        (FLOW.map_in_thread, "max_workers", "concurrency"),
        (FLOW.boundary, "maxsize", "capacity"),
        (FLOW.buffer, "buffer_size", "size"),
        (FLOW.delay, "delay", "by"),
        (FLOW.debounce, "duetime", "quiet"),
        (FLOW.retry, "max_attempts", "policy"),
        (FLOW.on_backpressure_buffer, "strategy", "overflow"),
        (r.interval, "seconds", "period"),
        (r.merge, "buffer_size", "prefetch"),
        (r.create, "max_buffer_size", "capacity"),
        (r.RetryPolicy, "retries", "attempts"),
        (r.RetryPolicy, "multiplier", "factor"),
        (r.ConcurrencyLimit, "total_tokens", "n"),
        (r.MulticastProcessor, "extraBufferCapacity", "capacity"),
        (r.ProcessPool, "max_workers", "workers"),
        (cast("Any", DeliveryFlow).map_async, "max_workers", "concurrency"),
    ],
)
def test_a_wrong_keyword_is_answered_with_the_right_one(call: Any, there: str, here: str) -> None:
    end = rf"unexpected keyword argument '{there}'; here it is called {here}$"
    with pytest.raises(TypeError, match=end):
        call(**{there: 1})


SERVE: Any = partial(rsocket.serve, "tcp://127.0.0.1:0")
REQUESTER: Any = rsocket.Requester
URL = "kafka://127.0.0.1:9092"
AT_THE_EDGES: list[tuple[Any, str, str]] = [
    (kafka.source, "max_poll_records", "count"),
    (rabbitmq.source, "prefetch_count", "limit"),
    (redis_streams.source, "consumername", "name"),
    (nats.source, "durable", "group"),
    (partial(cast("Any", mqtt.connect), "mqtt://x"), "client_id", "name"),
    (postgres.rows, "prefetch", "count"),
    (kafka.connect, "bootstrap_servers", "url"),
    (partial(cast("Any", kafka.connect), URL), "group_id", "group"),
    (asgi.websocket, "max_size", "max_message"),
    (partial(asgi.sse, r.just(1)), "ping", "heartbeat"),
    (asgi.AppStreams, "max_connections", "max_streams"),
    (asgi.from_sse, "uri", "url"),
    (partial(asgi.from_sse, "http://x"), "retries", "retry"),
    (rsocket.connect, "uri", "where"),
    (partial(rsocket.connect, "tcp://x:1"), "timeout_seconds", "timeout"),
    (partial(SERVE, {}), "ssl_context", "ssl"),
    (SERVE, "handlers", "router"),
    (rsocket.Resumption, "buffer_size", "max_store"),
    (partial(REQUESTER.request_stream, None), "data", "payload"),
    (spark.from_dataframe, "batch_size", "batch"),
    (spark.from_stream, "checkpointLocation", "checkpoint"),
]


@pytest.mark.parametrize(("call", "there", "here"), AT_THE_EDGES)
def test_a_wrong_keyword_at_the_edges_is_answered_with_the_right_one(
    call: Any, there: str, here: str
) -> None:
    """Functions that pass options on to a client miss what was given under another name."""
    unknown, missing = f"{there}'?; here it is called {here}", f"; {there} is called {here} here"
    with pytest.raises(TypeError, match=f"({unknown}|{missing})$"):
        call(**{there: 1})


async def test_a_wrong_keyword_of_a_request_is_answered_with_the_right_one() -> None:
    async with rsocket.loopback({}) as requester:
        request: Any = requester.request_response
        with pytest.raises(TypeError, match=r"'timeout_seconds'; here it is called timeout$"):
            await request(timeout_seconds=1)


def test_constructors_that_typing_makes_are_left_as_they_are() -> None:
    """They are those of every protocol of the process."""
    assert inspect.unwrap(vars(r.Publisher)["__init__"]) is vars(r.Publisher)["__init__"]


async def test_a_wrong_keyword_of_a_terminal_operator_is_answered_too() -> None:
    with pytest.raises(TypeError, match=r"'max_workers'; here it is called concurrency$"):
        await FLOW.for_each(same, max_workers=3)


def test_an_unknown_keyword_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(TypeError, match=r"'nonsense'; its parameters are size, step$"):
        FLOW.buffer(3, nonsense=1)
    for given in ({"on_error": "skip"}, {"max_retries": 3}, {"timeout": 5}):
        with pytest.raises(TypeError, match=r"map_async has it; .*: lambda x: asyncio.to_thread"):
            FLOW.map_in_process(abs, **given)
    with pytest.raises(TypeError, match=r"'nonsense'; it has no options$"):
        FLOW.bound(nonsense=1)
    with pytest.raises(TypeError, match=r"'scheduler'; there are no schedulers; from_thread"):
        FLOW.delay(1, scheduler=1)
    with pytest.raises(TypeError, match=r"these are given by name: concurrency, ahead, ordered,"):
        FLOW.map_async(coroutine_function, 3)


def test_a_type_error_inside_of_an_operator_is_left_as_it_is() -> None:
    def wrong(_: object) -> Flow[int]:
        return same(1, nonsense=1)  # type: ignore[call-arg, return-value]

    with pytest.raises(TypeError, match=r"same\(\) got an .* argument 'nonsense'$"):
        FLOW.transform(wrong)


def test_what_explains_its_options_remains_the_function_that_it_is() -> None:
    vocabulary = cast("Any", Flow)
    for each in (r.just, r.merge, r.from_thread, vocabulary.map_async, vocabulary.to_list):
        assert pickle.loads(pickle.dumps(each)) is each
        assert inspect.unwrap(each) is not each
        assert inspect.signature(each) == inspect.signature(inspect.unwrap(each))
    assert inspect.iscoroutinefunction(vocabulary.to_list)
    assert not inspect.iscoroutinefunction(vocabulary.map_async)


def test_each_option_with_other_names_is_one_of_the_package() -> None:
    assert not option_names.FOREIGN_OPTIONS.keys() - parameters_of_the_package()
    for ours, names in option_names.FOREIGN_OPTIONS.items():
        assert ours not in names.split()
        assert names.split() == sorted(set(names.split())), f"in the order of the alphabet: {ours}"


def test_the_version_is_that_of_the_package() -> None:
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8")
    assert re.search(r'^version = "(.*)"$', text, re.M)[1] == r.__version__  # type: ignore[index]


async def test_nothing_was_left_unawaited() -> None:
    """The coroutine of a mistake is closed: there is no warning beside the error."""
    with pytest.raises(TypeError, match="is a coroutine; use from_awaitable"):
        r.from_aiter(cast("Any", asyncio.sleep(0)))


# -- loops -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [r.UnicastProcessor, r.MulticastProcessor])
async def test_a_processor_is_used_on_its_own_loop(kind: Any) -> None:
    hub = kind()
    received = asyncio.ensure_future(hub.to_list())
    await hub.wait_for_subscribers()
    with pytest.raises(WrongLoop, match=r"try_emit\(\): it belongs to .* use emit_threadsafe"):
        await asyncio.to_thread(hub.try_emit, 1)
    with pytest.raises(WrongLoop, match=r"emit\(\): it belongs to .* use emit_threadsafe"):
        await asyncio.to_thread(asyncio.run, hub.emit(1))
    if kind is r.MulticastProcessor:
        with pytest.raises(WrongLoop, match=r"subscribe\(\): .* subscribe where its producers run"):
            await asyncio.to_thread(asyncio.run, hub.first())
    assert await asyncio.to_thread(hub.emit_threadsafe, 1)
    hub.complete()
    assert await received == [1]


async def test_a_part_of_a_flow_is_read_on_the_loop_of_that_flow() -> None:
    (group,) = await r.range(9).group_by(lambda x: x % 2).take(1).to_list()
    with pytest.raises(WrongLoop, match="subscribe where the flow that it is part of runs"):
        await asyncio.to_thread(asyncio.run, group.to_list())


def test_a_processor_with_a_subscriber_is_used_on_its_own_loop() -> None:
    """In the same thread, and there is demand."""
    hub = r.MulticastProcessor[int]()
    loop = asyncio.new_event_loop()

    async def subscribe() -> SubscriberProbe[int]:
        return SubscriberProbe[int](9).subscribed_to(hub)

    async def emit() -> None:
        with pytest.raises(WrongLoop, match="try_emit"):
            hub.try_emit(1)
        with pytest.raises(WrongLoop, match="emit"):
            await hub.emit(1)

    try:
        probe = loop.run_until_complete(subscribe())
        asyncio.run(emit())
        assert probe.signals == []
    finally:
        loop.close()


def test_a_processor_does_not_outlive_its_loop() -> None:
    hub = r.MulticastProcessor[int]()

    async def use() -> None:
        hub.try_emit(1)
        await hub.emit(2)
        assert await r.just(1).merge_with(hub.take(1)).first() == 1

    asyncio.run(use())
    with pytest.raises(WrongLoop, match=r"a new one for each asyncio\.run\(\)"):
        asyncio.run(use())


# -- results of plain functions --------------------------------------------------------------------
def last_of(f: Callable[[object], object]) -> Callable[[object, object], object]:
    return lambda _, x: f(x)


RESULTS: dict[str, Callable[[Any, Any], Any]] = {
    "map": lambda flow, f: flow.map(f),
    "filter": lambda flow, f: flow.filter(f),
    "filter_map": lambda flow, f: flow.filter_map(f),
    "scan": lambda flow, f: flow.scan(last_of(f), seed=0).skip(1),
    "take_while": lambda flow, f: flow.take_while(f),
    "skip_while": lambda flow, f: flow.skip_while(f),
    "distinct": lambda flow, f: flow.distinct(f),
    "distinct_until_changed": lambda flow, f: flow.distinct_until_changed(f),
    "do_on_next": lambda flow, f: flow.do_on_next(f),
}
FEEDS: dict[str, Callable[[], Any]] = {
    "pulled": lambda: r.range(100),
    "awaited": lambda: r.from_aiter(r.range(100)),
    "pushed": lambda: r.range(100).boundary(4),
}


@in_one_run
@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize("name", RESULTS)
async def test_an_awaitable_result_is_refused_at_the_first_element(name: str, feed: str) -> None:
    called: list[object] = []

    def recorded(x: object) -> object:
        called.append(x)
        return coroutine_function(x)

    flow = RESULTS[name](FEEDS[feed](), recorded)
    message = f"^{name}: .* returned .*coroutine.*, which nothing would await; use "
    with pytest.raises(TypeError, match=message):
        await flow.to_list()
    with pytest.raises(TypeError, match=message):
        await anext(aiter(flow))
    probe = SubscriberProbe[object](1).subscribed_to(flow)
    with pytest.raises(TypeError, match=message):
        raise (await probe.end())[-1]
    assert called == [0, 0, 0]


async def test_an_awaitable_result_is_refused_after_elements_that_were_left_out() -> None:
    flow = r.range(50).filter(lambda x: x > 40).map(cast("Any", coroutine_function).__call__)
    with pytest.raises(TypeError, match=r"^map: .* returned"):
        await flow.count()


EMITTING: dict[str, Callable[[Any], Any]] = {
    "take_last": lambda flow: flow.take_last(3),
    "start_with": lambda flow: flow.take(0).start_with(7),
    "default_if_empty": lambda flow: flow.take(0).default_if_empty(7),
    "buffer": lambda flow: flow.buffer(100),
}


@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize("name", EMITTING)
async def test_an_awaitable_result_is_refused_for_what_is_emitted_first_or_last(
    feed: str, name: str
) -> None:
    flow = EMITTING[name](FEEDS[feed]()).map(mistaken)
    with pytest.raises(TypeError, match=r"^map: mistaken returned"):
        await flow.to_list()
    with pytest.raises(TypeError, match=r"^map: mistaken returned"):
        async for _ in flow:
            pass


async def test_the_values_of_a_dict_are_not_awaitables() -> None:
    with pytest.raises(TypeError, match=r"^to_dict: mistaken returned .* nothing would await"):
        await r.range(5).to_dict(same, mistaken)


@pytest.mark.parametrize("name", TERMINAL)
async def test_a_terminal_operator_refuses_an_awaitable_result(name: str) -> None:
    flow = r.range(5)
    calls: dict[str, Callable[[], Any]] = {
        "min": lambda: flow.min(key=mistaken),
        "max": lambda: flow.max(key=mistaken),
        "reduce": lambda: flow.reduce(mistaken),
        "to_dict": lambda: flow.to_dict(mistaken),
        "any": lambda: flow.any(mistaken),
        "all": lambda: flow.all(mistaken),
    }
    with pytest.raises(TypeError, match=f"^{name}: .* returned .*; use map_async before"):
        await calls[name]()


async def test_a_flow_is_an_element_like_any_other() -> None:
    assert await r.range(3).map(lambda x: r.just(x)).flat_map(lambda x: x).to_list() == [0, 1, 2]


@pytest.mark.parametrize("name", ["map", "filter", "do_on_next"])
async def test_only_the_first_result_is_looked_at(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = list[object]()
    flow = RESULTS[name](r.range(300), bool)
    loop = flow.chain.compiled_loop("sync", "call").run

    def look(*found: object) -> None:
        looked.append(found)

    monkeypatch.setitem(loop.__globals__, "refuse_awaitable", look)
    await SubscriberProbe[object](1 << 62).subscribed_to(flow).end()
    assert len(looked) <= 2


async def test_the_remedy_is_one_that_helps_where_there_is_no_element_to_await_for() -> None:
    with pytest.raises(TypeError, match=r"^map_in_thread: .*; use map_async in its place"):
        await r.just(1).map_in_thread(mistaken).to_list()
    with pytest.raises(TypeError, match=r"^do_finally: .*; start a task of your own"):
        await r.just(1).do_finally(mistaken).to_list()
    with pytest.raises(TypeError, match=r"^RetryPolicy: .*; decide without awaiting"):
        await r.error(OSError("gone")).retry(r.RetryPolicy(only=mistaken)).to_list()
    with pytest.raises(TypeError, match=r"^on_error_map: .*; map the error without awaiting"):
        await r.error(OSError("gone")).on_error_map(mistaken).to_list()
    for name in ("do_on_complete", "do_on_cancel", "do_on_error", "do_on_request", "do_finally"):
        with pytest.raises(TypeError, match=rf"^{name}: .*; start a task of your own$"):
            PLAIN[name](coroutine_function)


@pytest.mark.parametrize("operator", ["do_on_cancel", "do_on_discard"])
async def test_the_remedy_of_what_is_reported_is_one_that_helps(
    operator: str, expects_loop_errors: list[Any]
) -> None:
    hot = r.UnicastProcessor[int]()
    flows: dict[str, Callable[[], Flow[int]]] = {
        "do_on_cancel": lambda: hot.do_on_cancel(mistaken),
        "do_on_discard": lambda: hot.do_on_discard(mistaken),
    }
    probe = SubscriberProbe[int]().subscribed_to(flows[operator]())
    hot.try_emit(1)
    probe.cancel()
    told = str(expects_loop_errors[0]["exception"])
    assert f"{operator}: mistaken returned" in told
    assert "task of your own" in told


async def test_the_remedy_of_on_drop_is_one_that_helps() -> None:
    probe = SubscriberProbe[int](1).subscribed_to(r.range(9).on_backpressure_drop(on_drop=mistaken))
    assert "task of your own" in str((await probe.end())[-1])


async def test_the_callbacks_of_an_end_refuse_an_awaitable_result() -> None:
    for flow in (r.just(1).do_on_complete(mistaken), r.just(1).do_finally(mistaken)):
        with pytest.raises(TypeError, match=r"^do_.*: mistaken returned .* nothing would await"):
            await flow.to_list()
    with pytest.raises(TypeError, match=r"^do_on_error: mistaken returned") as raised:
        await r.error(OSError("gone")).do_on_error(mistaken).to_list()
    assert isinstance(raised.value.__context__, OSError)


async def test_a_request_callback_refuses_an_awaitable_result_at_its_first_call() -> None:
    message = r"^do_on_request: mistaken returned .* would await"
    for flow in (r.range(5), r.from_aiter(r.range(5)), r.range(5).boundary(2)):
        watched = flow.do_on_request(mistaken)
        with pytest.raises(TypeError, match=message):
            await watched.to_list()
        probe = SubscriberProbe[object](1).subscribed_to(watched)
        with pytest.raises(TypeError, match=message):
            raise (await probe.end())[-1]


async def test_a_predicate_of_a_retry_policy_refuses_an_awaitable_result() -> None:
    flow = r.error(OSError("gone")).retry(r.RetryPolicy(only=mistaken))
    with pytest.raises(TypeError, match=r"^RetryPolicy: mistaken returned"):
        await flow.to_list()


def test_a_coroutine_function_does_not_decide_about_another_attempt() -> None:
    with pytest.raises(TypeError, match=r"only must be a plain function, .* coroutine"):
        r.RetryPolicy(only=coroutine_function)
