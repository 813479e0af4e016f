"""Whatever runs a chain of inline stages, it does what plain generators would do."""

import asyncio
import linecache
import sys
import traceback
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise, product
from operator import add
from typing import Any, cast

import pytest
from hypothesis import example, given, strategies as st

from reactive_aio import Flow, from_iterable, to_flow
from reactive_aio._sinks.async_iteration import generate
from reactive_aio.stage import Downstream, FlowSubscription, InlineStage, from_push, pull
from reactive_aio.testing import AsyncSubscriberProbe, SubscriberProbe

UNBOUNDED = 2**63 - 1
Elements = Iterator[int]


class Failed(Exception):
    """What the functions and sources of these tests raise."""


# -- stages, each with what it means as a generator ------------------------------------------------
@dataclass(frozen=True, repr=False)
class Stage:
    """An operator of integers."""

    name: str
    apply: Callable[[Flow[int]], Flow[int]]
    meaning: Callable[[Elements], Elements]

    def __repr__(self) -> str:
        return self.name


def fails_at(bad: int) -> Callable[[int], int]:
    def function(x: int) -> int:
        if x == bad:
            raise Failed(x)
        return x + 1

    return function


def mapping(bad: int) -> Stage:
    function = fails_at(bad)
    return Stage(f"map(!{bad})", lambda f: f.map(function), lambda xs: (function(x) for x in xs))


def filtering(modulus: int) -> Stage:
    def keeps(x: int) -> bool:
        return x % modulus != 0

    return Stage(f"filter(%{modulus})", lambda f: f.filter(keeps), lambda xs: filter(keeps, xs))


def taking(n: int) -> Stage:
    return Stage(f"take({n})", lambda f: f.take(n), lambda xs: islice(xs, n))


def taking_while(limit: int, inclusive: bool) -> Stage:
    def meaning(xs: Elements) -> Elements:
        for x in xs:
            if x < limit:
                yield x
                continue
            if inclusive:
                yield x
            return

    return Stage(
        f"take_while(<{limit}, {inclusive})",
        lambda f: f.take_while(lambda x: x < limit, inclusive=inclusive),
        meaning,
    )


def last(n: int) -> Stage:
    def meaning(xs: Elements) -> Elements:
        yield from deque(xs, n)

    return Stage(f"take_last({n})", lambda f: f.take_last(n), meaning)


def skipping(n: int) -> Stage:
    return Stage(f"skip({n})", lambda f: f.skip(n), lambda xs: islice(xs, n, None))


def skipping_last(n: int) -> Stage:
    def meaning(xs: Elements) -> Elements:
        kept: deque[int] = deque()
        for x in xs:
            kept.append(x)
            if len(kept) > n:
                yield kept.popleft()

    return Stage(f"skip_last({n})", lambda f: f.skip_last(n), meaning)


def chunks(n: int, step: int) -> Stage:
    def meaning(xs: Elements) -> Elements:
        every: list[int] = []
        start = 0
        for x in xs:
            every.append(x)
            if len(every) == start + n:
                yield sum(every[start:])
                start += step
        while start < len(every):
            yield sum(every[start:])
            start += step

    return Stage(f"buffer({n}, {step})", lambda f: f.buffer(n, step=step).map(sum), meaning)


def windows(n: int, step: int) -> Stage:
    def meaning(xs: Elements) -> Elements:
        every: list[int] = []
        start = 0
        for x in xs:
            every.append(x)
            if len(every) == start + n:
                yield sum(every[start:])
                start += step

    def apply(flow: Flow[int]) -> Flow[int]:
        return flow.sliding_window(n, step=step).map(sum)

    return Stage(f"sliding_window({n}, {step})", apply, meaning)


def starting(n: int) -> Stage:
    def meaning(xs: Elements) -> Elements:
        yield from range(n)
        yield from xs

    return Stage(f"start_with({n})", lambda f: f.start_with(*range(n)), meaning)


_repeat = InlineStage("repeat", params=("n",), each="emit each [x] * $n")
_once_more = InlineStage("once_more", each="emit x", after="emit 7\nemit 8")


