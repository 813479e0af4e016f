"""`check_operator` finds the faults that operators typically have, and passes those without."""
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

import asyncio
import itertools
import logging
import re
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.errors import TimedOut
from reactive_aio.stage import (
    UNBOUNDED,
    Coordinator,
    InlineStage,
    InnerSubscriber,
    Timer,
    from_push,
)
from reactive_aio.tck import check_operator

AnyFlow = Flow[Any]


# -- right ones ------------------------------------------------------------------------------------
def sums_stage(held: str) -> InlineStage:
    return InlineStage(
        "sums",
        setup="$kept = []",
        each="""
        $kept.append(x)
        if len($kept) < 3:
            drop
        x = sum($kept)
        $kept.clear()
        """,
        after="""
        if $kept:
            emit sum($kept)
        """,
        demand="need = need * 3 - len($kept)",
        held=held,
    )


SUMS = sums_stage("$kept")
SUMS_THAT_LOSE = sums_stage("")
SUMS_THAT_GIVE_BACK_TWICE = sums_stage("[*$kept, *$kept]")


def sums(source: AnyFlow) -> AnyFlow:
    return source.via(SUMS, holds=2)


def sums_of(values: list[int]) -> list[int]:
    return [sum(values[i : i + 3]) for i in range(0, len(values), 3)]


def same(values: list[Any]) -> list[Any]:
    return values


def rising(source: AnyFlow) -> AnyFlow:
    """As a generator, which reads its source as another consumer."""

    async def elements() -> AsyncIterator[int]:
        highest = -1
        async with source.stream() as stream:
            async for element in stream:
                if element > highest:
                    highest = element
                    yield element

    return r.from_aiter(elements)


def rising_of(values: list[int]) -> Iterator[int]:
    highest = -1
    for value in values:
        if value > highest:
            highest = value
            yield value


def refuse_five(value: int) -> int:
    if value == 5:
        raise ValueError
    return value


async def later(value: int) -> int:
    await asyncio.sleep(value % 3 * 0.01)
    return value


async def delayed(source: AnyFlow, seconds: float) -> AsyncIterator[int]:
    """Read with no regard to time, and lose what is on its way when it is closed."""
    async with source.timestamp().stream() as stream:
        async for at, value in stream:
            await asyncio.sleep(max(0, at + seconds - asyncio.get_running_loop().time()))
            yield value


def late(elements: list[tuple[float, int]], _: float) -> list[tuple[float, int]]:
    return [(at + 0.5, value) for at, value in elements]


def both_ends(elements: list[tuple[float, int]], end: float) -> list[tuple[float, int]]:
    """What `debounce(0.3)` makes."""
    nexts = [at for at, _ in elements[1:]] + [float("inf")]
    pairs = zip(elements, nexts, strict=False)
    return [(min(at + 0.3, end), value) for (at, value), later in pairs if later > at + 0.3]


def batches(
    elements: list[tuple[float, int]], end: float
) -> Iterator[tuple[float, list[int] | None]]:
    """What `buffer_timeout(3, 1.0)` makes."""
    kept: list[int] = []
    due = 0.0
    for at, value in elements:
        if kept and at >= due:
            yield due, kept
            kept = []
        due = due if kept else at + 1.0
        kept = [*kept, value]
        if len(kept) == 3:
            yield at, kept
            kept = []
    if kept:
        yield min(end, due), kept
    yield end, None


def within_two(elements: list[tuple[float, int]], end: float) -> Iterator[tuple[float, int | None]]:
    """What `timeout(2)` makes."""
    before = 0.0
    for at, value in [*elements, (end, None)]:
        if at - before > 2:
            yield before + 2, None
            raise TimedOut
        yield at, value
        before = at


def slow_to_clean_up(source: AnyFlow) -> AnyFlow:
    async def elements() -> AsyncIterator[int]:
        try:
            async with source.stream() as stream:
                async for each in stream:
                    yield each
        finally:
            await asyncio.sleep(1)

    return r.from_aiter(elements)


def time(pair: tuple[float, int]) -> float:
    return pair[0]


def twice(values: list[int]) -> list[int]:
    return [each for each in values for _ in range(2)]


