"""Limits on work, as objects that several flows share: ``map_async(f, limiter=limit)``.

``rate_limit(limiter=limit)`` passes elements on at the rate of a limit, whatever follows.

A limit admits the work on one element at a time, or makes it wait; while work waits, its flow
requests no more than it has room for. So a limit lowers demand, and never fails a flow.

A list of limits, ``limiter=[ConcurrencyLimit(4), RateLimit(50)]``, admits what all of them admit.
Whatever their order in the list, the limit that was made first is asked first, so that two flows
never wait for each other; and a rate is asked last, so that work which it has admitted begins at
once.

A limit belongs to the event loop on which it is used first.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from itertools import count
from math import inf
from typing import Any, Final, Self, cast

from ._core.arguments import (
    Duration,
    describe_given,
    refuse_awaitable,
    require_int,
    require_number,
    require_sync_callable,
    to_seconds,
)
from ._core.loop import Future, Lock, LoopHandle, Semaphore, running_handle, sleep
from ._core.observation.awaited import tells_wait
from ._core.queues.recent import RecentCosts

__all__ = (
    "AdaptiveLimit",
    "CircuitBreaker",
    "ConcurrencyLimit",
    "Limit",
    "Limits",
    "RateLimit",
    "all_of",
    "require_limit",
)


_NUMBERS: Final = count()


class Limit(ABC):
    """The base of all limits, also of a user's own."""

    _made: int
    """Its place among all limits, by which those of a list are asked."""

    def __new__(cls, *_: Any, **__: Any) -> Self:
        made = super().__new__(cls)
        object.__setattr__(made, "_made", next(_NUMBERS))  # a subclass may be frozen
        return made

    @abstractmethod
    def admit(self, element: Any, /) -> AbstractAsyncContextManager[object]:
        """A context that is entered when work on *element* may begin, and left when it has ended.

        If the work has failed, its exception passes through the context.
        """

    # -- for rate_limit, after which no work follows that the limit could see ----------------------
    needs_end_of_work: bool = False
    """Whether the limit has no meaning without the end of the work, so that `rate_limit` refuses
    it."""

    async def wait(self) -> None:
        """Wait until an element may be requested. Nothing is counted; by default, it always may."""
        return  # a limit need not say it

    async def pass_on(self, element: Any, /) -> None:
        """Wait until *element* may be passed on. By default, it is work that ends at once."""
        async with self.admit(element):
            pass


Limits = Limit | Sequence[Limit]
"""One limit, or several that all have to admit the work."""


def require_limit(operator: str, limiter: object) -> Limit:
    """The `Limit` that *limiter* is, or that admits what all of several admit."""
    if isinstance(limiter, Limit):
        return limiter
    given: Any = limiter
    if isinstance(given, (list, tuple)) and given:
        limits = [_require_one(operator, each) for each in cast("Sequence[object]", given)]
        for index, limit in enumerate(limits):
            if any(limit is each for each in limits[:index]):
                raise ValueError(
                    f"{operator}: limiter has {limit!r} twice: a piece of work would wait for "
                    "itself; give each limit once"
                )
        return all_of(sorted(limits, key=_order))
    return _require_one(operator, limiter)


def _require_one(operator: str, limiter: object) -> Limit:
    """Refuse what is not a `Limit`."""
    if not isinstance(limiter, Limit):
        raise TypeError(
            f"{operator}: limiter must be a Limit, such as RateLimit(100, per=1), or a list of "
            f"them, not {describe_given(limiter)}"
        )
    return limiter


def _order(limit: Limit) -> tuple[bool, int, int]:
    """What sorts the limits of every list alike: else one flow would hold *a* while it waits for
    *b*, and another one the other way round."""
    # Work that a rate has admitted begins at once, or many pieces of it would begin together later.
    # A copy of a limit has the same number.
    return isinstance(limit, RateLimit), limit._made, id(limit)


def all_of(limits: list[Limit]) -> Limit:
    """Admits what all *limits* admit, one after another."""
    return limits[0] if len(limits) == 1 else _AllOf(limits)


class _AllOf(Limit):
    def __init__(self, limits: list[Limit]) -> None:
        self._limits = limits
        self.needs_end_of_work = any(each.needs_end_of_work for each in limits)

    def __repr__(self) -> str:
        return repr(self._limits)

    @asynccontextmanager
    @tells_wait(lambda local: f"the limiter {local['limit']!r}")
    async def admit(self, element: Any, /) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            for limit in self._limits:
                await stack.enter_async_context(limit.admit(element))
            yield

    async def wait(self) -> None:
        for limit in self._limits:
            await limit.wait()

    async def pass_on(self, element: Any, /) -> None:
        for limit in self._limits:
            await limit.pass_on(element)


class _LoopBound(Limit):
    _loop_handle: LoopHandle | None = None

    def _loop(self) -> LoopHandle:
        what = f"{type(self).__name__}: admit()"
        handle = running_handle(self._loop_handle, what, "make one for each event loop")
        if handle is not self._loop_handle:
            self._loop_handle = handle
            self._begin()
        return handle

    def _begin(self) -> None:
        """It is used on a new event loop."""


