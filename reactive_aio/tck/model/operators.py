"""Check an operator of a user in random pipelines."""

import asyncio
import gc
import inspect
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any, Final, cast

from ...testing.safe_repr import safe_repr
from .consumers import CONSUMERS, PAUSING
from .expected import Expected, Parameters
from .neighbours import BEHIND_ANOTHER, HOLDING_NOTHING, OPERATORS, SOURCES
from .pipeline import ACCOUNTED, Plan, drawn, drawn_consumers, drawn_source
from .shrink import failure_of, shrunk
from .under_test import OperatorRun, UnderTest
from .vocabulary import Operator, Vocabulary

__all__ = ("check_operator",)

THROUGH: Final = "run.through({flow}, {k})"
TEXTS: Final = {
    "the operator": THROUGH,
    "the operator, deferred": f"r.defer(lambda: run.inner({THROUGH}))",
    "the operator, twice": f"r.defer(lambda: run.inner({THROUGH})).repeat(2)",
    "the operator, subscribed to twice": ("run.through_each_time({flow}, {k}, r.defer).repeat(2)"),
    "the operator, behind a publisher": f"r.from_publisher(run.relay({THROUGH}))",
}
"""The places of the operator: alone each is subscribed to once, and signals pass a relay."""
IN_TIME: Final = "the operator, in time"
BY_THE_CLOCK: Final = (
    "from_aiter: at times",
    "from_aiter: at times",
    "from_aiter: fails at a time",
    "range",
)
"""Sources that send at times, if all is requested."""
AT_ONCE: Final = ("subscribe", "subscribe", "cancelled: later")
"""Consumers that request everything, and never make a source wait; of both kinds."""
LONG: Final = 100
LONGEST: Final = 550
"""Elements of a source that is to reach a bound: so many, or more for one that is larger."""
FAILING: Final = ("from_iterable: fails", "from_aiter: fails", "from_publisher: fails")
"""Sources that fail when an operator may hold elements."""
ONE_AT_A_TIME: Final = Lock()
"""A check looks at all threads, tasks and objects of the process."""
MISTAKES: Final = (NameError, ImportError, SyntaxError)
"""Errors that no operator promises: a function that raises one is wrong itself."""
HEADER: Final = """\
import operator
from contextlib import suppress

import reactive_aio as r
from reactive_aio.errors import TooManyElements

"""
IMPORTS: Final = """\
from functools import partial

from reactive_aio.tck.model.expected import Expected
from reactive_aio.tck.model.judge import check_alone
from reactive_aio.tck.model.under_test import OperatorRun, UnderTest
"""


def check_operator(
    operator: Callable[[Any], Any],
    does: Callable[..., Iterable[Any]],
    *,
    element: Callable[[int], Any] | None = None,
    ordered: bool = True,
    gives_back: bool = True,
    holds: int | None = 0,
    timed: bool = False,
    runs: int = 200,
    seed: int = 0,
) -> None:
    """Run *operator* in random pipelines, and fail with an AssertionError if it breaks a promise.

    *operator* takes a flow and returns a flow. *does* says in plain Python what it makes of a list
    of elements: it returns or yields those that come out. If it raises, the operator has to fail
    with an error of the same type after those that were yielded before.

    In each of the *runs*, the operator stands between a random source and a random consumer, and up
    to four operators of the package. The elements rise or fall, repeat or are equal, and some are
    negative. The source fails in some runs; the consumer requests one by one, in batches or
    everything, is slow, leaves, fails, is cancelled or drains. Checked are the values and the end,
    what is requested and the order of signals, the elements held against ``bound()``, that each
    element comes out or is given to `do_on_discard`, that errors are passed on, and that each
    source was closed, once and before the consumer went on, with no task, timer, thread, generator
    or subscription left.

    The message shows the smallest pipeline that fails as well, as a program that runs alone, and
    the seed: ``runs=1, seed=…`` repeats that run. The operator runs on loops with virtual time, so
    call this outside of a loop. Checks of several threads wait for each other.

    A source has at most 100 elements, or up to 550 if ``bound()`` says that many are held.

    - element: makes an element of a number from 0 on; without it, elements are ints.
    - ordered: False for an operator that may change the order.
    - gives_back: False for one that keeps elements for good, or reads its source by ``async for``:
      then the elements that it had when it was cancelled may be lost.
    - holds: how many elements it may refer to beyond those that ``bound()`` counts, such as the
      greatest so far; None for any number.
    - timed: for an operator with a clock. ``does(elements, end)`` is given pairs of a time and an
      element, and the time at which the source ends; it makes such pairs. A pair with None is the
      time at which the flow completes, or fails, which is not judged without it. Sources that wait
      for no one are compared with it; where a consumer makes them wait, values and losses are not.
      They pause for 0.01 to 20 seconds, so give the operator durations of that size.
    - runs: how many pipelines; at least 1.
    - seed: that of the first one.

    A function that cannot be right is a `TypeError` or `ValueError` before anything runs: one that
    makes no flow, no elements or None, or takes other arguments.
    """
    _refuse_on_a_loop()
    under_test = UnderTest(
        operator=operator, does=does, element=element, ordered=ordered, gives_back=gives_back,
        holds=holds, timed=timed,
    )  # fmt: skip
    _require_numbers(runs=(runs, 1), seed=(seed, 0), holds=(0 if holds is None else holds, 0))
    longest = min(_tried(under_test), LONGEST)
    vocabulary = _vocabulary(under_test)
    with ONE_AT_A_TIME, _without_older_objects():
        for each in range(seed, seed + runs):
            plan = _plan(vocabulary, each, longest, timed=timed)
            if (error := failure_of(plan)) is not None:
                raise AssertionError(_report(plan, error, each)) from _cause(error)


