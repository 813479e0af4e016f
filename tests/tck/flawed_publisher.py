"""Publishers, independent of the runtime, with any of a set of flaws; without one they conform."""

import asyncio
import contextvars
import random
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from inspect import isawaitable
from typing import Any

from reactive_aio.spec import Subscriber

UNBOUNDED = 2**63 - 1
TOO_LONG = 0.06  # seconds: more than the `max_block` of the tests


def compute() -> None:
    # Processor time: on a busy machine, a part of the other time is not counted against it.
    until = time.thread_time() + TOO_LONG
    while time.thread_time() < until:
        pass


def set_if_alive(reference: "weakref.ref[asyncio.Event]") -> None:
    if (event := reference()) is not None:
        event.set()


class WeakReferenceable:
    """An element that supports weak references."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WeakReferenceable) and other.number == self.number

    def __hash__(self) -> int:
        return self.number


class FlawedPublisher:
    """A publisher of 0 … n-1, from a task of its own; *flaws* name what it does wrong.

    *fails* makes it fail after its elements; *closed* is called when it releases its resources.
    Unusual, but allowed: on_subscribe comes one turn after ``subscribe`` has returned, and each
    element in its own turn.
    """

    def __init__(
        self,
        n: float,
        *flaws: str,
        fails: bool = False,
        closed: Callable[[], object] = bool,
    ) -> None:
        self.n = n
        self.flaws = flaws
        self.fails = fails
        self.closed = closed
        self.kept_subscribers: list[object] = []
        self.subscribed_count = 0

    def subscribe(self, subscriber: Subscriber[Any] | None, /) -> None:
        if "raises in subscribe" in self.flaws:
            raise RuntimeError("not today")
        if subscriber is None:
            if "accepts subscribe(None)" in self.flaws:
                return
            raise TypeError("a subscriber is needed")
        self.subscribed_count += 1
        if "keeps references to its subscribers" in self.flaws:
            self.kept_subscribers.append(subscriber)
        if "begins with its completion" in self.flaws:
            subscriber.on_complete()
        if "begins with an error" in self.flaws:
            subscriber.on_error(ValueError("no on_subscribe"))
        if "ignores all but the first subscriber" in self.flaws and self.subscribed_count > 1:
            return
        if "does nothing" not in self.flaws:
            FlawedSubscription(self, subscriber, self.subscribed_count)


class FlawedSubscription:
    """One subscription, and the task that serves it."""

    def __init__(
        self, publisher: FlawedPublisher, subscriber: Subscriber[Any], number: int
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.flaws = publisher.flaws
        self.publisher = publisher
        self.subscriber: Subscriber[Any] | None = subscriber
        self.number = number
        self.demand = 0
        self.sent: int = 0
        self.is_in_signal = False
        self.is_cancelled = self.is_ended = False
        self.error: Exception | None = None
        self.has_news = asyncio.Event()
        self.was_cancelled = False
        self.kept: list[object] = []
        self.others: set[asyncio.Task[Any]] = set()
        context = contextvars.Context() if "forgets the context" in self.flaws else None
        self.task = self.loop.create_task(self.run(), context=context)

    # -- calls of the subscriber ------------------------------------------------------------------
    def request(self, n: int, /) -> Any:
        if "computes in request" in self.flaws:
            compute()
        if (
            self.is_ended
            and "answers requests after its end" in self.flaws
            and n < 1
            and self.subscriber
        ):
            self.subscriber.on_error(ValueError(n))
        if not self.is_counted():
            return None
        if "handles everything later" in self.flaws:  # which is allowed
            self.loop.call_soon_threadsafe(self.take, n)
        else:
            self.take(n)
        return n if "returns something from request" in self.flaws else None

    def take(self, n: int) -> None:
        if n < 1:
            self.refuse(n)
        elif "counts with 32 bits" in self.flaws and n >= 2**32:
            self.error = OverflowError("too much demand")
        elif "fails at the largest demand" in self.flaws and n == UNBOUNDED:
            self.error = OverflowError("so much demand")
        elif "counts only the last request" in self.flaws:
            self.demand = n
        else:
            self.demand += n
            if "forgets an invalid request at the next valid one" in self.flaws:
                self.error = None
        if self.demand > UNBOUNDED and "fails beyond the largest demand" in self.flaws:
            self.error = OverflowError("too much demand")
        if "is revived by a request" in self.flaws:
            self.is_cancelled = False
        if (
            "sends inside on_next" in self.flaws
            and self.sent < self.publisher.n
            and self.is_in_signal
        ):
            self.demand -= 1
            self.sent += 1
            if self.subscriber is not None:
                self.subscriber.on_next(self.sent - 1)
        self.wake()

    def is_counted(self) -> bool:
        if "ignores requests inside signals" in self.flaws and self.is_in_signal:
            return False
        if "counts requests only inside signals" in self.flaws and not self.is_in_signal:
            return False
        if "starves its second subscriber" in self.flaws and self.number > 1:
            return False
        return not ("ignores requests from other threads" in self.flaws and not self.is_on_loop())

    def refuse(self, n: int) -> None:
        if "raises for an invalid request" in self.flaws:
            raise ValueError(n)
        if "answers an invalid request with another error" in self.flaws:
            self.error = RuntimeError(f"rule 3.9: non-positive subscription request {n}")
        elif "ignores an invalid request" not in self.flaws:
            vague = "answers an invalid request vaguely" in self.flaws
            text = "no" if vague else f"rule 3.9: non-positive subscription request {n}"
            self.error = self.error or ValueError(text)

    def cancel(self) -> Any:
        is_repeated, self.was_cancelled = self.was_cancelled, True
        if is_repeated and "raises in a second cancel" in self.flaws:
            raise RuntimeError("cancelled already")
        if "computes in cancel" in self.flaws:
            compute()
        if "ignores cancel" in self.flaws:
            return
        if "answers cancel by completing" in self.flaws:
            self.complete()
            return
        if is_repeated and "answers a second cancel" in self.flaws:
            self.complete()
        if "ignores cancel from other threads" in self.flaws and not self.is_on_loop():
            return
        if "cancels later" in self.flaws:  # which is allowed
            self.loop.call_later(0.002, self.stop)
        elif "handles everything later" in self.flaws:  # which is allowed
            self.loop.call_soon_threadsafe(self.stop)
        else:
            self.stop()

    def complete(self) -> None:
        subscriber, self.subscriber = self.subscriber, None
        if subscriber is not None:
            subscriber.on_complete()

    def stop(self) -> None:
        self.is_cancelled = True
        self.wake()

    def is_on_loop(self) -> bool:
        try:
            return asyncio.get_running_loop() is self.loop
        except RuntimeError:
            return False

    def wake(self) -> None:
        if "handles requests later" in self.flaws:  # which is allowed
            later = self.loop.call_later
            self.loop.call_soon_threadsafe(later, 0.001, self.has_news.set)
        elif "wakes its loop without call_soon_threadsafe" in self.flaws:
            self.has_news.set()
        else:
            self.loop.call_soon_threadsafe(self.has_news.set)

    # -- signals ----------------------------------------------------------------------------------
    async def run(self) -> None:
        if "begins with an element" in self.flaws:
            await self.signal("on_next", 0)
        await self.signal("on_subscribe", self)
        if "subscribes twice" in self.flaws:
            await self.signal("on_subscribe", self)
        if "refuses its second subscriber" in self.flaws and self.number > 1:
            self.error = RuntimeError("one is enough")
        try:
            await self.send()
        finally:
            self.release()
        if "leaves a task" in self.flaws:
            await asyncio.sleep(3600)

    def release(self) -> None:
        self.is_ended = True
        if not {"answers requests after its end", "answers a second cancel"} & {*self.flaws}:
            self.subscriber = None
        if "leaves a thread" in self.flaws:
            threading.Thread(target=time.sleep, args=(1,), daemon=True).start()
        if "never cleans up" not in self.flaws:
            self.publisher.closed()
        if "cleans up twice" in self.flaws:
            self.publisher.closed()

    async def send(self) -> None:
        while not self.is_cancelled or "is revived by a request" in self.flaws:
            if self.error is not None:
                await self.signal("on_error", self.error)
                break
            if self.sent >= self.publisher.n:
                await self.finish()
                break
            if self.is_cancelled or (self.demand <= 0 and "ignores demand" not in self.flaws):
                await self.wait()
                continue
            await self.send_one()
            if "grows its stack" in self.flaws:
                await self.send()
                break

    async def wait(self) -> None:
        if "sends one too many" in self.flaws and self.sent:
            await self.signal("on_next", -1)
        self.has_news.clear()
        await self.has_news.wait()

    async def send_one(self) -> None:
        last = self.demand == 1
        self.demand -= 1
        self.sent += 1
        if "hogs the loop" in self.flaws:
            compute()
        if "loses the first element" in self.flaws and self.sent == 1:
            return
        copies = (
            self.publisher.subscribed_count if "sends once per subscription" in self.flaws else 1
        )
        lost = "loses the last requested element" in self.flaws and last and self.sent > 5
        for _ in range(0 if lost else copies):
            deeper = (
                "signals from a deeper stack at the end" in self.flaws and self.sent > 15
            )  # which is allowed
            await self.send_deep(40 if deeper else 0)
        await (
            self.pause() if "is kept alive only by its caller" in self.flaws else asyncio.sleep(0)
        )

    async def pause(self) -> None:
        """Wait in a way that keeps no strong reference to the task."""
        self.task._log_destroy_pending = False  # type: ignore[attr-defined]
        woken = asyncio.Event()
        self.loop.call_later(0.001, set_if_alive, weakref.ref(woken))
        await woken.wait()

    async def send_deep(self, calls: int) -> None:
        if calls:
            await self.send_deep(calls - 1)
        else:
            await self.signal("on_next", self.element())

    def element(self) -> Any:
        element: Any = self.sent - 1
        if "sends random elements" in self.flaws:
            element = random.random()
        if "sends None" in self.flaws:
            return None
        if "sends objects" in self.flaws:
            element = WeakReferenceable(element)
        if "keeps references to its elements" in self.flaws:
            self.kept.append(element)
        return element

    async def finish(self) -> None:
        if "completes on the next request" in self.flaws:  # which is allowed
            while self.demand <= 0 and not self.is_cancelled:
                self.has_news.clear()
                await self.has_news.wait()
        if self.is_cancelled or "never terminates" in self.flaws:
            return
        failing = self.publisher.fails and "completes instead of failing" not in self.flaws
        failing = failing or "fails instead of completing" in self.flaws
        ending: tuple[Any, ...] = (
            ("on_error", ValueError("broken")) if failing else ("on_complete",)
        )
        if failing and "fails with a string" in self.flaws:
            ending = ("on_error", "broken")
        await self.signal(*ending)
        if "terminates twice" in self.flaws:
            await asyncio.sleep(0)
            await self.signal(*ending)
        if "sends an element after its end" in self.flaws:
            await self.signal("on_next", -1)

    async def signal(self, name: str, *args: object) -> None:
        subscriber = self.subscriber
        if "sends from several threads" in self.flaws and name == "on_next":
            threading.Thread(target=self.send_from_thread, args=args, daemon=True).start()
            return
        self.is_in_signal = True
        try:
            result: object = getattr(subscriber, name)(*args)
            if isawaitable(result):
                await self.wait_for(result, name)
        except Exception as error:
            self.report(error)
        finally:
            self.is_in_signal = False
            del subscriber

    def send_from_thread(self, element: object) -> None:
        with suppress(Exception):
            if self.subscriber is not None:
                self.subscriber.on_next(element)

    async def wait_for(self, result: Any, name: str) -> None:
        is_early = "terminates before its last signal has ended" in self.flaws
        is_early = is_early and self.sent >= self.publisher.n
        if name == "on_next" and ("overlaps awaited signals" in self.flaws or is_early):
            task = asyncio.ensure_future(result)
            self.others.add(task)
            task.add_done_callback(self.others.discard)
        else:
            await result

    def report(self, error: Exception) -> None:
        times = 2 if "reports errors twice" in self.flaws else 1
        for _ in range(0 if "swallows errors" in self.flaws else times):
            self.loop.call_exception_handler({"message": "rule 2.13", "exception": error})
        if "continues after its subscriber raises" not in self.flaws:
            self.is_cancelled = True


class AwaitablePublisher:
    """Its subscribe is a coroutine function, which no caller awaits."""

    def __init__(self, n: int) -> None:
        self.n = n

    async def subscribe(self, subscriber: Subscriber[Any] | None, /) -> None:
        FlawedPublisher(self.n).subscribe(subscriber)


class NaivePublisher:
    """Sends elements inside request, one signal inside another, even after a cancellation."""

    def __init__(self, n: int) -> None:
        self.n = n

    def subscribe(self, subscriber: Subscriber[Any] | None, /) -> None:
        if subscriber is None:
            raise TypeError("a subscriber is needed")
        subscriber.on_subscribe(NaiveSubscription(self.n, subscriber))


class NaiveSubscription:
    """Counts the elements that it has sent, and ignores cancellation."""

    def __init__(self, n: int, subscriber: Subscriber[Any]) -> None:
        self.n = n
        self.sent: int = 0
        self.is_ended = False
        self.subscriber = subscriber

    def request(self, n: int, /) -> None:
        for _ in range(min(n, self.n - self.sent)):
            self.sent += 1
            self.subscriber.on_next(self.sent)
        if self.sent == self.n and not self.is_ended:
            self.is_ended = True
            self.subscriber.on_complete()

    def cancel(self) -> None:
        """Ignored."""