def until(seconds: float) -> Callable[[list[tuple[float, int]], float], list[tuple[float, int]]]:
    return lambda elements, _: [each for each in elements if each[0] < seconds]


def whole(function: Callable[[list[Any]], Iterable[Any]]) -> Callable[[AnyFlow], AnyFlow]:
    """An operator that needs all elements before it makes the first one."""

    def operator(source: AnyFlow) -> AnyFlow:
        async def elements() -> AsyncIterator[Any]:
            for each in function(await source.to_list()):
                yield each

        return r.from_aiter(elements)

    return operator


@dataclass(frozen=True)
class Pair:
    first: Any
    rest: deque[Any]


def paired(elements: list[Any]) -> Pair:
    return Pair(elements[0], deque(elements[1:]))


def as_key(value: int) -> dict[int, int]:
    return {value: 1}


def pairs_of(values: list[int]) -> list[Pair]:
    return [paired(values[i : i + 2]) for i in range(0, len(values), 2)]


def tell_and_refuse_five(value: int) -> int:
    if value == 5:
        logging.getLogger("mine").error("five")
        raise ValueError
    return value


Operator = Callable[[AnyFlow], AnyFlow]
Statement = Callable[..., Iterable[Any]]


def first_of(rows: Iterable[str], n: int) -> list[Any]:
    """The names of *rows*; all but the first *n* are thorough."""
    return [
        pytest.param(name, marks=[pytest.mark.thorough] if i >= n else [])
        for i, name in enumerate(rows)
    ]


ANY_TIME = {"gives_back": False, "holds": None}
RIGHT: dict[str, tuple[Operator, Statement, dict[str, Any]]] = {
    "a stage": (sums, sums_of, {}),
    "a generator": (rising, rising_of, {"gives_back": False, "holds": None}),
    "an error": (lambda flow: flow.map(refuse_five), lambda values: map(refuse_five, values), {}),
    "an early end": (lambda flow: flow.take(2), lambda values: values[:2], {}),
    "any order": (
        lambda flow: flow.map_async(later, concurrency=4, ordered=False),
        same,
        {"ordered": False},
    ),
    "a type of its own": (
        lambda flow: flow.map(str.upper),
        lambda texts: map(str.upper, texts),
        {"element": lambda number: f"text {number}"},
    ),
    "a clock": (lambda flow: flow.delay(0.5), late, {"timed": True}),
    "a clock, dropping": (lambda flow: flow.debounce(0.3), both_ends, {"timed": True}),
    "a clock, ending": (lambda flow: flow.take_until(r.timer(1.3)), until(1.3), {"timed": True}),
    "a clock, collecting": (lambda flow: flow.buffer_timeout(3, 1.0), batches, {"timed": True}),
    "a clock, failing": (lambda flow: flow.timeout(2), within_two, {"timed": True}),
    "a slow cleanup": (slow_to_clean_up, same, ANY_TIME),
    "a clock, in any order": (
        lambda flow: flow.flat_map(
            lambda x: r.just(x).concat_with(r.just(x).delay(0.153)), concurrency=10**4
        ),
        lambda elements, _: sorted([*elements, *((at + 0.153, x) for at, x in elements)], key=time),
        {"timed": True, "ordered": False, "holds": None},
    ),
    "each one twice": (lambda flow: flow.flat_map(lambda x: [x, x]), twice, {}),
    "sums of lists": (lambda flow: flow.buffer(3).map(sum), sums_of, {}),
    "overlapping lists": (lambda flow: flow.pairwise(), lambda xs: [*itertools.pairwise(xs)], {}),
    "all before the first": (whole(sorted), sorted, ANY_TIME),
    "equal objects": (
        lambda flow: flow.filter(bool),
        lambda values: filter(bool, values),
        {"element": lambda number: number % 2 == 1},
    ),
    "objects with elements": (lambda flow: flow.buffer(2).map(paired), pairs_of, {}),
    "elements as keys": (
        lambda flow: flow.map(as_key),
        lambda values: map(as_key, values),
        {},
    ),
}


@pytest.mark.parametrize("name", first_of(RIGHT, 1))
def test_a_right_operator_passes(name: str) -> None:
    operator, does, options = RIGHT[name]
    check_operator(operator, does, runs=30, **options)