def repeating(n: int) -> Stage:
    """One in, many out, as flat_map over iterables."""

    def meaning(xs: Elements) -> Elements:
        return (x for each in xs for x in [each] * n)

    return Stage(f"repeat({n})", lambda f: f.via(_repeat, n), meaning)


def no_more(xs: Elements) -> Elements:
    yield from xs
    yield from (7, 8)


def defaulted(xs: Elements) -> Elements:
    empty = True
    for x in xs:
        empty = False
        yield x
    if empty:
        yield 42


def seen_once(xs: Elements) -> Elements:
    seen: set[int] = set()
    for x in xs:
        if x not in seen:
            seen.add(x)
            yield x


def changes(xs: Elements) -> Elements:
    before: int | None = None
    for x in xs:
        if x != before:
            yield x
        before = x


small = st.integers(0, 4)
_or_42 = Stage("default_if_empty", lambda f: f.default_if_empty(42), defaulted)
some = st.integers(1, 4)
stages: st.SearchStrategy[Stage] = st.one_of(
    st.builds(mapping, st.integers(-3, 40)),
    st.builds(filtering, st.integers(1, 4)),
    st.builds(taking, small),
    st.builds(taking_while, st.integers(0, 12), st.booleans()),
    st.builds(last, small),
    st.builds(skipping, small),
    st.builds(skipping_last, small),
    st.builds(chunks, some, some),
    st.builds(windows, some, some),
    st.builds(starting, small),
    st.builds(repeating, small),
    st.sampled_from(
        [
            Stage("once_more", lambda f: f.via(_once_more), no_more),
            Stage("scan", lambda f: f.scan(add), accumulate),
            Stage("scan(5)", lambda f: f.scan(add, seed=5), lambda xs: accumulate(xs, initial=5)),
            Stage(
                "enumerate",
                lambda f: f.enumerate().map(sum),
                lambda xs: (i + x for i, x in enumerate(xs)),
            ),
            Stage("pairwise", lambda f: f.pairwise().map(sum), lambda xs: map(sum, pairwise(xs))),
            _or_42,
            Stage("distinct", lambda f: f.distinct(), seen_once),
            Stage("changes", lambda f: f.distinct_until_changed(), changes),
            Stage("do_finally", lambda f: f.do_finally(lambda _: None), lambda xs: xs),
        ]
    ),
)
chains = st.lists(stages, max_size=4)
sources = st.tuples(st.lists(st.integers(0, 9), max_size=30), st.booleans())


# -- feeds: where the elements come from -----------------------------------------------------------
def failing(elements: list[int], fails: bool) -> Elements:
    yield from elements
    if fails:
        raise Failed("source")


async def failing_async(elements: list[int], fails: bool) -> AsyncIterator[int]:
    for x in failing(elements, fails):
        await asyncio.sleep(0)
        yield x


class Again:
    """An iterable that can be iterated again and again."""

    def __init__(self, elements: list[int], fails: bool) -> None:
        self.elements, self.fails = elements, fails

    def __iter__(self) -> Elements:
        return failing(self.elements, self.fails)


def listed(elements: list[int], fails: bool) -> Flow[int]:
    return from_iterable(Again(elements, True) if fails else elements)


FEEDS: dict[str, Callable[[list[int], bool], Flow[int]]] = {
    "pull, sized": listed,
    "pull": lambda elements, fails: from_iterable(Again(elements, fails)),
    "push, 1": lambda elements, fails: listed(elements, fails).boundary(1),
    "push, 8": lambda elements, fails: listed(elements, fails).boundary(8),
    "aiter": lambda elements, fails: to_flow(failing_async(elements, fails)),
}


# -- consumers: every mode and demand pattern ------------------------------------------------
class Threes(SubscriberProbe[int]):
    """Requests three elements whenever those requested have arrived."""

    def on_next(self, element: int, /) -> None:
        super().on_next(element)
        if len(self.signals) % 3 == 0:
            self.request(3)


async def iterated(elements: AsyncIterator[int]) -> list[Any]:
    out: list[Any] = []
    try:
        async for x in elements:
            out.append(x)  # noqa: PERF401 - what came before an error counts
    except Exception as error:
        return [*out, error]
    return [*out, "|"]


