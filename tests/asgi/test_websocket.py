"""The text protocol, message by message: docs/protocol.md."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from reactive_aio import Flow, error, from_aiter, from_iterable, range as numbers
from reactive_aio.asgi import (
    ClientLeft,
    Peer,
    PeerFailed,
    Refused,
    Tally,
)
from reactive_aio.errors import NotAnElement, RuleViolation
from reactive_aio.rsocket import Router
from reactive_aio.testing.probes import PublisherProbe, SubscriberProbe
from tests.asgi.calls import SocketCall
from tests.asgi.routes import MOST, called
from tests.harness.leftover_checks import Context


# -- the six types ---------------------------------------------------------------------------------
async def test_elements_come_as_they_are_requested() -> None:
    """Rules 1.1, 3.8; the dialogue of the page."""
    call = await called()
    call.say("subscribe", 1, route="count.9", n=3)
    assert await call.values(3) == [0, 1, 2]
    call.say("request", 1, n=1)
    call.say("request", 1, n=1)
    assert await call.values(5) == [0, 1, 2, 3, 4]
    call.say("cancel", 1)
    call.say("subscribe", "other", route="count.1", n=1)
    assert (await call.came(7))[5:] == [
        {"type": "next", "id": "other", "value": 0},
        {"type": "complete", "id": "other"},
    ]
    await call.left()


async def test_without_n_nothing_is_asked_for() -> None:
    probe = PublisherProbe[int]()
    call = await called({"a": probe})
    call.say("subscribe", 1, route="a")
    call.say("subscribe", 2, route="a", n=0)
    await probe.expect_subscriber(2)
    await probe.expect_nothing()
    await call.left()


async def test_handlers_return_what_they_like() -> None:
    call = await called()
    call.say("subscribe", 1, route="one", n=1, params={"x": [1]})
    assert await call.values(2) == [[1], "complete"]
    call.say("subscribe", 1, route="list", n=1)
    assert (await call.values(4))[2:] == [[1, 2], "complete"]
    call.say("subscribe", 1, route="nothing")
    assert (await call.values(5))[4:] == ["complete"]
    await call.left()


async def test_streams_take_turns() -> None:
    call = await called({"all": numbers(2**60)})
    for id in range(3):
        call.say("subscribe", id, route="all", n=100)
    messages = await call.came(300)
    assert {each["id"] for each in messages[:60]} == {0, 1, 2}
    for id in range(3):
        assert [each["value"] for each in messages if each["id"] == id] == [*range(100)]
    await call.left()


async def test_an_id_is_free_again_when_its_stream_has_ended() -> None:
    call = await called()
    for _ in range(3):
        call.say("subscribe", 7, route="count.0")
    assert await call.values(3) == ["complete"] * 3
    await call.left()


async def test_an_error_says_its_status_and_not_its_text(
    expects_loop_errors: list[Context],
) -> None:
    call = await called({
        "fails": error(ValueError("secret")),
        "refuses": error(Refused(410, "gone")),
    })  # fmt: skip
    call.say("subscribe", 1, route="fails")
    call.say("subscribe", 2, route="refuses")
    assert await call.came(2) == [
        {"type": "error", "id": 1, "status": 500, "detail": "the stream failed"},
        {"type": "error", "id": 2, "status": 410, "detail": "gone"},
    ]
    assert len(expects_loop_errors) == 1
    await call.left()


async def test_a_handler_that_fails_ends_its_stream() -> None:
    errors: list[BaseException] = []
    call = await called(on_error=errors.append, tell_errors=True)
    call.say("subscribe", 1, route="one", n=1, params={})
    call.say("subscribe", 3, route="count.x", n=1)
    messages = await call.came(2)
    assert {each["id"]: each["status"] for each in messages} == {1: 500, 3: 400}
    assert isinstance(errors[0], KeyError)
    await call.left()


async def test_an_element_that_is_no_json_ends_its_stream() -> None:
    probe = PublisherProbe[Any]()
    call = await called({"a": probe}, on_error=str)
    call.say("subscribe", 1, route="a", n=5)
    await probe.expect_request(2)
    probe.emit(1, object())
    assert await call.values(2) == [1, "error"]
    await probe.expect_cancel()
    await call.left()


async def test_cancel_reaches_the_publisher() -> None:
    probe = PublisherProbe[int]()
    call = await called({"a": probe})
    call.say("subscribe", 1, route="a", n=5)
    await probe.expect_request(5)
    call.say("cancel")
    await probe.expect_cancel()
    await call.left()


async def test_cancel_reaches_a_handler_that_is_not_done() -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def slow() -> int:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return 1

    call = await called({"slow": slow})
    call.say("subscribe", 1, route="slow", n=1)
    await begun.wait()
    call.say("cancel")
    await cancelled.wait()
    call.say("subscribe", 1, route="slow", n=1)
    cancelled.clear()
    await asyncio.sleep(0)
    await call.left()
    assert cancelled.is_set()


async def test_a_client_that_leaves_cancels_all_its_streams() -> None:
    probes = [PublisherProbe[int]() for _ in range(5)]
    call = await called({f"p{number}": probe for number, probe in enumerate(probes)})
    for number, probe in enumerate(probes):
        call.say("subscribe", number, route=f"p{number}", n=2)
        await probe.expect_request(2)
    await call.left()
    for probe in probes:
        await probe.expect_cancel()


async def test_the_cleanup_of_streams_is_waited_for() -> None:
    cleaned: list[int] = []

    async def source() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(1)

    call = await called({"a": lambda: from_aiter(source())})
    call.say("subscribe", 1, route="a", n=5)
    await call.came(1)
    await call.left()
    assert cleaned == [1]


# -- demand and memory -----------------------------------------------------------------------------
async def test_a_client_that_does_not_read_makes_nobody_hold_more_than_16() -> None:
    probe, tally = PublisherProbe[int](), Tally()
    call = await called({"a": probe}, tally=tally)
    call.pause()
    call.say("subscribe", 1, route="a", n=MOST)
    await probe.expect_request(16)
    probe.emit(*range(16))
    await probe.expect_nothing()
    assert probe.outstanding == 0
    call.resume()
    assert await call.values(16) == [*range(16)]
    await probe.expect_request(32)
    assert tally.outstanding <= 16
    await call.left()
    assert (tally.open, tally.outstanding, tally.cancelled) == (0, 0, 1)


async def test_a_source_that_never_waits_does_not_keep_the_loop() -> None:
    call = await called({"all": numbers(2**60)})
    call.say("subscribe", 1, route="all", n=MOST)
    turns = 0
    while len(call.sent) < 200:
        await asyncio.sleep(0)
        turns += 1
    assert turns > 10
    await call.left()


@pytest.mark.parametrize("n", [MOST, MOST + 1, 2**63, 10**40])
async def test_demand_without_end_is_unbounded(n: int) -> None:
    """Rule 3.17."""
    call = await called()
    call.say("subscribe", 1, route="count.50", n=n)
    call.say("request", 1, n=n)
    assert (await call.values(51))[-1] == "complete"
    await call.left()


async def test_answers_that_are_not_read_stop_the_reading() -> None:
    call = await called(max_useless=10_000)
    call.pause()
    for _ in range(500):
        call.say("subscribe", 1, route="unknown")
    for _ in range(2000):
        await asyncio.sleep(0)
    assert call.incoming.qsize() > 400
    call.resume()
    assert len(await call.came(500)) == 500
    await call.left()


# -- both directions -------------------------------------------------------------------------------
async def test_a_handler_may_subscribe_to_the_client() -> None:
    call = await called()
    call.say("subscribe", 1, route="plus", n=2, params={"a": 1})
    (asked,) = await call.came(1)
    assert asked == {"type": "subscribe", "id": 1, "route": "plus", "n": 2, "params": {"a": 1}}
    call.say("next", 1, value=10)
    call.say("next", 1, value=20)
    assert await call.values(3) == ["subscribe", 11, 21]
    call.say("request", 1, n=1)
    assert (await call.came(4))[3] == {"type": "request", "id": 1, "n": 1}
    call.say("complete", 1)
    assert (await call.values(5))[4:] == ["complete"]
    await call.left()


class Met:
    """A subscriber of the server, put to what the client publishes."""

    def __init__(self, request: int = 0) -> None:
        self.probe = SubscriberProbe[Any](request)
        self.peer: Peer | None = None

    def __call__(self, peer: Peer) -> None:
        self.peer = peer
        self.probe.subscribed_to(peer.request_stream({"p": 1}, route="keys"))


async def met(request: int, **options: Any) -> tuple[SocketCall, SubscriberProbe[Any]]:
    here = Met(request)
    call = await called(on_connect=here, **options)
    await here.probe.expect_subscription()
    return call, here.probe


async def test_a_server_may_subscribe_as_soon_as_a_client_is_there() -> None:
    call, probe = await met(2)
    (asked,) = await call.came(1)
    assert asked == {"type": "subscribe", "id": 1, "route": "keys", "n": 2, "params": {"p": 1}}
    call.say("next", value="a")
    assert await probe.next_element() == "a"
    probe.cancel()
    assert (await call.came(2))[1] == {"type": "cancel", "id": 1}
    await call.left()


async def test_a_clients_stream_asks_when_its_subscriber_does() -> None:
    call, probe = await met(0)
    for _ in range(20):
        await asyncio.sleep(0)
    assert call.messages == []
    probe.request(2)
    probe.request(3)
    assert (await call.came(1))[0]["n"] == 5, "what is asked for in one turn is said at once"
    probe.request(2**63 - 1)
    assert (await call.came(2))[1]["n"] == MOST
    await call.left()


async def test_what_the_client_says_of_its_end_is_the_end() -> None:
    for said, expected in (
        ({"status": 404, "detail": "no keys"}, "no keys"),
        ({"status": "x", "detail": 5}, "500"),
    ):
        call, probe = await met(1)
        await call.came(1)
        call.say("error", **said)
        await probe.end()
        assert isinstance(probe.error, PeerFailed)
        assert expected in str(probe.error)
        await call.left()


async def test_a_client_that_leaves_ends_what_it_publishes() -> None:
    call, probe = await met(1)
    await call.came(1)
    await call.left()
    await probe.end()
    assert isinstance(probe.error, ClientLeft)


async def test_a_client_that_has_left_cannot_be_asked() -> None:
    here = Met()
    call = await called(on_connect=here)
    await call.left()
    here.probe.request(1)
    await here.probe.end()
    assert isinstance(here.probe.error, ClientLeft)


async def test_more_than_was_asked_for_is_a_violation() -> None:
    """Rule 1.1."""
    call, probe = await met(1)
    await call.came(1)
    call.say("next", value=1)
    call.say("next", value=2)
    await probe.end()
    assert probe.elements == [1]
    assert isinstance(probe.error, RuleViolation)
    assert probe.error.rule == "1.1"
    assert (await call.came(2))[1]["type"] == "cancel"
    await call.left()


@pytest.mark.parametrize("members", [{}, {"value": None}])
async def test_null_is_no_element(members: dict[str, Any]) -> None:
    """Rule 2.13."""
    call, probe = await met(1)
    await call.came(1)
    call.say("next", **members)
    await probe.end()
    assert isinstance(probe.error, NotAnElement)
    assert (await call.came(2))[1]["type"] == "cancel"
    await call.left()


async def test_on_connect_is_cancelled_when_the_client_leaves() -> None:
    over = asyncio.Event()

    async def greet(peer: Peer) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            over.set()

    call = await called(on_connect=greet)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await call.left()
    assert over.is_set()


async def test_on_connect_may_wait_for_a_client_that_leaves() -> None:
    async def greet(peer: Peer) -> None:
        await peer.request_stream(route="keys").run()

    call = await called(on_connect=greet)
    await call.came(1)
    await call.left()


async def test_an_error_of_on_connect_is_reported() -> None:
    errors: list[BaseException] = []

    async def greet(peer: Peer) -> None:
        raise ValueError("greeting")

    call = await called(on_connect=greet, on_error=errors.append)
    await call.left()
    assert [str(each) for each in errors] == ["greeting"]


async def test_typed_handlers_get_typed_elements() -> None:
    typed = Router()

    @typed.route("sum")
    def sum_(incoming: Flow[int]) -> Flow[int]:
        return incoming.scan(lambda total, each: total + each)

    call = await called(typed, on_error=str)
    call.say("subscribe", 1, route="sum", n=5)
    await call.came(1)
    call.say("next", 1, value=2)
    call.say("next", 1, value=3)
    assert (await call.values(3))[1:] == [2, 5]
    call.say("next", 1, value="x")
    messages = await call.came(5)
    assert {each["type"] for each in messages[3:]} == {"cancel", "error"}
    assert [each["status"] for each in messages if each["type"] == "error"] == [400]
    await call.left()


async def test_a_source_of_elements_is_a_route() -> None:
    call = await called({"a": from_iterable([1]), "b": [2, 3]})
    call.say("subscribe", 1, route="b", n=2)
    assert await call.values(3) == [2, 3, "complete"]
    await call.left()
