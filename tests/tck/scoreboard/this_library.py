"""Representative flows of this library."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any, Final

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.spec import Publisher
from reactive_aio.tck import Candidate
from reactive_aio.tck.adapters import Operator, operator, sink

from .contestant import Contestant

__all__ = ("THIS_LIBRARY",)

Shape = Callable[[Flow[int]], Flow[int]]


async def soon(element: int) -> int:
    return element


def numbers() -> Flow[int]:
    return r.generate(lambda n: (n, n + 1), 0)


def failing() -> Flow[int]:
    return r.just(0).concat_with(r.error(OSError("no more")))


def closing(n: int, closed: Callable[[], None]) -> Flow[int]:
    return r.range(n).do_finally(lambda _: closed())


def flow(shape: Shape) -> Candidate:
    """A flow of *shape*."""
    return Candidate(
        publisher=lambda n: shape(r.range(n)),
        failing_publisher=lambda: shape(failing()),
        infinite_publisher=lambda: shape(numbers()),
        closing_publisher=lambda n, closed: shape(closing(n, closed)),
    )


def chain(source: Flow[int]) -> Flow[int]:
    return source.map(lambda x: x + 1).filter(lambda _: True).map(lambda x: x - 1)


def iterated() -> Candidate:
    async def upto(n: int) -> AsyncIterator[int]:
        for i in range(n):
            yield i

    async def broken() -> AsyncIterator[int]:
        yield 0
        raise OSError("no more")

    async def endless() -> AsyncIterator[int]:
        n = 0
        while True:
            yield (n := n + 1)

    async def releasing(n: int, closed: Callable[[], None]) -> AsyncIterator[int]:
        try:
            for i in range(n):
                yield i
        finally:
            closed()

    return Candidate(
        publisher=lambda n: r.defer(lambda: r.from_aiter(upto(n))),
        failing_publisher=lambda: r.from_aiter(broken()),
        infinite_publisher=lambda: r.from_aiter(endless()),
        closing_publisher=lambda n, closed: r.from_aiter(releasing(n, closed)),
    )


def created() -> Candidate:
    def emitting(emit: Callable[[r.Emitter[int]], object]) -> Flow[int]:
        return r.create(emit, capacity=4)

    async def upto(n: int, to: r.Emitter[int]) -> None:
        for i in range(n):
            await to.emit(i)

    async def broken(to: r.Emitter[int]) -> None:
        await to.emit(0)
        raise OSError("no more")

    return Candidate(
        publisher=lambda n: emitting(lambda to: upto(n, to)),
        failing_publisher=lambda: emitting(broken),
        infinite_publisher=lambda: emitting(lambda to: upto(2**63, to)),
    )


def fused() -> Candidate:
    # Also as a processor. The other shapes subscribe upstream only when something is requested, and
    # before that the adapter has no subscriber to pass a terminal signal to.
    def between(publisher: Publisher[int]) -> Publisher[int]:
        return chain(r.from_publisher(publisher))

    def processor(_size: int) -> Operator:
        return operator(between)

    return replace(flow(chain), processor=processor, max_subscribers=1)


def boundary() -> Candidate:
    return flow(lambda up: up.boundary(2))


def mapped_async() -> Candidate:
    return flow(lambda up: up.map_async(soon, concurrency=3))


def merged() -> Candidate:
    return flow(lambda up: r.merge(up, r.empty(), prefetch=2))


def unicast() -> Candidate:
    return Candidate(processor=r.UnicastProcessor[Any], max_subscribers=1)


def multicast() -> Candidate:
    return Candidate(processor=r.MulticastProcessor[Any])


def to_list() -> Candidate:
    return Candidate(subscriber=lambda: sink(lambda up: r.from_publisher(up).to_list()))


THIS_LIBRARY: Final = (
    Contestant("reactive-aio", "a fused chain", fused),
    Contestant("reactive-aio", "boundary", boundary),
    Contestant("reactive-aio", "map_async", mapped_async),
    Contestant("reactive-aio", "merge", merged),
    Contestant("reactive-aio", "from_aiter", iterated),
    Contestant("reactive-aio", "create", created),
    Contestant("reactive-aio", "UnicastProcessor", unicast),
    Contestant("reactive-aio", "MulticastProcessor", multicast),
    Contestant("reactive-aio", "to_list", to_list),
)
