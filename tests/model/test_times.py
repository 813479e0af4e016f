"""What operators with a clock emit and when: as the model says, to every reader.

A random source emits by the clock, up to three operators follow, and each reader that takes no time
sees what the model says. A reader that works on each element for some time sees the same as the
others that do, if it asks for one after the other.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from random import Random
from typing import Any, Final

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.errors import TimedOut
from reactive_aio.testing.virtual_time import VirtualTimeLoop
from tests.cases import PUBLIC, names
from tests.harness.effort import Effort
from tests.model.test_pipelines import PARTS, seeds
from tests.model.times import ROWS, WORK, Timed

COUNTS: Final[Mapping[Effort, int]] = {
    Effort.QUICK: 100, Effort.NORMAL: 400, Effort.THOROUGH: 100_000
}  # fmt: skip
HEADER: Final = """\
import reactive_aio as r
from tests.model.test_times import check_alone, cold, hot, slowly
from tests.model.times import Timed

"""


class SourceError(Exception):
    """Of a source."""


def hot(timed: Timed) -> Flow[Any]:
    """A source that emits by the clock, whatever is requested."""

    def register(to: r.Emitter[Any]) -> None:
        loop = asyncio.get_running_loop()
        for at, value in timed.elements:
            loop.call_later(at, to.try_emit, value)
        if timed.error is None:
            loop.call_later(timed.end, to.complete)
        else:
            loop.call_later(timed.end, to.fail, SourceError())

    return r.create(register)


def cold(timed: Timed) -> Flow[Any]:
    """A source that sleeps before each element; it waits until that is requested."""

    async def generate() -> AsyncIterator[Any]:
        now = 0.0
        for at, value in timed.elements:
            await asyncio.sleep(at - now)
            now = at
            yield value
        await asyncio.sleep(timed.end - now)
        if timed.error is not None:
            raise SourceError

    return r.from_aiter(generate)


async def slowly(element: Any) -> Any:
    await asyncio.sleep(WORK)
    return element


# -- readers ---------------------------------------------------------------------------------------
class Recorder:
    """Records when each element arrived; it works on it for *pace* seconds."""

    def __init__(self, pace: float) -> None:
        self.loop = asyncio.get_running_loop()
        self.began = self.loop.time()
        self.pace = pace
        self.elements: list[tuple[float, Any]] = []

    @property
    def now(self) -> float:
        return round(self.loop.time() - self.began, 4)

    async def work(self, element: object) -> bool:
        self.elements.append((self.now, element))
        if self.pace:
            await asyncio.sleep(self.pace)
        return True


class Subscriber:
    """Requests *n*, and again so many after each *n* elements."""

    def __init__(self, recorder: Recorder, n: int) -> None:
        self.recorder = recorder
        self.n = self.left = n
        self.ended = asyncio.get_running_loop().create_future()

    def on_subscribe(self, subscription: r.Subscription) -> None:
        self.subscription = subscription
        subscription.request(self.n)

    def on_next(self, element: Any) -> Any:
        self.recorder.elements.append((self.recorder.now, element))
        self.processed()

    def processed(self) -> None:
        self.left -= 1
        if not self.left:
            self.left = self.n
            self.subscription.request(self.n)

    def on_error(self, error: BaseException) -> None:
        self.ended.set_exception(error)

    def on_complete(self) -> None:
        self.ended.set_result(None)


class AwaitingSubscriber(Subscriber):
    async def on_next(self, element: Any) -> None:
        await self.recorder.work(element)
        self.processed()


Read = Callable[[Flow[Any], Recorder], Awaitable[object]]


def by_subscriber(n: int) -> Read:
    async def read(flow: Flow[Any], recorder: Recorder) -> None:
        kind = AwaitingSubscriber if recorder.pace else Subscriber
        subscriber = kind(recorder, n)
        flow.subscribe(subscriber)
        await subscriber.ended

    return read


async def by_async_for(flow: Flow[Any], recorder: Recorder) -> None:
    async for element in flow:
        await recorder.work(element)


def by_stream(prefetch: int) -> Read:
    async def read(flow: Flow[Any], recorder: Recorder) -> None:
        async with flow.stream(prefetch=prefetch) as elements:
            async for element in elements:
                await recorder.work(element)

    return read


ONE_BY_ONE: Final[dict[str, Read]] = {
    "request(1)": by_subscriber(1),
    "async for": by_async_for,
    "stream(prefetch=1)": by_stream(1),
}
ALL_AT_ONCE: Final[dict[str, Read]] = {
    "unbounded": by_subscriber(2**63 - 1),
    "for_each": lambda flow, recorder: flow.for_each(recorder.work),
    "map_async, run": lambda flow, recorder: flow.map_async(recorder.work).run(),
}
READERS: Final[Mapping[str, Read]] = {
    **ONE_BY_ONE,
    **ALL_AT_ONCE,
    "request(2)": by_subscriber(2),
    "stream(prefetch=2)": by_stream(2),
}


async def reading(flow: Flow[Any], read: Read, pace: float) -> Timed:
    recorder, error = Recorder(pace), None
    try:
        await read(flow, recorder)
    except (SourceError, TimedOut) as raised:
        error = type(raised).__name__
    return Timed(tuple(recorder.elements), recorder.now, error)


def seen_by(reader: str, make: Callable[[], Flow[Any]], pace: float) -> Timed:
    """What a reader sees of a flow, on a loop of its own."""

    async def read() -> Timed:
        return await reading(make(), READERS[reader], pace)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(read())


def check_alone(make: Callable[[], Flow[Any]], expected: Timed, reader: str) -> None:
    """Fail unless *reader* sees what is *expected* of a flow."""
    found = seen_by(reader, make, 0)
    assert found == expected, f"{reader}: {found}"


# -- random flows ----------------------------------------------------------------------------------
REPEATING: Final = ("repeat", "restart", "retry")


def random_flow(seed: int) -> tuple[Timed, tuple[str, ...], str]:
    """A source, operators, of which the first is one row of the table after the other, a reader."""
    random, rows = Random(seed), [*ROWS]
    at, elements = 0.0, list[tuple[float, Any]]()
    for number in range(random.randrange(9)):
        at += random.choice((0.05, 0.4, 1, 1, 3, 7)) * random.uniform(0.5, 1) + 0.01
        # The times of the rows are hundredths: none of them leads from an element to another one.
        elements.append((round(round(at, 2) + (number + 1) / 10_000, 4), number))
    error = "SourceError" if random.random() < 0.3 else None
    source = Timed(tuple(elements), round(round(at + random.uniform(0.1, 5), 2) + 0.0051, 4), error)
    first = rows[seed % len(rows)]
    others = random.sample([each for each in rows if each != first], random.randrange(4))
    return source, tuple(combined(source, [first, *others])), random.choice([*READERS])


def combined(source: Timed, operators: list[str]) -> Iterator[str]:
    """Those of *operators* that may follow each other after *source*."""
    expected, is_kept, is_above = source, False, False
    for name in operators:
        row = ROWS[name]
        if (expected.error and not row.fails) or (row.is_first and is_above):
            continue
        if is_kept and name in REPEATING:
            continue
        expected, is_above, is_kept = row.meaning(expected), True, is_kept or row.keeps
        yield name


def rounded(timed: Timed) -> Timed:
    elements = tuple((round(at, 4), value) for at, value in timed.elements)
    return Timed(elements, round(timed.end, 4), timed.error)


def program(source: Timed, operators: tuple[str, ...], kind: str) -> tuple[str, Timed]:
    """The text of a flow, and what it means."""
    text, expected = f"{kind}({source})", source
    for name in operators:
        text, expected = ROWS[name].text.format(flow=text), ROWS[name].meaning(expected)
    return text, rounded(expected)


def failure_of(source: Timed, operators: tuple[str, ...], reader: str) -> str | None:
    """The script of a program that fails, and why; None if it does not."""
    waits = any(ROWS[name].is_first for name in operators)
    kind = "hot" if waits or len(source.elements) % 2 else "cold"
    text, expected = program(source, operators, kind)
    script = f"{HEADER}\ncheck_alone(lambda: {text}, {expected}, {reader!r})\n"
    try:
        exec(compile(script, "<script>", "exec"), {})
    except Exception as error:
        return f"{script}\n{error!r}"
    return None


def shrunk(source: Timed, operators: tuple[str, ...], reader: str) -> str:
    """The least program that fails as the given one does."""
    least = failure_of(source, operators, reader) or "it fails no longer"
    while True:
        fewer = [operators[:i] + operators[i + 1 :] for i in range(len(operators))]
        less = [source.elements[:i] + source.elements[i + 1 :] for i in range(len(source.elements))]
        simpler = [(source, each) for each in fewer]
        simpler += [(Timed(each, source.end, source.error), operators) for each in less]
        for candidate in simpler:
            if (found := failure_of(*candidate, reader)) is not None:
                (source, operators), least = candidate, found
                break
        else:
            return least


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(PARTS))
def test_random_flows_emit_what_the_model_says_when_it_says(part: int) -> None:
    for seed in seeds(part, COUNTS, PARTS):
        source, operators, reader = random_flow(seed)
        if failure_of(source, operators, reader) is not None:
            raise AssertionError(f"SEED={seed}\n\n{shrunk(source, operators, reader)}")


# -- slow readers ----------------------------------------------------------------------------------
BY_THE_CLOCK: Final = (
    "buffer_timeout",
    "debounce",
    "delay",
    "delay_subscription",
    "replay",
    "sample",
    "share",
    "throttle_first",
    "throttle_latest",
    "window_reduce",
    "window_timeout",
)
"""Which emit by the clock alone, also to a slow reader. The others read ahead for one that requests
ahead: so a source that waits goes on earlier, and what is cut later has been delivered."""
BY_POLICY: Final = ("on_backpressure_drop", "on_backpressure_latest")
"""What they drop is tested with the policies."""
SOURCE: Final = Timed(
    tuple(zip((1, 2, 2.5, 6, 6.25, 6.5, 6.6, 12, 12.25, 19), range(10), strict=True)), 21
)


def flow_of(name: str, kind: str) -> Callable[[], Flow[Any]]:
    text, _ = program(SOURCE, (name,), kind)
    return lambda: eval(text)


@pytest.mark.parametrize("pace", [0.6, 2.2])
@pytest.mark.parametrize("name", [each for each in ROWS if each not in BY_POLICY])
def test_slow_readers_see_the_same(name: str, pace: float) -> None:
    """All of them do where only the clock counts; else, those that ask one by one."""
    for kind in ("hot", "cold"):
        is_clocked = name in BY_THE_CLOCK and kind == "hot"
        readers = ONE_BY_ONE | ALL_AT_ONCE if is_clocked else ONE_BY_ONE
        found = {each: seen_by(each, flow_of(name, kind), pace) for each in readers}
        assert all(each == found["request(1)"] for each in found.values()), (kind, found)


# -- the registry ----------------------------------------------------------------------------------
CLOCKS: Final = ("Duration", "timedelta", "RetryPolicy", "Limit")
WITHOUT: Final = {
    "for_each": "a sink; the readers above use it",
    "running": "a sink",
    "run_until_signal": "a sink",
    "from_lines": "polls a file, and not by the clock of the test",
    "from_process": "waits for a program, and not by the clock of the test",
    "interval": "in merge_with, with_latest_from and the pipelines",
    "timer": "in on_error_resume, take_until and switch_map",
    "CircuitBreaker": "a limit",
    "RateLimit": "a limit",
    "RetryPolicy": "a policy",
    "ReplayProcessor": "as replay",
}


def with_a_clock() -> set[str]:
    """The names that have a parameter of time."""
    return {
        name
        for owner in (r, Flow)
        for name in {*PUBLIC, *dir(Flow)}
        if not name.startswith("_") and callable(getattr(owner, name, None))
        if has_a_clock(getattr(owner, name))
    }


def has_a_clock(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(word in str(each.annotation) for each in parameters for word in CLOCKS)


def test_every_operator_and_source_with_a_clock_has_a_row() -> None:
    missing = with_a_clock() - names(ROWS) - {*WITHOUT}
    assert not missing, (
        f"add what each makes of timed elements to ROWS in tests/model/times.py: {sorted(missing)}"
    )
    assert {*WITHOUT} <= with_a_clock()
