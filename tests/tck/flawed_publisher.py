"""Publishers written by hand, without the runtime: an honest one, and one for each known flaw."""

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
LONG = 0.06  # seconds: longer than the timeouts of the tests allow


def compute() -> None:
    until = time.perf_counter() + LONG
    while time.perf_counter() < until:
        pass


def set_if_there(event: "weakref.ref[asyncio.Event]") -> None:
    if (there := event()) is not None:
        there.set()


class Thing:
    """An element to which weak references are possible."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Thing) and other.number == self.number

    def __hash__(self) -> int:
        return self.number


class Suspect:
    """A publisher of 0 … n-1, from a task of its own; *flaws* name what it does wrong.

    *fails* makes it fail after its elements; *closed* is called when it gives back what it holds.
    Unusual, but right: on_subscribe comes a turn after ``subscribe`` has returned, and each element
    in a turn of its own.
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
        self.remembered: list[object] = []
        self.subscribed = 0

    def subscribe(self, subscriber: Subscriber[Any] | None, /) -> None:
        if "raises in subscribe" in self.flaws:
            raise RuntimeError("not today")
        if subscriber is None:
            if "takes nobody" in self.flaws:
                return
            raise TypeError("a subscriber is needed")
        self.subscribed += 1
        if "remembers its subscribers" in self.flaws:
            self.remembered.append(subscriber)
        if "begins with its completion" in self.flaws:
            subscriber.on_complete()
        if "begins with an error" in self.flaws:
            subscriber.on_error(ValueError("no on_subscribe"))
        if "ignores all but the first subscriber" in self.flaws and self.subscribed > 1:
            return
        if "does nothing" not in self.flaws:
            Sending(self, subscriber, self.subscribed)


