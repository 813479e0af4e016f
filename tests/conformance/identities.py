"""Every operator in a form that passes its elements on unchanged, over any upstream.

So the laws can judge it as a processor: what it requests from upstream, when it cancels, and how it
accepts signals that no publisher of this library would send. `NO_IDENTITY` names the operators
without such a form.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import reactive_aio as r
from reactive_aio import Flow

__all__ = ("IDENTITIES", "NO_IDENTITY")

MANY: Final = 1_000_000
LONG: Final = 3600.0


def same(element: Any) -> Any:
    return element


async def soon(element: Any) -> Any:
    return element


async def yes(_element: Any) -> bool:
    return True


def nothing(*_args: Any) -> None:
    """A callback."""


def one(element: Any) -> Flow[Any]:
    return r.just(element)


def fused_pairs(flow: Flow[Any]) -> Flow[Any]:
    return flow.enumerate().map(lambda pair: pair[1])


Async = Callable[[Any], Awaitable[Any]]

IDENTITIES: Final[dict[str, Callable[[Flow[Any]], Flow[Any]]]] = {
    "map": lambda up: up.map(same),
    "map_async": lambda up: up.map_async(soon),
    "map_async: three at a time": lambda up: up.map_async(soon, concurrency=3),
    "filter": lambda up: up.filter(lambda _: True),
    "filter_async": lambda up: up.filter_async(yes),
    "filter_map": lambda up: up.filter_map(same),
    "of_type": lambda up: up.of_type(object),
    "scan": lambda up: up.scan(lambda _, new: new),
    "enumerate": fused_pairs,
    "flat_map": lambda up: up.flat_map(one),
    "transform": lambda up: up.transform(lambda flow: flow.map(same)),
    "take": lambda up: up.take(MANY),
    "take_while": lambda up: up.take_while(lambda _: True),
    "skip": lambda up: up.skip(0),
    "skip_while": lambda up: up.skip_while(lambda _: False),
    "distinct": lambda up: up.distinct(),
    "distinct_until_changed": lambda up: up.distinct_until_changed(),
    "concat_with": lambda up: up.concat_with(r.empty()),
    "concat": lambda up: r.concat(r.empty(), up),
    "merge_with": lambda up: up.merge_with(r.empty()),
    "merge": lambda up: r.merge(up, r.empty(), prefetch=2),
    "zip": lambda up: r.zip(up, r.generate(lambda n: (n, n + 1), 0)).map(lambda pair: pair[0]),
    "zip_with": lambda up: up.zip_with(r.range(MANY)).map(lambda pair: pair[0]),
    "then": lambda up: r.empty().then(up),
    "start_with": lambda up: up.start_with(),
    "default_if_empty": lambda up: up.default_if_empty(-1).filter(lambda x: x != -1),
    "timeout": lambda up: up.timeout(LONG),
    "buffer": lambda up: up.buffer(1).map(lambda chunk: chunk[0]),
    "buffer_timeout": lambda up: up.buffer_timeout(1, LONG).map(lambda chunk: chunk[0]),
    "sliding_window": lambda up: up.sliding_window(1).map(lambda chunk: chunk[0]),
    "on_error_resume": lambda up: up.on_error_resume(r.just(-1), only=KeyError),
    "on_error_return": lambda up: up.on_error_return(-1, only=KeyError),
    "retry": lambda up: up.retry(r.RetryPolicy(only=KeyError)),
    "boundary": lambda up: up.boundary(2),
    "boundary: of one": lambda up: up.boundary(1),
    "on_backpressure_buffer": lambda up: up.on_backpressure_buffer(1000),
    "do_on_next": lambda up: up.do_on_next(nothing),
    "do_on_error": lambda up: up.do_on_error(nothing),
    "do_on_complete": lambda up: up.do_on_complete(nothing),
    "do_on_cancel": lambda up: up.do_on_cancel(nothing),
    "do_on_request": lambda up: up.do_on_request(nothing),
    "do_finally": lambda up: up.do_finally(nothing),
    "log": lambda up: up.log(level=0),
    "all at once": lambda up: up.map(same).boundary(2).filter(lambda _: True).map_async(soon),
}

NO_IDENTITY: Final = {
    "pairwise": "it sends pairs of elements",
    "take_last": "it sends nothing before the end",
    "skip_last": "it does not send the last elements",
    "on_backpressure_drop": "it drops elements without demand",
    "on_backpressure_latest": "it drops elements without demand",
}