def walked(elements: Iterator[Any]) -> list[Any]:
    out: list[Any] = []
    try:
        out.extend(elements)
    except Exception as error:
        return [*out, error]
    return [*out, "|"]


async def asked_from_outside(flow: Flow[int]) -> list[Any]:
    probe = SubscriberProbe[int]().subscribed_to(flow)
    asked = 0
    while not probe.is_terminated:
        probe.request(1)
        asked += 1
        for _ in range(1 if flow.chain.is_pullable else 12):
            await asyncio.sleep(0)
        assert len(probe.elements) <= asked, "rule 1.1"
    return probe.signals


async def signals(kind: str, flow: Flow[int]) -> list[Any]:
    match kind:
        case "unbounded":
            return await SubscriberProbe[int](UNBOUNDED).subscribed_to(flow).end()
        case "one by one":
            return await SubscriberProbe[int](1, again=1).subscribed_to(flow).end()
        case "threes":
            return await Threes(3).subscribed_to(flow).end()
        case "from outside":
            return await asked_from_outside(flow)
        case "coroutines":
            return await AsyncSubscriberProbe[int](2, again=1).subscribed_to(flow).end()
        case "async for":
            return await iterated(aiter(flow))
        case "stream":
            return await iterated(flow.stream(prefetch=3))
        case "agen":
            return await iterated(generate(flow.chain))
        case "gen":
            return walked(pull(flow))
        case _:
            raise AssertionError(kind)


PULLED = ("agen", "gen")
RUNS = [
    *product(FEEDS, ("unbounded", "one by one", "threes", "from outside")),
    *product(FEEDS, ("coroutines", "async for", "stream")),
    *product(("pull", "pull, sized"), PULLED),
]


def plain(signal: object) -> object:
    return (type(signal), str(signal)) if isinstance(signal, BaseException) else signal


def expected(elements: list[int], fails: bool, chain: list[Stage]) -> list[Any]:
    xs = failing(elements, fails)
    for stage in chain:
        xs = stage.meaning(xs)
    return [plain(each) for each in walked(xs)]


# An element that is dropped is followed by the next one, whichever loop it came from.
@pytest.mark.parametrize(("feed", "consumer"), RUNS)
@given(source=sources, chain=chains)
@example(source=([5, 6], False), chain=[starting(3), skipping(1)])
@example(source=([5, 6], False), chain=[starting(3), filtering(2)])
@example(source=([5, 6, 7, 8], False), chain=[last(3), filtering(2)])
@example(source=([5], False), chain=[_or_42, starting(1), mapping(1)])
async def test_a_chain_is_equal_to_its_generators(
    feed: str, consumer: str, source: tuple[list[int], bool], chain: list[Stage]
) -> None:
    flow = FEEDS[feed](*source)
    for stage in chain:
        flow = stage.apply(flow)
    found = await asyncio.wait_for(signals(consumer, flow), 20)
    assert [plain(each) for each in found] == expected(*source, chain), flow


# -- what must not go wrong ------------------------------------------------------------------
def stops(_x: int) -> int:
    raise StopIteration("a stray one")


def nothing(_x: int) -> int:
    return cast("int", None)


STRAY: dict[str, Callable[[Flow[int]], Flow[Any]]] = {
    "map": lambda f: f.map(stops),
    "filter": lambda f: f.filter(stops),
    "take_while": lambda f: f.take_while(stops),
    "scan": lambda f: f.start_with(0).scan(lambda _total, x: stops(x)),
    "distinct": lambda f: f.distinct(stops),
    "do_on_next": lambda f: f.do_on_next(stops),
    "observed": lambda f: f.map(stops).do_finally(lambda _: None),
}


@pytest.mark.parametrize(("feed", "consumer"), RUNS)
@pytest.mark.parametrize("stage", STRAY)
async def test_a_stray_stop_iteration_fails_the_flow_and_never_truncates_it(
    feed: str, stage: str, consumer: str
) -> None:
    found = await signals(consumer, STRAY[stage](FEEDS[feed]([1, 2], False)))
    assert isinstance(found[-1], RuntimeError)
    assert "StopIteration" in str(found[-1])


