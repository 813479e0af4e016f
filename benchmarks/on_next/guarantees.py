"""What does each guarantee cost? The generated loop runs with one guard removed from its text."""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from reactive_aio import range as flow_range
from reactive_aio._core.time_slice import TimeSlice

from ..functions import even, increment
from ..runner.cases import Run
from ..runner.question import Question
from ..subscribers import Summing
from .fused_chain import handwritten

question = Question("What each guarantee of the loop costs", 1_000_000, counted=0)
question.handwritten("a for loop that calls `on_next`")(handwritten)

NOT_NONE = r"\n *if x is None:\n *raise no_element\([^)]*\)"
RAISES = r"try:\n *(r = on_next\(x\)|on_next\(x\))\n *except \w+ as error:\n *raise .*error"
AWAITED = r"\n *if r is not None and S\.must_await\(r\): yield AWAIT_SIGNAL"
CANCEL = r"\n *if S\.is_stopped: return"
FAIR = r"\n *batch = S\.next_batch_size\(batch\)\n *if S\.is_slice_over: yield SLICE_OVER"
GUARDS = {
    "None is not an element (2.13)": (NOT_NONE, ""),
    "a subscriber that raises (2.13)": (RAISES, r"\1"),
    "a signal that must be awaited (1.3)": (AWAITED, ""),
    "cancel takes effect at once (1.8)": (CANCEL, ""),
    "the time slice": (FAIR, "\n                batch = 1024"),
}


class _Drain(TimeSlice):
    """The part of a subscription that the loop uses, with unbounded demand."""

    __slots__ = ("emitted", "is_stopped", "limit")

    def __init__(self) -> None:
        super().__init__()
        self.is_stopped = False
        self.limit = 2**63 - 1
        self.slice_end = float("inf")

    def must_await(self, returned: object) -> bool:
        return returned is not None

    def is_source_spent(self) -> bool:
        return False


@cache
def _loop_without(*guards: str) -> Callable[..., Any]:
    """Return the loop of the chain without *guards*."""
    chain = flow_range(0).map(increment).filter(even).chain
    compiled = chain.compiled_loop("sync", "call")
    text = compiled.text
    for guard in guards:
        pattern, replacement = GUARDS[guard]
        text, cut = re.subn(pattern, replacement, text)
        if not cut:
            raise LookupError(f"the loop has no such guard: {guard}")
    space: dict[str, Any] = dict(compiled.run.__globals__)
    exec(text, space)
    loop: Callable[..., Any] = space["loop"]
    return loop


def _case(*guards: str) -> Run:
    async def run(count: int) -> int:
        loop = _loop_without(*guards)
        subscriber = Summing()
        for _ in loop(_Drain(), iter(range(count)), subscriber.on_next, increment, even):
            pass
        return subscriber.total

    return run


question.other("the loop with every guard")(_case())
for _guard in GUARDS:
    question.other(f"without: {_guard}")(_case(_guard))
question.other("without any of them")(_case(*GUARDS))
