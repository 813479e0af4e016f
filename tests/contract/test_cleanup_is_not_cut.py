"""A cleanup that has begun runs to its end, whatever happens meanwhile.

`CLEANUPS` are the places where a function of the user cleans up, and what has begun that;
`INTERRUPTIONS` are what happens in the middle of it. The sources and calls of the model clean up as
well, below every operator and for every consumer; there, the moment is random.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.testing import SubscriberProbe
from tests.harness.loops import REAL_LOOPS, LoopFactory
from tests.harness.one_run import in_one_run

TURNS = 12
"""How long a cleanup takes."""


class Service:
    """What functions of the user use, and have to close."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.waits = asyncio.Event()
        self.begun = asyncio.Event()
        self.over = asyncio.Event()

    async def close(self) -> None:
        """Close slowly: half of the turns are waits for a future, as those for a socket are."""
        self.log.append("begun")
        self.begun.set()
        try:
            for i in range(TURNS):
                if i % 2:
                    await asyncio.sleep(0)
                else:
                    await self._next_turn()
            self.log.append("closed")
        except BaseException as error:
            self.log.append(f"cut by {error!r}")
            raise
        finally:
            self.over.set()

    @staticmethod
    async def _next_turn() -> None:
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        loop.call_soon(turn.set_result, None)
        await turn

    async def __aenter__(self) -> int:
        return 1

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def wait(self) -> None:
        """Wait for what never comes."""
        self.waits.set()
        await asyncio.Event().wait()

    def signal(self) -> Flow[bool]:
        """An element when something waits."""
        return r.from_awaitable(self.waits.wait)


# -- where the cleanup is, and what has begun it ---------------------------------------------------
def ends(service: Service) -> Flow[int]:
    """A generator that reaches its end."""

    async def source() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            await service.close()

    return r.from_aiter(source)


def fails(service: Service) -> Flow[int]:
    """A generator that has failed by itself."""

    async def source() -> AsyncIterator[int]:
        yield 1
        try:
            raise OSError("the connection was lost")
        finally:
            await service.close()

    return r.from_aiter(source).on_error_complete()


def rolls_back(service: Service) -> Flow[int]:
    async def source() -> AsyncIterator[int]:
        yield 1
        try:
            raise OSError("the connection was lost")
        except OSError:
            await service.close()
            raise

    return r.from_aiter(source).on_error_complete()


def leaves(service: Service) -> Flow[int]:
    """A generator that leaves its context manager."""

    async def source() -> AsyncIterator[int]:
        async with service as element:
            yield element

    return r.from_aiter(source)


def waits(service: Service) -> Flow[int]:
    """A generator that waits for its next element."""

    async def source() -> AsyncIterator[int]:
        try:
            yield 1
            await service.wait()
        finally:
            await service.close()

    return r.from_aiter(source)


def flushes(service: Service) -> Flow[int]:
    """The same; it turns its cancellation into its end."""

    async def source() -> AsyncIterator[int]:
        yield 1
        try:
            await service.wait()
        except asyncio.CancelledError:
            await service.close()

    return r.from_aiter(source)


def iterates(service: Service) -> Flow[int]:
    """An iterator whose ``aclose`` no clause of a caller shows to be a cleanup."""

    class Iterator:
        def __aiter__(self) -> "Iterator":
            return self

        async def __anext__(self) -> int:
            await asyncio.sleep(0)
            return 1

        aclose = staticmethod(service.close)

    return r.from_aiter(Iterator).take(2)


async def called(service: Service, _: object = None) -> int:
    try:
        await asyncio.sleep(0)
        return 1
    finally:
        await service.close()


async def called_and_failed(service: Service, _: object = None) -> int:
    try:
        raise OSError("the connection was lost")
    except BaseException:
        await service.close()
        raise


def calls(
    function: Callable[..., Awaitable[int]], **options: Any
) -> Callable[[Service], Flow[Any]]:
    return lambda service: r.just(1).map_async(lambda _: function(service), **options)


def emits(service: Service) -> Flow[int]:
    async def emitter(to: r.Emitter[int]) -> None:
        try:
            await to.emit(1)
        finally:
            await service.close()

    return r.create(emitter)


def completes(service: Service) -> Flow[int]:
    async def emitter(to: r.Emitter[int]) -> None:
        try:
            to.complete()
        finally:
            await service.close()

    return r.create(emitter)


