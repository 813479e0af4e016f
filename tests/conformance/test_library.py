"""Everything the library has, by every law for it, on every loop it promises to work on."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio.spec import Publisher
from reactive_aio.tck import Candidate, Outcome, Timeouts, check
from reactive_aio.tck.adapters import operator, sink
from reactive_aio.testing.virtual_time import VirtualTimeLoop
from tests.cases import offered
from tests.conformance.identities import IDENTITIES
from tests.conformance.sinks import SINKS
from tests.harness.loops import DebugLoop

# Our own promises hold after some turns of the loop: no clock is needed to see them broken.
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
on_every_loop = pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)


def conforms(candidate: Candidate, loop: Loop) -> None:
    """Every law is kept, those of strength SHOULD as well; and laws have been judged at all."""
    report = check(replace(candidate, **loop), timeouts=TIMEOUTS)
    assert not report.having(Outcome.FAIL), str(report)
    assert report.having(Outcome.PASS), f"nothing of {candidate.name} was judged"


@on_every_loop
@pytest.mark.parametrize(
    "candidate", [case.candidate for case in offered()], ids=map(str, offered())
)
def test_a_publisher_conforms(candidate: Candidate, loop: Loop) -> None:
    conforms(candidate, loop)


def numbers(n: int, closed: Callable[[], None]) -> r.Flow[int]:
    return r.range(n).do_finally(lambda _: closed())


@on_every_loop
@pytest.mark.parametrize("name", IDENTITIES)
def test_an_operator_conforms_between_strangers(name: str, loop: Loop) -> None:
    """Upstream as well as downstream, as a processor does; and it gives back what it holds."""
    identity = IDENTITIES[name]

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


@on_every_loop
@pytest.mark.parametrize("name", SINKS)
def test_a_sink_conforms(name: str, loop: Loop) -> None:
    consume = SINKS[name]
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
