"""Whatever runs a chain of inline stages, it does what plain generators would do."""

import asyncio
import linecache
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import product
from typing import Any, cast
from weakref import ref

import pytest

import reactive_aio as r
from reactive_aio import Flow, from_iterable, to_flow
from reactive_aio._sinks.async_iteration import generate
from reactive_aio.stage import Downstream, FlowSubscription, InlineStage, from_push, pull
from reactive_aio.testing import AsyncSubscriberProbe, SubscriberProbe
from tests.harness.one_run import in_one_run

UNBOUNDED = 2**63 - 1
Elements = Iterator[int]


class Failed(Exception):
    """What the functions and sources of these tests raise."""


def fails_at(bad: int) -> Callable[[int], int]:
    def function(x: int) -> int:
        if x == bad:
            raise Failed(x)
        return x + 1

    return function


_repeat = InlineStage("repeat", params=("n",), each="emit each [x] * $n")
_once_more = InlineStage("once_more", each="emit x", after="emit 7\nemit 8")


# -- the element after an emission -----------------------------------------------------------------
AGAIN = {
    "twice": ("emit x\nemit x", [10, 10, 20, 20]),
    "in a loop": ("for $i in range(2):\n    emit x + $i", [10, 20, 20, 30]),
    "kept": ("emit x\n$last = x\nemit $last + 1", [10, 20, 20, 30]),
    "behind several": ("emit each [x, x]\nemit x", [10, 10, 10, 20, 20, 20]),
    "in a branch": ("if x > 1:\n    emit x\nemit x", [10, 20, 20]),
}


@pytest.mark.parametrize("is_pulled", [True, False])
@pytest.mark.parametrize("name", AGAIN)
async def test_an_element_is_the_same_after_it_was_emitted(name: str, is_pulled: bool) -> None:
    """The stages that follow change `x`."""
    each, expected = AGAIN[name]
    stage = InlineStage("again", each=each)
    source = r.just(1, 2) if is_pulled else r.just(1, 2).boundary(1)
    flow = source.via(stage).map(lambda x: x * 10)
    assert await flow.to_list() == expected
    assert await flow.boundary(1).to_list() == expected


@pytest.mark.parametrize("is_pulled", [True, False])
async def test_it_is_that_also_for_what_stages_emit_before_and_after(is_pulled: bool) -> None:
    again = InlineStage("again", each="emit -x\nemit x")
    around = InlineStage("around", before="emit 7", after="emit 8\nemit 9")
    source = r.just(1) if is_pulled else r.just(1).boundary(1)
    assert await source.via(around).via(again).to_list() == [-7, 7, -1, 1, -8, 8, -9, 9]
    both = InlineStage("both", before="emit 7", each="emit -x\nemit x", after="emit 8")
    assert await source.via(both).via(again).map(abs).to_list() == [7, 7, 1, 1, 1, 1, 8, 8]


async def test_an_element_that_was_emitted_is_let_go() -> None:
    class Element:
        pass

    stage = InlineStage("again", each="emit x\nemit x")
    elements: list[ref[Element]] = []

    def element(_: int) -> Element:
        made = Element()
        elements.append(ref(made))
        return made

    async with r.range(2).map(element).via(stage).map(id).stream() as stream:
        for _ in range(3):
            await anext(stream)
        assert elements[0]() is None


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


def odd(x: int) -> bool:
    return x % 2 == 1


CHAINS: list[tuple[Callable[[Flow[int]], Flow[Any]], list[int], list[int]]] = [
    # the stages, the elements of the source, and what arrives
    (lambda f: f.start_with(0, 1, 2).skip(1), [5, 6], [1, 2, 5, 6]),
    (lambda f: f.start_with(0, 1, 2).filter(odd), [5, 6], [1, 5]),
    (lambda f: f.default_if_empty(42).start_with(0).map(fails_at(1)), [5], [1, 6]),
    (lambda f: f.via(_repeat, 3).filter(odd).enumerate().map(sum), [4, 5], [5, 6, 7]),
    (lambda f: f.via(_repeat, 2).take(3), [5, 6, 7], [5, 5, 6]),
]
"""Random pipelines have every stage with every other; these also have the other consumers."""
CHAINS_WITH_AN_END: list[tuple[Callable[[Flow[int]], Flow[Any]], list[int], list[int]]] = [
    (lambda f: f.take_last(3).filter(odd), [5, 6, 7, 8], [7]),
    (lambda f: f.via(_once_more).buffer(2).map(sum), [1], [8, 8]),
    (lambda f: f.filter(odd).default_if_empty(42).via(_once_more), [2], [42, 7, 8]),
]
"""They emit at the completion."""


