"""The functions that the program of a random pipeline calls.

The elements are the tokens of a ledger, and each has a value. What makes another element of one
enters it as replaced, so that the ledger balances.
"""

import asyncio
import gc
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Collection,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
)
from contextlib import (
    AbstractAsyncContextManager,
    aclosing,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from dataclasses import dataclass, field
from random import Random
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast
from weakref import ref

from ...errors import Interrupted
from ...testing import Ledger, Token
from .endpoints import AsyncProbe, Offences, Probe, Relay, StepPublisher

if TYPE_CHECKING:
    from ...flow import Flow

__all__ = ("ERRORS", "RECEIVED", "ChildError", "CleanupError", "PipelineError", "Run", "tokens_in")

T = TypeVar("T")


class PipelineError(Exception):
    """The error of sources and functions."""


class BuiltinError(PipelineError, TimeoutError, LookupError, RuntimeError, TypeError, ValueError):
    """One of theirs that is a built-in one as well, for those who handle such errors."""


class OwnError(BaseException):
    """One of theirs that is no `Exception`."""


ERRORS: Final[Mapping[str, tuple[Callable[[], BaseException], type[BaseException]]]] = {
    "PipelineError": (PipelineError, PipelineError),
    "BuiltinError": (BuiltinError, BuiltinError),
    "OwnError": (OwnError, OwnError),
    "CancelledError": (asyncio.CancelledError, Interrupted),
}
"""The kinds of errors of sources and functions: how one is made, and as what it is received."""
RECEIVED: Final = tuple(received for _, received in ERRORS.values())


class ChildError(PipelineError):
    """Of a task that a source has started."""


class CleanupError(PipelineError):
    """Of a ``finally`` clause."""


@dataclass(eq=False)
class Numbers:
    """An iterable of *count* tokens, each issued when it is requested."""

    run: "Run"
    count: int
    start: int
    error: BaseException | None

    def __iter__(self) -> Iterator[Token]:
        return self.run.noted(self._tokens())

    def _tokens(self) -> Iterator[Token]:
        self.run.opened += 1
        try:
            for value in range(self.start, self.start + self.count):
                yield self.run.token(value)
            if self.error is not None:
                raise self.error
        finally:
            self.run.closed += 1


@dataclass(eq=False)
class Run:
    """One run of a program: its elements, its sources, and what was delivered."""

    kind: str = "PipelineError"
    """Of the errors of its sources and functions."""
    ledger: Ledger = field(default_factory=Ledger)
    received: list[int] = field(default_factory=list[int])
    """The values delivered to the sink."""
    offences: Offences = field(default_factory=Offences)
    opened: int = 0
    closed: int = 0
    overlaps: int = 0
    """How often a source began before the one that it follows had cleaned up."""
    failed_cleanups: int = 0
    """How often a cleanup raised that ran before its source was read to the end."""
    bound: int | None = 0
    """What the flow may hold at most; None if that is not bounded."""
    max_held: int = 0
    """The most that it held, if that was more."""
    discarded_count: int = 0
    is_drained: bool = False
    description: str = ""
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the program has ended; it stops the sources that an operator keeps."""
    _generators: list[ref[Any]] = field(default_factory=list[ref[Any]])
    """The generators of sources."""
    _values: dict[int, int] = field(default_factory=dict[int, int])
    _connections: list[int] = field(default_factory=list[int])
    """Those in use."""
    _resources: int = 0
    """The number of the last resource, which is below those of the connections of sources."""
    _copied: set[int] = field(default_factory=set[int])
    _publishers: list[StepPublisher] = field(default_factory=list[StepPublisher])
    _lock: Lock = field(default_factory=Lock)

    @property
    def error(self) -> Callable[[], BaseException]:
        """Makes an error of a source or function."""
        return ERRORS[self.kind][0]

    # -- elements ---------------------------------------------------------------------------------
    def token(self, value: int) -> Token:
        """Issue a token, on any thread."""
        with self._lock:
            token = self.ledger.issue()
        self._values[token.number] = value
        self.measure(besides=1)
        return token

    def measure(self, besides: int = 0) -> None:
        """Note what is held now, *besides* so many elements that are being processed."""
        if self.bound is not None and self.held - besides > self.bound:
            self.collect()  # of those without an entry, some may be garbage
            self.max_held = max(self.max_held, self.held - besides)

    @property
    def held(self) -> int:
        """How many elements exist that were neither delivered nor dropped."""
        return self.ledger.held

    def collect(self) -> None:
        """Free what is garbage."""
        gc.collect()

    def value(self, token: Token) -> int:
        return self._values[token.number]

    def changed(self, token: Token, value: int) -> Token:
        """A token with another value in place of *token*."""
        self.ledger.drop(token, "replaced")
        return self.token(value)

    def copied(self, token: Token) -> Token:
        """Another token with its value; of a token that comes several times, too."""
        self.use_up(token)
        return self.token(self.value(token))

    def use_up(self, token: Token) -> None:
        """Enter *token* as copied, once."""
        if token.number not in self._copied:
            self._copied.add(token.number)
            self.ledger.drop(token, "copied")

    def copies(self, tokens: Any) -> Iterator[Token]:
        """Copies of all of them, which are used up when the first one is taken."""
        values = [self.value(token) for token in tokens]
        for token in tokens:
            self.use_up(token)
        del tokens
        for value in values:
            yield self.token(value)

    def dropped(self, token: Token) -> None:
        self.ledger.drop(token)

    def discarded(self, element: object) -> None:
        """`do_on_discard` has been given *element*, a token or what contains some."""
        self.discarded_count += 1
        for token in tokens_in(element):
            self.ledger.drop(token, "discarded")

    def deliver(self, token: Token) -> int:
        """The sink receives *token*."""
        self.ledger.deliver(token)
        self.measure(besides=1)
        value = self.value(token)
        self.received.append(value)
        return value

    # -- functions of operators -------------------------------------------------------------------
    def tokenized(self, element: Token | int) -> Token:
        """*element*, or a token for one that an operator has from somewhere else."""
        return self.token(element) if isinstance(element, int) else element

    def doubled(self, token: Token) -> Token:
        return self.changed(token, self.value(token) * 2)

    def keeps(self, n: int) -> Callable[[Token], bool]:
        """Whether *n* does not divide a value; others are entered as filtered."""
        return self.ledger.filter(lambda token: self.value(token) % n)

    def below(self, k: int) -> Callable[[Token], bool]:
        return lambda token: self.value(token) < k

    def failing(self, k: int) -> Callable[[Token], Token]:
        """Fail for the value *k*."""

        def mapper(token: Token) -> Token:
            if self.value(token) == k:
                raise self.error()
            return token

        return mapper

    async def soon(self, token: Token) -> Token:
        await asyncio.sleep(0)
        return token

    async def slow(self, token: Token) -> Token:
        """Take longer for some values, so that later elements finish first; and clean up."""
        self._take(None)
        try:
            await asyncio.sleep(self.value(token) % 3 * 0.01)
        finally:
            await self._clean_up(None)
        return token

    # -- sources ----------------------------------------------------------------------------------
    def numbers(self, count: int, start: int = 0, *, fails: bool = False) -> Numbers:
        return Numbers(self, count, start, self.error() if fails else None)

    def noted(self, generator: T) -> T:
        """Note a generator, which must be gone after the end, without the garbage collector."""
        self._generators.append(ref(generator))
        return generator

    @property
    def alive(self) -> list[object]:
        """The generators of sources that something still refers to."""
        return [each for find in self._generators if (each := find()) is not None]

    def steps(self, *arguments: Any, **options: Any) -> AsyncGenerator[Token]:
        return self.noted(self._steps(*arguments, **options))

    async def _steps(
        self,
        count: int,
        start: int = 0,
        *,
        every: float | Callable[[], float] = 0.0,
        fails: bool = False,
        replaces: Token | None = None,
        connection: int | None = None,
        may_be_cut: bool = False,
    ) -> AsyncGenerator[Token]:
        """Tokens, one *every* so many seconds or turn of the loop.

        With *replaces*, they take its place, and it is used up when the first one is made. With a
        *connection*, they need the only one of that number until they have cleaned up. That
        *may_be_cut* where they stand in a task group, which cancels them if a child fails.
        """
        self._take(connection)
        try:
            for value in range(start, start + count):
                await asyncio.sleep(every() if callable(every) else every)
                if replaces is not None:
                    self.ledger.drop(replaces, "replaced")
                    replaces = None
                yield self.token(value)
            if fails:
                raise self.error()
        finally:
            await self._clean_up(connection, may_be_cut=may_be_cut)

    @staticmethod
    def pauses(seed: int) -> Callable[[], float]:
        """Pauses that are no multiples of any clock, and none; each run has its own scale."""
        random = Random(seed)
        scale = 10 ** random.uniform(-2, 0.7)
        return lambda: random.choice((0, 1, 1, 1)) * round(scale * 4 ** random.uniform(-2, 1), 5)

    def _take(self, connection: int | None) -> None:
        """Open a source, which needs a *connection* that no other one has."""
        self.opened += 1
        if connection in self._connections:
            self.overlaps += 1
        if connection is not None:
            self._connections.append(connection)

    async def _clean_up(self, connection: int | None, *, may_be_cut: bool = False) -> None:
        """Close a source: that takes some turns and some time, and nothing may cut it short."""
        try:
            for pause in (0, 0.003, 0):
                await asyncio.sleep(pause)
        except BaseException as error:
            if not may_be_cut:
                self.offences.append(f"a cleanup was cut by {error!r}")
            raise
        finally:
            self.closed += 1
            if connection is not None:
                self._connections.remove(connection)

    async def with_a_failing_cleanup(self, count: int) -> AsyncIterator[Token]:
        is_read = False
        try:
            async with aclosing(self.steps(count)) as tokens:
                async for token in tokens:
                    yield token
                    del token
            is_read = True
        finally:
            self.failed_cleanups += not is_read
            raise CleanupError

    def publisher(
        self, count: int, *, every: float | None = None, fails: bool = False
    ) -> StepPublisher:
        error = self.error if fails else None
        publisher = StepPublisher(self.token, count, every, error, self.offences)
        self._publishers.append(publisher)
        return publisher

    async def one(self) -> Token:
        await asyncio.sleep(0.01)
        return self.token(0)

    @contextmanager
    def resource(self) -> Generator[None]:
        self.opened += 1
        try:
            yield
        finally:
            self.closed += 1

    def async_resource(self) -> Callable[[], AbstractAsyncContextManager[None]]:
        """What opens a resource of which there is one: it is closed before it is opened again."""
        self._resources -= 1
        connection = self._resources

        @asynccontextmanager
        async def opened() -> AsyncGenerator[None]:
            await asyncio.sleep(0)
            self._take(connection)
            try:
                yield
            finally:
                await self._clean_up(connection)

        return opened

    # -- flows ------------------------------------------------------------------------------------
    def relay(self, flow: "Flow[Any]") -> Relay:
        return Relay(flow, self.offences)

    def inner(self, flow: "Flow[Any]") -> "Flow[Any]":
        """A flow that an operator makes while it runs, which `bound` does not see."""
        self.add_bound(flow.bound().total, in_progress(flow))
        return flow

    def watch(self, flow: "Flow[Any]") -> None:
        """Check what *flow* holds against its bound."""
        self.description = f"{flow!r}, {flow.bound()}\n{flow.explain()}"
        self.add_bound(flow.bound().total, in_progress(flow))

    def add_bound(self, bound: int | None, besides: int = 0) -> None:
        """*bound* more elements may be held, and so many *besides*."""
        if bound is None or self.bound is None:
            self.bound = None
        else:
            self.bound += bound + besides

    def hooked(self, flow: "Flow[T]") -> "Flow[T]":
        """*flow*, which tells what it discards."""
        return flow.do_on_discard(self.discarded)

    # -- sinks ------------------------------------------------------------------------------------
    async def arrive(self, token: Token) -> None:
        self.deliver(token)
        await asyncio.sleep(0)

    async def arrive_late(self, token: Token) -> None:
        self.deliver(token)
        await asyncio.sleep(60)
        self.measure()

    async def each(self, flow: "Flow[Token]", concurrency: int) -> int:
        self.add_bound(2 * concurrency)
        return await flow.for_each(self.arrive, concurrency=concurrency)

    async def each_fails(self, flow: "Flow[Token]", at: int, **options: Any) -> None:
        """Call a function that fails for one of the elements."""

        async def arrive(token: Token) -> None:
            await self.arrive(token)
            if len(self.received) == at + 1:
                raise self.error()

        self.add_bound(2 * options.get("concurrency", 0))
        try:
            await flow.for_each(arrive, **options)
        except CleanupError:
            raise  # nothing has failed before
        except RECEIVED:
            pass

    async def collected_in(self, flow: "Flow[Token]", within: int) -> None:
        """Collect for some time; the elements that were collected by then are given back."""
        self.bound = None  # the result is held as well
        with suppress(TimeoutError):
            async with asyncio.timeout((0.01, 0.3, 1.1)[within % 3]):
                found = await (flow.to_dict(id) if within % 2 else flow.to_list())
                for token in found.values() if isinstance(found, dict) else found:
                    self.deliver(token)

    async def drained(self, flow: "Flow[Token]", after: int, within: int, calls: int = 0) -> None:
        """Drain a run, whose report has the figures of the ledger."""

        async def arrive(token: Token) -> None:
            self.deliver(token)
            await asyncio.sleep((0, 0.05, 0.5)[token.number % 3])
            returned.append(self.value(token))

        returned: list[int] = []
        ordered = after % 2 == 0
        run = flow.running(self.deliver)
        if calls:
            run = flow.running(arrive, concurrency=calls, ordered=ordered)
        self.add_bound(2 * calls)
        async with run as it:
            await asyncio.sleep((0, 0.01, 0.3, 1.1)[after % 4])
            self.is_drained = True
            report = await it.drain((0, 0.05, 0.4, 60)[within % 4])
        finished = len(returned) if calls else len(self.received)
        lost = self.discarded_count + len(self.received) - finished
        assert (report.delivered, report.in_flight + report.discarded) == (finished, lost), report

    async def iterate(self, flow: "Flow[Token]", leave_after: int = -1) -> None:
        if not flow.chain.is_pullable:
            self.add_bound(256)
        async for token in flow:
            self.deliver(token)
            if len(self.received) == leave_after:
                break
            del token

    async def read(self, flow: "Flow[Token]", prefetch: int | None, leave_after: int = -1) -> None:
        async with flow.stream(prefetch=prefetch) as elements:
            self.add_bound(prefetch or 256)
            async for token in elements:
                self.deliver(token)
                if len(self.received) == leave_after:
                    break
                del token

    async def probe(
        self,
        flow: "Flow[Token]",
        *batches: int,
        kind: type[Probe] = Probe,
        later: float | None = None,
        cancel_after: int | None = None,
        cancel_at: float | None = None,
    ) -> None:
        """Subscribe a foreign subscriber, and wait for the end or cancel."""
        probe = kind(self.deliver, self.measure, self.offences, batches, later, cancel_after)
        flow.subscribe(probe)
        del flow
        if cancel_at is not None:
            await asyncio.sleep(cancel_at)
            probe.cancel()
        await probe.end_event.wait()
        await asyncio.sleep(1)
        if probe.error is not None:
            raise probe.error

    async def probe_async(self, flow: "Flow[Token]", *batches: int, **options: Any) -> None:
        await self.probe(flow, *batches, kind=AsyncProbe, **options)

    async def cancelled(self, sink: Coroutine[Any, Any, object], after: float) -> None:
        """Cancel the task of *sink*: after some turns of the loop, or a part of a second."""
        task = asyncio.ensure_future(sink)
        del sink
        for _ in range(int(after)):
            await asyncio.sleep(0)
        await asyncio.sleep(after % 1)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def timed_out(self, sink: Coroutine[Any, Any, object], within: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await sink

    async def queued(self, flow: "Flow[Any]") -> list[int]:
        queue: asyncio.Queue[int] = asyncio.Queue()
        await flow.to_queue(queue)
        return [queue.get_nowait() for _ in range(queue.qsize())]

    # -- the end ----------------------------------------------------------------------------------
    def finish(self) -> None:
        """The program has ended: stop the sources that operators keep."""
        self.finished.set()

    @property
    def open_sources(self) -> int:
        """How many sources were opened and not closed."""
        foreign = sum(each.opened - each.closed for each in self._publishers)
        return self.opened - self.closed + foreign

    @property
    def errors(self) -> Collection[str]:
        """The names of errors, besides those that are expected, that are judged elsewhere."""
        return ()

    def complaints(self, slack: int | None) -> Iterator[str]:
        """The rules that were broken, elements beyond the bound, and the sources that are open."""
        yield from self.offences
        if None not in (slack, self.bound) and self.max_held > (self.bound or 0) + (slack or 0):
            yield f"{self.max_held} elements were held at a time, the bound is {self.bound}"
        if self.open_sources > 0:
            yield f"{self.open_sources} sources are open after the end"
        if self.open_sources < 0:
            yield f"{-self.open_sources} sources were closed twice"


def tokens_in(element: object) -> Iterator[Token]:
    if isinstance(element, Token):
        yield element
    elif isinstance(element, (list, tuple)):
        for each in cast("list[object]", element):
            yield from tokens_in(each)


def in_progress(flow: "Flow[Any]") -> int:
    """How many elements the islands of *flow* hold while they process one.

    That is one, or the elements of one list, where a stage awaits or processes a list. Otherwise
    it is the latest element, which is not counted.
    """
    chains, count = [flow.chain], 0
    while chains:
        chain = chains.pop()
        weight = max(chain.weight, chain.source_weight, chain.input_weight)
        count += weight if (chain.awaits and chain.stages) or weight > 1 else 0
        chains += [upstream.chain for upstream in chain.source.upstreams]
    return count
