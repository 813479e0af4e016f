"""Check an operator of a user in random pipelines."""

import asyncio
import gc
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

from ...testing.safe_repr import safe_repr
from .consumers import CONSUMERS, PAUSING
from .expected import Expected, Parameters
from .neighbours import BEHIND_ANOTHER, HOLDING_NOTHING, OPERATORS, SOURCES
from .pipeline import ACCOUNTED, Plan, drawn, drawn_consumers, drawn_source
from .shrink import failure_of, shrunk
from .under_test import OperatorRun, UnderTest
from .vocabulary import Operator, Vocabulary

__all__ = ("check_operator",)

THROUGH: Final = "run.through({flow})"
TEXTS: Final = {
    "the operator": THROUGH,
    "the operator, deferred": f"r.defer(lambda: run.inner({THROUGH}))",
    "the operator, twice": f"r.defer(lambda: run.inner({THROUGH})).repeat(2)",
    "the operator, behind a publisher": f"r.from_publisher(run.relay({THROUGH}))",
}
"""The places of the operator: alone each is subscribed to once, and signals pass a relay."""
IN_TIME: Final = "the operator, in time"
BY_THE_CLOCK: Final = ("from_aiter: slow", "from_publisher: slow", "range")
"""Sources that send at times, if all is requested."""
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
    to four operators of the package. The source fails in some runs; the consumer requests one by
    one, in batches or everything, is slow, leaves, fails, is cancelled or drains. Checked are the
    values and the end, what is requested and the order of signals, the elements held against
    ``bound()``, that each element comes out or is given to `do_on_discard`, that errors are passed
    on, and that each source was closed, once and before the consumer went on, with no task, timer,
    thread, generator or subscription left.

    The message shows the smallest pipeline that fails as well, as a program that runs alone, and
    the seed: ``runs=1, seed=…`` repeats that run. The operator runs on loops with virtual time, so
    call this outside of a loop.

    - element: makes an element of a number; without it, elements are numbers.
    - ordered: False for an operator that may change the order.
    - gives_back: False for one that keeps elements for good, or reads its source by ``async for``:
      then the elements that it had when it was cancelled may be lost.
    - holds: how many elements it may refer to beyond those that ``bound()`` counts, such as the
      greatest so far; None for any number.
    - timed: for an operator with a clock. ``does(elements, end)`` is given pairs of a time and an
      element, and the time at which the source completes; it makes such pairs. Sources that wait
      for no one are compared with it; where a consumer makes them wait, the other promises are.
    """
    _require_functions(operator=operator, does=does)
    _refuse_on_a_loop()
    under_test = UnderTest(
        operator=operator, does=does, element=element, ordered=ordered, gives_back=gives_back,
        holds=holds, timed=timed,
    )  # fmt: skip
    vocabulary = _vocabulary(under_test)
    with _without_older_objects():
        for each in range(seed, seed + runs):
            plan = _plan(vocabulary, each, timed=timed)
            if failure_of(plan) is not None:
                raise AssertionError(_report(plan, each)) from None


def _require_functions(**given: object) -> None:
    for name, value in given.items():
        if not callable(value):
            what = f"{safe_repr(value)} ({type(value).__name__})"
            raise TypeError(f"check_operator: {name} must be a function, not {what}")


def _refuse_on_a_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(
        "check_operator runs loops of its own, and an event loop is running here: call it in a "
        "function that is not async, or by asyncio.to_thread(check_operator, …)"
    )


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
        return replace(expected, is_known=False, fails=None)

    reason = "" if under_test.gives_back else "it gives nothing back"
    slack = under_test.holds
    row = Operator(
        THROUGH, effect, discards=True, unaccounted=reason, loses_on_failure=True, slack=slack
    )
    rows = {name: replace(row, text=text) for name, text in TEXTS.items()}
    behind = "the operator, behind a publisher"
    rows[behind] = replace(rows[behind], unaccounted=BEHIND_ANOTHER, detaches=True)
    rows[IN_TIME] = replace(row, text="run.through({flow}, in_time=True)")
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


def _plan(vocabulary: Vocabulary, seed: int, *, timed: bool) -> Plan:
    """The plan of *seed*: each fourth one has few neighbours, and a consumer that pauses."""
    random = Random(seed)
    if timed and seed % 2:
        return drawn(vocabulary, random, random.choice(BY_THE_CLOCK), [IN_TIME], "subscribe")
    if seed % 4 == 0:
        names = ["the operator", *random.choices(("boundary", "map"), k=random.randrange(2))]
        return drawn(
            vocabulary, random, random.choice(HOLDING_NOTHING), names, random.choice(PAUSING)
        )
    is_accounted = random.random() < ACCOUNTED
    known = [name for name in OPERATORS if not (is_accounted and OPERATORS[name].unaccounted)]
    above, below = (random.choices(known, k=random.choice((0, 0, 1, 2))) for _ in range(2))
    names = [*above, random.choice(("the operator", *TEXTS)), *below]
    consumers = drawn_consumers(vocabulary, random, leaves=is_accounted)
    return drawn(
        vocabulary, random, drawn_source(vocabulary, random), names, random.choice(consumers)
    )


# -- the report ------------------------------------------------------------------------------------
def _report(plan: Plan, seed: int) -> str:
    """The smallest plan that fails as well, its program and why."""

    def fails(other: Plan) -> object:
        return not {*TEXTS, IN_TIME}.isdisjoint(other.names) and failure_of(other)

    least = shrunk(plan, fails)
    error = failure_of(least) or failure_of(plan) or "It failed, and does so no longer."
    return (
        f"{error}\n\nseed={seed}: {' → '.join(least.names)}. This program fails as well; "
        f"check_operator(…, runs=1, seed={seed}) repeats the run.\n\n{least.pipeline().script}"
    )


def _written(under_test: UnderTest) -> tuple[str, str]:
    """How a script writes *under_test*, and the lines that import what that names."""
    given = {
        field.name: getattr(under_test, field.name)
        for field in fields(under_test)
        if field.default != getattr(under_test, field.name)
    }
    imports = [line for each in given.values() if callable(each) for line in _import_of(each)]
    words = {name: _name_of(each) if callable(each) else repr(each) for name, each in given.items()}
    arguments = ", ".join(f"{name}={word}" for name, word in words.items())
    return f"UnderTest({arguments})", "".join(f"{line}\n" for line in imports)


def _name_of(function: object) -> str:
    name = getattr(function, "__name__", "")
    return name if name.isidentifier() else "…"


def _import_of(function: object) -> Iterator[str]:
    """The line that imports *function*, or a comment if it is within another one."""
    name = getattr(function, "__qualname__", safe_repr(function))
    module = getattr(function, "__module__", "")
    if module == "__main__":
        module = Path(getattr(sys.modules["__main__"], "__file__", None) or "__main__").stem
    if name.isidentifier():
        yield f"from {module} import {name}"
    else:
        yield f"# write here what {name} of {module} is; it cannot be imported"
