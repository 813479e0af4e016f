"""Subscribers written by hand, without the runtime: an honest one, and one for each known flaw."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, cast

from reactive_aio.spec import Subscription
from reactive_aio.tck import WhiteboxProbe, Candidate
from tests.tck.flawed_publisher import compute

__all__ = ("UNUSUAL_SUBSCRIBERS", "Suspicious", "asynchronous", "receiver")


class Suspicious:
    """Requests *ahead*, and one more for each element; *flaws* name what it does wrong.

    With a probe it tells what it receives, and requests by order only.
    """

    last: ClassVar[Any] = None

    def __init__(self, *flaws: str, probe: WhiteboxProbe | None = None, ahead: int = 2) -> None:
        self.flaws = flaws
        self.probe = probe
        self.ahead = ahead
        self.subscription: Any = None
        self.loop = asyncio.get_running_loop()
        self.cancelled = self.ended = False
        self.count = 0
        self.kept: list[Any] = []

    # -- the puppet -------------------------------------------------------------------------------
    def trigger_request(self, n: int, /) -> None:
        if "its puppet raises" in self.flaws:
            raise OSError("no strings")
        self.request(1 if "requests one however many are ordered" in self.flaws else n)

    def signal_cancel(self) -> None:
        if "keeps what it needs no more" not in self.flaws:
            self.cancel()

    # -- upwards ----------------------------------------------------------------------------------
    def request(self, n: int) -> None:
        if "never requests" in self.flaws or self.cancelled:
            return
        if self.ended and "goes on after its end" not in self.flaws:
            return
        wrong = "requests nothing at all" in self.flaws
        self.subscription.request(0 if wrong else n)
        if "shares its subscription" in self.flaws and Suspicious.last not in (None, self):
            Suspicious.last.subscription.request(n)

    def cancel(self) -> None:
        self.cancelled = True
        self.subscription.cancel()

    def later(self, what: Any) -> None:
        """In its own context, as what is made there and then has."""
        self.loop.call_soon(what)

    # -- signals ----------------------------------------------------------------------------------
    def on_subscribe(self, subscription: Subscription | None, /) -> Any:
        if subscription is None and "takes None for a subscription" not in self.flaws:
            raise TypeError("rule 2.13: on_subscribe(None)")
        if self.subscription is not None:
            return self.again(subscription)
        self.subscription = subscription
        Suspicious.last = self
        if self.probe is not None:
            if "tells no probe" not in self.flaws:
                self.probe.register_on_subscribe(self)
        elif subscription is not None:
            self.request(self.ahead)
        return None

    def again(self, subscription: Any) -> None:
        if "takes any subscription" in self.flaws:
            subscription.request(1)
        elif "takes an equal subscription for its own" in self.flaws and (
            subscription == self.subscription
        ):
            return
        elif subscription is self.subscription:
            return  # it is in use
        elif "requests from a second subscription" in self.flaws:
            subscription.request(1)
            subscription.cancel()
        elif subscription is not None:
            subscription.cancel()

    def on_next(self, element: Any, /) -> Any:
        if element is None and "takes None for an element" not in self.flaws:
            if "raises whatever it likes" in self.flaws:
                raise KeyError(element)
            if self.probe is not None and "passes None on" in self.flaws:
                self.probe.register_on_next(element)
            raise TypeError("rule 2.13: on_next(None)")
        self.misbehave()
        self.dawdle()
        self.count += 1
        if self.probe is not None:
            self.tell(element)
        elif not self.cancelled:
            self.request(1)
        if "cancels" in self.flaws and self.count == 1:  # which is right
            self.cancel()
        if "never ends a signal" in self.flaws:
            return asyncio.Event().wait()
        if "requests on two threads" in self.flaws:
            threading.Thread(target=self.subscription.request, args=(1,), daemon=True).start()
            self.subscription.request(1)
        return None

    def dawdle(self) -> None:
        if "computes in on_next" in self.flaws:
            compute()
        if "computes in a callback of on_next" in self.flaws:
            self.later(compute)

    def misbehave(self) -> None:
        if "raises for an element" in self.flaws and self.subscription is not None:
            raise ValueError("an element")
        if self.cancelled and "raises after cancel" in self.flaws:
            raise ValueError("it is cancelled")
        if self.count and "raises for the second element" in self.flaws:
            raise ValueError("one is enough")

    def tell(self, element: Any) -> None:
        assert self.probe is not None
        if "turns elements round" in self.flaws:
            self.kept.insert(0, element)
            if len(self.kept) == 3:
                for each in self.kept:
                    self.probe.register_on_next(each)
                self.kept.clear()
            return
        self.probe.register_on_next(element)

    def on_error(self, error: BaseException | None, /) -> Any:
        if error is None and "takes None for an error" not in self.flaws:
            if self.probe is not None and "passes None on" in self.flaws:
                self.probe.register_on_error(cast("Any", error))
            raise TypeError("rule 2.13: on_error(None)")
        if "raises the error" in self.flaws:
            raise error or ValueError
        if "raises for an unusual error" in self.flaws and not isinstance(error, Exception):
            raise error or ValueError
        self.ending("on_error")
        if self.probe is not None and "loses errors" not in self.flaws:
            changed = "tells another error" in self.flaws
            told: Any = ValueError("another") if changed else error
            self.probe.register_on_error(told)

    def on_complete(self) -> Any:
        if "raises at the end" in self.flaws:
            raise ValueError("the end")
        self.ending("on_complete")
        if self.probe is not None and "loses completion" not in self.flaws:
            self.probe.register_on_complete()

    def ending(self, signal: str) -> None:
        self.ended = True
        if self.cancelled and "raises for an end after cancel" in self.flaws:
            raise ValueError("it is cancelled")
        if self.subscription is None:
            return
        if f"cancels in {signal}" in self.flaws:
            self.subscription.cancel()
        if f"requests in a callback of {signal}" in self.flaws:
            self.later(lambda: self.subscription.request(1))
        if f"cancels in a task of {signal}" in self.flaws:
            self.kept.append(self.loop.create_task(self.cancel_soon()))
        if "raises when ended before it has begun" in self.flaws and not self.count:
            raise ValueError("too early")
        if "goes on after its end" in self.flaws:
            # In another context, so it does not stem from the signal.
            worker = threading.Thread(target=self.go_on)
            worker.start()
            worker.join()

    def go_on(self) -> None:
        self.loop.call_soon_threadsafe(lambda: self.subscription.request(1))

    async def cancel_soon(self) -> None:
        await asyncio.sleep(0)
        self.subscription.cancel()


class Requesting(Suspicious):
    """Right, and unlike most: it requests in *manner*."""

    def __init__(self, manner: str) -> None:
        super().__init__()
        self.manner = manner
        self.lock = threading.Lock()

    def request(self, n: int) -> None:
        match self.manner:
            case "one at a time":
                self.real(1) if n == 1 or not self.count else None
            case "all at once":
                if not self.count:
                    self.real(2**63 - 1)
            case "later":
                self.loop.call_later(0.002, self.real, n)
            case "from a task":
                self.kept.append(self.loop.create_task(self.soon(n)))
            case _:
                threading.Thread(target=self.there, args=(n,), daemon=True).start()

    def real(self, n: int) -> None:
        if not (self.ended or self.cancelled):
            self.subscription.request(n)

    def there(self, n: int) -> None:
        self.loop.call_soon_threadsafe(self.real, n)

    async def soon(self, n: int) -> None:
        await asyncio.sleep(0)
        self.real(n)


class Asynchronous:
    """All signals are ``async def``, and take some turns."""

    def __init__(self, inner: Suspicious) -> None:
        self.inner = inner

    async def on_subscribe(self, subscription: Subscription, /) -> None:
        await asyncio.sleep(0)
        self.inner.on_subscribe(subscription)

    async def on_next(self, element: Any, /) -> None:
        await asyncio.sleep(0)
        self.inner.on_next(element)

    async def on_error(self, error: BaseException, /) -> None:
        await asyncio.sleep(0)
        self.inner.on_error(error)

    async def on_complete(self) -> None:
        await asyncio.sleep(0)
        self.inner.on_complete()


def receiver(*flaws: str) -> Candidate:
    """A candidate that is a subscriber, as a black box and as a white one."""
    Suspicious.last = None
    return Candidate(
        name=f"a subscriber that {' and '.join(flaws) or 'keeps all rules'}",
        subscriber=lambda: Suspicious(*flaws),
        whitebox_subscriber=lambda probe: Suspicious(*flaws, probe=probe),
    )


def asynchronous(*flaws: str) -> Candidate:
    """The same with ``async def`` signals."""
    return Candidate(
        name=f"an asynchronous subscriber that {' and '.join(flaws) or 'keeps all rules'}",
        subscriber=lambda: Asynchronous(Suspicious(*flaws)),
        whitebox_subscriber=lambda probe: Asynchronous(Suspicious(*flaws, probe=probe)),
    )


def _triggered() -> Candidate:
    return Candidate(
        name="requests when it is told to",
        subscriber=lambda: Suspicious(ahead=1, probe=WhiteboxProbe()),
        trigger_request=lambda subscriber: subscriber.trigger_request(1),
    )


def _requesting(manner: str) -> Candidate:
    # Quiet long enough for what comes later on a busy machine.
    return Candidate(name=f"requests {manner}", subscriber=lambda: Requesting(manner), quiet_period=0.03)


UNUSUAL_SUBSCRIBERS: dict[str, Callable[[], Candidate]] = {
    "keeps all rules": receiver,
    "is asynchronous": asynchronous,
    "cancels on the first element": lambda: receiver("cancels"),
    "is asynchronous and cancels": lambda: asynchronous("cancels"),
    "requests when told": _triggered,
    **{
        f"requests {manner}": partial(_requesting, manner)
        for manner in ("one at a time", "all at once", "later", "from a task", "from a thread")
    },
}
"""Right ones, which must pass."""
