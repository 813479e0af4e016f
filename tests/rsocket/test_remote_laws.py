"""The laws of publishers hold at the other end of a connection."""

from typing import Any

from reactive_aio import Flow, from_iterable
from reactive_aio.rsocket import JSON, Router, loopback
from reactive_aio.tck import Subject
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


open_: list[Any] = []


def ask(route: str) -> Flow[Any]:
    requester = loopback(router, codec=JSON, on_error=str)
    open_.append(requester)
    return requester.request_stream(route=route)


def echo(n: int) -> Flow[Any]:
    requester = loopback(echoing, codec=JSON, on_error=str)
    open_.append(requester)
    return requester.request_channel(range(n), route="echo")


echoing = Router()


@echoing.route("echo")
def echoes(incoming: Flow[Any]) -> Flow[Any]:
    return incoming


async def close() -> None:
    while open_:
        await open_.pop().aclose()


def streams() -> Subject:
    return Subject(
        name="request_stream",
        publisher=lambda n: ask(f"range.{n}"),
        failing_publisher=lambda: ask("failing"),
        infinite_publisher=lambda: ask("endless"),
        after_each=close,
        max_elements=2**62,
    )


def channels() -> Subject:
    return Subject(name="request_channel", publisher=echo, after_each=close, max_elements=2**62)


test_streams = laws(streams)
test_channels = laws(channels)
