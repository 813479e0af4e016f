"""Laws about demand: what is requested comes, and no more."""

import asyncio
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

from ..spec import Publisher
from .recorder import COMPLETE, KINDS, AsyncRecorder, Recorder, terms

__all__ = (
    "spec101_infinite_sends_no_more_than_requested",
    "spec101_sends_no_more_than_requested",
    "spec302_takes_requests_inside_signals",
    "spec303_does_not_recurse",
    "spec304_leaves_the_loop_to_others",
    "spec308_adds_requests_up",
    "spec308_sends_the_same_whatever_the_demand",
    "spec309_refuses_what_is_not_positive",
    "spec317_takes_the_largest_demand",
)

Make = Callable[[int], Publisher[Any]]
UNBOUNDED: Final = 2**63 - 1


async def spec101_sends_no_more_than_requested(make: Make) -> None:
    """Nothing without demand, one for one, three for one and two; then silence again."""
    for kind in KINDS:
        seen = await kind().subscribed_to(make(5))
        await seen.quiet()
        seen.demand(not seen.elements, "1.1", "an element came before anything was requested")
        asked = 0
        for requests in ((1,), (1, 2)):
            for n in requests:
                seen.request(n)
                asked += n
            await seen.received(asked, "1.1")
            await seen.quiet()
            came = len(seen.elements)
            seen.demand(came == asked, "1.1", f"{asked} were requested in all, {came} came")
        seen.cancel()


async def spec101_infinite_sends_no_more_than_requested(make: Callable[[], Publisher[Any]]) -> None:
    """Three of an endless stream."""
    seen = await Recorder(3).subscribed_to(make())
    await seen.received(3, "1.1")
    await seen.quiet()
    seen.demand(len(seen.elements) == 3, "1.1", f"3 were requested, {len(seen.elements)} came")
    seen.cancel()


async def spec302_takes_requests_inside_signals(make: Make) -> None:
    """Requests inside on_subscribe and inside each on_next count."""
    for kind in KINDS:
        seen = await kind(3, lambda self, _: self.request(1)).subscribed_to(make(6))
        await seen.end("3.2")
        seen.demand(seen.error is None, "3.2", "requests inside signals made it fail")
        seen.demand(len(seen.elements) == 6, "3.2", f"6 elements exist, {len(seen.elements)} came")


async def spec303_does_not_recurse(make: Make) -> None:
    """However many elements are asked for one by one inside on_next: none arrives inside it."""
    seen = await Recorder(1, lambda self, _: self.request(1)).subscribed_to(make(40))
    await seen.received(40, "3.3")
    deepest = seen.deepest
    seen.demand(deepest == 1, "3.3", f"on_next was called inside on_next, {deepest} deep")
    seen.cancel()


async def spec304_leaves_the_loop_to_others(make: Callable[[], Publisher[Any]]) -> None:
    """An endless stream under unbounded demand gives the loop its turns."""
    loop = asyncio.get_running_loop()
    seen = await Recorder().subscribed_to(make())
    began = loop.time()
    seen.request(UNBOUNDED)
    took = loop.time() - began
    seen.log = seen.log[:10]
    for _ in range(5):
        if took > 1.0:
            break
        before = loop.time()
        await asyncio.sleep(0)
        took = max(took, loop.time() - before)
    seen.cancel()
    seen.elements.clear()
    seen.demand(took < 1.0, "3.4", f"the loop had no turn for {took:.1f} s")


async def spec308_adds_requests_up(make: Make) -> None:
    """Two requests before anything could come are worth their sum; so are huge and small ones."""
    for requests in ((1, 2), (2, 1), (1, 1, 1)):
        seen = await Recorder().subscribed_to(make(5))
        for n in requests:
            seen.request(n)
        await seen.received(3, "3.8")
        await seen.quiet()
        came = len(seen.elements)
        seen.demand(came == 3, "3.8", f"{requests} were requested, {came} came")
        seen.cancel()


async def spec309_refuses_what_is_not_positive(make: Make) -> None:
    """request(0) and request(-1) fail the flow, before and after the first element."""
    for n in (0, -1):
        for before in (0, 1):
            await _refuses(make(10), n, before)


