"""What does each operator cost that has upstreams, timers or queues, compared with ``merge``?"""

from collections.abc import Callable
from typing import Any

import reactive_aio as rx
from reactive_aio import Flow, range as flow_range

from ..functions import PARTS, double, even, pausing
from ..runner.question import Question
from ..subscribers import Summing
from .inline import Counting, Firsts, Seconds

COUNT = 200_000
GOAL = 1.5
HOUR = 3600.0
INNER = 100
"""The length of an inner flow, of a list and of a window."""


def concurrent(
    name: str,
    flow_of: Callable[[int], Flow[Any]],
    *,
    subscriber: type[Summing] = Summing,
    expected: Callable[[int], int] = lambda count: sum(range(count)),
    sources: Callable[[int], list[Flow[int]]] = lambda count: [source(count), rx.empty()],
) -> Question:
    """The question about one operator; `merge` of the same *sources* takes as many turns."""
    question = Question(f"`{name}`", COUNT)

    @question.handwritten("`merge` of the same sources")
    async def merged(count: int) -> int:
        await Summing().sum_of(rx.merge(*sources(count)))
        return expected(count)

    @question.ours(f"`{name}` (× `merge`)", goal=GOAL)
    async def ours(count: int) -> int:
        return await subscriber().sum_of(flow_of(count))

    return question


def splitting(
    name: str,
    flow_of: Callable[[int], Flow[Any]],
    made: Callable[[int], list[Flow[int]]],
) -> Question:
    """The same for an operator that splits a flow into those that `made` returns, for `merge`."""
    question = concurrent(name, flow_of, sources=made)

    @question.other("`merge` of the flow that is split")
    async def merged(count: int) -> int:
        return await Summing().sum_of(rx.merge(source(count), rx.empty()))

    return question


def outer_and_inner(count: int) -> tuple[Flow[int], Callable[[int], Flow[int]]]:
    """A flow, and for each element of it the inner flow; *count* elements in all."""

    def inner(begin: int) -> Flow[int]:
        return source(min(INNER, count - begin)).map(lambda x: begin + x)

    return flow_range(0, count, INNER), inner


def flattened(count: int) -> Flow[int]:
    outer, inner = outer_and_inner(count)
    return outer.flat_map(inner)


def concatenated(count: int) -> Flow[int]:
    outer, inner = outer_and_inner(count)
    return outer.concat_map(inner)


def inner_flows(count: int) -> list[Flow[int]]:
    """The flows that `flattened` and `concatenated` make, all of them at once."""
    _, inner = outer_and_inner(count)
    return [inner(begin) for begin in range(0, count, INNER)]


def expanded(count: int) -> list[Flow[int]]:
    """The flows that are made of *count* elements, which nothing follows, and their source."""
    return [source(count), *(ended_at_once(i) for i in range(count))]


def windows(count: int) -> list[Flow[int]]:
    """Flows such as `window` makes."""
    return [source(min(INNER, count - begin)) for begin in range(0, count, INNER)]


