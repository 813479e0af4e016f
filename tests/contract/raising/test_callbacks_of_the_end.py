"""What a callback raises when its flow is cancelled is reported, and the source is closed."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from collections.abc import Mapping
from typing import Any, Final

import pytest

import reactive_aio as r
from tests.contract.raising.code import Code
from tests.contract.raising.consumers import AWAITING, NOT_AWAITING
from tests.contract.raising.expected import check_nothing_is_left
from tests.contract.raising.kinds import KINDS, QUIET
from tests.contract.raising.observe import Consume, observe
from tests.contract.raising.places import FLOWS, Place, quiet
from tests.harness.loops import REAL_LOOPS
from tests.harness.pairs import each_pair

CANCELLED: Final[Mapping[str, Place]] = {
    **{name: quiet(flow) for name, flow in FLOWS.items()},
    "create": lambda c: r.create(c.listens),
}
WAYS: Final[Mapping[str, Consume]] = {
    **AWAITING,
    **NOT_AWAITING,
    "boundary": lambda flow, _: flow.boundary(2).first(),
}


@each_pair(
    flow=CANCELLED, hook=["do_finally", "do_on_cancel"], kind=QUIET, way=WAYS, loop=REAL_LOOPS
)
def test_it_is_reported_and_the_source_closed(
    flow: str, hook: str, kind: str, way: str, loop: str
) -> None:
    raised, ended = KINDS[kind].make(), list[str]()

    def make(code: Code) -> Any:
        made = CANCELLED[flow](code).do_finally(ended.append)
        return getattr(made, hook)(code.fails)

    outcome = observe(make, WAYS[way], lambda: raised, REAL_LOOPS[loop])
    assert outcome.end is None
    assert ended == ["cancelled"]
    assert outcome.reported == [raised]
    assert "a callback raised when its flow was cancelled" in outcome.contexts[0]["message"]
    check_nothing_is_left(outcome)


@pytest.mark.parametrize("kind", QUIET)
async def test_that_of_on_cancel_is_reported_and_the_others_are_called(
    kind: str, expects_loop_errors: list[Any]
) -> None:
    error, called = KINDS[kind].make(), list[str]()

    def listen(to: r.Emitter[int]) -> None:
        to.on_cancel(Code(lambda: error).fails)
        to.on_cancel(lambda: called.append("second"))
        to.try_emit(1)
        to.try_emit(2)

    discarded = list[int]()
    assert await r.create(listen).do_on_discard(discarded.append).first() == 1
    assert (called, discarded) == (["second"], [2])
    assert [each["exception"] for each in expects_loop_errors] == [error]
