"""Subscribers, independent of the runtime, with any of a set of flaws; without one they conform."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, cast

from reactive_aio.spec import Subscription
from reactive_aio.tck import Candidate, WhiteboxProbe
from tests.tck.flawed_publisher import compute

__all__ = ("HONEST_SUBSCRIBERS", "FlawedSubscriber", "async_subscriber_with", "subscriber_with")


class FlawedSubscriber:
    """Requests *ahead*, and one more for each element; *flaws* name what it does wrong.

    With a probe it reports its signals, and requests only on command.
    """

    last: ClassVar[Any] = None

    def __init__(self, *flaws: str, probe: WhiteboxProbe | None = None, ahead: int = 2) -> None:
        self.flaws = flaws
        self.probe = probe
        self.ahead = ahead
        self.subscription: Any = None
        self.loop = asyncio.get_running_loop()
        self.is_cancelled = self.is_terminated = False
        self.count = 0
        self.kept: list[Any] = []

    # -- the puppet -------------------------------------------------------------------------------
    def trigger_request(self, n: int, /) -> None:
        if "has a puppet that raises" in self.flaws:
            raise OSError("no strings")
        self.request(1 if "requests one element for any command" in self.flaws else n)

    def signal_cancel(self) -> None:
        if "ignores the command to cancel" not in self.flaws:
            self.cancel()

    # -- calls of the subscription ----------------------------------------------------------------
    def request(self, n: int) -> None:
        if "never requests" in self.flaws or self.is_cancelled:
            return
        if self.is_terminated and "requests after its end" not in self.flaws:
            return
        wrong = "requests 0" in self.flaws
        self.subscription.request(0 if wrong else n)
        if (
            "calls another subscriber's subscription" in self.flaws
            and FlawedSubscriber.last not in (None, self)
        ):
            FlawedSubscriber.last.subscription.request(n)

    def cancel(self) -> None:
        self.is_cancelled = True
        self.subscription.cancel()

    def later(self, what: Any) -> None:
        """Call *what* later, in the current context."""
        self.loop.call_soon(what)

    # -- signals ----------------------------------------------------------------------------------
    def on_subscribe(self, subscription: Subscription | None, /) -> Any:
        if subscription is None and "accepts None as a subscription" not in self.flaws:
            raise TypeError("rule 2.13: on_subscribe(None)")
        if self.subscription is not None:
            return self.on_second_subscription(subscription)
        self.subscription = subscription
        FlawedSubscriber.last = self
        if self.probe is not None:
            if "does not report to the probe" not in self.flaws:
                self.probe.register_on_subscribe(self)
        elif subscription is not None:
            self.request(self.ahead)
        return None

    def on_second_subscription(self, subscription: Any) -> None:
        if "accepts any subscription" in self.flaws:
            subscription.request(1)
        elif "mistakes an equal subscription for its own" in self.flaws and (
            subscription == self.subscription
        ):
            return
        elif subscription is self.subscription:
            return  # the one in use
        elif "requests from a second subscription" in self.flaws:
            subscription.request(1)
            subscription.cancel()
        elif subscription is not None:
            subscription.cancel()

    def on_next(self, element: Any, /) -> Any:
        if element is None and "accepts None as an element" not in self.flaws:
            if "raises KeyError for None" in self.flaws:
                raise KeyError(element)
            if self.probe is not None and "reports None to the probe" in self.flaws:
                self.probe.register_on_next(element)
            raise TypeError("rule 2.13: on_next(None)")
        self.raise_errors()
        self.block()
        self.count += 1
        if self.probe is not None:
            self.report(element)
        elif not self.is_cancelled:
            self.request(1)
        if "cancels" in self.flaws and self.count == 1:  # which is allowed
            self.cancel()
        if "never ends a signal" in self.flaws:
            return asyncio.Event().wait()
        if "requests on two threads" in self.flaws:
            threading.Thread(target=self.subscription.request, args=(1,), daemon=True).start()
            self.subscription.request(1)
        return None

    def block(self) -> None:
        if "computes in on_next" in self.flaws:
            compute()
        if "computes in a callback of on_next" in self.flaws:
            self.later(compute)

    def raise_errors(self) -> None:
        if "raises for an element" in self.flaws and self.subscription is not None:
            raise ValueError("an element")
        if self.is_cancelled and "raises after cancel" in self.flaws:
            raise ValueError("it is cancelled")
        if self.count and "raises for the second element" in self.flaws:
            raise ValueError("one is enough")

    def report(self, element: Any) -> None:
        assert self.probe is not None
        if "reverses elements" in self.flaws:
            self.kept.insert(0, element)
            if len(self.kept) == 3:
                for each in self.kept:
                    self.probe.register_on_next(each)
                self.kept.clear()
            return
        self.probe.register_on_next(element)

    def on_error(self, error: BaseException | None, /) -> Any:
        if error is None and "accepts None as an error" not in self.flaws:
            if self.probe is not None and "reports None to the probe" in self.flaws:
                self.probe.register_on_error(cast("Any", error))
            raise TypeError("rule 2.13: on_error(None)")
        if "raises the error of on_error" in self.flaws:
            raise error or ValueError
        if "raises for an unusual error" in self.flaws and not isinstance(error, Exception):
            raise error or ValueError
        self.terminate("on_error")
        if self.probe is not None and "does not report errors" not in self.flaws:
            changed = "reports another error" in self.flaws
            reported: Any = ValueError("another") if changed else error
            self.probe.register_on_error(reported)

    def on_complete(self) -> Any:
        if "raises in on_complete" in self.flaws:
            raise ValueError("the end")
        self.terminate("on_complete")
        if self.probe is not None and "does not report completion" not in self.flaws:
            self.probe.register_on_complete()

    def terminate(self, signal: str) -> None:
        self.is_terminated = True
        if self.is_cancelled and "raises for a terminal signal after cancel" in self.flaws:
            raise ValueError("it is cancelled")
        if self.subscription is None:
            return
        if f"cancels in {signal}" in self.flaws:
            self.subscription.cancel()
        if f"requests in a callback of {signal}" in self.flaws:
            self.later(lambda: self.subscription.request(1))
        if f"cancels in a task of {signal}" in self.flaws:
            self.kept.append(self.loop.create_task(self.cancel_soon()))
        if "raises for a terminal signal before any element" in self.flaws and not self.count:
            raise ValueError("too early")
        if "requests after its end" in self.flaws:
            # In another context, which does not come from the signal.
            worker = threading.Thread(target=self.request_later)
            worker.start()
            worker.join()

    def request_later(self) -> None:
        self.loop.call_soon_threadsafe(lambda: self.subscription.request(1))

    async def cancel_soon(self) -> None:
        await asyncio.sleep(0)
        self.subscription.cancel()


class RequestingSubscriber(FlawedSubscriber):
    """Conforms, and requests in an unusual *manner*."""

    def __init__(self, manner: str) -> None:
        super().__init__()
        self.manner = manner
        self.lock = threading.Lock()

    def request(self, n: int) -> None:
        match self.manner:
            case "one at a time":
                self.request_now(1) if n == 1 or not self.count else None
            case "all at once":
                if not self.count:
                    self.request_now(2**63 - 1)
            case "later":
                self.loop.call_later(0.002, self.request_now, n)
            case "from a task":
                self.kept.append(self.loop.create_task(self.request_in_task(n)))
            case _:
                threading.Thread(target=self.request_from_thread, args=(n,), daemon=True).start()

    def request_now(self, n: int) -> None:
        if not (self.is_terminated or self.is_cancelled):
            self.subscription.request(n)

    def request_from_thread(self, n: int) -> None:
        self.loop.call_soon_threadsafe(self.request_now, n)

    async def request_in_task(self, n: int) -> None:
        await asyncio.sleep(0)
        self.request_now(n)


class AsyncSubscriber:
    """All signals are ``async def``, and take a turn of the loop."""

    def __init__(self, inner: FlawedSubscriber) -> None:
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


def subscriber_with(*flaws: str) -> Candidate:
    """A subscriber with some flaws, as black box and as white box."""
    FlawedSubscriber.last = None
    return Candidate(
        name=f"a subscriber that {' and '.join(flaws) or 'conforms'}",
        subscriber=lambda: FlawedSubscriber(*flaws),
        whitebox_subscriber=lambda probe: FlawedSubscriber(*flaws, probe=probe),
    )


def async_subscriber_with(*flaws: str) -> Candidate:
    """A subscriber with some flaws and ``async def`` signals."""
    return Candidate(
        name=f"an asynchronous subscriber that {' and '.join(flaws) or 'conforms'}",
        subscriber=lambda: AsyncSubscriber(FlawedSubscriber(*flaws)),
        whitebox_subscriber=lambda probe: AsyncSubscriber(FlawedSubscriber(*flaws, probe=probe)),
    )


def _triggered() -> Candidate:
    return Candidate(
        name="requests on command",
        subscriber=lambda: FlawedSubscriber(ahead=1, probe=WhiteboxProbe()),
        trigger_request=lambda subscriber: subscriber.trigger_request(1),
    )


def _requesting(manner: str) -> Candidate:
    # A quiet period that is long enough for late requests on a busy machine.
    return Candidate(
        name=f"requests {manner}",
        subscriber=lambda: RequestingSubscriber(manner),
        quiet_period=0.03,
    )


HONEST_SUBSCRIBERS: dict[str, Callable[[], Candidate]] = {
    "conforms": subscriber_with,
    "is asynchronous": async_subscriber_with,
    "cancels on the first element": lambda: subscriber_with("cancels"),
    "is asynchronous and cancels": lambda: async_subscriber_with("cancels"),
    "requests on command": _triggered,
    **{
        f"requests {manner}": partial(_requesting, manner)
        for manner in ("one at a time", "all at once", "later", "from a task", "from a thread")
    },
}
"""Conforming subscribers, each unusual in one way: they must pass every law."""
