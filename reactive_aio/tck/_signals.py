"""Laws about the order of signals, their end, and a subscriber that raises."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final

from ..errors import RuleViolation
from ..spec import Publisher
from .recorder import KINDS, AsyncRecorder, Recorder

__all__ = (
    "spec103_does_not_overlap_signals",
    "spec104_signals_its_failure",
    "spec105_completes_a_finite_stream",
    "spec107_is_silent_after_its_end",
    "spec107_is_silent_after_its_failure",
    "spec109_refuses_no_subscriber",
    "spec109_subscribes_first",
    "spec110_serves_or_refuses_the_next_subscriber",
    "spec213_cancels_a_subscriber_that_raises",
    "spec213_survives_a_subscriber_that_raises_in_on_error",
)

Make = Callable[[int], Publisher[Any]]
MakeOne = Callable[[], Publisher[Any]]
UNBOUNDED: Final = 2**63 - 1


def _one_more(recorder: Recorder, _element: object) -> None:
    recorder.request(1)


async def spec103_does_not_overlap_signals(make: Make) -> None:
    """A signal that takes its time has ended before the next begins, the terminal one included."""
    for first, again in ((UNBOUNDED, 0), (2, 1)):
        seen = AsyncRecorder(first, _one_more if again else None)
        await seen.subscribed_to(make(8))
        await seen.end("1.3")
        seen.demand(not seen.overlaps, "1.3", f"{seen.overlaps} signals began before another ended")
        seen.demand(len(seen.elements) == 8, "1.3", f"8 elements exist, {len(seen.elements)} came")
    plain = await Recorder(UNBOUNDED).subscribed_to(make(8))
    await plain.end("1.3")
    plain.demand(not plain.overlaps, "1.3", "signals came from several threads at once")


async def spec104_signals_its_failure(make: MakeOne) -> None:
    """A publisher that fails says so by on_error, once, with an exception."""
    for kind in KINDS:
        seen = await kind().subscribed_to(make())
        if not seen.ended:
            seen.request(UNBOUNDED)
        await seen.end("1.4")
        seen.demand(seen.error is not None, "1.4", "it completed instead of failing")


async def spec105_completes_a_finite_stream(make: Make) -> None:
    """on_complete follows the last element, at the latest when one more is requested."""
    for n in (0, 1, 3):
        for kind in KINDS:
            seen = await kind(n).subscribed_to(make(n))
            await seen.received(n, "1.1")
            await seen.quiet()
            if not seen.ended:
                seen.request(1)
            await seen.end("1.5")
            seen.demand(seen.error is None, "1.5", f"a stream of {n} failed")
            came = len(seen.elements)
            seen.demand(came == n, "1.5", f"a stream of {n} completed after {came}")


async def spec107_is_silent_after_its_end(make: Make) -> None:
    """No second terminal signal and no element follow on_complete, whatever is asked."""
    for n in (0, 2):
        seen = await Recorder(10).subscribed_to(make(n))
        await seen.end("1.5")
        seen.request(10)
        await seen.quiet()
        seen.cancel()
        seen.request(10)
        await seen.quiet()
        seen.demand(seen.count == n + 1, "1.7", "signals came after on_complete")


async def spec107_is_silent_after_its_failure(make: MakeOne) -> None:
    """No second terminal signal and no element follow on_error, whatever is asked."""
    seen = await Recorder(UNBOUNDED).subscribed_to(make())
    await seen.end("1.4")
    count = seen.count
    seen.request(10)
    await seen.quiet()
    seen.cancel()
    await seen.quiet()
    seen.demand(seen.count == count, "1.7", "signals came after on_error")


async def spec109_subscribes_first(make: Make) -> None:
    """on_subscribe is the first signal, comes once, and needs no demand."""
    for n in (0, 3):
        for kind in KINDS:
            seen = await kind().subscribed_to(make(n))
            await seen.quiet()
            times = len(seen.subscriptions)
            seen.demand(times == 1, "2.12", f"on_subscribe came {times} times")
            seen.cancel()


async def spec109_refuses_no_subscriber(make: Make) -> None:
    """subscribe(None) raises TypeError in the caller."""
    nobody: Any = None
    try:
        make(1).subscribe(nobody)
    except TypeError:
        return
    except Exception as error:
        raise RuleViolation("1.9", f"subscribe(None) raised {error!r}, no TypeError") from error
    raise RuleViolation("1.9", "subscribe(None) did not raise TypeError")


async def spec110_serves_or_refuses_the_next_subscriber(make: Make) -> None:
    """A second subscriber of the same publisher gets on_subscribe, and then signals or an error."""
    publisher = make(2)
    for _ in range(2):
        seen = await Recorder(UNBOUNDED).subscribed_to(publisher)
        await seen.end("1.10")


# -- a subscriber that raises ----------------------------------------------------------------------


class _Wrong(Exception):
    """What the subscriber raises."""


def _raising(kind: type[Recorder], signal: str, first: int) -> tuple[Recorder, _Wrong]:
    """A recorder that raises in *signal*, after having written it down."""
    error = _Wrong(f"raised in {signal}")
    method: Any = getattr(kind, signal)

    def plain(self: Recorder, *args: object) -> None:
        method(self, *args)
        raise error

    async def asynchronous(self: Recorder, *args: object) -> None:
        await method(self, *args)
        raise error

    wrong = asynchronous if issubclass(kind, AsyncRecorder) else plain
    raising: Any = type(f"Raising{kind.__name__}", (kind,), {signal: wrong})
    return raising(first), error


@contextmanager
def _heard() -> Generator[list[object]]:
    """What the loop's exception handler is told."""
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    heard: list[object] = []

    def hear(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        heard.append(context.get("exception"))

    loop.set_exception_handler(hear)
    try:
        yield heard
    finally:
        loop.set_exception_handler(before)


async def _raises(publisher: Publisher[Any], kind: type[Recorder], signal: str) -> None:
    seen, error = _raising(kind, signal, UNBOUNDED)
    with _heard() as heard:
        await seen.subscribed_to(publisher)
        await seen.until(
            lambda: error in heard, "2.13", f"the subscriber raised in {signal}; nobody was told"
        )
        count = seen.count
        seen.request(3)
        await seen.quiet()
        seen.demand(seen.count == count, "2.13", f"signals came after it had raised in {signal}")
        told = heard.count(error)
        seen.demand(told == 1, "2.13", f"its error was told {told} times")
        others = [each for each in heard if each is not error]
        seen.demand(not others, "2.13", f"other errors were told: {others!r}")
    expected = {"on_subscribe": 0, "on_next": 1}.get(signal)
    if expected is not None:
        seen.demand(count == expected, "2.13", f"signals came after it had raised in {signal}")


async def spec213_cancels_a_subscriber_that_raises(make: Make) -> None:
    """Raising in a signal cancels; the loop's exception handler is told, and nobody else."""
    for kind in KINDS:
        for signal in ("on_subscribe", "on_next", "on_complete"):
            await _raises(make(3), kind, signal)


async def spec213_survives_a_subscriber_that_raises_in_on_error(make: MakeOne) -> None:
    """The same in on_error."""
    for kind in KINDS:
        await _raises(make(), kind, "on_error")