class _Admission(AbstractAsyncContextManager[None]):
    """Waits for a limit that need not see the end of the work."""

    __slots__ = ("_element", "_limit")

    def __init__(self, limit: Limit, element: object) -> None:
        self._limit = limit
        self._element = element

    async def __aenter__(self) -> None:
        await self._limit.pass_on(self._element)

    async def __aexit__(self, *_: object) -> None:
        """Nothing is counted at the end."""


_COMPUTE: Final = "compute it before, with map_async"
_MADE_UP: Final = 0.05
"""The part of a period by which smooth work may be late and still begin earlier after that."""
_TINY: Final = 1e-9
"""The cost of an element that is not known yet."""


class RateLimit(_LoopBound):
    """At most *n* units of work begin in any period of *per*; the others wait in their order.

    An element is one unit, or ``cost(element)`` of them: the tokens of a prompt, the bytes of a
    file. An element that costs more than *n* waits for a whole period of its own.

    The first *n* units begin at once, and the next *n* when *per* has passed. A server that counts
    what it received in the last second may see more than *n*, since some calls are longer on their
    way than others. With *smooth*, the units are spread over the period: ``RateLimit(50,
    smooth=True)`` begins one each 20 ms. A unit that began late is made up for, by a twentieth of
    the period at most.
    """

    def __init__(
        self,
        n: float,
        *,
        per: Duration = 1.0,
        cost: Callable[[Any], float] | None = None,
        smooth: bool = False,
    ) -> None:
        if not require_number("RateLimit: n", n) > 0:
            raise ValueError(f"RateLimit: n must be more than 0, not {n!r}")
        if cost is not None:
            require_sync_callable("RateLimit", "cost", cost, _COMPUTE, takes=1)
        self._n = n
        self._per = to_seconds(per, "RateLimit: per")
        self._cost = cost
        self._is_smooth = smooth
        self._begin()

    def __repr__(self) -> str:
        smooth = ", smooth=True" if self._is_smooth else ""
        return f"RateLimit({self._n:g}, per={self._per:g}{smooth})"

    def _begin(self) -> None:
        self._turn = Lock()
        self._begun = RecentCosts(self._per)
        self._next = -inf
        """When the next unit may begin, if they are spread."""

    def admit(self, element: Any, /) -> AbstractAsyncContextManager[object]:
        return _Admission(self, element)

    async def pass_on(self, element: Any, /) -> None:
        loop_handle = self._loop()
        cost = self._cost_of(element)
        arrived = loop_handle.time()
        async with self._turn:
            await self._wait_for(cost, loop_handle)
            now = loop_handle.time()
            self._begun.add(now, cost)
            if self._is_smooth:
                due = max(self._next, arrived, now - _MADE_UP * self._per)
                self._next = due + cost * self._per / self._n

    async def wait(self) -> None:
        loop_handle = self._loop()
        async with self._turn:  # after those that wait already
            await self._wait_for(1.0 if self._cost is None else _TINY, loop_handle)

    async def _wait_for(self, cost: float, loop_handle: LoopHandle) -> None:
        while (left := self._time_left(cost, loop_handle.time())) is not None:
            await sleep(left)

    def _time_left(self, cost: float, now: float) -> float | None:
        """For how long to wait before looking again; None if work may begin."""
        used = self._begun.total_at(now)
        if used and used + cost > self._n:
            return self._begun.time_left(now)
        return self._next - now if self._next > now else None

    def _cost_of(self, element: Any) -> float:
        if self._cost is None:
            return 1.0
        cost: Any = self._cost(element)
        refuse_awaitable("RateLimit", self._cost, cost, _COMPUTE)
        if isinstance(cost, bool) or not isinstance(cost, (int, float)) or not cost >= 0:
            raise ValueError(f"RateLimit: a cost must be a number of at least 0, not {cost!r}")
        return min(cost, self._n)


class ConcurrencyLimit(_LoopBound):
    """At most *n* pieces of work run at the same time, in all flows; the others wait in order."""

    needs_end_of_work = True

    def __init__(self, n: int) -> None:
        self._n = require_int("ConcurrencyLimit", "n", n, least=1)
        self._begin()

    def __repr__(self) -> str:
        return f"ConcurrencyLimit({self._n})"

    def _begin(self) -> None:
        self._places = Semaphore(self._n)

    @asynccontextmanager
    async def admit(self, element: Any, /) -> AsyncGenerator[None]:
        self._loop()
        async with self._places:
            yield


_SLOW: Final = 2.0
"""Work that takes this many times the shortest time is a sign of too much of it."""
_LESS: Final = 0.9
_OLDER: Final = 1.001
"""How much longer the shortest time becomes in a second, so that it follows a slower service."""