@pytest.mark.usefixtures("expects_error_logs")
def test_an_operator_may_log_errors() -> None:
    def does(values: list[int]) -> Iterable[int]:
        return map(refuse_five, values)

    check_operator(lambda flow: flow.map(tell_and_refuse_five), does, runs=60)


# -- broken ones -----------------------------------------------------------------------------------
class Forwards(Coordinator[int]):
    """Passes its elements on; the faults are in subclasses."""

    def __init__(self, downstream: Any, source: AnyFlow) -> None:
        super().__init__(downstream)
        self.source = source

    def on_start(self) -> None:
        self.inner = self.subscribe_to(self.source)

    def on_demand(self) -> None:
        self.request_missing(self.inner)

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        self.emit(inner.take(self.demand.outstanding))
        self.end_with(inner)

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self.on_elements(inner)


class ReadsEverything(Forwards):
    def on_start(self) -> None:
        self.inner = self.subscribe_to(self.source, request=UNBOUNDED)

    def on_demand(self) -> None:
        self.on_elements(self.inner)


class LeavesATimer(Forwards):
    def on_start(self) -> None:
        super().on_start()
        asyncio.get_running_loop().call_later(3600, int)


class NeverCompletes(Forwards):
    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self.emit(inner.take(self.demand.outstanding))


class Heartbeats(Forwards):
    """Emits what nobody has sent."""

    def on_start(self) -> None:
        super().on_start()
        Timer(self, self.on_pause).start(0.05)

    def on_pause(self) -> None:
        if self.demand:
            self.emit([-1])


def by(kind: type[Forwards]) -> Callable[[AnyFlow], AnyFlow]:
    def operator(source: AnyFlow) -> AnyFlow:
        return from_push(
            lambda downstream: kind(downstream, source),
            name="forwards",
            upstreams=(source,),
            window=8,
            holds=8,
        )

    return operator


def pumped(source: AnyFlow) -> AnyFlow:
    """A task reads the source; when the flow is closed, nothing waits for the end of that."""

    async def elements() -> AsyncIterator[int]:
        queue: asyncio.Queue[Any] = asyncio.Queue(1)

        async def pump() -> None:
            try:
                await source.for_each(queue.put)
                await queue.put(None)
            except asyncio.CancelledError:
                raise
            except BaseException as error:
                await queue.put(error)

        task = asyncio.ensure_future(pump())
        try:
            while (element := await queue.get()) is not None:
                if isinstance(element, BaseException):
                    raise element
                yield element
        finally:
            task.cancel()

    return r.from_aiter(elements)


async def and_for_ever(source: AnyFlow) -> AsyncIterator[int]:
    async for each in source:
        yield each
    while True:
        yield 0


class KeepsForEver:
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def __call__(self, source: AnyFlow) -> AnyFlow:
        return source.do_on_next(self.seen.append)


class DropsAtAFailure(Forwards):
    """It holds what arrives itself, and forgets that when its source fails."""

    def on_start(self) -> None:
        self.kept: list[int] = []
        self.inner = self.subscribe_to(self.source, request=4)

    def on_demand(self) -> None:
        self.on_elements(self.inner)

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        self.kept += inner.take(99)
        count = self.demand.outstanding
        out, self.kept = self.kept[:count], self.kept[count:]
        self.emit(out)
        if out:
            inner.request(len(out))
        if not self.kept and not inner.error:
            self.end_with(inner)

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        self.kept = []
        self.fail(error)

    def on_stop(self) -> None:
        self.discard(self.kept)


KEPT_WHILE_EMITTED = InlineStage(
    "kept",
    setup="$kept = []",
    each="""
    $kept.append(x)
    if len($kept) < 3:
        drop
    emit tuple($kept)
    $kept.clear()
    drop
    """,
    after="""
    if $kept:
        emit tuple($kept)
    """,
    held="$kept",
    demand="need = need * 3 - len($kept)",
)


def threes(values: list[int]) -> list[tuple[int, ...]]:
    return [tuple(values[i : i + 3]) for i in range(0, len(values), 3)]


class LeavesAShortTimer(Forwards):
    def on_start(self) -> None:
        super().on_start()
        asyncio.get_running_loop().call_later(0.3, int)


