"""Steps that the scenarios of several laws share."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, cast

from ..scenario.law_context import LawContext
from ..scenario.recorder import AsyncRecorder, OnElement, Recorder

__all__ = (
    "SIGNALS",
    "cancel_at",
    "fast_thread_switches",
    "request_one_more",
    "require_stop",
    "take_and_settle",
    "with_hook",
)

SIGNALS: Final = ("on_subscribe", "on_next", "on_error", "on_complete")


def request_one_more(recorder: Recorder, _element: object) -> None:
    recorder.request(1)


def cancel_at(count: int) -> OnElement:
    """Cancel inside the on_next of element number *count*."""

    def on_element(recorder: Recorder, _element: object) -> None:
        if recorder.received == count:
            recorder.cancel()

    return on_element


def with_hook(
    kind: type[Recorder], signal: str, action: Callable[[Recorder], object]
) -> type[Recorder]:
    """A type of recorder that calls *action* at the end of each *signal*."""
    method: Any = getattr(kind, signal)

    def synchronous(self: Recorder, *args: object) -> None:
        method(self, *args)
        action(self)

    async def asynchronous(self: Recorder, *args: object) -> None:
        await method(self, *args)
        action(self)

    chosen = asynchronous if issubclass(kind, AsyncRecorder) else synchronous
    made: Any = type(f"{kind.__name__}, {signal}", (kind,), {signal: chosen})
    return cast("type[Recorder]", made)


@contextmanager
def fast_thread_switches() -> Generator[None]:
    """Make the interpreter switch threads much more often than usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


async def take_and_settle(context: LawContext, recorder: Recorder, count: int) -> Recorder:
    """Wait until *count* elements have come and no signal is under way."""
    await recorder.wait_for_elements(count)
    await context.settle()
    return recorder


async def require_stop(
    context: LawContext, recorder: Recorder, left: int = 0, then_request: int = 0
) -> None:
    """After a cancellation signals under way may still come (2.8), but then they stop.

    *left* is how many elements were still to come when it was called, if that is known.
    *then_request* is requested after the cancellation, and must have no effect.
    """
    await context.settle()
    late, all_came = recorder.signals_after_cancel, recorder.signals_after_cancel >= left > 0
    recorder.require(not all_came, f"all {left} elements that were left came after cancel()")
    if then_request:
        recorder.request(then_request)
    await context.settle()
    more = recorder.signals_after_cancel - late
    what = f"signals continue after cancel(): {late} at first, then {more} more"
    recorder.require(not more, what)