class AdaptiveLimit(_LoopBound):
    """Let as many calls run at a time as the other side can take; learn that number from it.

    The limit starts at *initial*. Each piece of work that succeeds about as fast as the fastest one
    raises it a little, up to *maximum*; one that fails or takes twice as long lowers it by a tenth,
    down to *minimum*.
    """

    needs_end_of_work = True

    def __init__(self, *, initial: int = 8, minimum: int = 1, maximum: int = 256) -> None:
        self._minimum = require_int("AdaptiveLimit", "minimum", minimum, least=1)
        self._maximum = require_int("AdaptiveLimit", "maximum", maximum, least=minimum)
        self._initial = require_int("AdaptiveLimit", "initial", initial, least=minimum)
        if initial > maximum:
            raise ValueError(f"AdaptiveLimit: initial must be at most {maximum}, not {initial}")
        self._begin()

    def __repr__(self) -> str:
        return f"AdaptiveLimit(now {self.limit})"

    @property
    def limit(self) -> int:
        """How many pieces of work may run at the same time now."""
        return int(self._limit)

    def _begin(self) -> None:
        self._limit = float(self._initial)
        self._running = 0
        self._shortest: float | None = None
        self._measured_at = 0.0
        self._lowered_at = 0.0
        self._waiters: deque[Future[None]] = deque()

    @asynccontextmanager
    async def admit(self, element: Any, /) -> AsyncGenerator[None]:
        loop_handle = self._loop()
        await self._wait_for_place(loop_handle)
        began = loop_handle.time()
        try:
            yield
        except Exception:
            self._lower(loop_handle.time(), began)
            raise
        else:
            self._learn(loop_handle.time(), began)
        finally:
            self._running -= 1
            self._wake()

    async def _wait_for_place(self, loop_handle: LoopHandle) -> None:
        if self._running < self.limit and not self._waiters:
            self._running += 1
            return
        waiter = loop_handle.create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except BaseException:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            elif not waiter.cancelled():  # the place was given to it already
                self._running -= 1
                self._wake()
            raise

    def _wake(self) -> None:
        while self._waiters and self._running < self.limit:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                self._running += 1

    def _learn(self, now: float, began: float) -> None:
        took = now - began
        shortest = took
        if self._shortest is not None:
            shortest = min(took, self._shortest * _OLDER ** min(now - self._measured_at, 1000.0))
        self._shortest, self._measured_at = shortest, now
        if took > _SLOW * shortest:
            self._lower(now, began)
        elif self._running * 2 >= self._limit:  # otherwise the limit was not what limited
            self._limit = min(self._limit + 1 / self._limit, self._maximum)

    def _lower(self, now: float, began: float) -> None:
        """Lower the limit, once for all the work that was running together."""
        if began >= self._lowered_at:
            self._limit = max(self._limit * _LESS, self._minimum)
            self._lowered_at = now


class CircuitBreaker(_LoopBound):
    """After *failures* failures in a row, no work begins for *reset*; then one piece of it tries.

    If that succeeds, all work goes on; if it fails, the breaker stays open for *reset* again. Work
    waits meanwhile: it does not fail. In `rate_limit`, no element passes during *reset*; only the
    work of ``map_async`` and ``for_each`` opens and closes the breaker.
    """

    def __init__(self, *, failures: int = 5, reset: Duration = 30.0) -> None:
        self._failures = require_int("CircuitBreaker", "failures", failures, least=1)
        self._reset = to_seconds(reset, "CircuitBreaker: reset")
        self._begin()

    def __repr__(self) -> str:
        return f"CircuitBreaker({'open' if self.is_open else 'closed'})"

    @property
    def is_open(self) -> bool:
        """Whether no work may begin, but for a trial."""
        return self._opened_at is not None

    def _begin(self) -> None:
        self._turn = Lock()
        self._in_a_row = 0
        self._opened_at: float | None = None

    @asynccontextmanager
    async def admit(self, element: Any, /) -> AsyncGenerator[None]:
        loop_handle = self._loop()
        if self._time_left(loop_handle) is not None:
            async with self._turn:  # one trial after another
                while left := self._time_left(loop_handle):
                    await sleep(left)
                if left is not None:
                    async with self._observed(loop_handle):
                        yield
                    return
        async with self._observed(loop_handle):
            yield

    async def wait(self) -> None:
        loop_handle = self._loop()
        while left := self._time_left(loop_handle):
            await sleep(left)

    async def pass_on(self, element: Any, /) -> None:
        await self.wait()

    def _time_left(self, loop_handle: LoopHandle) -> float | None:
        """The seconds until a trial may begin; None if the breaker is closed."""
        if self._opened_at is None:
            return None
        return max(0.0, self._opened_at + self._reset - loop_handle.time())

    @asynccontextmanager
    async def _observed(self, loop_handle: LoopHandle) -> AsyncGenerator[None]:
        began = loop_handle.time()
        try:
            yield
        except Exception:
            self._in_a_row += 1
            was_tried = self._opened_at is None or began >= self._opened_at
            if self._in_a_row >= self._failures and was_tried:
                self._opened_at = loop_handle.time()
            raise
        else:
            if self._opened_at is None or began >= self._opened_at:
                self._in_a_row, self._opened_at = 0, None
