"""The notes of an error: the operators that it passed, the failing stage, and its element."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, cast

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.errors import show_elements
from tests.contract.raising.consumers import CONSUMERS
from tests.contract.raising.observe import Outcome
from tests.harness.one_run import in_one_run


def fails_at_2(x: int) -> int:
    if x == 2:
        raise ValueError(x)
    return x


async def fails_at_2_async(x: int) -> int:
    await asyncio.sleep(0)
    return fails_at_2(x)


def generator() -> Iterator[int]:
    yield 1
    raise ValueError("the source")


async def async_generator() -> AsyncIterator[int]:
    yield 1
    raise ValueError("the source")


def raises(*_: object) -> None:
    raise ValueError("a callback")


five = r.range(5)
TRAILS: dict[str, tuple[Callable[[], Flow[Any]], str, str]] = {
    "a stage": (
        lambda: five.map(abs).map(fails_at_2).map(str),
        "range(0, 5) → map(abs) → >>map(fails_at_2)<< → map(str)",
        "2",
    ),
    "before boundaries": (
        lambda: five.map(fails_at_2).boundary(2).map(str).boundary(3),
        "range(0, 5) → >>map(fails_at_2)<< → boundary(2) → map(str) → boundary(3)",
        "2",
    ),
    "a list as the element": (
        lambda: five.buffer(3).map(raises),
        "range(0, 5) → buffer(3) → >>map(raises)<<",
        "[0, 1, 2]",
    ),
    "one of two alike": (
        lambda: five.map(lambda x: x + 1).map(lambda x: fails_at_2(x)),
        "range(0, 5) → map(<lambda>) → >>map(<lambda>)<<",
        "2",
    ),
    "in a task": (
        lambda: five.map_async(fails_at_2_async).map(str),
        "range(0, 5) → >>map_async(fails_at_2_async)<< → map(str)",
        "2",
    ),
    "in a worker": (
        lambda: five.map_async(fails_at_2_async, concurrency=3).boundary(2),
        "range(0, 5) → >>map_async(fails_at_2_async, concurrency=3)<< → boundary(2)",
        "2",
    ),
    "an operator that calls functions itself": (
        lambda: five.flat_map(cast("Any", raises)).map(str).boundary(2),
        "range(0, 5) → >>flat_map(raises, concurrency=16)<< → map(str) → boundary(2)",
        "",
    ),
    "a synchronous source of several": (
        lambda: r.concat(r.just(1).map(abs), five.map(fails_at_2)).map(abs).boundary(2),
        "(just(1) → map(abs) | range(0, 5) → >>map(fails_at_2)<<) → concat(2 sources) → map(abs) → "
        "boundary(2)",
        "2",
    ),
    "one source of many": (
        lambda: r.merge(*[r.just(1)] * 9, r.just(2).boundary(1).map(fails_at_2)),
        "(just(1) | just(1) | just(1) | just(1) | just(2) → boundary(1) → >>map(fails_at_2)<< | "
        "5 more) → merge(10 sources)",
        "2",
    ),
    "a source": (
        lambda: r.from_iterable(generator()).map(abs).boundary(2),
        ">>from_iterable(generator)<< → map(abs) → boundary(2)",
        "",
    ),
    "one of several synchronous sources": (
        lambda: r.concat(r.just(1), r.from_iterable(generator())).map(abs),
        "(just(1) | >>from_iterable(generator)<<) → concat(2 sources) → map(abs)",
        "",
    ),
    "an asynchronous source": (
        lambda: r.from_aiter(async_generator).map(abs).boundary(2),
        ">>from_aiter(async_generator)<< → map(abs) → boundary(2)",
        "",
    ),
    "a thread": (lambda: r.from_thread(generator).map(abs), ">>from_thread<< → map(abs)", ""),
    "at the end": (
        lambda: five.map(abs).do_on_complete(raises).map(str),
        "range(0, 5) → map(abs) → >>do_on_complete(raises)<< → map(str)",
        "",
    ),
    "a hook of another island": (
        lambda: five.boundary(2).map(fails_at_2).boundary(2).do_finally(raises),
        "range(0, 5) → boundary(2) → map(fails_at_2) → boundary(2) → >>do_finally(raises)<<",
        "",
    ),
    "a function without an element": (
        lambda: r.from_callable(cast("Any", raises)).map(str),
        "repeated → >>from_callable(raises)<< → map(str)",
        "",
    ),
    "what a stage emits first": (
        lambda: r.empty().start_with(2).map(fails_at_2),
        "empty() → start_with((2,)) → >>map(fails_at_2)<<",
        "2",
    ),
    "a stage that emits several of one": (
        lambda: r.just(b"1\n2\nx\n").json_lines(),
        "just(b'1\\n2\\nx\\n') → >>json_lines(1048576)<<",
        "",  # not the element that it has emitted last
    ),
}


def marked(note: str) -> str:
    """The name of the function or method whose call the carets of *note* mark."""
    *_, line, carets = note.splitlines()
    assert set(carets) == {" ", "^"}
    call = line[carets.index("^") : carets.rindex("^") + 1]
    return call.partition("(")[0].rpartition(".")[2]


async def error_of(flow: Flow[Any], way: str = "subscribe") -> BaseException:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - its notes are looked at
        await CONSUMERS[way](flow, Outcome())
    return caught.value


@pytest.mark.parametrize("way", CONSUMERS)
@in_one_run
@pytest.mark.parametrize("case", TRAILS)
async def test_the_trail_is_whole_and_marks_the_failing_stage(case: str, way: str) -> None:
    make, trail, element = TRAILS[case]
    [note] = (await error_of(make(), way)).__notes__
    shown, _, place = note.removeprefix("in the flow: ").partition("\n    File ")
    shown, _, rest = shown.partition("\n    with the element ")
    assert (shown.removesuffix(" → to_list(1000000)"), rest) == (trail, element)
    assert place.startswith(f'"{__file__}", line ')
    failing = trail.partition(">>")[2].partition("<<")[0].partition("(")[0]
    assert failing in (marked(note), "repeated")
    assert marked(note) in (failing, "from_callable")


async def test_a_flow_within_an_operator_has_a_trail_of_its_own() -> None:
    flow = five.flat_map(lambda _: five.map_async(fails_at_2_async).map(str)).boundary(2)
    inner, outer = (await error_of(flow)).__notes__
    assert "range(0, 5) → >>map_async(fails_at_2_async)<< → map(str)\n" in inner
    assert "range(0, 5) → >>flat_map(<lambda>, concurrency=16)<< → boundary(2)" in outer


# -- the text of an element ------------------------------------------------------------------------
class Shown:
    def __init__(self, show: Callable[[], str]) -> None:
        self.show = show

    def __repr__(self) -> str:
        return self.show()


class Hostile(list[int]):
    def __len__(self) -> int:
        raise ValueError("no length")

    def __iter__(self) -> Iterator[int]:
        raise ValueError("no elements")

    __repr__ = __str__ = __iter__  # type: ignore[assignment]


ELEMENTS: dict[str, Callable[[], Any]] = {
    "a megabyte": lambda: Shown(lambda: "x" * (1 << 20)),
    "many lines": lambda: Shown(lambda: "x\n" * 9),
    "a repr that raises": lambda: Shown(lambda: 1 // 0),  # type: ignore[return-value,arg-type]
    "a repr of another type": lambda: Shown(lambda: 1),  # type: ignore[return-value,arg-type]
    "a hostile list": Hostile,
    "a large list": lambda: [[0] * 100_000] * 100_000,
    "a large number": lambda: 10**10_000,
}


@pytest.mark.parametrize("kind", ELEMENTS)
async def test_the_text_of_an_element_is_short_and_never_raises(kind: str) -> None:
    element = ELEMENTS[kind]()
    [note] = (await error_of(r.from_iterable([element]).map(raises))).__notes__
    trail, shown, *_ = note.splitlines()
    assert trail.endswith(">>map(raises)<<")
    assert 0 < len(shown.removeprefix("    with the element ")) <= 200


async def test_elements_can_be_left_out() -> None:
    show_elements(False)
    try:
        for flow in (
            five.map(fails_at_2).boundary(2),
            five.map_async(fails_at_2_async, concurrency=2),
        ):
            [note] = (await error_of(flow)).__notes__
            assert "map" in note
            assert "with the element" not in note
    finally:
        show_elements(True)


# -- one exception, many flows ---------------------------------------------------------------------
async def test_a_shared_exception_does_not_collect_notes() -> None:
    shared = ValueError("shared")
    shared.add_note("its own")
    for number in range(50):
        await error_of(r.error(shared).map(str).start_with(str(number)).boundary(2))
    own, note = shared.__notes__
    assert own == "its own"
    assert "start_with(('49',))" in note


async def test_an_exception_that_functions_share_has_eight_trails_at_most() -> None:
    shared = ValueError("shared")

    def fails(_: object) -> None:
        raise shared

    for number in range(50):
        await error_of(r.just(number).map(fails).boundary(2))
        await error_of(r.just(number).map_async(fails, concurrency=2))  # type: ignore[arg-type]
    assert len(shared.__notes__) == 8
    assert "just(49)" in shared.__notes__[-1]


async def test_an_exception_that_is_raised_again_has_the_place_of_the_last_time() -> None:
    """Its traceback goes on with where it was raised before: in this flow, or further up in it."""
    shared = ValueError("shared")

    def raise_again(error: Any) -> None:
        raise error

    def fails(x: int) -> int:
        if x == 2:
            raise shared
        return x

    first_run = [True]
    twice = five.map(lambda x: x if first_run else fails(x)).map(fails)
    assert "→ >>map(fails)<<\n" in note_of(await error_of(twice))
    first_run.clear()
    assert "→ >>map(<lambda>)<< → map(fails)" in note_of(await error_of(twice))
    again = r.from_iterable([2]).map(fails).on_error_return(shared).map(raise_again)
    assert ">>map(raise_again)<<\n" in note_of(await error_of(again))


def note_of(error: BaseException) -> str:
    """The last note of *error*."""
    return str(error.__notes__[-1])


@dataclasses.dataclass(frozen=True)
class FrozenError(ValueError):
    code: int


async def test_a_frozen_exception_arrives_without_notes() -> None:
    def fails(x: int) -> None:
        raise FrozenError(x)

    error = await error_of(five.map(fails).boundary(2))
    assert isinstance(error, FrozenError)
    flow = r.error(FrozenError(1)).on_error_resume(r.error(FrozenError(2))).retry(2)
    assert isinstance(await error_of(flow), FrozenError)


# -- large flows -----------------------------------------------------------------------------------
async def test_the_trail_of_a_large_flow_is_short_and_keeps_the_failing_stage() -> None:
    many = r.range(5)
    for number in range(50):
        many = many.map(fails_at_2 if number == 20 else abs)
    [note] = (await error_of(many.boundary(2))).__notes__
    assert "map(abs) → … → >>map(fails_at_2)<< → … → map(abs)" in note
    assert note.count("→") < 30


def test_the_trail_of_a_flow_that_is_combined_with_itself_is_short() -> None:
    flow = r.range(5)
    for _ in range(100):
        flow = r.merge(flow, flow)
    assert 500 < len(repr(flow)) < 5000