def groups(count: int) -> list[Flow[int]]:
    """Flows such as `group_by` makes: the elements of a turn come in parts, one in each flow."""
    return [rx.from_aiter(lambda: pausing(count // PARTS, PARTS)) for _ in range(PARTS)]


def source(count: int) -> Flow[int]:
    """As in the other questions: it suspends at every 64th element, as a socket does."""
    return rx.from_aiter(lambda: pausing(count))


def parts(count: int) -> list[Flow[int]]:
    """Sources with *count* elements in all."""
    return [source(count // PARTS) for _ in range(PARTS)]


async def is_even(element: int) -> bool:
    return even(element)


def of_eight(element: int) -> int:
    return element & 7


def identity(flow: Flow[int]) -> Flow[int]:
    return flow


def ended_at_once(_: int) -> Flow[int]:
    return rx.empty()


# -- several upstreams -----------------------------------------------------------------------------
merge = concurrent(
    "merge(priority=)",
    lambda count: rx.merge(*parts(count), priority=range(PARTS)),
    expected=lambda count: PARTS * sum(range(count // PARTS)),
    sources=parts,
)
concat = concurrent(
    "concat",
    lambda count: rx.concat(*parts(count)),
    expected=lambda count: PARTS * sum(range(count // PARTS)),
    sources=parts,
)
zip_ = concurrent(
    "zip",
    lambda count: rx.zip(source(count), source(count)),
    subscriber=Firsts,
    sources=lambda count: [source(count), source(count)],
)
combine_latest = concurrent(
    "combine_latest",
    lambda count: rx.combine_latest(rx.just(0), source(count)),
    subscriber=Seconds,
)
with_latest_from = concurrent(
    "with_latest_from",
    lambda count: source(count).with_latest_from(rx.just(0).concat_with(rx.never())),
    subscriber=Firsts,
)
race = concurrent("race", lambda count: rx.race(source(count), rx.never()))
switch_if_empty = concurrent(
    "switch_if_empty", lambda count: source(count).switch_if_empty(rx.just(1))
)
take_until = concurrent("take_until", lambda count: source(count).take_until(rx.never()))
then = concurrent("then", lambda count: rx.empty().then(source(count)))

# -- inner flows -----------------------------------------------------------------------------------
flat_map = concurrent("flat_map", flattened, sources=inner_flows)
concat_map = concurrent("concat_map", concatenated, sources=inner_flows)
switch_map = concurrent("switch_map", lambda count: rx.just(0).switch_map(
    lambda _: source(count)
))  # fmt: skip
expand = concurrent(
    "expand",
    lambda count: source(count).expand(ended_at_once, capacity=COUNT),
    sources=expanded,
)

# -- windows and groups ----------------------------------------------------------------------------
window = splitting(
    "window(100)", lambda count: source(count).window(INNER).flat_map(identity), windows
)
window_timeout = splitting(
    "window_timeout(100, hour)",
    lambda count: source(count).window_timeout(INNER, HOUR).flat_map(identity),
    windows,
)
group_by = splitting(
    "group_by of 8 keys",
    lambda count: source(count).group_by(of_eight).flat_map(identity),
    groups,
)
buffer_timeout = concurrent(
    "buffer_timeout(100, hour)",
    lambda count: source(count).buffer_timeout(INNER, HOUR),
    subscriber=Counting,
    expected=lambda count: count,
)

# -- time ------------------------------------------------------------------------------------------
timeout = concurrent("timeout(hour)", lambda count: source(count).timeout(HOUR))
delay_subscription = concurrent(
    "delay_subscription(0)", lambda count: source(count).delay_subscription(0)
)
rate_limit = concurrent(
    "rate_limit above the rate", lambda count: source(count).rate_limit(10**9, per=1)
)
delay = concurrent("delay(0)", lambda count: source(count).delay(0))
debounce = concurrent(
    "debounce(hour)",
    lambda count: source(count).debounce(HOUR),
    expected=lambda count: count - 1,
)
throttle_first = concurrent(
    "throttle_first(hour)",
    lambda count: source(count).throttle_first(HOUR),
    expected=lambda _: 0,
)
throttle_latest = concurrent(
    "throttle_latest(hour)",
    lambda count: source(count).throttle_latest(HOUR),
    expected=lambda count: count - 1,
)
sample = concurrent("sample(hour)", lambda count: source(count).sample(HOUR), expected=lambda _: 0)

# -- errors and repetition -------------------------------------------------------------------------
on_error_resume = concurrent("on_error_resume", lambda count: source(count).on_error_resume([1]))
on_error_return = concurrent("on_error_return", lambda count: source(count).on_error_return(1))
on_error_map = concurrent(
    "on_error_map", lambda count: source(count).on_error_map(lambda error: error)
)
on_error_complete = concurrent("on_error_complete", lambda count: source(count).on_error_complete())
retry = concurrent("retry(1)", lambda count: source(count).retry(1))
repeat = concurrent("repeat(1)", lambda count: source(count).repeat(1))

# -- demand, and queues ----------------------------------------------------------------------------
boundary = concurrent("boundary(256)", lambda count: source(count).boundary(256))
limit_rate = concurrent("limit_rate(256)", lambda count: source(count).limit_rate(256))
on_backpressure_buffer = concurrent(
    "on_backpressure_buffer", lambda count: source(count).on_backpressure_buffer(COUNT)
)
on_backpressure_drop = concurrent(
    "on_backpressure_drop", lambda count: source(count).on_backpressure_drop()
)
on_backpressure_error = concurrent(
    "on_backpressure_error", lambda count: source(count).on_backpressure_error()
)
on_backpressure_latest = concurrent(
    "on_backpressure_latest", lambda count: source(count).on_backpressure_latest()
)
share = concurrent("share", lambda count: source(count).share())
replay = concurrent("replay(10)", lambda count: source(count).replay(10))
cache = concurrent("cache", lambda count: source(count).cache(limit=COUNT))

# -- asynchronous functions, threads ---------------------------------------------------------------
map_async = concurrent(
    "map_async",
    lambda count: source(count).map_async(double),
    expected=lambda count: 2 * sum(range(count)),
)
filter_async = concurrent(
    "filter_async",
    lambda count: source(count).filter_async(is_even),
    expected=lambda count: sum(range(0, count, 2)),
)
map_in_thread = concurrent(
    "map_in_thread(chunk=1000)",
    lambda count: source(count).map_in_thread(abs, chunk=1000),
)
