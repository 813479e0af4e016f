"""The operators: the text of a call on ``{flow}``, and its effect on the expected elements.

An operator that changes the type of its elements is followed by one that makes tokens of them
again.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate, dropwhile, groupby, pairwise, takewhile
from typing import Final

from reactive_aio.tck.model import neighbours
from reactive_aio.tck.model.expected import (
    Expected,
    Parameters,
    added,
    each,
    failing,
    reordered,
    repeated,
    resumed,
    thinned,
    unknown,
    when_empty,
    whole,
)
from reactive_aio.tck.model.neighbours import BEHIND_ANOTHER, LEAVES_OUT, TAKE, divided, double
from reactive_aio.tck.model.vocabulary import Operator
from tests.model.run import CHILD

__all__ = ("EXCEPTIONS", "OPERATORS", "WITH_SMALL_BOUNDS")


_IN_SEVERAL: Final = "an element is in several of its lists"
_READ_BY_OTHERS: Final = "others may read what it keeps"


def _others(parameters: Parameters) -> Iterable[int]:
    start = parameters["v"]
    return range(start, start + parameters["n"])


def _twice(value: int, _: Parameters) -> Iterable[int]:
    return [value, value + 1]


def _not_three(value: int, _: Parameters) -> Iterable[int]:
    return [value] if value % 3 else []


def _pairs(values: list[int], _: Parameters) -> Iterable[int]:
    return [x for pair in pairwise(values) for x in pair]


def _windows(size: int, step: int, values: list[int], *, partial: bool) -> Iterable[int]:
    for start in range(0, len(values), step):
        window = values[start : start + size]
        if partial or len(window) == size:
            yield from window


def _distinct(values: list[int], _: Parameters) -> Iterable[int]:
    return dict.fromkeys(values)


def _changed(values: list[int], _: Parameters) -> Iterable[int]:
    return [value for value, _ in groupby(values)]


def _take_while(values: list[int], parameters: Parameters) -> Iterable[int]:
    return takewhile(lambda value: value < parameters["k"], values)


def _tree(values: list[int], _: Parameters) -> Iterable[int]:
    return [*values, *(x + CHILD for x in values if x < CHILD and x % 3 == 0)]


def _tree_effect(expected: Expected, parameters: Parameters) -> Expected:
    # The level of an element decides, so any part of the elements leads to a part of the tree.
    after = each(lambda x, _: _tree([x], _))(expected, parameters)
    return whole(_tree)(expected, parameters) if expected.is_exact else reordered(after, parameters)


def _successor(expected: Expected, parameters: Parameters) -> Expected:
    return added(_others)(each(lambda _, __: ())(expected, parameters), parameters)


def _merged(expected: Expected, parameters: Parameters) -> Expected:
    values = (*expected.values, *_others(parameters))
    merged = replace(expected, values=values, is_ordered=False)
    # An error cancels the other sources.
    return merged if expected.fails is False else thinned(merged, parameters)


def _zipped(expected: Expected, parameters: Parameters) -> Expected:
    """With n elements: where both sources end at once, the failure or the completion wins."""
    after = TAKE(expected, parameters)
    if expected.fails and len(expected.values) == parameters["n"]:
        return replace(after, fails=None)
    return after


def _nothing(expected: Expected, _: Parameters) -> Expected:
    """The source is not subscribed to."""
    return replace(
        expected, values=(), is_ordered=True, is_complete=True, is_known=True, fails=False
    )


def _until_a_time(expected: Expected, parameters: Parameters) -> Expected:
    fails = None if expected.fails else expected.fails
    return replace(thinned(expected, parameters), fails=fails)


def _is_k(value: int, parameters: Parameters) -> bool:
    return value == parameters["k"]


OPERATORS: dict[str, Operator] = {
    **neighbours.OPERATORS,
    # -- transform
    "map: fails": Operator("{flow}.map(run.failing({k}))", failing(_is_k), discards=True),
    "filter_map": Operator("{flow}.filter_map(run.kept({n}))", each(divided)),
    "of_type": Operator("{flow}.start_with('no token').of_type(Token)"),
    "scan": Operator(
        "{flow}.scan(run.summed)",
        whole(lambda values, _: accumulate(values), shrinks=False),
    ),
    "scan: seed": Operator(
        "{flow}.scan(lambda _, token: token, seed={v}).map(run.tokenized)",
        added(lambda p: [p["v"]], after=False),
    ),
    "enumerate": Operator("{flow}.enumerate().map(lambda pair: pair[1])"),
    "pairwise": Operator(
        "{flow}.pairwise().flat_map(run.copies, concurrency=1)",
        whole(_pairs, shrinks=False),
        unaccounted=_IN_SEVERAL,
    ),
    "default_if_empty": Operator(
        "{flow}.default_if_empty({v}).map(run.tokenized)", when_empty(lambda p: [p["v"]])
    ),
    "transform": Operator("{flow}.transform(lambda flow: flow.map(run.doubled))", each(double)),
    # -- async_map
    "map_async: unordered": Operator(
        "{flow}.map_async(run.slow, concurrency={n}, ordered=False)", reordered
    ),
    "map_async: by key": Operator(
        "{flow}.map_async(run.slow, concurrency={n}, key=lambda x: run.value(x) % 2)"
    ),
    "map_async: skips": Operator(
        "{flow}.map_async(run.sometimes, concurrency={n}, retry=2, on_error=run.skipped)",
        each(_not_three),
    ),
    "map_async: limited": Operator(
        "{flow}.map_async(run.soon, concurrency={n}, timeout=10**6, limiter=r.ConcurrencyLimit(1))"
    ),
    "map_async: ahead": Operator(
        "{flow}.map_async(run.slow, concurrency={n}, ahead={n} + {m},"
        " limiter=[r.ConcurrencyLimit(2), r.RateLimit(10**6)])"
    ),
    "map_async: fails": Operator(
        "{flow}.map_async(run.failing_async({k}))", failing(_is_k), discards=True
    ),
    "map_async: fails beside others": Operator(
        "{flow}.map_async(run.failing_async({k}), concurrency={n})",
        lambda e, p: thinned(failing(_is_k)(e, p), p),
        discards=True,
    ),
    "filter_async": Operator("{flow}.filter_async(run.keeps_async({n}))", each(divided)),
    "filter_async: ordered": Operator(
        "{flow}.filter_async(run.keeps_async({n}), concurrency={m})", each(divided)
    ),
    "map_in_thread": Operator("{flow}.map_in_thread(run.doubled, concurrency=2)", each(double)),
    # -- select
    "take: none": Operator("{flow}.take(0)", _nothing, discards=True),
    "take_while": Operator(
        "{flow}.take_while(run.ledger.filter(run.below({k})))",
        whole(
            _take_while,
            fails=lambda values, p: False if any(x >= p["k"] for x in values) else None,
        ),
        discards=True,
    ),
    "take_last: all": Operator("{flow}.take_last(10_000)", loses_on_failure=True),
    "skip": Operator(
        "{flow}.skip({n})", whole(lambda values, p: values[p["n"] :]), unaccounted=LEAVES_OUT
    ),
    "skip_while": Operator(
        "{flow}.skip_while(run.below({k}))",
        whole(lambda values, p: dropwhile(lambda x: x < p["k"], values)),
        unaccounted=LEAVES_OUT,
    ),
    "skip_last": Operator(
        "{flow}.skip_last({n})", whole(lambda values, p: values[: -p["n"]]), discards=True
    ),
    "distinct": Operator(
        "{flow}.distinct(run.value, max_keys=None)", whole(_distinct), unaccounted=LEAVES_OUT
    ),
    "distinct_until_changed": Operator(
        "{flow}.distinct_until_changed(run.value)", whole(_changed), unaccounted=LEAVES_OUT
    ),
    # -- flat_map, switch
    "flat_map": Operator(
        "{flow}.flat_map(run.twice, concurrency={n}).map(run.of_part)", each(_twice)
    ),
    "flat_map: inner flows": Operator(
        "{flow}.flat_map(run.twice_async, concurrency={n}, prefetch={m})",
        lambda e, p: reordered(each(_twice)(e, p), p),
        loses_on_failure=True,
    ),
    "flat_map: one connection": Operator(
        "{flow}.flat_map(lambda x: run.twice_async(x, {v}), concurrency=1, prefetch={m})",
        each(_twice),
        loses_on_failure=True,
    ),
    "flat_map: awaitables": Operator(
        "{flow}.flat_map(lambda x: r.from_awaitable(lambda: run.slow(x)), concurrency={n})",
        reordered,
        loses_on_failure=True,
    ),
    "concat_map": Operator(
        "{flow}.concat_map(lambda x: run.twice_async(x, {v}), prefetch={m})",
        each(_twice),
        loses_on_failure=True,
    ),
    "switch_map": Operator("{flow}.switch_map(lambda x: [x])", thinned, discards=True),
    "switch_map: inner flows": Operator(
        "{flow}.switch_map(lambda x: run.twice_async(x, {v}))",
        lambda e, p: thinned(each(_twice)(e, p), p),
        discards=True,
    ),
    "expand": Operator("{flow}.expand(run.children)", _tree_effect, loses_on_failure=True),
    # -- choose, latest
    "race: with another": Operator(
        "r.race({flow}, r.from_aiter(lambda: run.steps({n}, {v})))",
        lambda e, _: unknown(replace(e, fails=e.fails and None)),
        discards=True,
    ),
    "race": Operator("r.race({flow}, r.never())"),
    "switch_if_empty": Operator(
        "{flow}.switch_if_empty(r.from_aiter(lambda: run.steps({n}, {v}, connection=0)))",
        when_empty(_others),
    ),
    "take_until": Operator("{flow}.take_until(r.never())"),
    "take_until: a time": Operator(
        "{flow}.take_until(r.timer(0.{k}5))",
        _until_a_time,
        discards=True,
    ),
    "combine_latest": Operator("r.combine_latest(r.just(0), {flow}, combine=lambda _, x: x)"),
    "combine_latest: prefetch": Operator(
        "r.combine_latest(r.just(0), {flow}, combine=lambda _, x: x, prefetch={n})"
    ),
    "with_latest_from": Operator("{flow}.with_latest_from(r.just(0), combine=lambda x, _: x)"),
    # -- combine
    "concat": Operator("r.concat([], {flow}, r.empty())"),
    "concat_with": Operator("{flow}.concat_with(run.numbers({n}, {v}))", added(_others)),
    "concat_with: one connection": Operator(
        "{flow}.concat_with(r.from_aiter(lambda: run.steps({n}, {v}, connection=0)))",
        added(_others),
    ),
    "merge_with": Operator(
        "{flow}.merge_with(r.from_aiter(lambda: run.steps({n}, {v})), prefetch={m})",
        _merged,
        loses_on_failure=True,
    ),
    "zip": Operator(
        "r.zip({flow}, r.range(10**6).boundary(1), prefetch={m}).map(lambda pair: pair[0])"
    ),
    "zip_with": Operator(
        "{flow}.zip_with(r.range({n}), prefetch={m}).map(lambda pair: pair[0])",
        _zipped,
        discards=True,
    ),
    "zip_with: another": Operator(
        "{flow}.zip_with(r.from_aiter(lambda: run.steps({n}, {v})), prefetch={m})"
        ".flat_map(run.copies, concurrency=1)",
        lambda e, p: unknown(_zipped(e, p)),
        discards=True,
    ),
    "then": Operator(
        "{flow}.then(r.from_aiter(lambda: run.steps({n}, {v}, connection=0)))",
        _successor,
        unaccounted=LEAVES_OUT,
        loses_on_failure=True,
    ),
    # -- clock, delay, throttle, time
    "timestamp": Operator("{flow}.timestamp().map(lambda pair: pair[1])"),
    "elapsed": Operator("{flow}.elapsed().map(lambda pair: pair[1])"),
    "delay": Operator("{flow}.delay(0.05, capacity={n})", loses_on_failure=True),
    "delay_subscription": Operator("{flow}.delay_subscription(0.05)"),
    "rate_limit": Operator("{flow}.rate_limit({n}, 0.05)"),
    "debounce": Operator(
        "{flow}.debounce(0.1, on_drop=run.dropped)", thinned, loses_on_failure=True
    ),
    "debounce: each": Operator(
        "{flow}.debounce(lambda x: run.value(x) % 3 * 0.05, on_drop=run.dropped)",
        thinned,
        loses_on_failure=True,
    ),
    "throttle_first": Operator(
        "{flow}.throttle_first(0.1, on_drop=run.dropped)", thinned, loses_on_failure=True
    ),
    "throttle_latest": Operator(
        "{flow}.throttle_latest(0.1, on_drop=run.dropped)", thinned, loses_on_failure=True
    ),
    "sample": Operator("{flow}.sample(0.1, on_drop=run.dropped)", thinned, loses_on_failure=True),
    "sample: the last": Operator(
        "{flow}.sample(0.1, emit_last=True, on_drop=run.dropped)", thinned, loses_on_failure=True
    ),
    "timeout: total": Operator(
        "{flow}.timeout(total=0.05)", thinned, discards=True, may_fail="TimedOut"
    ),
    "timeout: fires": Operator("{flow}.timeout(0.05)", thinned, discards=True, may_fail="TimedOut"),
    # -- chunk, window, group
    "buffer: overlapping": Operator(
        "{flow}.buffer({n}, step={m}).flat_map(run.copies)",
        whole(lambda values, p: _windows(p["n"], p["m"], values, partial=True), shrinks=False),
        unaccounted=_IN_SEVERAL,
        loses_on_failure=True,
    ),
    "buffer_until": Operator(
        "{flow}.buffer_until(lambda x: run.value(x) % {n} == 0).flat_map(run.copies)",
        loses_on_failure=True,
    ),
    "buffer_timeout": Operator(
        "{flow}.buffer_timeout({n}, 0.05).flat_map(run.copies, concurrency={m})"
    ),
    "sliding_window": Operator(
        "{flow}.sliding_window({n}, step={m}).flat_map(run.copies)",
        whole(lambda values, p: _windows(p["n"], p["m"], values, partial=False), shrinks=False),
        unaccounted=_IN_SEVERAL,
        loses_on_failure=True,
    ),
    "window": Operator(
        "{flow}.window({n}).flat_map(lambda window: window, concurrency=1)", slack=None
    ),
    "window: left early": Operator(
        "{flow}.window({n}).flat_map(lambda window: window.take(1), concurrency=1)",
        whole(lambda values, p: values[:: p["n"]]),
        discards=True,
        slack=None,
    ),
    "window_timeout": Operator(
        "{flow}.window_timeout({n}, 0.05).flat_map(lambda window: window, concurrency=1)",
        slack=None,
    ),
    "window_timeout: no size": Operator(
        "{flow}.window_timeout(None, 0.05, emit_empty=True)"
        ".flat_map(lambda window: window, concurrency=1)",
        slack=None,
    ),
    "window_reduce": Operator(
        "{flow}.window_reduce(0.05, lambda held, x: (*held, x), ())"
        ".flat_map(lambda window: run.copies(window.value), concurrency=1)",
        unaccounted="what it reduces is a value, and no element",
        loses_on_failure=True,
        slack=None,
    ),
    "group_by": Operator(
        "{flow}.group_by(lambda x: run.value(x) % 3, max_groups=3, prefetch={n})"
        ".flat_map(lambda group: group, concurrency=3)",
        reordered,
    ),
    "group_by: evicts": Operator(
        "{flow}.group_by(lambda x: run.value(x) % 3, max_groups={n}, on_full='evict')"
        ".flat_map(lambda group: group)",
        reordered,
    ),
    "group_by: drops": Operator(
        "{flow}.group_by(lambda x: run.value(x) % 3, max_groups={n}, on_full='drop', "
        "on_drop=run.dropped).flat_map(lambda group: group)",
        lambda e, p: thinned(reordered(e, p), p),
    ),
    # -- framing
    "lines": Operator("{flow}.map(run.line).lines().map(int).map(run.token)"),
    "json_lines": Operator("{flow}.map(run.line).json_lines().map(run.token)"),
    "delimited": Operator("{flow}.map(run.line).delimited(b'\\n').map(int).map(run.token)"),
    # -- errors, repeat
    "on_error_resume": Operator("{flow}.on_error_resume(run.numbers({n}, {v}))", resumed(_others)),
    "on_error_resume: a function": Operator(
        "{flow}.on_error_resume(lambda _: r.from_aiter(lambda: run.steps({n}, {v}, connection=0)))",
        resumed(_others),
    ),
    "on_error_return": Operator(
        "{flow}.on_error_return({v}).map(run.tokenized)", resumed(lambda p: [p["v"]])
    ),
    "on_error_complete": Operator("{flow}.on_error_complete()", resumed(lambda _: ())),
    "on_error_map": Operator("{flow}.on_error_map(run.mapped)"),
    "retry": Operator("{flow}.retry({n})", repeated(after_failure=True)),
    "repeat": Operator("{flow}.repeat({n})", repeated(after_failure=False)),
    "restart": Operator("{flow}.restart({n})", repeated(after_failure=None)),
    # -- backpressure, share
    "boundary: refill": Operator("{flow}.boundary({n}, refill=1)"),
    "on_backpressure_buffer": Operator("{flow}.on_backpressure_buffer(10_000)"),
    "on_backpressure_buffer: drops": Operator(
        "{flow}.on_backpressure_buffer({n}, overflow='drop_oldest', on_drop=run.dropped)", thinned
    ),
    "on_backpressure_buffer: fails": Operator(
        "{flow}.on_backpressure_buffer({n}, on_drop=run.dropped)",
        thinned,
        discards=True,
        may_fail="Overflow",
        slack=1,
    ),
    "on_backpressure_drop": Operator("{flow}.on_backpressure_drop(on_drop=run.dropped)", thinned),
    "on_backpressure_latest": Operator(
        "{flow}.on_backpressure_latest(on_drop=run.dropped)", thinned
    ),
    "on_backpressure_error": Operator(
        "{flow}.on_backpressure_error()", thinned, discards=True, may_fail="Overflow", slack=1
    ),
    "share: with another subscriber": Operator(
        "run.beside({flow}.share(capacity={n}))", unaccounted=_READ_BY_OTHERS, detaches=True
    ),
    "replay": Operator(
        "{flow}.take_until(run.finished).replay(10_000, capacity={n}).map(run.copied)",
        slack=None,
        unaccounted=_READ_BY_OTHERS,
        detaches=True,
    ),
    "cache": Operator(
        "{flow}.take_until(run.finished).cache().map(run.copied)",
        unaccounted=_READ_BY_OTHERS,
        detaches=True,
    ),
    # -- side_effects
    "do_on_next": Operator("{flow}.do_on_next(run.value)"),
    "do_on_discard": Operator("{flow}.do_on_discard(run.value, only=Token)"),
    "do_on_error": Operator("{flow}.do_on_error(repr)"),
    "do_on_complete": Operator("{flow}.do_on_complete(int)"),
    "do_on_cancel": Operator("{flow}.do_on_cancel(int)"),
    "do_on_request": Operator("{flow}.do_on_request(run.check_request)"),
    "do_finally": Operator("{flow}.do_finally(len)"),
    "log": Operator("{flow}.log(logger=run.logger, requests=True)"),
    "name": Operator("{flow}.name('a name')"),
    # -- progress
    "progress": Operator("{flow}.progress({n})"),
    # -- sources of sources, and processors
    "from_aiter": Operator(
        "r.from_aiter(lambda: run.read_ahead({flow}))", unaccounted=BEHIND_ANOTHER
    ),
    "using": Operator("r.using(run.async_resource(), lambda _: run.inner({flow}))"),
    "UnicastProcessor": Operator(
        "r.defer(lambda: run.inner({flow}).into(r.UnicastProcessor({n})))",
        detaches=True,
        unaccounted=BEHIND_ANOTHER,
        loses_on_failure=True,
    ),
    "MulticastProcessor": Operator(
        "r.defer(lambda: run.inner({flow}).into(r.MulticastProcessor({n})))",
        unaccounted=_READ_BY_OTHERS,
        detaches=True,
        loses_on_failure=True,
    ),
    "ReplayProcessor": Operator(
        "r.defer(lambda: run.inner({flow}.take_until(run.finished))"
        ".into(r.ReplayProcessor({n})))"
        ".map(run.copied)",
        unaccounted=_READ_BY_OTHERS,
        detaches=True,
        loses_on_failure=True,
    ),
    "LatestProcessor": Operator(
        "r.defer(lambda: run.inner({flow}.take_until(run.finished))"
        ".into(r.LatestProcessor(run.token({v}))))",
        lambda e, p: thinned(added(lambda p: [p["v"]], after=False)(e, p), p),
        unaccounted=_READ_BY_OTHERS,
        detaches=True,
        loses_on_failure=True,
    ),
}

EXCEPTIONS = {
    "map_in_process": "it starts processes, and pickles elements; but for them it is map_in_thread",
}
"""The operators that no random pipeline contains, and why."""

WITH_SMALL_BOUNDS: Final[tuple[str, ...]] = (
    "boundary",
    "boundary: refill",
    "buffer",
    "buffer: overlapping",
    "buffer_timeout",
    "concat_map",
    "debounce",
    "delay",
    "filter",
    "flat_map",
    "flat_map: inner flows",
    "flat_map: one after another",
    "flat_map: awaitables",
    "group_by",
    "limit_rate",
    "map",
    "map_async",
    "map_async: ordered",
    "map_async: unordered",
    "merge",
    "merge_with",
    "on_backpressure_buffer: drops",
    "on_backpressure_latest",
    "pairwise",
    "rate_limit",
    "sample",
    "share",
    "sliding_window",
    "take_last",
    "throttle_first",
    "throttle_latest",
    "zip",
)
"""Operators whose bounds depend on their arguments: a pipeline of these alone can reach its own."""
