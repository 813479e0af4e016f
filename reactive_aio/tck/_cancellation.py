"""Laws about cancellation: silence, no effect when repeated, and no reference left."""

import asyncio
import gc
import weakref
from collections.abc import Callable
from typing import Any, Final

from ..errors import RuleViolation
from ..spec import Publisher, Subscription
from .recorder import KINDS, AsyncRecorder, Recorder, terms

__all__ = (
    "spec108_infinite_is_silent_after_cancel",
    "spec108_is_silent_after_cancel",
    "spec305_cancels_from_another_thread",
    "spec306_takes_no_request_after_cancel",
    "spec307_takes_cancel_again",
    "spec313_forgets_the_subscriber",
)

Make = Callable[[int], Publisher[Any]]
MakeOne = Callable[[], Publisher[Any]]
UNBOUNDED: Final = 2**63 - 1


def _silent(seen: Recorder, rule: str = "1.8") -> None:
    at = seen.cancelled_at
    late = 0 if at is None else seen.count - at
    seen.demand(late <= terms.get().in_flight, rule, f"{late} signals came after cancel()")


def _cancelling(at: int) -> Callable[[Recorder, Any], object]:
    def then(self: Recorder, _element: Any) -> None:
        if len(self.elements) == at:
            # This very signal has come.
            self.cancel()

    return then


async def spec108_is_silent_after_cancel(make: Make) -> None:
    """Cancelled in on_subscribe, in on_next, beside a signal, with and without demand: silence."""
    for kind in KINDS:
        for n in (0, 3):
            seen = await _CancelsAtOnce[kind](n).subscribed_to(make(5))
            await seen.quiet()
            _silent(seen)

        seen = await kind(UNBOUNDED, _cancelling(2)).subscribed_to(make(20))
        await seen.received(2, "1.1")
        await seen.quiet()
        _silent(seen)

        for demand in (1, 10):
            seen = await kind(demand).subscribed_to(make(20))
            await seen.received(1, "1.1")  # an asynchronous subscriber is still inside it
            seen.cancel()
            await seen.quiet()
            _silent(seen)


class _AtOnce(Recorder):
    def on_subscribe(self, subscription: Subscription, /) -> Any:
        super().on_subscribe(subscription)
        self.cancel()


class _AsyncAtOnce(AsyncRecorder):
    async def on_subscribe(self, subscription: Subscription, /) -> None:
        await super().on_subscribe(subscription)
        self.cancel()


_CancelsAtOnce: Final[dict[type[Recorder], type[Recorder]]] = {
    Recorder: _AtOnce,
    AsyncRecorder: _AsyncAtOnce,
}


async def spec108_infinite_is_silent_after_cancel(make: MakeOne) -> None:
    """An endless stream under unbounded demand stops in the middle of it."""
    for kind in KINDS:
        seen = await kind(UNBOUNDED, _cancelling(3)).subscribed_to(make())
        await seen.received(3, "1.1")
        await seen.quiet()
        _silent(seen)


async def spec305_cancels_from_another_thread(make: Make) -> None:
    """cancel() may be called from any thread; the signals stop soon."""
    seen = await Recorder(2).subscribed_to(make(5))
    await seen.received(2, "1.1")
    await asyncio.to_thread(seen.cancel)
    await seen.quiet()
    count = seen.count
    seen.request(3)
    await seen.quiet()
    seen.demand(seen.count == count, "3.5", "signals came after cancel() from another thread")


async def spec306_takes_no_request_after_cancel(make: Make) -> None:
    """Requests after cancel() have no effect, be they right or wrong."""
    for before in (0, 2):
        seen = await Recorder(before).subscribed_to(make(5))
        await seen.received(before, "1.1")
        seen.cancel()
        for n in (1, 3, UNBOUNDED, 0, -1):
            seen.request(n)
        await seen.quiet()
        _silent(seen, "3.6")


async def spec307_takes_cancel_again(make: Make) -> None:
    """cancel() can be called again and again."""
    seen = await Recorder(1).subscribed_to(make(5))
    await seen.received(1, "1.1")
    for _ in range(3):
        seen.cancel()
    await seen.quiet()
    seen.cancel()
    await seen.quiet()
    _silent(seen, "3.7")


# -- no reference ----------------------------------------------------------------------------------


async def spec313_forgets_the_subscriber(make: Make) -> None:
    """After a cancellation, and after the end, only the subscriber's owner holds it.

    The caller still holds the subscription, and may for ever.
    """
    for kind in KINDS:
        for use in (_cancel_unused, _cancel_used, _cancel_begun, _complete):
            held, reference = await use(make, kind)
            await _gone(reference, use.__name__.removeprefix("_").replace("_", " "))
            del held


Held = tuple[Subscription, "weakref.ref[Recorder]"]


async def _cancel_unused(make: Make, kind: type[Recorder]) -> Held:
    seen = await kind().subscribed_to(make(3))
    await seen.quiet()
    seen.cancel()
    return seen.subscription, weakref.ref(seen)


async def _cancel_used(make: Make, kind: type[Recorder]) -> Held:
    seen = await kind(1).subscribed_to(make(3))
    await seen.received(1, "1.1")
    await seen.quiet()
    seen.cancel()
    return seen.subscription, weakref.ref(seen)


async def _cancel_begun(make: Make, kind: type[Recorder]) -> Held:
    seen = await kind().subscribed_to(make(3))
    seen.request(2)
    seen.cancel()
    return seen.subscription, weakref.ref(seen)


async def _complete(make: Make, kind: type[Recorder]) -> Held:
    seen = await kind(9).subscribed_to(make(1))
    await seen.end()
    return seen.subscription, weakref.ref(seen)


async def _gone(reference: "weakref.ref[Recorder]", what: str) -> None:
    turns = terms.get().turns
    for turn in range(4 * turns):
        if reference() is None:
            return
        if turn % turns == turns - 1:
            gc.collect()
        await asyncio.sleep(terms.get().quiet / turns)
    kinds = sorted({type(each).__name__ for each in gc.get_referrers(reference())})
    raise RuleViolation(
        "3.13", f"after {what} the subscriber is still referred to, by objects of type {kinds}"
    )
