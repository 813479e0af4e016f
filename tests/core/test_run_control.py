"""The work on one element: it counts once in the figures of a run, whatever it leaves."""

from typing import Any, cast

import pytest

from reactive_aio._core.run_control import OnDiscard, RunDiscards, Work


class Figures:
    """Records what counts."""

    def __init__(self) -> None:
        self.counted: list[object] = []

    def discard(self, element: object) -> None:
        self.counted.append(element)

    interrupt = discard

    def interrupt_call(self) -> OnDiscard:
        self.counted.append("a call")
        return lambda _: None


class Below:
    """What the operator discards: in a run, or, without one, as it is."""

    def __init__(self, *, is_run: bool) -> None:
        figures = Figures()
        self.counted = figures.counted
        self.handed: list[object] = []
        run = RunDiscards(cast("Any", None), cast("Any", figures), (self.handed.append,))
        self.on_discard: OnDiscard = run if is_run else self.handed.append


both = pytest.mark.parametrize("is_run", [True, False])


@both
def test_what_the_source_holds_stands_for_the_element(is_run: bool) -> None:
    below = Below(is_run=is_run)
    work = Work("element", below.on_discard)
    work.discard("part")
    work.cut()
    assert below.handed == ["part"]
    assert below.counted == ["part"] * is_run


@both
def test_what_the_source_gives_back_after_the_cut_does_not_count_again(is_run: bool) -> None:
    below = Below(is_run=is_run)
    work = Work("element", below.on_discard)
    for _ in range(2):
        work.cut()
    work.discard("element")
    work.interrupt("part")
    work.interrupt_call()("result")
    assert below.handed == ["element", "part", "result"]
    assert below.counted == ["element"] * is_run


def test_a_call_that_goes_on_stands_for_the_element() -> None:
    below = Below(is_run=True)
    work = Work("element", below.on_discard)
    receive = work.interrupt_call()
    work.cut()
    receive("result")
    assert below.handed == ["result"]
    assert below.counted == ["a call"]