async def _refuses(publisher: Publisher[Any], n: int, before: int) -> None:
    seen = await Recorder(before).subscribed_to(publisher)
    await seen.received(before, "1.1")
    seen.request(n)
    await seen.until(lambda: seen.ended, "3.9", f"request({n}) was not answered")
    await seen.quiet()
    seen.demand(isinstance(seen.error, ValueError), "3.9", "the answer is no ValueError")
    text = str(seen.error)
    says = "3.9" in text and "non-positive subscription request" in text
    seen.demand(says, "3.9", f"the answer does not say what was wrong: {text!r}")
    seen.demand(seen.count == before + 1, "3.9", "signals came after the answer")


async def spec317_takes_the_largest_demand(make: Make) -> None:
    """2**63-1 at once, as a sum, and on top of itself."""
    for requests in ((UNBOUNDED,), (2**62, 2**62, 1), (UNBOUNDED, UNBOUNDED, 1)):
        seen = await Recorder().subscribed_to(make(3))
        for n in requests:
            seen.request(n)
        await seen.end("3.17")
        seen.demand(seen.error is None, "3.17", f"a demand of {requests} made it fail")
        seen.demand(len(seen.elements) == 3, "3.17", f"{len(seen.elements)} of 3 elements came")
    seen = await Recorder(1, lambda self, _: self.request(UNBOUNDED - 1)).subscribed_to(make(12))
    await seen.end("3.17")
    seen.demand(seen.error is None, "3.17", "a demand beyond 2**63-1 made it fail")


# -- the same elements, whatever the demand --------------------------------------------------------

_LENGTH: Final = 17


async def spec308_sends_the_same_whatever_the_demand(make: Make) -> None:
    """All at once, one by one, in threes, at random, inside on_next, and from another thread."""
    patterns = {
        "all at once": _by([UNBOUNDED]),
        "one by one": _by([1] * (_LENGTH + 1)),
        "in threes": _by([3] * _LENGTH),
        "at random": _by(_some()),
        "one by one from another thread": _from_a_thread,
        "inside on_next": _inside(Recorder, 1, 1),
        "two inside every on_next": _inside(Recorder, 2, 2),
        "inside an async on_next": _inside(AsyncRecorder, 1, 1),
        "ahead of an async on_next": _inside(AsyncRecorder, 5, 1),
    }
    expected: list[Any] = []
    for name, pattern in patterns.items():
        seen = await pattern(make(_LENGTH))
        seen.demand(seen.terminals == [COMPLETE], "1.5", f"requested {name}, it did not complete")
        if not expected:
            expected = list(seen.elements)
            seen.demand(
                len(expected) == _LENGTH, "1.2", f"{_LENGTH} elements exist, {len(expected)} came"
            )
        same = _same(seen.elements, expected)
        seen.demand(same, "3.8", f"requested {name}, other elements came than {expected!r:.200}")


def _same(one: list[Any], other: list[Any]) -> bool:
    if terms.get().ordered:
        return one == other
    left = list(other)
    for element in one:
        if element not in left:
            return False
        left.remove(element)
    return not left


def _some() -> Iterator[int]:
    chance = random.Random(1)
    return (chance.randint(1, 5) for _ in range(_LENGTH + 1))


def _by(requests: Any) -> Callable[[Publisher[Any]], Any]:
    """Request so many, wait for them, and so on, until the end."""

    async def drive(publisher: Publisher[Any]) -> Recorder:
        seen = await Recorder().subscribed_to(publisher)
        await _drive(seen, list(requests), _directly)
        return seen

    return drive


async def _from_a_thread(publisher: Publisher[Any]) -> Recorder:
    seen = await Recorder().subscribed_to(publisher)
    await _drive(seen, [1] * (_LENGTH + 1), asyncio.to_thread)
    return seen


async def _directly(request: Callable[[int], None], n: int) -> None:
    request(n)


async def _drive(seen: Recorder, requests: list[int], call: Callable[..., Any]) -> None:
    asked = 0
    for n in requests:
        if seen.ended:
            return
        await call(seen.request, n)
        asked += n
        what = f"{asked} were requested in all, and did not all come"
        await seen.reached(min(asked, _LENGTH), "3.8", what)
    await seen.end()


def _inside(kind: type[Recorder], first: int, again: int) -> Callable[[Publisher[Any]], Any]:
    async def drive(publisher: Publisher[Any]) -> Recorder:
        seen = await kind(first, lambda self, _: self.request(again)).subscribed_to(publisher)
        await seen.end()
        return seen

    return drive
