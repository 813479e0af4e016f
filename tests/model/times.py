"""The operators with a clock: the text of a call, and what it makes of timed elements.

A `Timed` is what a flow is: its elements, each with its time, the time of its end, and the name of
the error with which it fails. A row's function is the meaning of the operator for a reader that
takes no time. Each row has times of its own: if two timers were due at once, or an element came at
that moment, the model would have to say which is first.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

__all__ = ("ROWS", "Row", "Timed")

Element = tuple[float, Any]
WORK: Final = 0.77
"""The seconds that a call takes."""
PART: Final = 0.67
"""The seconds that a source takes which is made of an element."""


@dataclass(frozen=True)
class Timed:
    """Elements with their times, and the end."""

    elements: tuple[Element, ...]
    end: float
    error: str | None = None

    def later(self, seconds: float) -> "Timed":
        moved = tuple((at + seconds, value) for at, value in self.elements)
        return Timed(moved, self.end + seconds, self.error)

    def followed_by(self, other: "Timed") -> "Timed":
        """*other* begins at the end."""
        after = other.later(self.end)
        return replace(after, elements=self.elements + after.elements)


Meaning = Callable[[Timed], Timed]


@dataclass(frozen=True)
class Row:
    """An operator with its arguments."""

    text: str
    meaning: Meaning
    fails: bool = True
    """Its meaning also says what becomes of a source that fails."""
    is_first: bool = False
    """It asks for elements one by one, so what is above it would wait."""
    keeps: bool = False
    """It keeps its source, or what it has counted, so nothing below it may repeat it."""


def on_elements(change: Callable[[list[Any]], Iterable[Any]]) -> Meaning:
    """One value for each, at the same time."""

    def meaning(flow: Timed) -> Timed:
        values = change([value for _, value in flow.elements])
        times = [at for at, _ in flow.elements]
        return replace(flow, elements=tuple(zip(times, values, strict=True)))

    return meaning


def delay(flow: Timed, by: float) -> Timed:
    later = flow.later(by)
    if flow.error is None:
        return later
    return Timed(tuple(each for each in later.elements if each[0] < flow.end), flow.end, flow.error)


def debounce(flow: Timed, quiet: float) -> Timed:
    found = list[Element]()
    following = [*(at for at, _ in flow.elements[1:]), None]
    for (at, value), after in zip(flow.elements, following, strict=False):
        if at + quiet < (flow.end if after is None else after):
            found.append((at + quiet, value))
        elif after is None and flow.error is None:
            found.append((flow.end, value))
    return replace(flow, elements=tuple(found))


def throttle_first(flow: Timed, per: float) -> Timed:
    found = list[Element]()
    for at, value in flow.elements:
        if not found or at > found[-1][0] + per:
            found.append((at, value))
    return replace(flow, elements=tuple(found))


def throttle_latest(flow: Timed, per: float) -> Timed:
    found, closed_until, waiting = list[Element](), 0.0, list[Any]()

    def pass_until(moment: float) -> None:
        nonlocal closed_until
        while closed_until < moment and waiting:
            found.append((closed_until, waiting.pop()))
            closed_until += per

    for at, value in flow.elements:
        pass_until(at)
        if closed_until < at:
            found.append((at, value))
            closed_until = at + per
        else:
            waiting[:] = [value]
    pass_until(flow.end)
    found += [(flow.end, each) for each in waiting if flow.error is None]
    return replace(flow, elements=tuple(found))


def sample(flow: Timed, every: float, *, emit_last: bool = False) -> Timed:
    found = dict[float, Any]()  # a later element of the same time replaces one
    for at, value in flow.elements:
        tick = every * (at // every + 1)
        if tick < flow.end:
            found[tick] = value
        elif emit_last and flow.error is None:
            found[flow.end] = value
    return replace(flow, elements=tuple(found.items()))


def batches(flow: Timed, size: int | None, duration: float) -> list[tuple[float, list[Any]]]:
    """Lists that are complete a time after their first element, with *size*, or at the end."""
    found = list[tuple[float, list[Any]]]()
    due = 0.0
    for at, value in flow.elements:
        if not found or due < at or len(found[-1][1]) == size:
            found.append((at, []))
            due = at + duration
        found[-1][1].append(value)
        found[-1] = (at if len(found[-1][1]) == size else min(due, flow.end), found[-1][1])
    return found


def lists(flow: Timed, duration: float) -> Timed:
    return replace(flow, elements=tuple(batches(flow, 3, duration)))


def windows(flow: Timed, duration: float) -> Timed:
    """The window that is open when the source fails, fails as well."""
    found = batches(flow, 3, duration)
    full = [each for each in found if flow.error is None or each[0] < flow.end or len(each[1]) == 3]
    return replace(flow, elements=tuple(full))


def counts(flow: Timed, duration: float) -> Timed:
    found = [(at, len(values)) for at, values in batches(flow, None, duration)]
    return replace(flow, elements=tuple(found))


def until(moment: float) -> Meaning:
    def meaning(flow: Timed) -> Timed:
        if flow.end < moment:
            return flow
        return Timed(tuple(each for each in flow.elements if each[0] < moment), moment)

    return meaning


def timeout(flow: Timed, each: float) -> Timed:
    """The first time without an element that is longer ends it."""
    times = [0.0, *(at for at, _ in flow.elements)]
    for index, (at, after) in enumerate(zip(times, [*times[1:], flow.end], strict=True)):
        if at + each < after:
            return Timed(flow.elements[:index], at + each, "TimedOut")
    return flow


def with_fallback(flow: Timed, each: float) -> Timed:
    found = timeout(flow, each)
    if found.error != "TimedOut" or found == flow:
        return found
    return Timed((*found.elements, (found.end, -1)), found.end)


def total(flow: Timed, seconds: float) -> Timed:
    return flow if flow.end < seconds else replace(until(seconds)(flow), error="TimedOut")


def rate_limit(flow: Timed) -> Timed:
    """At most 2 within any 4.03 seconds."""
    found = list[Element]()
    for at, value in flow.elements:
        found.append((max(at, found[-2][0] + 4.03 if len(found) > 1 else at), value))
    return replace(flow, elements=tuple(found), end=max([flow.end, *(at for at, _ in found)]))


def calls(concurrency: int) -> Meaning:
    """Each call takes `WORK` seconds."""

    def meaning(flow: Timed) -> Timed:
        found = list[Element]()
        for at, value in flow.elements:
            free = found[-concurrency][0] if len(found) >= concurrency else at
            found.append((max(at, free) + WORK, value))
        return replace(flow, elements=tuple(found), end=max([flow.end, *(at for at, _ in found)]))

    return meaning


def switch(flow: Timed) -> Timed:
    """Each makes a timer of `PART` seconds."""
    following = [*(at for at, _ in flow.elements[1:]), float("inf")]
    found = tuple(
        (at + PART, value)
        for (at, value), after in zip(flow.elements, following, strict=False)
        if at + PART < after and (flow.error is None or at + PART < flow.end)
    )
    last = flow.elements[-1][0] + PART if flow.elements and flow.error is None else 0.0
    return replace(flow, elements=found, end=max(flow.end, last))


def merged(flow: Timed, period: float) -> Timed:
    """With three ticks, one each *period*."""
    end = max(flow.end, 3 * period) if flow.error is None else flow.end
    ticks = [(period * (n + 1), n) for n in range(3)]
    elements = [*flow.elements, *(each for each in ticks if each[0] <= end)]
    return replace(flow, elements=tuple(sorted(elements, key=lambda each: each[0])), end=end)


def latest(flow: Timed, period: float) -> Timed:
    """With the latest tick, one each *period*."""
    found = [(at, (value, int(at // period) - 1)) for at, value in flow.elements if at > period]
    return replace(flow, elements=tuple(found))


def combined(flow: Timed, period: float) -> Timed:
    """With the latest of three ticks, one each *period*."""
    ticks = [(period * (n + 1), n) for n in range(3)]
    found, newest = list[Element](), dict[int, Any]()
    arriving = [(at, 0, value) for at, value in flow.elements]
    arriving += [(at, 1, tick) for at, tick in ticks if flow.error is None or at < flow.end]
    for at, side, value in sorted(arriving, key=lambda each: each[0]):
        newest[side] = value
        if len(newest) == 2:
            found.append((at, (newest[0], newest[1])))
    # A source that completes without an element ends it.
    is_whole = flow.elements and flow.error is None
    end = max(flow.end, ticks[-1][0]) if is_whole else flow.end
    return replace(flow, elements=tuple(found), end=end)


def successor(flow: Timed, pause: float) -> Timed:
    """Instead of its elements, one follows its completion."""
    ended = replace(flow, elements=())
    return ended if flow.error else ended.followed_by(Timed(((pause, -1),), pause))


def one_by_one(flow: Timed, by: float) -> Timed:
    """Each element waits *by* a time, one after the other."""
    found = list[Element]()
    for at, value in flow.elements:
        found.append((max(at, found[-1][0] if found else at) + by, value))
    return replace(flow, elements=tuple(found), end=max([flow.end + by, *(at for at, _ in found)]))


def elapsed(flow: Timed) -> Timed:
    times = [0.0, *(at for at, _ in flow.elements)]
    found = [(at, (round(at - before, 4), value))
             for before, (at, value) in zip(times, flow.elements, strict=False)]  # fmt: skip
    return replace(flow, elements=tuple(found))


def take(flow: Timed) -> Timed:
    if len(flow.elements) < 3:
        return flow
    return Timed(flow.elements[:3], flow.elements[2][0])


def resumed(flow: Timed, pause: float) -> Timed:
    """After a failure, one element follows."""
    if flow.error is None:
        return flow
    return replace(flow, error=None).followed_by(Timed(((pause, -1),), pause))


def again(after: Callable[[Timed], bool], pause: float) -> Meaning:
    """It runs a second time."""

    def meaning(flow: Timed) -> Timed:
        if not after(flow):
            return flow
        return replace(flow, end=flow.end + pause).followed_by(flow)

    return meaning


def same(flow: Timed) -> Timed:
    return flow


_LISTS: Final = ".flat_map(lambda each: each.buffer(99), concurrency=99)"


def _policy(pause: float) -> str:
    return f"r.RetryPolicy(attempts=2, delay={pause}, jitter=0)"


def _with(meaning: Callable[..., Timed], *arguments: float, **options: bool) -> Meaning:
    return lambda flow: meaning(flow, *arguments, **options)


ROWS: Final[Mapping[str, Row]] = {
    "buffer_timeout": Row("{flow}.buffer_timeout(3, 1.3103)", _with(lists, 1.3103)),
    "combine_latest": Row(
        "r.combine_latest({flow}, r.interval(4.1309).take(3))", _with(combined, 4.1309)
    ),
    "debounce": Row("{flow}.debounce(0.5311)", _with(debounce, 0.5311)),
    "delay": Row("{flow}.delay(2.17)", _with(delay, 2.17)),
    "delay: capacity": Row(
        "{flow}.delay(0.73, capacity=1)", _with(one_by_one, 0.73), fails=False, is_first=True
    ),
    "delay_subscription": Row("{flow}.delay_subscription(0.71)", lambda flow: flow.later(0.71)),
    "elapsed": Row("{flow}.elapsed().map(lambda x: (round(x[0], 4), x[1]))", elapsed),
    "map_async": Row("{flow}.map_async(slowly, timeout=2)", calls(1), fails=False, is_first=True),
    "map_async: concurrency": Row(
        "{flow}.map_async(slowly, concurrency=2, timeout=2)", calls(2), fails=False, is_first=True
    ),
    "merge_with": Row("{flow}.merge_with(r.interval(1.5707).take(3))", _with(merged, 1.5707)),
    "on_error_resume": Row("{flow}.on_error_resume(r.timer(1.03, -1))", _with(resumed, 1.03)),
    "rate_limit": Row("{flow}.rate_limit(2, 4.03)", rate_limit, fails=False, is_first=True),
    "rate_limit: limiter": Row(
        "{flow}.rate_limit(limiter=r.RateLimit(2, per=4.03))",
        rate_limit,
        fails=False,
        is_first=True,
        keeps=True,
    ),
    "repeat": Row("{flow}.repeat(2)", again(lambda flow: flow.error is None, 0)),
    "restart": Row(f"{{flow}}.restart({_policy(1.09)})", again(lambda _: True, 1.09)),
    "retry": Row(
        f"{{flow}}.retry({_policy(1.19)})", again(lambda flow: flow.error is not None, 1.19)
    ),
    "sample": Row("{flow}.sample(1.9013)", _with(sample, 1.9013)),
    "sample: emit_last": Row(
        "{flow}.sample(1.4317, emit_last=True)", _with(sample, 1.4317, emit_last=True)
    ),
    "switch_map": Row(f"{{flow}}.switch_map(lambda x: r.timer({PART}, x))", switch),
    "take_until": Row("{flow}.take_until(r.timer(6.37))", until(6.37)),
    "then": Row("{flow}.then(r.timer(1.01, -1))", _with(successor, 1.01)),
    "throttle_first": Row("{flow}.throttle_first(1.1321)", _with(throttle_first, 1.1321)),
    "throttle_latest": Row("{flow}.throttle_latest(1.4719)", _with(throttle_latest, 1.4719)),
    "timeout": Row("{flow}.timeout(3.07)", _with(timeout, 3.07)),
    "timeout: fallback": Row("{flow}.timeout(3.23, fallback=[-1])", _with(with_fallback, 3.23)),
    "timeout: total": Row("{flow}.timeout(total=9.41)", _with(total, 9.41)),
    "timestamp": Row("{flow}.timestamp().map(lambda x: x[1])", same),
    "window_reduce": Row(
        "{flow}.window_reduce(1.8323, lambda n, _: n + 1, 0).map(lambda x: x.value)",
        _with(counts, 1.8323),
        fails=False,
    ),
    "window_timeout": Row(f"{{flow}}.window_timeout(3, 1.7129){_LISTS}", _with(windows, 1.7129)),
    "with_latest_from": Row("{flow}.with_latest_from(r.interval(1.6331))", _with(latest, 1.6331)),
    # -- those without a clock pass the times on
    "boundary": Row("{flow}.boundary(4)", same),
    "enumerate": Row("{flow}.enumerate()", on_elements(enumerate)),
    "group_by": Row("{flow}.group_by(str, idle=3).flat_map(lambda group: group)", same),
    "map": Row("{flow}.map(lambda x: [x])", on_elements(lambda values: [[x] for x in values])),
    "on_backpressure_buffer": Row("{flow}.on_backpressure_buffer(99)", same),
    "on_backpressure_drop": Row("{flow}.on_backpressure_drop()", same),
    "on_backpressure_latest": Row("{flow}.on_backpressure_latest()", same),
    "replay": Row("{flow}.replay(2, ttl=3)", same, keeps=True),
    "share": Row("{flow}.share(grace=1)", same, keeps=True),
    "take": Row("{flow}.take(3)", take),
}