@pytest.mark.parametrize(("feed", "consumer"), RUNS)
async def test_no_element_before_an_error_is_lost(feed: str, consumer: str) -> None:
    flow = FEEDS[feed](list(range(100)), False).map(fails_at(57)).filter(bool)
    found = await signals(consumer, flow)
    assert found[:-1] == list(range(1, 58))
    assert isinstance(found[-1], Failed)


@pytest.mark.parametrize("consumer", ["unbounded", "coroutines", "async for", *PULLED])
async def test_elements_of_none_fail_the_flow_and_name_the_stage(consumer: str) -> None:
    found = await signals(consumer, from_iterable([1, 2]).map(nothing))
    assert isinstance(found[-1], TypeError)
    assert "map produced None" in str(found[-1])
    assert "filter_map" in str(found[-1])
    found = await signals(consumer, from_iterable(cast("list[int]", [1, None])))
    assert found[0] == 1
    assert "the source produced None" in str(found[-1])


def test_a_loop_is_compiled_once_per_shape() -> None:
    one = from_iterable([1]).map(abs).filter(bool).chain.compiled_loop("sync", "call")
    assert (
        from_iterable(["a"]).map(str.upper).filter(len).chain.compiled_loop("sync", "call") is one
    )
    assert from_iterable([1]).filter(bool).map(abs).chain.compiled_loop("sync", "call") is not one


async def test_a_traceback_shows_the_lines_of_the_loop() -> None:
    flow = from_iterable([1]).map(fails_at(1))
    [error] = await signals("unbounded", flow)
    text = "".join(traceback.format_exception(error))
    assert "x = mapper_1(x)" in text
    assert "in the flow: " in text
    frame = traceback.extract_tb(error.__traceback__)[-2]
    assert linecache.getline(frame.filename, frame.lineno or 0).strip() == "x = mapper_1(x)"
    assert flow.explain(code=True).count("x = mapper_1(x)") > 0


Change = Callable[[Flow[int]], Flow[Any]]
NEEDS: list[tuple[Change, list[int]]] = [
    (lambda f: f, [UNBOUNDED]),
    (lambda f: f.map(abs), [UNBOUNDED]),
    (lambda f: f.take(5), [5]),
    (lambda f: f.take(5).filter(bool), [5]),
    (lambda f: f.filter(bool).take(5), [5]),
    (lambda f: f.take(2).buffer(3), [2]),
    (lambda f: f.buffer(3).take(2), [6]),
    (lambda f: f.sliding_window(3).take(2), [4]),
    (lambda f: f.sliding_window(3, step=2).take(2), [5]),
    (lambda f: f.start_with(1, 2).take(5), [3]),
]


@pytest.mark.parametrize(("change", "requests"), NEEDS)
async def test_upstream_receives_requests_for_what_the_stages_need(
    change: Change, requests: list[int]
) -> None:
    asked: list[int] = []

    def open_it(_downstream: Downstream[int]) -> RecordingSubscription:
        return RecordingSubscription(asked)

    source: Flow[int] = from_push(open_it, name="asked")
    SubscriberProbe[Any](UNBOUNDED).subscribed_to(change(source))
    assert asked == requests


class RecordingSubscription(FlowSubscription):
    """The subscription of a source that never sends anything."""

    def __init__(self, asked: list[int]) -> None:
        self.requests = asked

    def request(self, n: int, /) -> None:
        self.requests.append(n)

    def cancel(self) -> None:
        pass


def test_a_wrong_number_of_arguments_is_refused_at_assembly() -> None:
    with pytest.raises(TypeError, match="repeat takes"):
        from_iterable([1]).via(_repeat)


def named(name: str, function: Callable[[int], int]) -> Callable[..., int]:
    function.__name__ = name
    return function


@pytest.mark.parametrize("name", ["change", "measure", "on_next", "Done"])
async def test_stages_may_use_different_functions_of_the_same_name(name: str) -> None:
    add_one, double = named(name, lambda x: x + 1), named(name, lambda x: x * 2)
    stages = [
        InlineStage("change", uses=(use,), each=f"x = {name}(x)") for use in (add_one, double)
    ]
    flow = from_iterable([1, 2]).via(stages[0]).via(stages[1])
    assert await flow.to_list() == [4, 6]
    assert [x async for x in flow] == [4, 6]


