"""The places where code of the user may raise, each in a flow that calls it."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

import reactive_aio as r
from tests.contract.raising.code import Code

Flow = Any
Place = Callable[[Code], Flow]
Apply = Callable[[Any], Flow]

FLOWS: Final[Mapping[str, Apply]] = {
    "iterable": lambda s: r.from_iterable(s),
    "asynchronous": lambda s: r.from_aiter(s),
    "boundary": lambda s: r.from_iterable(s).boundary(2),
    "boundary of an asynchronous one": lambda s: r.from_aiter(s).boundary(2),
    "flat_map": lambda s: r.from_iterable(s).flat_map(lambda x: [x]),
    "merge": lambda s: r.from_aiter(s).merge_with(r.never(), prefetch=1),
    "thread": lambda s: r.from_thread(s),
}
"""A flow of each kind of subscription, of a source that can be iterated in both ways."""


def failing(flow: Apply) -> Place:
    """*flow* of a source that raises after its first element."""
    return lambda c: flow(c.failing)


def failing_cleanup(flow: Apply) -> Place:
    """*flow* of a source whose ``finally`` clause raises."""
    return lambda c: flow(c.failing_cleanup)


def quiet(flow: Apply) -> Place:
    """*flow* of a source that raises nothing, and does not end."""
    return lambda c: flow(c.endless)


def failed(processor: Any, code: Code) -> Flow:
    """*processor*, whose producer has failed."""
    code.signals(processor)
    return processor


# -- sources ---------------------------------------------------------------------------------------
SOURCES: Final[Mapping[str, Place]] = {
    **{name: failing(flow) for name, flow in FLOWS.items()},
    "thread: function": lambda c: r.from_thread(lambda: iter(c.failing)),
    "thread, merged": lambda c: r.from_thread(c.failing).merge_with(r.never()),
    "from_iterable: __iter__": lambda c: r.from_iterable(c.opens),
    "from_iterable: __next__": lambda c: r.from_iterable(c.steps),
    "start_with": lambda c: r.from_iterable(c.opens).start_with([1]),
    "signal: from_publisher": lambda c: r.from_publisher(c),
    "signal: create": lambda c: r.create(c.signals),
    "signal: processor": lambda c: r.defer(lambda: failed(r.UnicastProcessor(), c)),
    "error": lambda c: r.error(c.fails),
    "from_awaitable": lambda c: r.from_awaitable(lambda: c.fails_at_2_async(2)),
    "from_callable": lambda c: r.from_callable(c.fails),
    "generate": lambda c: r.generate(c.fails, 1),
    "defer": lambda c: r.defer(c.fails),
    "create": lambda c: r.create(c.emits),
    "create, merged": lambda c: r.create(c.emits).merge_with(r.never()),
    "create: coroutine": lambda c: r.create(c.emits_async),
    "using: enter": lambda c: r.using(
        lambda: c.manager("enter"), lambda _: r.from_iterable(c.numbers)
    ),
    "using: exit": lambda c: r.using(
        lambda: c.manager("exit"), lambda _: r.from_iterable(c.numbers)
    ),
    "using: flow": lambda c: r.using(lambda: c.manager(""), c.fails),
    "using: async enter": lambda c: r.using(
        lambda: c.async_manager("enter"), lambda _: r.from_iterable(c.numbers)
    ),
    "using: async exit": lambda c: r.using(
        lambda: c.async_manager("exit"), lambda _: r.from_iterable(c.numbers)
    ),
    "merge of two": lambda c: r.merge(r.from_aiter(c.failing), r.range(5)),
    "concat": lambda c: r.concat(r.range(5), r.from_aiter(c.failing)),
    "zip": lambda c: r.zip(r.from_aiter(c.failing), r.range(5)),
    "then": lambda c: r.from_aiter(c.failing).then([1]),
    "timeout": lambda c: r.from_aiter(c.failing).timeout(5),
    "buffer_timeout": lambda c: r.from_aiter(c.failing).buffer_timeout(3, 5),
    "on_backpressure_buffer": lambda c: r.from_aiter(c.failing).on_backpressure_buffer(3),
    "flat_map: generator": lambda c: r.range(5).flat_map(lambda _: iter(c.failing)),
    "flat_map: asynchronous": lambda c: r.range(5).flat_map(lambda _: r.from_aiter(c.failing)),
}
"""Sources that raise: when they are opened, in an iteration, in a call; alone and in operators."""


# -- functions of operators ------------------------------------------------------------------------
async def fails_otherwise(_: int) -> int:
    raise OSError


def after(flow: str, call: Callable[[Code, Flow], Flow]) -> Place:
    """*call* an operator of a flow that raises nothing itself."""
    return lambda c: call(c, FLOWS[flow](c.numbers))


def after_failure(flow: str, call: Callable[[Code, Flow], Flow]) -> Place:
    """*call* an operator of a flow that has failed while its source could go on."""
    return lambda c: call(c, FLOWS[flow](c.numbers).map(lambda x: 1 / (3 - x)))


async def fails_by_itself() -> AsyncIterator[int]:
    yield 1
    raise OSError


AFTER_A_SOURCE: Final[Mapping[str, Place]] = {
    "map of a range": lambda c: r.range(5).map(c.fails_at_2),
    "do_on_error of error": lambda c: r.error(OSError).do_on_error(c.fails),
    "on_error_resume of error": lambda c: r.error(OSError).on_error_resume(c.fails),
    "on_error_map of error": lambda c: r.error(OSError).on_error_map(c.fails),
    "do_on_error of a source": lambda c: r.from_aiter(fails_by_itself).do_on_error(c.fails),
    "do_on_error, pushed": lambda c: r.from_aiter(fails_by_itself).boundary(2).do_on_error(c.fails),
    "do_on_error, followed": lambda c: (
        r.from_aiter(fails_by_itself).concat_with([]).do_on_error(c.fails)
    ),
}
"""Functions of operators of a source that fails by itself, or has a loop of its own kind."""
STAGES: Final[Mapping[str, Callable[[Code, Flow], Flow]]] = {
    "map": lambda c, up: up.map(c.fails_at_2),
    "filter": lambda c, up: up.filter(c.fails_at_2),
}
FUNCTIONS: Final[Mapping[str, Callable[[Code, Flow], Flow]]] = {
    "map before a boundary": lambda c, up: up.map(c.fails_at_2).boundary(2),
    "scan": lambda c, up: up.scan(lambda _, x: c.fails_at_2(x), seed=1),
    "window_reduce": lambda c, up: up.window_reduce(60, lambda _, x: c.fails_at_2(x), 1),
    "debounce": lambda c, up: up.debounce(c.fails),
    "map_async": lambda c, up: up.map_async(c.fails_at_2_async),
    "map_async: workers": lambda c, up: up.map_async(c.fails_at_2_async, concurrency=3),
    "map_async: timeout": lambda c, up: up.map_async(c.fails_at_2_async, timeout=9, concurrency=2),
    "map_async: ahead": lambda c, up: up.map_async(c.fails_at_2_async, concurrency=2, ahead=5),
    "map_async: key": lambda c, up: up.map_async(c.fails_at_2_async, key=c.fails),
    "map_async: on_error": lambda c, up: up.map_async(fails_otherwise, on_error=c.fails),
    "filter_async": lambda c, up: up.filter_async(c.fails_at_2_async),
    "map_in_thread": lambda c, up: up.map_in_thread(c.fails_at_2),
    "flat_map: mapper": lambda c, up: up.flat_map(lambda x: [c.fails_at_2(x)]),
    "retry": lambda c, up: up.map(lambda _: 1 // 0).retry(r.RetryPolicy(only=c.fails)),
    "do_on_next": lambda c, up: up.do_on_next(c.fails_at_2),
    "do_on_request": lambda c, up: up.do_on_request(c.fails),
    "do_on_complete: all": lambda c, up: up.do_on_complete(c.fails),
    "do_finally: all": lambda c, up: up.do_finally(c.fails),
}
AT_THE_END: Final[Mapping[str, Callable[[Code, Flow], Flow]]] = {
    "do_finally": lambda c, up: up.do_finally(c.fails),
    "do_on_error": lambda c, up: up.do_on_error(c.fails),
    "do_on_error, followed": lambda c, up: up.concat_with([]).do_on_error(c.fails),
    "on_error_resume": lambda c, up: up.on_error_resume(c.fails),
    "on_error_map": lambda c, up: up.on_error_map(c.fails),
}
KINDS_OF_SUBSCRIPTION: Final = ("iterable", "asynchronous", "boundary")

PLACES: Final[Mapping[str, Place]] = {
    **SOURCES,
    **AFTER_A_SOURCE,
    **{f"{name} of {flow}": after(flow, call) for name, call in STAGES.items() for flow in FLOWS},
    **{name: after("iterable", call) for name, call in FUNCTIONS.items()},
    **{
        f"{name} of {flow}": after_failure(flow, call)
        for name, call in AT_THE_END.items()
        for flow in KINDS_OF_SUBSCRIPTION
    },
    **{
        f"do_on_complete of {flow}": after(flow, lambda c, up: up.take(2).do_on_complete(c.fails))
        for flow in KINDS_OF_SUBSCRIPTION
    },
}

# -- cleanups --------------------------------------------------------------------------------------
CLEANUPS: Final[Mapping[str, Place]] = {
    **{name: failing_cleanup(flow) for name, flow in FLOWS.items()},
    "slow": lambda c: r.from_aiter(c.cleans_up_slowly),
    "iterable and a coroutine function": lambda c: r.from_iterable(c.failing_cleanup).map_async(
        lambda x: asyncio.sleep(0, x)
    ),
    "using": lambda c: r.using(lambda: c.manager("exit"), c.gives_numbers),
    "using, asynchronously": lambda c: r.using(
        lambda: c.async_manager("exit"), lambda _: r.from_iterable(c.numbers)
    ),
    "create": lambda c: r.create(c.emits_and_cleans_up, capacity=1),
    "an awaited flow": lambda c: r.from_iterable(c.numbers).flat_map(
        lambda x: r.from_awaitable(lambda: c.works_and_cleans_up(x)), concurrency=3
    ),
    "workers": lambda c: r.from_iterable(c.numbers).map_async(c.works_and_cleans_up, concurrency=3),
}
"""Flows whose cleanup raises, if they are left early."""
