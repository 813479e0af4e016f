"""The text protocol, message by message: docs/protocol.md."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from reactive_aio import Flow, error, from_aiter, from_iterable, range as numbers
from reactive_aio.asgi import (
    ClientDisconnected,
    Counters,
    Peer,
    PeerFailed,
    Refused,
    websocket,
)
from reactive_aio.errors import NotAnElement, RuleViolation
from reactive_aio.rsocket import ApplicationError, Router
from reactive_aio.rsocket.protocol.errors import error_of
from reactive_aio.testing.probes import PublisherProbe, SubscriberProbe
from tests.asgi.calls import SocketCall
from tests.asgi.routes import MOST, connected
from tests.harness.leftover_checks import Context


# -- the six types ---------------------------------------------------------------------------------
async def test_elements_are_sent_as_they_are_requested() -> None:
    """Rules 1.1, 3.8; the example of docs/protocol.md."""
    call = await connected()
    call.send("subscribe", 1, route="count.9", n=3)
    assert await call.values(3) == [0, 1, 2]
    call.send("request", 1, n=1)
    call.send("request", 1, n=1)
    assert await call.values(5) == [0, 1, 2, 3, 4]
    call.send("cancel", 1)
    call.send("subscribe", "other", route="count.1", n=1)
    assert (await call.received(7))[5:] == [
        {"type": "next", "id": "other", "value": 0},
        {"type": "complete", "id": "other"},
    ]
    await call.close()


async def test_a_subscription_without_n_requests_nothing() -> None:
    probe = PublisherProbe[int]()
    call = await connected({"a": probe})
    call.send("subscribe", 1, route="a")
    call.send("subscribe", 2, route="a", n=0)
    await probe.expect_subscriber(2)
    await probe.expect_nothing()
    await call.close()


async def test_handlers_return_values_awaitables_or_none() -> None:
    call = await connected()
    call.send("subscribe", 1, route="one", n=1, params={"x": [1]})
    assert await call.values(2) == [[1], "complete"]
    call.send("subscribe", 1, route="list", n=1)
    assert (await call.values(4))[2:] == [[1, 2], "complete"]
    call.send("subscribe", 1, route="nothing")
    assert (await call.values(5))[4:] == ["complete"]
    await call.close()


async def test_streams_take_turns() -> None:
    call = await connected({"all": numbers(2**60)})
    for id in range(3):
        call.send("subscribe", id, route="all", n=100)
    messages = await call.received(300)
    assert {each["id"] for each in messages[:60]} == {0, 1, 2}
    for id in range(3):
        assert [each["value"] for each in messages if each["id"] == id] == [*range(100)]
    await call.close()


async def test_an_id_can_be_reused_after_its_stream_has_ended() -> None:
    call = await connected()
    for _ in range(3):
        call.send("subscribe", 7, route="count.0")
    assert await call.values(3) == ["complete"] * 3
    await call.close()


async def test_an_error_is_sent_with_its_status_and_without_its_text(
    expects_loop_errors: list[Context],
) -> None:
    call = await connected({
        "fails": error(ValueError("secret")),
        "refuses": error(Refused(410, "moved")),
    })  # fmt: skip
    call.send("subscribe", 1, route="fails")
    call.send("subscribe", 2, route="refuses")
    assert await call.received(2) == [
        {"type": "error", "id": 1, "status": 500, "detail": "the stream failed"},
        {"type": "error", "id": 2, "status": 410, "detail": "moved"},
    ]
    assert len(expects_loop_errors) == 1
    await call.close()


async def test_a_handler_that_fails_ends_its_stream() -> None:
    errors: list[BaseException] = []
    call = await connected(on_error=errors.append, expose_errors=True)
    call.send("subscribe", 1, route="one", n=1, params={})
    call.send("subscribe", 3, route="count.x", n=1)
    messages = await call.received(2)
    assert {each["id"]: each["status"] for each in messages} == {1: 500, 3: 400}
    assert isinstance(errors[0], KeyError)
    await call.close()


async def test_an_error_of_another_server_is_not_passed_on() -> None:
    """Its text may name hosts and tables."""
    errors: list[BaseException] = []

    async def gateway() -> None:
        raise error_of(0x301, b"no such table at db-7.internal", origin=object())

    call = await connected({"me": gateway}, on_error=errors.append)
    call.send("subscribe", 1, route="me", n=1)
    assert await call.received(1) == [
        {"type": "error", "id": 1, "status": 500, "detail": "the stream failed"}
    ]
    assert [type(each) for each in errors] == [ApplicationError]
    await call.close()


async def test_an_element_that_cannot_be_encoded_ends_its_stream() -> None:
    probe = PublisherProbe[Any]()
    call = await connected({"a": probe}, on_error=str)
    call.send("subscribe", 1, route="a", n=5)
    await probe.expect_request(2)
    probe.emit(1, object())
    assert await call.values(2) == [1, "error"]
    await probe.expect_cancel()
    await call.close()


async def test_cancel_reaches_the_publisher() -> None:
    probe = PublisherProbe[int]()
    call = await connected({"a": probe})
    call.send("subscribe", 1, route="a", n=5)
    await probe.expect_request(5)
    call.send("cancel")
    await probe.expect_cancel()
    await call.close()


async def test_cancel_reaches_a_handler_that_is_running() -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def slow() -> int:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return 1

    call = await connected({"slow": slow})
    call.send("subscribe", 1, route="slow", n=1)
    await begun.wait()
    call.send("cancel")
    await cancelled.wait()
    call.send("subscribe", 1, route="slow", n=1)
    cancelled.clear()
    await asyncio.sleep(0)
    await call.close()
    assert cancelled.is_set()


async def test_a_disconnect_cancels_all_streams() -> None:
    probes = [PublisherProbe[int]() for _ in range(5)]
    call = await connected({f"p{number}": probe for number, probe in enumerate(probes)})
    for number, probe in enumerate(probes):
        call.send("subscribe", number, route=f"p{number}", n=2)
        await probe.expect_request(2)
    await call.close()
    for probe in probes:
        await probe.expect_cancel()


async def test_the_socket_waits_for_the_cleanup_of_its_streams() -> None:
    cleaned: list[int] = []

    async def source() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(1)

    call = await connected({"a": lambda: from_aiter(source())})
    call.send("subscribe", 1, route="a", n=5)
    await call.received(1)
    await call.close()
    assert cleaned == [1]


# -- demand and memory -----------------------------------------------------------------------------
async def test_a_client_that_does_not_read_costs_at_most_16_elements() -> None:
    probe, counters = PublisherProbe[int](), Counters()
    call = await connected({"a": probe}, counters=counters)
    call.pause()
    call.send("subscribe", 1, route="a", n=MOST)
    await probe.expect_request(16)
    probe.emit(*range(16))
    await probe.expect_nothing()
    assert probe.outstanding == 0
    call.resume()
    assert await call.values(16) == [*range(16)]
    await probe.expect_request(32)
    assert counters.outstanding <= 16
    await call.close()
    assert (counters.open, counters.outstanding, counters.cancelled) == (0, 0, 1)


@pytest.mark.virtual_time
async def test_a_client_that_does_not_read_loses_its_place() -> None:
    probe = PublisherProbe[int]()
    app = websocket({"probe": lambda: probe}, send_timeout=10)
    call = SocketCall(app)
    call.send("subscribe", route="probe", n=5)
    await probe.expect_request(5)
    call.pause()
    await asyncio.sleep(60)  # nothing is sent, so nothing is late
    assert not call.task.done()
    probe.emit(1)
    await asyncio.sleep(9)
    assert not call.task.done()
    await asyncio.sleep(1.5)
    await probe.expect_cancel()
    await call.end(within=0.1)
    assert "0 sockets" in repr(app)


async def test_a_source_that_never_waits_does_not_block_the_loop() -> None:
    call = await connected({"all": numbers(2**60)})
    call.send("subscribe", 1, route="all", n=MOST)
    turns = 0
    while len(call.sent) < 200:
        await asyncio.sleep(0)
        turns += 1
    assert turns > 10
    await call.close()


@pytest.mark.parametrize("n", [MOST, MOST + 1, 2**63, 10**40])
async def test_the_largest_safe_integer_is_unbounded_demand(n: int) -> None:
    """Rule 3.17."""
    call = await connected()
    call.send("subscribe", 1, route="count.50", n=n)
    call.send("request", 1, n=n)
    assert (await call.values(51))[-1] == "complete"
    await call.close()


@pytest.mark.virtual_time  # a message of no use takes milliseconds
async def test_answers_that_are_not_read_pause_the_reader() -> None:
    call = await connected(max_useless=10_000, send_timeout=None)
    call.pause()
    for _ in range(500):
        call.send("subscribe", 1, route="unknown")
    await asyncio.sleep(100)
    assert call.incoming.qsize() > 400
    call.resume()
    assert len(await call.received(500)) == 500
    await call.close()


# -- both directions -------------------------------------------------------------------------------
async def test_a_handler_may_subscribe_to_the_client() -> None:
    call = await connected()
    call.send("subscribe", 1, route="plus", n=2, params={"a": 1})
    (message,) = await call.received(1)
    assert message == {"type": "subscribe", "id": 1, "route": "plus", "n": 2, "params": {"a": 1}}
    call.send("next", 1, value=10)
    call.send("next", 1, value=20)
    assert await call.values(3) == ["subscribe", 11, 21]
    call.send("request", 1, n=1)
    assert (await call.received(4))[3] == {"type": "request", "id": 1, "n": 1}
    call.send("complete", 1)
    assert (await call.values(5))[4:] == ["complete"]
    await call.close()


class ProbeOnConnect:
    """An `on_connect` that subscribes a probe to what the client publishes."""

    def __init__(self, request: int = 0) -> None:
        self.probe = SubscriberProbe[Any](request)
        self.peer: Peer | None = None

    def __call__(self, peer: Peer) -> None:
        self.peer = peer
        self.probe.subscribed_to(peer.request_stream({"p": 1}, route="keys"))


async def connect_with_probe(
    request: int, **options: Any
) -> tuple[SocketCall, SubscriberProbe[Any]]:
    handler = ProbeOnConnect(request)
    call = await connected(on_connect=handler, **options)
    await handler.probe.expect_subscription()
    return call, handler.probe


async def connect_peer() -> tuple[SocketCall, Peer]:
    handler = ProbeOnConnect()
    call = await connected(on_connect=handler)
    await handler.probe.expect_subscription()
    assert handler.peer is not None
    return call, handler.peer


async def test_on_connect_may_subscribe_to_the_client() -> None:
    call, probe = await connect_with_probe(2)
    (message,) = await call.received(1)
    assert message == {"type": "subscribe", "id": 1, "route": "keys", "n": 2, "params": {"p": 1}}
    call.send("next", value="a")
    assert await probe.next_element() == "a"
    probe.cancel()
    assert (await call.received(2))[1] == {"type": "cancel", "id": 1}
    await call.close()


async def test_a_clients_stream_is_requested_when_its_subscriber_requests() -> None:
    call, probe = await connect_with_probe(0)
    for _ in range(20):
        await asyncio.sleep(0)
    assert call.messages == []
    probe.request(2)
    probe.request(3)
    assert (await call.received(1))[0]["n"] == 5, "requests of one turn of the loop are sent as one"
    probe.request(2**63 - 1)
    assert (await call.received(2))[1]["n"] == MOST
    await call.close()


async def test_an_error_from_the_client_fails_its_stream() -> None:
    for members, expected in (
        ({"status": 404, "detail": "no keys"}, "no keys"),
        ({"status": "x", "detail": 5}, "500"),
    ):
        call, probe = await connect_with_probe(1)
        await call.received(1)
        call.send("error", **members)
        await probe.end()
        assert isinstance(probe.error, PeerFailed)
        assert expected in str(probe.error)
        await call.close()


async def test_a_disconnect_fails_the_streams_that_the_client_publishes() -> None:
    call, probe = await connect_with_probe(1)
    await call.received(1)
    await call.close()
    await probe.end()
    assert isinstance(probe.error, ClientDisconnected)


async def test_a_request_to_a_disconnected_client_fails() -> None:
    handler = ProbeOnConnect()
    call = await connected(on_connect=handler)
    await call.close()
    handler.probe.request(1)
    await handler.probe.end()
    assert isinstance(handler.probe.error, ClientDisconnected)


async def test_more_elements_than_requested_are_a_violation() -> None:
    """Rule 1.1."""
    call, probe = await connect_with_probe(1)
    await call.received(1)
    call.send("next", value=1)
    call.send("next", value=2)
    await probe.end()
    assert probe.elements == [1]
    assert isinstance(probe.error, RuleViolation)
    assert probe.error.rule == "1.1"
    assert (await call.received(2))[1]["type"] == "cancel"
    await call.close()


@pytest.mark.parametrize("members", [{}, {"value": None}])
async def test_null_is_not_an_element(members: dict[str, Any]) -> None:
    """Rule 2.13."""
    call, probe = await connect_with_probe(1)
    await call.received(1)
    call.send("next", **members)
    await probe.end()
    assert isinstance(probe.error, NotAnElement)
    assert (await call.received(2))[1]["type"] == "cancel"
    await call.close()


async def test_on_connect_is_cancelled_when_the_client_disconnects() -> None:
    over = asyncio.Event()

    async def on_connect(peer: Peer) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            over.set()

    call = await connected(on_connect=on_connect)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await call.close()
    assert over.is_set()


async def test_a_disconnect_during_on_connect_is_not_reported() -> None:
    async def on_connect(peer: Peer) -> None:
        await peer.request_stream(route="keys").run()

    call = await connected(on_connect=on_connect)
    await call.received(1)
    await call.close()


async def test_the_disconnect_of_another_client_is_reported() -> None:
    """A stream that relays what it publishes fails, and its own client is still there."""
    errors: list[BaseException] = []
    (publisher, peer), greeting = await connect_peer(), asyncio.Event()

    async def greet(_: Peer) -> None:
        greeting.set()
        await peer.request_stream(route="keys").run()

    relay = {"relay": lambda: peer.request_stream(route="keys")}
    call = await connected(relay, on_connect=greet, on_error=errors.append)
    await greeting.wait()
    call.send("subscribe", 1, route="relay", n=1)
    await publisher.received(2)
    await publisher.close()
    assert (await call.received(1))[0]["detail"] == "the stream failed"
    await call.close()
    assert [type(each) for each in errors] == [ClientDisconnected] * 2


async def test_an_error_of_on_connect_is_reported() -> None:
    errors: list[BaseException] = []

    async def on_connect(peer: Peer) -> None:
        raise ValueError("greeting")

    call = await connected(on_connect=on_connect, on_error=errors.append)
    await call.close()
    assert [str(each) for each in errors] == ["greeting"]


async def test_typed_handlers_get_typed_elements() -> None:
    typed = Router()

    @typed.route("sum")
    def sum_(incoming: Flow[int]) -> Flow[int]:
        return incoming.scan(lambda total, each: total + each)

    call = await connected(typed, on_error=str)
    call.send("subscribe", 1, route="sum", n=5)
    await call.received(1)
    call.send("next", 1, value=2)
    call.send("next", 1, value=3)
    assert (await call.values(3))[1:] == [2, 5]
    call.send("next", 1, value="x")
    messages = await call.received(5)
    assert {each["type"] for each in messages[3:]} == {"cancel", "error"}
    assert [each["status"] for each in messages if each["type"] == "error"] == [400]
    await call.close()


async def test_a_source_of_elements_is_a_route() -> None:
    call = await connected({"a": from_iterable([1]), "b": [2, 3]})
    call.send("subscribe", 1, route="b", n=2)
    assert await call.values(3) == [2, 3, "complete"]
    await call.close()