def _refuse_on_a_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(
        "check_operator runs loops of its own, and an event loop is running here: call it in a "
        "function that is not async, or by asyncio.to_thread(check_operator, …)"
    )


def _require_numbers(**given: tuple[object, int]) -> None:
    for name, (value, least) in given.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"check_operator: {name} must be an int, not {_described(value)}")
        if value < least:
            raise ValueError(f"check_operator: {name} must be at least {least}, not {value}")


def _tried(under_test: UnderTest) -> int:
    """Refuse functions that cannot be right; return the length of sources that reach the bound."""
    for name in ("operator", "does", "element"):
        value = getattr(under_test, name)
        if not callable(value) and not (value is None and name == "element"):
            raise TypeError(f"check_operator: {name} must be a function, not {_described(value)}")
    elements = [under_test.made(number) for number in range(3)]
    if under_test.element is not None and any(each is None for each in elements):
        raise TypeError("check_operator: element made None, and no element is None (rule 2.13)")
    for count in (0, 3):
        _try_statement(under_test, elements[:count])
    flow = _a_flow()
    made: object = under_test.operator(flow)
    if not isinstance(made, type(flow)):
        what = f"{_described(made)}; it takes a Flow and returns one"
        raise TypeError(f"check_operator: operator returned {what}")
    bound: int | None = cast("Any", made).bound().total
    return LONG if bound is None else max(2 * bound + 20, LONG)


def _try_statement(under_test: UnderTest, elements: list[Any]) -> None:
    arguments: list[Any] = [elements]
    if under_test.timed:
        arguments = [[(float(i), each) for i, each in enumerate(elements)], 10.0]
    try:
        inspect.signature(under_test.does).bind(*arguments)
    except TypeError as error:
        what = "(elements, end), as timed=True says" if under_test.timed else "(elements)"
        raise TypeError(f"check_operator: does is called as does{what}: {error}") from None
    except ValueError:
        pass  # a built-in function that has no signature
    try:
        made: Any = under_test.does(*arguments)
        all_made: list[object] | None = (
            [*cast("Iterable[object]", made)] if isinstance(made, Iterable) else None
        )
    except MISTAKES as error:
        error.add_note(
            "check_operator: does raised this; it says what the operator makes of a list"
        )
        raise
    except Exception:
        return  # the operator has to fail as well
    if all_made is None or any(each is None for each in all_made):
        what = f"not {_described(made)}" if all_made is None else "and None is none (rule 2.13)"
        raise TypeError(f"check_operator: does must return or yield elements, {what}")
    if under_test.timed:
        for each in all_made:
            _require_pair(each)


def _require_pair(made: object) -> None:
    pair: list[object] = [*cast("Any", made)] if isinstance(made, (tuple, list)) else []
    if len(pair) == 2 and isinstance(pair[0], (int, float)):
        return
    what = f"not {_described(cast('Any', made))}"
    raise TypeError(f"check_operator: with timed=True, does makes (time, element), {what}")


def _described(value: object) -> str:
    return f"{safe_repr(value)} ({type(value).__name__})"


def _a_flow() -> object:
    """Some flow; the kit imports nothing that it judges, and its programs do."""
    names: dict[str, object] = {}
    exec("import reactive_aio as r\nflow = r.range(3)", names)
    return names["flow"]