class Subscribed:
    """One subscription: what comes up."""

    def __init__(self, publisher: Suspect, subscriber: Subscriber[Any], number: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.flaws = publisher.flaws
        self.publisher = publisher
        self.subscriber: Subscriber[Any] | None = subscriber
        self.number = number
        self.demand = 0
        self.sent: int = 0
        self.inside = False
        self.cancelled = self.ended = False
        self.fault: Exception | None = None
        self.news = asyncio.Event()
        self.again = False
        self.kept: list[object] = []

    def request(self, n: int, /) -> Any:
        if "computes in request" in self.flaws:
            compute()
        if self.ended and "answers after its end" in self.flaws and n < 1 and self.subscriber:
            self.subscriber.on_error(ValueError(n))
        if not self.counts():
            return None
        if "handles everything later" in self.flaws:  # which is right
            self.loop.call_soon_threadsafe(self.take, n)
        else:
            self.take(n)
        return n if "returns something from request" in self.flaws else None

    def take(self, n: int) -> None:
        if n < 1:
            self.refuse(n)
        elif "counts with 32 bits" in self.flaws and n >= 2**32:
            self.fault = OverflowError("too much demand")
        elif "fails at the largest demand" in self.flaws and n == UNBOUNDED:
            self.fault = OverflowError("so much demand")
        elif "takes the last request only" in self.flaws:
            self.demand = n
        else:
            self.demand += n
            if "forgets a wrong request at the next right one" in self.flaws:
                self.fault = None
        if self.demand > UNBOUNDED and "fails beyond the largest demand" in self.flaws:
            self.fault = OverflowError("too much demand")
        if "is revived by a request" in self.flaws:
            self.cancelled = False
        if "sends inside on_next" in self.flaws and self.sent < self.publisher.n and self.inside:
            self.demand -= 1
            self.sent += 1
            if self.subscriber is not None:
                self.subscriber.on_next(self.sent - 1)
        self.wake()

    def counts(self) -> bool:
        if "takes no request inside signals" in self.flaws and self.inside:
            return False
        if "takes requests inside signals only" in self.flaws and not self.inside:
            return False
        if "starves its second subscriber" in self.flaws and self.number > 1:
            return False
        return not ("takes requests on its own thread only" in self.flaws and not self.is_here())

    def refuse(self, n: int) -> None:
        if "raises for a wrong request" in self.flaws:
            raise ValueError(n)
        if "answers a wrong request with its own error" in self.flaws:
            self.fault = RuntimeError(f"rule 3.9: non-positive subscription request {n}")
        elif "ignores a wrong request" not in self.flaws:
            vague = "answers a wrong request vaguely" in self.flaws
            text = "no" if vague else f"rule 3.9: non-positive subscription request {n}"
            self.fault = self.fault or ValueError(text)

    def cancel(self) -> Any:
        again, self.again = self.again, True
        if again and "raises in a second cancel" in self.flaws:
            raise RuntimeError("cancelled already")
        if "computes in cancel" in self.flaws:
            compute()
        if "ignores cancel" in self.flaws:
            return
        if "answers cancel by completing" in self.flaws:
            self.complete()
            return
        if again and "answers a second cancel" in self.flaws:
            self.complete()
        if "cancels on its own thread only" in self.flaws and not self.is_here():
            return
        if "cancels later" in self.flaws:  # which is right
            self.loop.call_later(0.002, self.stop)
        elif "handles everything later" in self.flaws:  # which is right
            self.loop.call_soon_threadsafe(self.stop)
        else:
            self.stop()

    def complete(self) -> None:
        subscriber, self.subscriber = self.subscriber, None
        if subscriber is not None:
            subscriber.on_complete()

    def stop(self) -> None:
        self.cancelled = True
        self.wake()

    def is_here(self) -> bool:
        try:
            return asyncio.get_running_loop() is self.loop
        except RuntimeError:
            return False

    def wake(self) -> None:
        if "handles requests later" in self.flaws:  # which is right
            later = self.loop.call_later
            self.loop.call_soon_threadsafe(later, 0.001, self.news.set)
        elif "wakes its loop as if there were no threads" in self.flaws:
            self.news.set()
        else:
            self.loop.call_soon_threadsafe(self.news.set)


class Sending(Subscribed):
    """One subscription, and the task that serves it: what goes down."""

    def __init__(self, publisher: Suspect, subscriber: Subscriber[Any], number: int) -> None:
        super().__init__(publisher, subscriber, number)
        self.others: set[asyncio.Task[Any]] = set()
        context = contextvars.Context() if "forgets the context" in self.flaws else None
        self.task = self.loop.create_task(self.run(), context=context)

    async def run(self) -> None:
        if "begins with an element" in self.flaws:
            await self.signal("on_next", 0)
        await self.signal("on_subscribe", self)
        if "subscribes twice" in self.flaws:
            await self.signal("on_subscribe", self)
        if "refuses its second subscriber" in self.flaws and self.number > 1:
            self.fault = RuntimeError("one is enough")
        try:
            await self.send()
        finally:
            self.over()
        if "leaves a task" in self.flaws:
            await asyncio.sleep(3600)

    def over(self) -> None:
        self.ended = True
        if not {"answers after its end", "answers a second cancel"} & {*self.flaws}:
            self.subscriber = None
        if "leaves a thread" in self.flaws:
            threading.Thread(target=time.sleep, args=(1,), daemon=True).start()
        if "never cleans up" not in self.flaws:
            self.publisher.closed()
        if "cleans up twice" in self.flaws:
            self.publisher.closed()

    async def send(self) -> None:
        while not self.cancelled or "is revived by a request" in self.flaws:
            if self.fault is not None:
                await self.signal("on_error", self.fault)
                break
            if self.sent >= self.publisher.n:
                await self.finish()
                break
            if self.cancelled or (self.demand <= 0 and "ignores demand" not in self.flaws):
                await self.wait()
                continue
            await self.one()
            if "grows its stack" in self.flaws:
                await self.send()
                break

    async def wait(self) -> None:
        if "sends one too many" in self.flaws and self.sent:
            await self.signal("on_next", -1)
        self.news.clear()
        await self.news.wait()

    async def one(self) -> None:
        last = self.demand == 1
        self.demand -= 1
        self.sent += 1
        if "hogs the loop" in self.flaws:
            compute()
        if "loses the first element" in self.flaws and self.sent == 1:
            return
        copies = self.publisher.subscribed if "sends once per subscription" in self.flaws else 1
        lost = "loses the last that was demanded" in self.flaws and last and self.sent > 5
        for _ in range(0 if lost else copies):
            longer = (
                "takes a longer way in the end" in self.flaws and self.sent > 15
            )  # which is right
            await self.deeply(40 if longer else 0)
        await (self.nap() if "is held by its caller alone" in self.flaws else asyncio.sleep(0))

    async def nap(self) -> None:
        """The loop holds no task; it holds what wakes it, which is not so here."""
        self.task._log_destroy_pending = False  # type: ignore[attr-defined]
        woken = asyncio.Event()
        self.loop.call_later(0.001, set_if_there, weakref.ref(woken))
        await woken.wait()

    async def deeply(self, calls: int) -> None:
        if calls:
            await self.deeply(calls - 1)
        else:
            await self.signal("on_next", self.element())

    def element(self) -> Any:
        element: Any = self.sent - 1
        if "sends what it likes" in self.flaws:
            element = random.random()
        if "sends None" in self.flaws:
            return None
        if "sends objects" in self.flaws:
            element = Thing(element)
        if "keeps its elements" in self.flaws:
            self.kept.append(element)
        return element

    async def finish(self) -> None:
        if "ends late" in self.flaws:  # which is right
            while self.demand <= 0 and not self.cancelled:
                self.news.clear()
                await self.news.wait()
        if self.cancelled or "never ends" in self.flaws:
            return
        failing = self.publisher.fails and "hides its failure" not in self.flaws
        failing = failing or "fails instead of completing" in self.flaws
        ending: tuple[Any, ...] = (
            ("on_error", ValueError("broken")) if failing else ("on_complete",)
        )
        if failing and "fails with a mere text" in self.flaws:
            ending = ("on_error", "broken")
        await self.signal(*ending)
        if "ends twice" in self.flaws:
            await asyncio.sleep(0)
            await self.signal(*ending)
        if "goes on after its end" in self.flaws:
            await self.signal("on_next", -1)

    async def signal(self, name: str, *args: object) -> None:
        subscriber = self.subscriber
        if "sends from several threads" in self.flaws and name == "on_next":
            threading.Thread(target=self.send_there, args=args, daemon=True).start()
            return
        self.inside = True
        try:
            result: object = getattr(subscriber, name)(*args)
            if isawaitable(result):
                await self.awaited(result, name)
        except Exception as error:
            self.blame(error)
        finally:
            self.inside = False
            del subscriber

    def send_there(self, element: object) -> None:
        with suppress(Exception):
            if self.subscriber is not None:
                self.subscriber.on_next(element)

    async def awaited(self, result: Any, name: str) -> None:
        hurries = "ends before its last signal has ended" in self.flaws
        hurries = hurries and self.sent >= self.publisher.n
        if name == "on_next" and ("overlaps awaited signals" in self.flaws or hurries):
            task = asyncio.ensure_future(result)
            self.others.add(task)
            task.add_done_callback(self.others.discard)
        else:
            await result

    def blame(self, error: Exception) -> None:
        times = 2 if "tells everything twice" in self.flaws else 1
        for _ in range(0 if "swallows errors" in self.flaws else times):
            self.loop.call_exception_handler({"message": "rule 2.13", "exception": error})
        if "goes on when its subscriber raises" not in self.flaws:
            self.cancelled = True


class Awaited:
    """Its subscribe must be awaited, which nobody does."""

    def __init__(self, n: int) -> None:
        self.n = n

    async def subscribe(self, subscriber: Subscriber[Any] | None, /) -> None:
        Suspect(self.n).subscribe(subscriber)


class Naive:
    """Sends inside request, at once and whatever happens, one signal inside another."""

    def __init__(self, n: int) -> None:
        self.n = n

    def subscribe(self, subscriber: Subscriber[Any] | None, /) -> None:
        if subscriber is None:
            raise TypeError("a subscriber is needed")
        subscriber.on_subscribe(NaiveSubscription(self.n, subscriber))


class NaiveSubscription:
    """It counts what it has sent, and knows no cancellation."""

    def __init__(self, n: int, subscriber: Subscriber[Any]) -> None:
        self.n = n
        self.sent: int = 0
        self.ended = False
        self.subscriber = subscriber

    def request(self, n: int, /) -> None:
        for _ in range(min(n, self.n - self.sent)):
            self.sent += 1
            self.subscriber.on_next(self.sent)
        if self.sent == self.n and not self.ended:
            self.ended = True
            self.subscriber.on_complete()

    def cancel(self) -> None:
        """Nothing."""
