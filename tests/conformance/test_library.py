"""All laws on everything in the library; on every loop, where the loop can matter."""

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
from reactive_aio.tck import Candidate, Outcome, Timeouts, check
from reactive_aio.tck.adapters import operator, sink
from reactive_aio.testing.virtual_time import VirtualTimeLoop
from tests.cases import Case, cases, identities, sinks
from tests.harness.effort import Effort, effort
from tests.harness.loops import DebugLoop

# This library is silent after some turns of the loop, without a wait by the clock.
TIMEOUTS = Timeouts(response=10.0, quiet_period=0.0)

Loop = dict[str, Any]


def uvloop_loop() -> asyncio.AbstractEventLoop:
    import uvloop

    return uvloop.new_event_loop()


LOOPS: dict[str, Loop] = {
    "asyncio": {"loop": DebugLoop},
    "virtual": {"loop": VirtualTimeLoop, "virtual_time": True},
    **({"uvloop": {"loop": uvloop_loop}} if find_spec("uvloop") else {}),
}
REAL_LOOP: Final = "uvloop" if "uvloop" in LOOPS else "asyncio"
REAL_LOOPS: Final = [name for name in LOOPS if name != "virtual"]
on_every_loop = pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)


def parametrize_loops(
    name: str, makers: Iterable[tuple[Any, Hashable, Callable[[], Any]]]
) -> pytest.MarkDecorator:
    """Judge a flow of each operator and kind on virtual time, and one of each module on uvloop.

    The loop with virtual time is asyncio's, but for its clock.

    A case ``in_real_time`` is judged on uvloop; with ``--thorough``, on both real loops.

    *makers* are triples: the value of the parameter *name*, the flow's module, and a function that
    makes the flow. Flows whose islands run in the same modes are of one kind. With ``--thorough``,
    all flows are judged on all loops; with ``--quick``, one flow of each module and kind on virtual
    time.
    """
    seen: set[Hashable] = set()
    chosen: list[Any] = []
    for value, module, make in makers:
        is_in_real_time = getattr(value, "in_real_time", False)
        # Real time is long, and what differs by options there is thorough.
        kind = IN_REAL_TIME if is_in_real_time else island_modes(make)
        is_new_to_module = (module, kind) not in seen
        is_new_to_operator = (str(value).partition(":")[0], kind) not in seen
        is_first_on_loop = kind != NO_LOOP and (module, REAL_LOOP) not in seen
        seen |= {(module, kind), (str(value).partition(":")[0], kind)}
        if effort() is Effort.QUICK and not is_new_to_module:
            continue
        if effort() is Effort.NORMAL and not (is_new_to_module or is_new_to_operator):
            continue
        names = ["virtual"]
        if effort() is Effort.THOROUGH:
            names = list(LOOPS)
        elif effort() is Effort.NORMAL and is_first_on_loop:
            names.append(REAL_LOOP)
            seen.add((module, REAL_LOOP))
        if is_in_real_time:
            names = REAL_LOOPS if effort() is Effort.THOROUGH else [REAL_LOOP]
        chosen += [pytest.param(value, LOOPS[name], id=f"{value}-{name}") for name in names]
    return pytest.mark.parametrize((name, "loop"), chosen)


IN_REAL_TIME: Final = frozenset({"in real time"})
NO_LOOP: Final = frozenset({"one loop, pulled"})
"""Islands that are driven by requests, without timer, task or thread."""


def island_modes(make: Callable[[], Any]) -> frozenset[str]:
    """The modes of the islands of the flow that *make* returns, by `explain`."""
    try:
        flow: r.Flow[Any] = make()
        return frozenset(re.findall(r"island \(([^)]+)\)", flow.explain()))
    except NoRunningLoop:
        return frozenset({"made on a loop"})


def flow_of(case: Case) -> Any:
    """One flow of a case."""
    made = case.candidate
    if made.publisher is not None:
        return made.publisher(3)
    if made.closing_publisher is not None:
        return made.closing_publisher(3, lambda: None)
    make = made.failing_publisher or made.infinite_publisher
    assert make is not None
    return make()


def conforms(candidate: Candidate, loop: Loop) -> None:
    """No law fails, not even of strength SHOULD, and at least one law has judged."""
    report = check(replace(candidate, **loop), timeouts=TIMEOUTS)
    assert not report.having(Outcome.FAIL), str(report)
    assert report.having(Outcome.PASS), f"nothing of {candidate.name} was judged"


@parametrize_loops("case", ((case, case.module, partial(flow_of, case)) for case in cases()))
def test_a_publisher_conforms(case: Case, loop: Loop) -> None:
    conforms(case.candidate, loop)


def numbers(n: int, closed: Callable[[], None]) -> r.Flow[int]:
    return r.range(n).do_finally(lambda _: closed())


@parametrize_loops(
    "name", ((name, "", partial(identity, r.range(3))) for name, identity in identities().items())
)
def test_an_operator_conforms_between_strangers(name: str, loop: Loop) -> None:
    """Upstream as well as downstream, as a processor does; and it gives back what it holds."""
    identity = identities()[name]

    def between(publisher: Publisher[Any]) -> Publisher[Any]:
        return identity(r.from_publisher(publisher))

    candidate = Candidate(
        name=name,
        processor=lambda _size: operator(between),
        closing_publisher=lambda n, closed: identity(numbers(n, closed)),
        max_subscribers=1,
        quiet_period=0.0,
    )
    conforms(candidate, loop)


@parametrize_loops("name", ((name, name, r.never) for name in sinks()))
def test_a_sink_conforms(name: str, loop: Loop) -> None:
    consume = sinks()[name]
    candidate = Candidate(
        name=name,
        subscriber=lambda: sink(lambda publisher: consume(r.from_publisher(publisher))),
        quiet_period=0.0,
    )
    conforms(candidate, loop)


@on_every_loop
@pytest.mark.parametrize("kind", [r.UnicastProcessor, r.MulticastProcessor])
def test_a_processor_conforms(kind: Callable[[int], Any], loop: Loop) -> None:
    only_one = kind is r.UnicastProcessor
    candidate = Candidate(
        name=kind.__name__,
        processor=kind,
        max_subscribers=1 if only_one else None,
        quiet_period=0.0,
    )
    conforms(candidate, loop)
