"""Everything the library has, by every law for it; and on every loop, where the loop can matter."""

import asyncio
import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any, Final

import pytest

import reactive_aio as r
from reactive_aio.errors import NoRunningLoop
from reactive_aio.spec import Publisher
from reactive_aio.tck import Outcome, Subject, Terms, check
from reactive_aio.tck.adapters import operator, sink
from reactive_aio.testing.virtual_time import VirtualTimeLoop
from tests.cases import Case, cases, identities, sinks
from tests.harness.effort import Effort, effort
from tests.harness.loops import DebugLoop

# Our own promises hold after some turns of the loop: no clock is needed to see them broken.
TERMS = Terms(come=10.0, quiet=0.0)

Loop = dict[str, Any]


def uvloop_loop() -> asyncio.AbstractEventLoop:
    import uvloop

    return uvloop.new_event_loop()


LOOPS: dict[str, Loop] = {
    "asyncio": {"loop": DebugLoop},
    "virtual": {"loop": VirtualTimeLoop, "virtual_time": True},
    **({"uvloop": {"loop": uvloop_loop}} if find_spec("uvloop") else {}),
}
on_every_loop = pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)


def where_a_loop_matters(
    name: str, makers: Iterable[tuple[Any, Hashable, Callable[[], Any]]]
) -> pytest.MarkDecorator:
    """Judge everything on virtual time, and on the other loops one of each kind that uses a loop.

    *makers* are triples: the value of the parameter *name*, the module it is from, and a function
    that makes its flow. Flows of one module whose islands run the same way are of one kind. With
    ``--thorough``, everything is judged on all loops.
    """
    seen: set[Hashable] = set()
    chosen: list[Any] = []
    for value, module, make in makers:
        kind = ways(make)
        everywhere = effort() is Effort.THOROUGH or (
            effort() is Effort.NORMAL and kind != NO_LOOP and (module, kind) not in seen
        )
        seen.add((module, kind))
        chosen += [
            pytest.param(value, loop, id=f"{value}-{name_of_loop}")
            for name_of_loop, loop in LOOPS.items()
            if everywhere or name_of_loop == "virtual"
        ]
    return pytest.mark.parametrize((name, "loop"), chosen)


NO_LOOP: Final = frozenset({"one loop, pulled"})
"""Islands that requests drive: no timer, no task, no thread."""


def ways(make: Callable[[], Any]) -> frozenset[str]:
    """How the islands of the flow that *make* returns run, as `explain` says."""
    try:
        flow: r.Flow[Any] = make()
        return frozenset(re.findall(r"island \(([^)]+)\)", flow.explain()))
    except NoRunningLoop:
        return frozenset({"made on a loop"})


def flow_of(case: Case) -> Any:
    """A flow as the laws judge it."""
    made = case.subject
    if made.publisher is not None:
        return made.publisher(3)
    if made.closing_publisher is not None:
        return made.closing_publisher(3, lambda: None)
    make = made.failing_publisher or made.infinite_publisher
    assert make is not None
    return make()


def conforms(subject: Subject, loop: Loop) -> None:
    """Every law is kept, those of strength SHOULD as well; and laws have been judged at all."""
    report = check(replace(subject, **loop), terms=TERMS)
    assert not report.having(Outcome.FAIL), str(report)
    assert report.having(Outcome.PASS), f"nothing of {subject.name} was judged"


@where_a_loop_matters("case", ((case, case.module, partial(flow_of, case)) for case in cases()))
def test_a_publisher_conforms(case: Case, loop: Loop) -> None:
    conforms(case.subject, loop)


def numbers(n: int, closed: Callable[[], None]) -> r.Flow[int]:
    return r.range(n).do_finally(lambda _: closed())


@where_a_loop_matters(
    "name", ((name, "", partial(identity, r.range(3))) for name, identity in identities().items())
)
def test_an_operator_conforms_between_strangers(name: str, loop: Loop) -> None:
    """Upstream as well as downstream, as a processor does; and it gives back what it holds."""
    identity = identities()[name]

    def between(publisher: Publisher[Any]) -> Publisher[Any]:
        return identity(r.from_publisher(publisher))

    subject = Subject(
        name=name,
        processor=lambda _size: operator(between),
        closing_publisher=lambda n, closed: identity(numbers(n, closed)),
        max_subscribers=1,
        quiet=0.0,
    )
    conforms(subject, loop)


@on_every_loop
@pytest.mark.parametrize("name", sinks())
def test_a_sink_conforms(name: str, loop: Loop) -> None:
    consume = sinks()[name]
    subject = Subject(
        name=name,
        subscriber=lambda: sink(lambda publisher: consume(r.from_publisher(publisher))),
        quiet=0.0,
    )
    conforms(subject, loop)


@on_every_loop
@pytest.mark.parametrize("kind", [r.UnicastProcessor, r.MulticastProcessor])
def test_a_processor_conforms(kind: Callable[[int], Any], loop: Loop) -> None:
    only_one = kind is r.UnicastProcessor
    subject = Subject(
        name=kind.__name__, processor=kind, max_subscribers=1 if only_one else None, quiet=0.0
    )
    conforms(subject, loop)
