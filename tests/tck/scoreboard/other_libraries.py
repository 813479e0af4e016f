"""Other libraries, each used as its own documentation shows.

Concepts that a library lacks are left out: an endless Observable on the thread of its subscriber,
awaited signals in a library that does not await.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from importlib import import_module
from itertools import count
from typing import Any, Final

from reactive_aio.tck import Candidate
from reactive_aio.tck.adapters import (
    from_aioreactive,
    from_aiostream,
    from_anyio_stream,
    from_async_iterable,
    from_reactivex,
    from_rsocket,
)

from .contestant import Contestant

__all__ = ("OTHER_LIBRARIES",)


def library(module: str) -> Any:
    """A module of a third party, as Any."""
    return import_module(module)


def nothing() -> None:
    """Ignores the end."""


def same(x: int) -> int:
    return x


def fails(x: int) -> int:
    if x:
        raise OSError("no more")
    return x


def always(_x: int) -> bool:
    return True


def following(x: int) -> int:
    return x + 1


class Numbers:
    """Starts again with each ``async for``, as its ``__aiter__`` is a generator function."""

    def __init__(self, n: int | None, closed: Callable[[], None] = nothing) -> None:
        self._numbers: Any = count() if n is None else range(n)
        self._closed = closed

    async def __aiter__(self) -> AsyncIterator[int]:
        try:
            for number in self._numbers:
                yield number
                await asyncio.sleep(0)
        finally:
            self._closed()


async def broken() -> AsyncIterator[int]:
    yield 0
    raise OSError("no more")


def generators() -> Candidate:
    return Candidate(
        publisher=from_async_iterable(Numbers),
        failing_publisher=from_async_iterable(broken),
        infinite_publisher=from_async_iterable(lambda: Numbers(None)),
        closing_publisher=from_async_iterable(Numbers),
    )


def anyio_streams() -> Candidate:
    async def send(stream: Any, n: int | None, closed: Callable[[], None] = nothing) -> None:
        try:
            async for number in Numbers(n):
                await stream.send(number)
        finally:
            closed()

    async def fail(stream: Any) -> None:
        await stream.send(0)
        raise OSError("no more")

    async def endless(stream: Any) -> None:
        await send(stream, None)

    return Candidate(
        publisher=from_anyio_stream(send),
        failing_publisher=from_anyio_stream(fail),
        infinite_publisher=from_anyio_stream(endless),
        closing_publisher=from_anyio_stream(send),
    )


def aiostreams() -> Candidate:
    stream, pipe = library("aiostream.stream"), library("aiostream.pipe")

    def numbers(n: int, closed: Callable[[], None] = nothing) -> Any:
        return stream.iterate(Numbers(n, closed)) | pipe.map(same)

    return Candidate(
        publisher=from_aiostream(numbers),
        failing_publisher=from_aiostream(lambda: stream.iterate(broken()) | pipe.map(same)),
        infinite_publisher=from_aiostream(lambda: stream.count() | pipe.map(same)),
        closing_publisher=from_aiostream(numbers),
    )


def aiostream_merged() -> Candidate:
    stream = library("aiostream.stream")

    def numbers(n: int, closed: Callable[[], None] = nothing) -> Any:
        return stream.merge(Numbers(n, closed), Numbers(0))

    return Candidate(
        publisher=from_aiostream(numbers),
        failing_publisher=from_aiostream(lambda: stream.merge(broken(), Numbers(0))),
        infinite_publisher=from_aiostream(lambda: stream.merge(stream.count(), Numbers(0))),
        closing_publisher=from_aiostream(numbers),
    )


def aioreactives() -> Candidate:
    rx, pipe = library("aioreactive"), library("expression").pipe

    def mapped(source: Any, mapper: Callable[[int], int] = same) -> Any:
        return pipe(source, rx.map(mapper))

    return Candidate(
        publisher=from_aioreactive(lambda n: mapped(rx.from_iterable(range(n)))),
        failing_publisher=from_aioreactive(lambda: mapped(rx.from_iterable(range(2)), fails)),
        closing_publisher=from_aioreactive(
            lambda n, closed: mapped(rx.from_async_iterable(Numbers(n, closed)))
        ),
        knows_demand=False,
    )


def observables(**on: Any) -> Candidate:
    rx, ops = library("reactivex"), library("reactivex.operators")

    return Candidate(
        publisher=from_reactivex(lambda n: rx.range(n).pipe(ops.map(same)), **on),
        failing_publisher=from_reactivex(lambda: rx.range(2).pipe(ops.map(fails)), **on),
        closing_publisher=from_reactivex(
            lambda n, closed: rx.range(n).pipe(ops.finally_action(closed)), **on
        ),
        knows_demand=False,
        awaits_signals=False,
    )


def scheduled() -> Candidate:
    rx, schedulers = library("reactivex"), library("reactivex.scheduler.eventloop")

    def on_loop() -> Any:
        return schedulers.AsyncIOScheduler(asyncio.get_running_loop())

    endless = from_reactivex(lambda: rx.generate(0, always, following), scheduler=on_loop)
    return replace(observables(scheduler=on_loop), infinite_publisher=endless)


Flagged = Iterator[tuple[int, bool]]
"""Elements of rsocket say whether they are the last."""
Given = Callable[[], Flagged]


def rsockets(wrap: Callable[[Given], Any]) -> Candidate:
    """*wrap* makes a publisher of a generator function."""
    streams = library("rsocket.streams.empty_stream")

    def upto(n: int, closed: Callable[[], None] = nothing) -> Any:
        def numbers() -> Flagged:
            try:
                for i in range(n):
                    yield i, i == n - 1
            finally:
                closed()

        return wrap(numbers) if n else streams.EmptyStream()

    def failing() -> Flagged:
        yield 0, False
        raise OSError("no more")

    def endless() -> Flagged:
        for i in count():
            yield i, False

    return Candidate(
        publisher=from_rsocket(upto),
        failing_publisher=from_rsocket(lambda: wrap(failing)),
        infinite_publisher=from_rsocket(lambda: wrap(endless)),
        closing_publisher=from_rsocket(upto),
        awaits_signals=False,
    )


def rsocket_generators() -> Candidate:
    return rsockets(library("rsocket.streams.stream_from_generator").StreamFromGenerator)


def rsocket_async_generators() -> Candidate:
    streams = library("rsocket.streams.stream_from_async_generator")

    def wrap(given: Given) -> Any:
        async def generator() -> AsyncIterator[tuple[int, bool]]:
            # Closes the given generator with its own end.
            numbers: Any = given()
            try:
                for number in numbers:
                    yield number
            finally:
                numbers.close()

        return streams.StreamFromAsyncGenerator(generator)

    return rsockets(wrap)


def rsocket_collector() -> Candidate:
    collectors = library("rsocket.awaitable.collector_subscriber")

    # A connection makes the first request, and the subscriber the others.
    return Candidate(
        subscriber=lambda: collectors.CollectorSubscriber(limit_rate=4),
        trigger_request=lambda collector: collector.request(4),
    )


OTHER_LIBRARIES: Final = (
    Contestant("", "async generators", generators, "from_async_iterable"),
    Contestant("anyio", "memory object streams", anyio_streams, "from_anyio_stream"),
    Contestant("aiostream", "iterate, map", aiostreams, "from_aiostream"),
    Contestant("aiostream", "merge", aiostream_merged, "from_aiostream"),
    Contestant("aioreactive", "from_iterable, map", aioreactives, "from_aioreactive"),
    Contestant("reactivex", "range, map", observables, "from_reactivex"),
    Contestant("reactivex", "the same on AsyncIOScheduler", scheduled, "from_reactivex"),
    Contestant("rsocket", "StreamFromGenerator", rsocket_generators, "from_rsocket"),
    Contestant("rsocket", "StreamFromAsyncGenerator", rsocket_async_generators, "from_rsocket"),
    Contestant("rsocket", "CollectorSubscriber", rsocket_collector),
)
