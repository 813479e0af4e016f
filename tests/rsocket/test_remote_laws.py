"""The laws of publishers and subscribers hold at the other end of a connection."""

from collections.abc import Callable
from typing import Any

from reactive_aio import Flow, from_iterable
from reactive_aio.rsocket import JSON, Requester, Router, connect, loopback, serve
from reactive_aio.spec import Processor
from reactive_aio.tck import Candidate
from reactive_aio.tck.adapters import operator
from reactive_aio.tck.pytest_plugin import laws

router = Router()


@router.route("range.{n}")
def count(n: str) -> Flow[int]:
    return from_iterable(range(int(n)))


@router.route("failing")
def failing() -> Flow[float]:
    return from_iterable([2, 1, 0]).map(lambda each: 1 / each)


@router.route("endless")
def endless() -> Flow[int]:
    return from_iterable(range(2**62))


closings: list[Callable[[], None]] = []


@router.route("closing.{n}.{which}")
def closing(n: str, which: str) -> Flow[int]:
    closed = closings[int(which)]
    return from_iterable(range(int(n))).do_finally(lambda _: closed())


@router.route("echo")
def echoes(incoming: Flow[Any]) -> Flow[Any]:
    return incoming


ends: list[Any] = []
"""Open connections, closed after each law: a requester before its server."""

IN_MEMORY, TCP, WEBSOCKET = "in memory", "tcp://127.0.0.1:0", "ws://127.0.0.1:0/laws"


async def reach(where: str) -> Requester[Any]:
    """One connection for each publisher."""
    if where == IN_MEMORY:
        requester: Requester[Any] = loopback(router, codec=JSON, on_error=str)
    else:
        server = await serve(where, router, on_error=str)
        ends.append(server)
        requester = await connect(server.uri, codec=JSON)
    ends.append(requester)
    return requester


async def close() -> None:
    while ends:
        await ends.pop().aclose()


def streams(where: str) -> Candidate:
    """A publisher is served by one side and requested by the other."""

    async def ask(route: str) -> Flow[Any]:
        return (await reach(where)).request_stream(route=route)

    async def ask_closing(n: int, closed: Callable[[], None]) -> Flow[Any]:
        closings.append(closed)
        return await ask(f"closing.{n}.{len(closings) - 1}")

    return Candidate(
        name=f"request_stream, {where}",
        publisher=lambda n: ask(f"range.{n}"),
        failing_publisher=lambda: ask("failing"),
        infinite_publisher=lambda: ask("endless"),
        closing_publisher=ask_closing,
        after_each=close,
        max_elements=2**62,
    )


def channels(where: str) -> Candidate:
    """A publisher is sent to the other side, which sends it back."""

    async def echo(n: int) -> Flow[Any]:
        return (await reach(where)).request_channel(range(n), route="echo")

    return Candidate(
        name=f"request_channel, {where}", publisher=echo, after_each=close, max_elements=2**62
    )


def processors(where: str) -> Candidate:
    """An echo over two wires: its subscriber and its publisher keep the rules."""

    async def echo(size: int) -> Processor[Any, Any]:
        del size
        requester = await reach(where)
        return operator(lambda source: requester.request_channel(source, route="echo"))

    return Candidate(
        name=f"a channel as a processor, {where}",
        processor=echo,
        after_each=close,
        max_subscribers=1,
    )


test_streams_in_memory = laws(lambda: streams(IN_MEMORY))
test_streams_over_tcp = laws(lambda: streams(TCP))
test_streams_over_websocket = laws(lambda: streams(WEBSOCKET))
test_channels_in_memory = laws(lambda: channels(IN_MEMORY))
test_channels_over_tcp = laws(lambda: channels(TCP))
test_processors_in_memory = laws(lambda: processors(IN_MEMORY))
test_processors_over_websocket = laws(lambda: processors(WEBSOCKET))
