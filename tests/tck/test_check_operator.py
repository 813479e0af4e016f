"""`check_operator` finds the faults that operators typically have, and passes those without."""
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow
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


def late(elements: list[tuple[float, int]], _: float) -> list[tuple[float, int]]:
    return [(at + 0.5, value) for at, value in elements]


Operator = Callable[[AnyFlow], AnyFlow]
Statement = Callable[..., Iterable[Any]]


def first_of(rows: Iterable[str], n: int) -> list[Any]:
    """The names of *rows*; all but the first *n* are thorough."""
    return [
        pytest.param(name, marks=[pytest.mark.thorough] if i >= n else [])
        for i, name in enumerate(rows)
    ]


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
}


@pytest.mark.parametrize("name", first_of(RIGHT, 1))
def test_a_right_operator_passes(name: str) -> None:
    operator, does, options = RIGHT[name]
    check_operator(operator, does, runs=30, **options)


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


class KeepsForEver:
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def __call__(self, source: AnyFlow) -> AnyFlow:
        return source.do_on_next(self.seen.append)


ANY_TIME = {"gives_back": False, "holds": None}
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


def test_a_function_that_cannot_be_imported_is_named() -> None:
    with pytest.raises(AssertionError, match=r"# write here what .*<lambda> of .* is"):
        check_operator(lambda flow: flow.take(1), same)


def test_what_is_no_function_is_refused_before_anything_runs() -> None:
    with pytest.raises(TypeError, match=r"operator must be a function, not <Flow range.*\(Flow\)"):
        check_operator(r.range(3), same)  # type: ignore[arg-type]  # a mistake
    with pytest.raises(TypeError, match=r"does must be a function, not \[1\] \(list\)"):
        check_operator(sums, [1])  # type: ignore[arg-type]  # a mistake


async def test_on_a_loop_it_says_where_to_call_it() -> None:
    with pytest.raises(RuntimeError, match="call it in a function that is not async"):
        check_operator(sums, sums_of)