CLEANUPS: dict[str, Callable[[Service], Flow[Any]]] = {
    "generator: its end": ends,
    "generator: its failure": fails,
    "generator: an except clause that raises": rolls_back,
    "generator: async with": leaves,
    "generator: closed": lambda service: waits(service).take(1),
    "generator: cancelled by take_until": lambda service: waits(service).take_until(
        service.signal()
    ),
    "generator: a cancellation that it handles": lambda service: flushes(service).take_until(
        service.signal()
    ),
    "iterator: closed": iterates,
    "map_async": calls(called),
    "map_async: failed": lambda service: calls(called_and_failed)(service).on_error_complete(),
    "map_async: concurrent": calls(called, concurrency=3),
    "map_async: its time is over": lambda service: calls(called_for_ever, timeout=0.02)(
        service
    ).on_error_complete(),
    "from_awaitable": lambda service: r.from_awaitable(lambda: called(service)),
    "using": lambda service: r.using(lambda: service, lambda _: [1]),
    "create": emits,
    "create: after its end": completes,
}


async def called_for_ever(service: Service, _: object = None) -> int:
    try:
        await service.wait()
        return 1
    finally:
        await service.close()


# -- what happens meanwhile ------------------------------------------------------------------------
Interruption = Callable[[Flow[Any], Service], Awaitable[None]]


async def pull(element: object) -> None:
    await asyncio.sleep(0)


async def drain(flow: Flow[Any], service: Service) -> None:
    async with flow.running(pull) as run:
        await service.begun.wait()
        await run.drain(timeout=60)


async def drain_without_time(flow: Flow[Any], service: Service) -> None:
    async with flow.running() as run:
        await service.begun.wait()
        await run.drain(timeout=0)


async def cancel_a_drain(flow: Flow[Any], service: Service) -> None:
    async def block() -> None:
        async with flow.running() as run:
            await service.begun.wait()
            await run.drain(timeout=60)

    await cancel(block(), service)


async def cancel(consuming: Any, service: Service) -> None:
    task = asyncio.ensure_future(consuming)
    await service.begun.wait()
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    await asyncio.wait([task])
    if not task.cancelled():
        task.exception()


async def cancel_to_list(flow: Flow[Any], service: Service) -> None:
    await cancel(flow.to_list(), service)


async def cancel_async_for(flow: Flow[Any], service: Service) -> None:
    async def consume() -> None:
        async for _ in flow:
            pass

    await cancel(consume(), service)


async def cancel_stream(flow: Flow[Any], service: Service) -> None:
    async def consume() -> None:
        async with flow.stream(prefetch=4) as elements:
            async for _ in elements:
                pass

    await cancel(consume(), service)


async def subscribe(flow: Flow[Any], service: Service) -> None:
    probe = SubscriberProbe[Any](10**6).subscribed_to(flow)
    await service.begun.wait()
    probe.cancel()
    probe.cancel()
    await asyncio.sleep(0)
    probe.cancel()


async def fail_beside(flow: Flow[Any], service: Service) -> None:
    async def fail() -> int:
        await service.begun.wait()
        raise OSError("another source")

    with pytest.raises(OSError, match="another source"):
        await r.merge(flow, r.from_awaitable(fail)).to_list()


INTERRUPTIONS: dict[str, Interruption] = {
    "drain": drain,
    "the end of the time of a drain": drain_without_time,
    "a drain that is cancelled": cancel_a_drain,
    "to_list is cancelled repeatedly": cancel_to_list,
    "async for is cancelled": cancel_async_for,
    "a stream is cancelled": cancel_stream,
    "a subscriber cancels": subscribe,
    "another source fails": fail_beside,
}


@in_one_run
@pytest.mark.parametrize("interruption", INTERRUPTIONS)
@pytest.mark.parametrize("cleanup", CLEANUPS)
async def test_a_cleanup_runs_to_its_end(
    cleanup: str, interruption: str, expects_loop_errors: list[Any]
) -> None:
    service = Service()
    async with asyncio.timeout(10):
        with suppress(OSError):  # after the cleanup: that of the generator, or of the call
            await INTERRUPTIONS[interruption](CLEANUPS[cleanup](service), service)
        await service.over.wait()
    await asyncio.sleep(0)
    assert all(isinstance(each["exception"], OSError) for each in expects_loop_errors)
    assert service.log == ["begun", "closed"]


@pytest.mark.parametrize("make_loop", REAL_LOOPS.values(), ids=REAL_LOOPS)
@pytest.mark.parametrize("cleanup", CLEANUPS)
def test_a_cleanup_is_not_cut_by_the_end_of_the_program(
    cleanup: str, make_loop: LoopFactory
) -> None:
    logs: list[list[str]] = []

    async def main() -> None:
        service = Service()
        logs.append(service.log)
        SubscriberProbe[Any](10**6).subscribed_to(CLEANUPS[cleanup](service))
        await service.begun.wait()

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(main())
    assert logs == [["begun", "closed"]]
