"""Publishers written by hand, without the runtime: honest ones, and ones with a known flaw."""

import asyncio
import time
from inspect import isawaitable
from typing import Any

from reactive_aio.spec import Subscriber

UNBOUNDED = 2**63 - 1


class Suspect:
    """A publisher of 0 … n-1, from a task of its own; *flaws* name what it does wrong.

    *fails* makes it fail after its elements. Unusual, but right: on_subscribe comes a turn after
    ``subscribe`` has returned, and each element in a turn of its own.
    """

    def __init__(self, n: float, *flaws: str, fails: bool = False) -> None:
        self.n = n
        self.flaws = flaws
        self.fails = fails
        self.remembered: list[object] = []
        self.subscribed = 0

    def subscribe(self, subscriber: Subscriber[Any] | None, /) -> None:
        if "raises in subscribe" in self.flaws:
            raise RuntimeError("not today")
        if subscriber is None and "takes nobody" not in self.flaws:
            raise TypeError("a subscriber is needed")
        self.subscribed += 1
        if "remembers" in self.flaws:
            self.remembered.append(subscriber)
        if subscriber is not None and not ("serves one" in self.flaws and self.subscribed > 1):
            Sending(self, subscriber)


class Sending:
    """One subscription, and the task that serves it."""

    def __init__(self, publisher: Suspect, subscriber: Subscriber[Any]) -> None:
        self.loop = asyncio.get_running_loop()
        self.flaws = publisher.flaws
        self.publisher = publisher
        self.subscriber: Subscriber[Any] | None = subscriber
        self.demand = 0
        self.sent = 0
        self.inside = False
        self.cancelled = self.ended = False
        self.fault: Exception | None = None
        self.news = asyncio.Event()
        self.others: set[asyncio.Task[Any]] = set()
        self.task = self.loop.create_task(self.run())

    # -- the subscription -------------------------------------------------------------------------
    def request(self, n: int, /) -> None:
        if "takes no request inside signals" in self.flaws and self.inside:
            return
        if n < 1:
            self.refuse(n)
        elif "counts with 32 bits" in self.flaws and n >= 2**32:
            self.fault = OverflowError("too much demand")
        elif "takes the last request only" in self.flaws:
            self.demand = n
        else:
            self.demand += n
        if self.demand > UNBOUNDED and "fails beyond the largest demand" in self.flaws:
            self.fault = OverflowError("too much demand")
        if "revives" in self.flaws:
            self.cancelled = False
        if "recurses" in self.flaws and self.sent < self.publisher.n and self.inside:
            self.demand -= 1
            self.sent += 1
            if self.subscriber is not None:
                self.subscriber.on_next(self.sent - 1)
        self.wake()

    def refuse(self, n: int) -> None:
        if "raises for a wrong request" in self.flaws:
            raise ValueError(n)
        if "ignores a wrong request" not in self.flaws:
            vague = "answers vaguely" in self.flaws
            text = "no" if vague else f"rule 3.9: non-positive subscription request {n}"
            self.fault = self.fault or ValueError(text)

    def cancel(self) -> None:
        if self.cancelled and "cancels once only" in self.flaws:
            raise RuntimeError("cancelled already")
        if "ignores cancel" in self.flaws:
            return
        if "ignores cancel and completes" in self.flaws:
            self.demand, self.sent = 1, 100
            self.wake()
            return
        if "cancels on its thread only" in self.flaws and not self.is_here():
            return
        if "cancels later" in self.flaws:  # which is right
            self.loop.call_later(0.005, self.stop)
        else:
            self.stop()

    def stop(self) -> None:
        self.cancelled = True
        self.wake()

    def is_here(self) -> bool:
        try:
            return asyncio.get_running_loop() is self.loop
        except RuntimeError:
            return False

    def wake(self) -> None:
        self.loop.call_soon_threadsafe(self.news.set)

    # -- sending ----------------------------------------------------------------------------------
    async def signal(self, name: str, *args: object) -> None:
        subscriber = self.subscriber
        self.inside = True
        try:
            result: object = getattr(subscriber, name)(*args)
            if isawaitable(result):
                if "overlaps" in self.flaws and name == "on_next":
                    task = asyncio.ensure_future(result)
                    self.others.add(task)
                    task.add_done_callback(self.others.discard)
                else:
                    await result
        except Exception as error:
            self.blame(error)
        finally:
            self.inside = False
            del subscriber

    def blame(self, error: Exception) -> None:
        if "swallows errors" not in self.flaws:
            self.loop.call_exception_handler({"message": "rule 2.13", "exception": error})
        if "goes on" not in self.flaws:
            self.cancelled = True

    async def run(self) -> None:
        if "begins with an element" in self.flaws:
            await self.signal("on_next", 0)
        await self.signal("on_subscribe", self)
        if "subscribes twice" in self.flaws:
            await self.signal("on_subscribe", self)
        try:
            await self.send()
        finally:
            if "revives" not in self.flaws:
                self.subscriber = None

    async def send(self) -> None:
        while not self.over():
            if self.fault is not None:
                await self.signal("on_error", self.fault)
                return
            if self.sent >= self.publisher.n:
                await self.finish()
                return
            if self.demand <= 0 and "ignores demand" not in self.flaws:
                await self.wait()
                continue
            await self.one()

    async def wait(self) -> None:
        if "sends one too many" in self.flaws and self.sent:
            await self.signal("on_next", -1)
        self.news.clear()
        await self.news.wait()

    def over(self) -> bool:
        return self.cancelled and "revives" not in self.flaws

    async def one(self) -> None:
        if self.cancelled:  # and to be revived
            await self.wait()
            return
        last = self.demand == 1
        self.demand -= 1
        self.sent += 1
        if "hogs the loop" in self.flaws:
            until = time.perf_counter() + 1.05
            while time.perf_counter() < until:
                pass
        if "loses the first" in self.flaws and self.sent == 1:
            return
        if not ("loses the last demanded" in self.flaws and last and self.sent > 5):
            await self.signal("on_next", self.sent - 1)
        await asyncio.sleep(0)

    async def finish(self) -> None:
        if "ends late" in self.flaws:  # which is right
            while self.demand <= 0 and not self.cancelled:
                self.news.clear()
                await self.news.wait()
        if self.cancelled or "never ends" in self.flaws:
            return
        failing = self.publisher.fails and "hides its failure" not in self.flaws
        ending: tuple[Any, ...] = (
            ("on_error", ValueError("broken")) if failing else ("on_complete",)
        )
        await self.signal(*ending)
        if "ends twice" in self.flaws and not self.cancelled:
            await asyncio.sleep(0)
            await self.signal(*ending)


class Synchronous:
    """An honest publisher for ``def`` subscribers that sends inside ``request``."""

    def __init__(self, n: int) -> None:
        self.n = n

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        subscriber.on_subscribe(Immediate(self.n, subscriber))


class Immediate:
    """The subscription of `Synchronous`: a loop that is never entered twice."""

    def __init__(self, n: int, subscriber: Subscriber[Any]) -> None:
        self.n, self.sent, self.demand = n, 0, 0
        self.subscriber: Any = subscriber
        self.sending = False

    def request(self, n: int, /) -> None:
        if self.subscriber is None:
            return
        if n < 1:
            self.end("on_error", ValueError(f"3.9: non-positive subscription request {n}"))
            return
        self.demand += n
        if self.sending:
            return
        self.sending = True
        while self.subscriber is not None and self.demand and self.sent < self.n:
            self.demand -= 1
            self.sent += 1
            self.subscriber.on_next(self.sent - 1)
        self.sending = False
        if self.sent >= self.n:
            self.end("on_complete")

    def end(self, signal: str, *args: object) -> None:
        subscriber, self.subscriber = self.subscriber, None
        if subscriber is not None:
            getattr(subscriber, signal)(*args)

    def cancel(self) -> None:
        self.subscriber = None
