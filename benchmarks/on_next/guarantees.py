"""What does each guarantee cost? The generated loop runs with one guard removed from its text."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from reactive_aio import Flow, range as flow_range

from ..functions import even, increment
from ..runner.cases import Run
from ..runner.question import Question
from .fused_chain import Slotted, handwritten

question = Question("What each guarantee of the loop costs", 1_000_000, counted=0)
question.handwritten("a for loop that calls `on_next`")(handwritten)

NOT_NONE = r"\n *if x is None:\n *raise no_element\([^)]*\)"
RAISES = r"except BaseException as error:\n *raise SubscriberRaised\(error\) from error"
AWAITED = r"\n *if r is not None and S\.must_await\(r\): yield AWAIT_SIGNAL"
CANCEL = r"\n *if S\.is_stopped: return"
FAIR = (
    r"\n( *)batch = S\.next_batch_size\(batch\)\n *if S\.is_slice_over:"
    r"\n *S\.emitted = emitted\n *yield SLICE_OVER"
)
GUARDS = {
    "None is not an element (2.13)": (NOT_NONE, ""),
    "a subscriber that raises (2.13)": (RAISES, "finally: pass"),
    "a signal that must be awaited (1.3)": (AWAITED, ""),
    "cancel takes effect at once (1.8)": (CANCEL, ""),
    "the time slice": (FAIR, r"\n\1batch = 1024"),
}


@contextmanager
def _without(guards: tuple[str, ...], flow: Flow[int]) -> Generator[None]:
    """Remove *guards* from the loop of *flow*, which every flow of its shape shares."""
    compiled = flow.chain.compiled_loop("sync", "call")
    text = compiled.text
    for guard in guards:
        pattern, replacement = GUARDS[guard]
        text, cut = re.subn(pattern, replacement, text)
        if not cut:
            raise LookupError(f"the loop has no such guard: {guard}")
    space: dict[str, Any] = dict(compiled.run.__globals__)
    exec(text, space)
    loop: Any = compiled.run
    before, loop.__code__ = loop.__code__, space["loop"].__code__
    try:
        yield
    finally:
        loop.__code__ = before


def _case(*guards: str) -> Run:
    async def run(count: int) -> int:
        flow = flow_range(count).map(increment).filter(even)
        with _without(guards, flow):
            subscriber = Slotted()
            flow.subscribe(subscriber)
            await subscriber.done
            return subscriber.total

    return run


question.other("the loop with every guard")(_case())
for _guard in GUARDS:
    question.other(f"without: {_guard}")(_case(_guard))
question.other("without any of them")(_case(*GUARDS))