class ReadsALot(Forwards):
    """A hundred elements beyond what is asked; it says 64."""

    def on_demand(self) -> None:
        self.request_missing(self.inner)
        if self.inner.outstanding < 164:
            self.inner.request(164 - self.inner.outstanding)
        self.on_elements(self.inner)


async def sleep_for_ever() -> None:
    while True:  # noqa: ASYNC110 - that is the fault
        await asyncio.sleep(0)


def raised(error: BaseException) -> AnyFlow:
    def fail(_: int) -> int:
        raise error

    return r.just(0).map(fail)


def swallow(kind: type[Exception]) -> Operator:
    return lambda flow: flow.on_error_resume(
        lambda error: r.empty() if isinstance(error, kind) else raised(error)
    )


class CountsPerFlow:
    """Leaves out every second element, and goes on counting with the next subscription."""

    def __call__(self, source: AnyFlow) -> AnyFlow:
        count = itertools.count()
        return source.filter(lambda _: next(count) % 2 == 0)


BROKEN: dict[str, tuple[Operator, Statement, dict[str, Any], str]] = {
    "wrong values": (sums, lambda values: sums_of(values)[:3], {}, "and should have made"),
    "an element too few at the end": (
        sums,
        lambda values: sums_of(values[: len(values) // 3 * 3]),
        {},
        "and should have made",
    ),
    "lost at a break": (lambda flow: flow.via(SUMS_THAT_LOSE, holds=2), sums_of, {}, "lost: "),
    "given back twice": (
        lambda flow: flow.via(SUMS_THAT_GIVE_BACK_TWICE, holds=2),
        sums_of,
        {},
        "given back 2 times",
    ),
    "given out and back": (
        lambda flow: flow.via(KEPT_WHILE_EMITTED, holds=3),
        threes,
        {},
        "came out",
    ),
    "demand is not passed on": (by(ReadsEverything), same, {}, "were held at a time, the bound is"),
    "a bound that is too small": (
        lambda flow: flow.via(SUMS),
        sums_of,
        {},
        "were held at a time, the bound is",
    ),
    "a cleanup is not awaited": (pumped, same, ANY_TIME, "went on while 1 sources were open"),
    "errors are swallowed": (
        lambda flow: flow.on_error_complete(),
        same,
        {},
        "when its source failed with",
    ),
    "an error of its own": (lambda flow: flow.map(refuse_five), same, {}, "failed with ValueError"),
    "a promised error does not come": (
        lambda flow: flow,
        lambda values: map(refuse_five, values),
        {},
        "should have failed with ValueError",
    ),
    "it ends too early": (lambda flow: flow.take(3), same, {}, "when its source has not ended"),
    "it does not end": (by(NeverCompletes), same, {}, "it does not end"),
    "a timer is left": (by(LeavesATimer), same, {}, "a timer is set"),
    "elements are kept": (KeepsForEver(), same, {"holds": None}, "refers to"),
    "another order": (
        lambda flow: flow.map_async(later, concurrency=4, ordered=False),
        same,
        {},
        "and should have made",
    ),
    "another time": (lambda flow: flow.delay(0.6), late, {"timed": True}, "and should have made"),
    "what nobody has sent": (by(Heartbeats), same, {}, "and should have made"),
    "equal ones are left out": (lambda flow: flow.distinct(), same, {}, "should have made"),
    "sorted": (whole(sorted), same, ANY_TIME, "should have made"),
    "the greatest so far": (lambda flow: flow.scan(max), same, {"holds": 1}, "should have made"),
    "greater, or equal": (
        lambda flow: flow.scan(max).distinct_until_changed(),
        lambda values: rising_of([-9, *values]),
        {"holds": 2},
        "should have made",
    ),
    "a timer is left for a moment": (by(LeavesAShortTimer), same, {}, "a timer is set"),
    "many are held": (by(ReadsALot), same, {}, "the bound is 8"),
    "another gap": (
        lambda flow: flow.debounce(0.15),
        both_ends,
        {"timed": True},
        "should have made",
    ),
    "an end before its time": (
        lambda flow: flow.take_until(r.timer(1.2)),
        until(1.3),
        {"timed": True},
        "should have made",
    ),
    "lost on the way": (
        lambda flow: r.from_aiter(lambda: delayed(flow, 0.5)),
        late,
        {"timed": True, "holds": None},
        "lost: ",
    ),
    "the clock loses some": (
        lambda flow: flow.delay(0.5).filter(lambda x: x != 3),
        late,
        {"timed": True},
        "should have",
    ),
    "for ever": (
        lambda flow: r.from_aiter(lambda: and_for_ever(flow)),
        same,
        ANY_TIME,
        "(20001 elements)",
    ),
    "beside a clock that goes on": (
        lambda flow: flow.merge_with(r.interval(0.1).filter(lambda _: False)),
        same,
        ANY_TIME,
        "the program has not ended",
    ),
    "for ever without an element": (
        lambda flow: flow.concat_with(r.from_awaitable(sleep_for_ever)),
        same,
        {"holds": None},
        "the program has not ended",
    ),
    "lost when the source fails": (by(DropsAtAFailure), same, {}, "lost: "),
    "a late end": (
        lambda flow: flow.concat_with(r.timer(60).filter(lambda _: False)),
        lambda elements, end: [*elements, (end, None)],
        {"timed": True},
        "and should have at",
    ),
    "a late failure": (
        lambda flow: flow.timeout(2.4),
        within_two,
        {"timed": True},
        "should have",
    ),
    "the fortieth is left out": (
        lambda flow: flow.enumerate().filter(lambda each: each[0] != 40).map(lambda each: each[1]),
        same,
        {},
        "should have made",
    ),
    "a large one is left out": (
        lambda flow: flow.filter(lambda x: x != 222),
        same,
        {},
        "should have made",
    ),
    "another message": (
        lambda flow: flow.on_error_map(lambda error: type(error)("another message")),
        same,
        {},
        "another message",
    ),
    "another kind of number": (lambda flow: flow.map(float), same, {}, "it made 0.0, and sh"),
    "a built-in error is swallowed": (swallow(TimeoutError), same, {}, "its source failed with"),
    "state of the flow": (
        CountsPerFlow(),
        lambda values: values[::2],
        {},
        "should have made",
    ),
}


@pytest.mark.parametrize("name", first_of(BROKEN, 6))
def test_a_broken_operator_is_found(name: str) -> None:
    operator, does, options, message = BROKEN[name]
    with pytest.raises(AssertionError) as raised:
        check_operator(operator, does, **options)
    assert message in str(raised.value), raised.value


def test_forwarding_is_no_fault() -> None:
    """What the broken ones are made of."""
    check_operator(by(Forwards), same, runs=60)


# -- the report ------------------------------------------------------------------------------------
def lossy(source: AnyFlow) -> AnyFlow:
    return source.via(SUMS_THAT_LOSE, holds=2)


def test_the_report_has_a_program_that_fails_alone_and_the_seed() -> None:
    with pytest.raises(AssertionError) as raised:
        check_operator(lossy, sums_of)
    report = str(raised.value)
    seed = re.search(r"^seed=(\d+): .* → the operator", report, re.MULTILINE)
    assert seed is not None
    with pytest.raises(AssertionError, match="lost"):
        check_operator(lossy, sums_of, runs=1, seed=int(seed[1]))
    script = report[report.index("from functools import partial") :]
    assert f"from {__name__} import lossy\n" in script
    with pytest.raises(AssertionError, match="lost"):
        exec(compile(script, "<script>", "exec"), {})


def first_elements(source: AnyFlow, count: int) -> AnyFlow:
    return source.take(count)


class Takes:
    """An operator as an object, and as a method."""

    def __call__(self, source: AnyFlow) -> AnyFlow:
        return source.take(1)


@pytest.mark.parametrize(
    "operator",
    [lambda flow: flow.take(1), Takes(), Takes().__call__, partial(first_elements, count=1)],
)
def test_a_function_that_cannot_be_imported_is_to_be_written(operator: Operator) -> None:
    with pytest.raises(AssertionError) as raised:
        check_operator(operator, same, runs=20)
    script = str(raised.value).partition("\n\n")[2].partition("\n\n")[2]
    assert "its_operator = ...  # write here what " in script
    with pytest.raises(AssertionError, match="completed after"):
        exec(script.replace("its_operator = ...", "its_operator = given"), {"given": operator})


def test_a_function_of_the_script_itself_is_imported_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def takes(source: AnyFlow) -> AnyFlow:
        return source.take(1)

    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "__file__", "/somewhere/mine.py", raising=False)
    monkeypatch.setattr(main, "takes", takes, raising=False)
    takes.__module__, takes.__qualname__ = "__main__", "takes"
    with pytest.raises(AssertionError, match=r"\nfrom mine import takes  # .* `if __name__ == "):
        check_operator(takes, same)


def test_an_error_of_the_operator_itself_is_shown() -> None:
    class Stop(BaseException):
        pass

    def operator(source: AnyFlow) -> AnyFlow:
        def fail(_: int) -> int:
            raise Stop("now")

        return source.map(fail)

    with pytest.raises(AssertionError, match=r"failed with Stop\('now'\)"):
        check_operator(operator, same)


def test_an_error_beside_the_flow_is_the_cause() -> None:
    """Its traceback says where it was raised."""
    seen: list[Any] = []

    def operator(source: AnyFlow) -> AnyFlow:
        seen.append(source)
        if len(seen) > 1:
            raise LookupError("the second time")
        return source

    with pytest.raises(AssertionError, match=r"^LookupError: the second time") as raised:
        check_operator(operator, same)
    assert isinstance(raised.value.__cause__, LookupError)


def raising(error: Exception) -> Statement:
    def does(_: list[int]) -> list[int]:
        raise error

    return does


async def async_does(values: list[int]) -> list[int]:
    return values


MISTAKES: dict[str, tuple[Any, Any, dict[str, Any], type[Exception], str]] = {
    "a flow": (
        r.range(3),
        same,
        {},
        TypeError,
        r"operator must be a function, not <Flow range.*\(",
    ),
    "a list": (sums, [1], {}, TypeError, r"does must be a function, not \[1\] \(list\)"),
    "no function": (sums, same, {"element": 3}, TypeError, "element must be a function, not 3"),
    "no flow": (
        lambda flow: None,
        same,
        {},
        TypeError,
        r"operator returned None \(NoneType\); it takes a",
    ),
    "an async operator": (async_does, same, {}, TypeError, r"returned <coroutine .* takes a Flow"),
    "nothing returned": (sums, lambda values: None, {}, TypeError, "does must return or yield"),
    "an async statement": (
        sums,
        async_does,
        {},
        TypeError,
        "does must return or yield .*coroutine",
    ),
    "two parameters": (sums, lambda a, b: a, {}, TypeError, r"called as does\(elements\): missing"),
    "a timed one": (
        sums,
        sums_of,
        {"timed": True},
        TypeError,
        r"does\(elements, end\), as timed=True says",
    ),
    "no pairs": (
        sums,
        lambda values, _: map(str, values),
        {"timed": True},
        TypeError,
        "makes .time, elem",
    ),
    "an unknown name": (sums, raising(NameError("sum_of")), {}, NameError, "sum_of"),
    "None": (sums, same, {"element": lambda _: None}, TypeError, "element made None, and no"),
    "no runs": (sums, same, {"runs": 0}, ValueError, "runs must be at least 1, not 0"),
    "runs in words": (sums, same, {"runs": "a"}, TypeError, "runs must be an int, not 'a'"),
    "no seed": (sums, same, {"seed": None}, TypeError, "seed must be an int, not None"),
    "holds less": (sums, same, {"holds": -1}, ValueError, "holds must be at least 0, not -1"),
}


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refused_before_anything_runs(name: str) -> None:
    operator, does, options, error, message = MISTAKES[name]
    with pytest.raises(error, match=message):
        check_operator(operator, does, **options)


def test_an_error_of_the_statement_is_told_with_its_place() -> None:
    with pytest.raises(
        AssertionError, match=r"should have failed with KeyError \(`does` raised Key"
    ):
        check_operator(sums, raising(KeyError("five")))


def test_several_threads_check_one_after_another() -> None:
    def check() -> None:
        check_operator(sums, sums_of, runs=10)

    with ThreadPoolExecutor(2) as threads:
        for each in [threads.submit(check) for _ in range(2)]:
            each.result()


async def test_on_a_loop_it_says_where_to_call_it() -> None:
    with pytest.raises(RuntimeError, match="call it in a function that is not async"):
        check_operator(sums, sums_of)