@in_one_run
@pytest.mark.parametrize(("feed", "consumer"), RUNS)
async def test_stages_do_the_same_for_every_consumer(feed: str, consumer: str) -> None:
    """An element that is dropped is followed by the next one, whichever loop it came from."""
    for change, given, expected in CHAINS + CHAINS_WITH_AN_END:
        assert await signals(consumer, change(FEEDS[feed](given, False))) == [*expected, "|"]
    for change, given, expected in CHAINS[:-1]:
        found = await signals(consumer, change(FEEDS[feed](given, True)))
        assert found[:-1] == expected
        assert isinstance(found[-1], Failed)


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


@in_one_run
@pytest.mark.parametrize(("feed", "consumer"), RUNS)
@pytest.mark.parametrize("stage", STRAY)
async def test_a_stray_stop_iteration_fails_the_flow_and_never_truncates_it(
    feed: str, stage: str, consumer: str
) -> None:
    found = await signals(consumer, STRAY[stage](FEEDS[feed]([1, 2], False)))
    assert isinstance(found[-1], RuntimeError)
    assert "StopIteration" in str(found[-1])


@in_one_run
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
    (lambda f: f.via(_repeat, 2), [1]),  # of each, any number of elements may follow
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


async def test_each_function_is_looked_at_that_may_be_a_coroutine_function_after_all() -> None:
    """The first look is not the last one: the functions that follow have their own."""
    flow = from_iterable([1, 2]).map(abs).map(lambda x: asyncio.sleep(0, x)).filter(bool)
    with pytest.raises(TypeError, match="which nothing would await"):
        await flow.to_list()


async def test_a_source_whose_function_makes_no_subscription_says_so() -> None:
    mine: Flow[int] = from_push(cast("Any", lambda _: None), name="mine")
    with pytest.raises(TypeError, match=r"^mine: the function .* returned None, which is not a Fl"):
        await mine.map(abs).to_list()


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


@in_one_run
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


@pytest.mark.parametrize(
    ("texts", "problem"),
    [({"each": "x = x + $other"}, r"nothing assigns \$other; assign it in setup"),
     ({"each": "$count += 1\nx = $count"}, r"nothing assigns \$count; assign it in setup"),
     ({"each": "if $limit >= x:\n    drop"}, r"nothing assigns \$limit; .* or name it in params"),
     ({"each": "emit each $kept"}, r"nothing assigns \$kept;"),
     ({"each": "$r = f(x)\nsync $r of $f"}, r"nothing assigns \$f;"),
     ({"each": "x = 'costs $cost'"}, r"nothing assigns \$cost;"),
     ({"each": "x += 1", "held": "$kept"}, r"nothing assigns \$kept;"),
     ({"setup": "$n = 0", "each": "$n += 1", "on_end": "print($n)"}, r"on_end sees .* \$n is no"),
     ({"params": ("$low",), "each": "x = $low"}, r"'\$low' in params is no name")],
    ids=str,
)  # fmt: skip
def test_a_name_that_nothing_assigns_is_refused_where_the_stage_is_made(
    texts: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match=f"^mine: {problem}"):
        InlineStage("mine", **texts)


async def test_a_name_may_be_assigned_in_any_way() -> None:
    each = """
        # Not $assigned anywhere, which is of no matter in a comment.
        $a, *$rest = range(x + 2)
        for $i in $rest:
            $a += $i
        if ($double := $a * 2) < 0:
            drop
        with $opened(x) as $inner:
            pass
        def $add($left, right=0):
            return $left + right
        match x:
            case [$first, *$others]:
                drop
            case $whole:
                x = $add($whole, $double) + sum($each for $each in $rest)
        try:
            import math as $math
        except ImportError as $error:
            print($error)
    """
    setup = "from contextlib import nullcontext as $opened"
    stage = InlineStage("mine", setup=setup, each=each, on_end="$how = how")
    assert await from_iterable([1, 2]).via(stage).to_list() == [10, 20]


def test_a_stage_says_what_it_was_given_wrongly() -> None:
    stage = InlineStage("between", params=("low", "high"), each="x = max($low, min($high, x))")
    with pytest.raises(TypeError, match=r"between takes .* \(low, high\), not 1 values"):
        from_iterable([1]).via(stage, 3)
    with pytest.raises(TypeError, match=r"must be an InlineStage, not .*: transform\(function\)"):
        from_iterable([1]).via(cast("InlineStage", str))
    with pytest.raises(TypeError, match="between: params must be a tuple, not 'low'"):
        InlineStage("between", params=cast("Any", "low"), each="x = $low")