@contextmanager
def _without_older_objects() -> Generator[None]:
    """Nothing of a pipeline is among the objects that exist; so no search looks at them."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


# -- the pipelines ---------------------------------------------------------------------------------
def _vocabulary(under_test: UnderTest) -> Vocabulary:
    """The neighbours, and the operator itself at several places."""

    def effect(expected: Expected, _: Parameters) -> Expected:
        # What comes out is judged there, of what went in.
        return replace(expected, is_known=False, fails=None, failures=expected.failures + 1)

    reason = "" if under_test.gives_back else "it gives nothing back"
    slack = under_test.holds
    row = Operator(
        THROUGH, effect, discards=True, unaccounted=reason, loses_on_failure=True, slack=slack
    )
    rows = {name: replace(row, text=text) for name, text in TEXTS.items()}
    behind = "the operator, behind a publisher"
    rows[behind] = replace(rows[behind], unaccounted=BEHIND_ANOTHER, detaches=True)
    rows[IN_TIME] = replace(row, text="run.through({flow}, {k}, in_time=True)")
    name, imports = _written(under_test)
    return Vocabulary(
        SOURCES,
        OPERATORS | rows,
        CONSUMERS,
        HEADER,
        partial(OperatorRun, under_test=under_test),
        f"partial(OperatorRun, under_test={name})",
        holding_nothing=HOLDING_NOTHING,
        imports=f"{IMPORTS}{imports}\n",
    )


def _plan(vocabulary: Vocabulary, seed: int, longest: int, *, timed: bool) -> Plan:
    """The plan of *seed*: each fourth one has few neighbours, and a consumer that pauses."""
    random = Random(seed)
    draw = partial(drawn, vocabulary, random)
    if timed and seed % 2:
        return draw(random.choice(BY_THE_CLOCK), [IN_TIME], random.choice(AT_ONCE))
    if seed % 4 == 0:
        names = ["the operator", *random.choices(("boundary", "map"), k=random.randrange(2))]
        source = random.choice(FAILING if seed % 8 else HOLDING_NOTHING)
        return draw(source, names, random.choice(PAUSING), longest=longest)
    is_accounted = random.random() < ACCOUNTED
    known = [name for name in OPERATORS if not (is_accounted and OPERATORS[name].unaccounted)]
    above, below = (random.choices(known, k=random.choice((0, 0, 1, 2))) for _ in range(2))
    names = [*above, random.choice(("the operator", *TEXTS)), *below]
    consumers = drawn_consumers(vocabulary, random, leaves=is_accounted)
    return draw(drawn_source(vocabulary, random), names, random.choice(consumers))


# -- the report ------------------------------------------------------------------------------------
def _report(plan: Plan, first: BaseException, seed: int) -> str:
    """The smallest plan that fails as well, its program and why."""

    def fails(other: Plan) -> object:
        return not {*TEXTS, IN_TIME}.isdisjoint(other.names) and failure_of(other)

    least = shrunk(plan, fails)
    error = failure_of(least)
    again = f"check_operator(…, runs=1, seed={seed}) repeats the run."
    if error is None:
        again = "It did not fail again, so that something differs from one run to another."
    return (
        f"{_text_of(error or first)}\n\nseed={seed}: {' → '.join(least.names)}. "
        f"This program fails as well; {again}\n\n{least.pipeline().script}"
    )


def _text_of(error: BaseException) -> str:
    return str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"


def _cause(error: BaseException) -> BaseException | None:
    """An error that is no judgement has come out of the operator, and its traceback says where."""
    return None if isinstance(error, AssertionError) else error


def _written(under_test: UnderTest) -> tuple[str, str]:
    """How a script writes *under_test*, and the lines that have what it names."""
    given = {
        field.name: getattr(under_test, field.name)
        for field in fields(under_test)
        if field.default != getattr(under_test, field.name)
    }
    lines: list[str] = []
    for name, value in given.items():
        if callable(value):
            given[name], line = _reached(name, value)
            lines.append(f"{line}\n")
        else:
            given[name] = repr(value)
    arguments = ", ".join(f"{name}={word}" for name, word in given.items())
    return f"UnderTest({arguments})", "".join(lines)


def _reached(parameter: str, function: Callable[..., object]) -> tuple[str, str]:
    """How a script names *function*, the value of *parameter*, and the line that it needs."""
    name = getattr(function, "__qualname__", "")
    module = getattr(function, "__module__", None)
    place = _place_of(function)
    if name.isidentifier() and getattr(sys.modules.get(module or ""), name, None) is function:
        if module != "__main__":
            return name, f"from {module} import {name}"
        stem = Path(getattr(sys.modules["__main__"], "__file__", None) or "__main__").stem
        guard = 'if __name__ == "__main__":'
        return name, f"from {stem} import {name}  # which is to check below `{guard}`"
    what = f"what {name or safe_repr(function)} of {place or module} is; it cannot be imported"
    return f"its_{parameter}", f"its_{parameter} = ...  # write here {what}"


def _place_of(function: Callable[..., object]) -> str:
    code = getattr(function, "__code__", None)
    return f"{Path(code.co_filename).name}, line {code.co_firstlineno}" if code else ""