@pytest.mark.parametrize("part", ["setup", "before", "each", "after", "demand", "on_end"])
@pytest.mark.parametrize(
    ("lines", "stray", "remedy"),
    [
        ("return x", "return x", "use drop to leave"),
        ("if x:\n    continue", "continue", "use drop"),
        ("if x:\n    break", "break", "use done"),
        ("$n = 1\nyield x", "yield x", "use emit"),
        ("yield from x", "yield from x", "use emit each"),
        ("for $i in x:\n    break\nelse:\n    continue", "continue", "use drop"),
        ("while $n:\n    if x:\n        drop", "drop", "drop after it"),
    ],
)
def test_lines_that_would_leave_the_loop_are_refused(
    part: str, lines: str, stray: str, remedy: str
) -> None:
    texts: dict[str, Any] = {part: lines}
    with pytest.raises(ValueError, match=rf"^mine: '{stray}' in {part} would leave .*; .*{remedy}"):
        InlineStage("mine", **texts)


@pytest.mark.parametrize("joined", ["if x: drop", "else: done  # now", "if x > 1: emit x + 1"])
def test_a_directive_behind_a_condition_is_refused(joined: str) -> None:
    """Python would take its word for a name, and fail with the first element that it is about."""
    with pytest.raises(ValueError, match="in each: a directive is on a line of its own"):
        InlineStage("mine", each=f"# as in: drop\n$n = x\n{joined}")


def test_state_that_all_stages_of_the_loop_would_share_is_refused() -> None:
    """Two stages with it would count in one variable, without an error."""
    with pytest.raises(ValueError, match=r"^mine: 'n' in setup would be .*; write \$n, which is"):
        InlineStage("mine", setup="$m = 0\nn = 0", each="n = n + x\nx = n")


async def test_a_local_may_have_the_name_of_a_directive() -> None:
    """Only a word alone, or before an expression, is a directive."""
    each = """
    last = x
    done, emit = last + 1, 2
    emit += 1
    if x == 3:
        last  # and nothing after it
    emit (done, emit)
    """
    stage = InlineStage("mine", each=each, checked=True)
    assert await from_iterable([1, 2, 3, 4]).via(stage).to_list() == [(2, 3), (3, 3), (4, 3)]


async def test_lines_may_have_loops_and_functions_of_their_own() -> None:
    each = """
    def $twice(y):
        return 2 * y  # a function may return
    $given = x
    for $i in range(9):
        if $i == 2:
            continue
        if $i > 2:
            break
        emit $twice($given) + $i
    """
    stage = InlineStage("mine", each=each)
    assert await from_iterable([10, 20]).via(stage).to_list() == [20, 21, 40, 41]


@pytest.mark.parametrize("boundary", [False, True])
@pytest.mark.parametrize(
    "texts",
    [{"each": "x = None"}, {"each": "x, $y = None, x"}, {"each": "emit None"},
     {"each": "emit each [None]"}, {"before": "emit None"}, {"after": "emit None"},
     {"each": "for x in [None]:\n    pass"}],
    ids=str,
)  # fmt: skip
async def test_a_stage_that_makes_none_is_blamed_itself(
    texts: dict[str, Any], boundary: bool
) -> None:
    flow = from_iterable([1])
    made = (flow.boundary(2) if boundary else flow).via(InlineStage("mine", **texts))
    for each in (made, made.map(str), made.filter(bool).map(str)):
        with pytest.raises(TypeError, match=r"^rule 2\.13: mine produced None") as caught:
            await each.to_list()
        assert ">>mine()<<" in caught.value.__notes__[0]


def test_no_stage_of_the_package_has_its_elements_checked_by_the_loop() -> None:
    stages = [
        value
        for name, module in sys.modules.copy().items()
        if name.startswith("reactive_aio.")
        for value in vars(module).values()
        if isinstance(value, InlineStage)
    ]
    assert len(stages) > 40
    assert [stage.name for stage in stages if stage.may_make_none] == []


def test_a_stage_cannot_use_what_has_the_name_of_a_local_of_its_own() -> None:
    with pytest.raises(ValueError, match=r"change: \$keep has the name of a function that it uses"):
        InlineStage("change", uses=(named("keep", lambda x: x),), setup="$keep = keep")
