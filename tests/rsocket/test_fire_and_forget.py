"""Requests without a response: none is lost silently, however many there are."""

import asyncio
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from anyio import CancelScope

from reactive_aio.rsocket import (
    JSON,
    ClientOptions,
    DroppedRequest,
    InteractionModel,
    MetadataItem,
    Payload,
    Request,
    Requester,
    ResponderOptions,
    Router,
    connect,
    loopback,
    serve,
)
from reactive_aio.rsocket.protocol import connection
from reactive_aio.rsocket.protocol.frames import KeepAlive, Setup
from reactive_aio.rsocket.serving.fire_and_forget import FireAndForget

from .loop_turns import turns
from .wire import sent, server as accepted


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - turns of the loop, not time
            await asyncio.sleep(0)


class Handlers:
    """A router with one slow handler, and what it has done."""

    def __init__(self) -> None:
        self.router = Router()
        self.begun: list[int] = []
        self.done: list[int] = []
        self.most = 0
        self.gate = asyncio.Event()
        self.router.route("slow")(self.slow)
        self.router.route("hello")(lambda: "hello")

    async def slow(self, payload: int) -> None:
        self.begun.append(payload)
        self.most = max(self.most, len(self.begun) - len(self.done))
        await self.gate.wait()
        await asyncio.sleep(0)
        self.done.append(payload)


# -- waiting ---------------------------------------------------------------------------------------
async def test_slow_handlers_slow_down_the_sender_and_lose_nothing() -> None:
    handlers, count = Handlers(), 12_000
    sent: list[int] = []

    async def send(requester: Requester[Any]) -> None:
        for number in range(count):
            await requester.fire_and_forget(number, route="slow")
            sent.append(number)

    async with loopback(handlers.router, codec=JSON, max_fire_and_forget=4) as requester:
        sending = asyncio.create_task(send(requester))
        await turns(1000)
        assert handlers.begun == [0, 1, 2, 3]
        assert 4 < len(sent) < count, "the sender waits"
        handlers.gate.set()
        await sending
        await until(lambda: len(handlers.done) == count)
    assert sorted(handlers.begun) == [*range(count)]
    assert handlers.most == 4


async def test_a_socket_is_not_read_while_handlers_are_busy() -> None:
    handlers, count = Handlers(), 3000
    async with (
        await serve("tcp://127.0.0.1:0", handlers.router, max_fire_and_forget=4) as server,
        await connect(server.uri, codec=JSON) as requester,
    ):
        for number in range(count):
            await requester.fire_and_forget(number, route="slow")
        handlers.gate.set()
        await until(lambda: len(handlers.done) == count)
        assert sorted(handlers.done) == [*range(count)]
        assert (handlers.most, server.dropped_requests) == (4, 0)


@pytest.mark.thorough
async def test_a_hundred_thousand_requests_are_all_handled() -> None:
    handlers, count = Handlers(), 100_000
    handlers.gate.set()
    async with (
        await serve("tcp://127.0.0.1:0", handlers.router) as server,
        await connect(server.uri, codec=JSON) as requester,
    ):
        for number in range(count):
            await requester.fire_and_forget(number, route="slow")
        await until(lambda: len(handlers.done) == count)
        assert handlers.most <= 256
        assert server.dropped_requests == 0


async def test_a_plain_function_needs_no_place_among_the_handlers() -> None:
    router, got = Router(), list[int]()

    @router.route("log")
    def log(payload: int) -> None:
        got.append(payload)

    async with loopback(router, codec=JSON, max_fire_and_forget=1) as requester:
        for number in range(2000):
            await requester.fire_and_forget(number, route="log")
        await until(lambda: len(got) == 2000)
    assert got == [*range(2000)]


async def test_other_connections_are_served_meanwhile() -> None:
    handlers = Handlers()
    limits = ResponderOptions(max_fire_and_forget=3, max_fire_and_forget_total=4)
    async with (
        await serve("tcp://127.0.0.1:0", handlers.router, **limits) as server,
        await connect(server.uri, codec=JSON) as busy,
        await connect(server.uri, codec=JSON) as other,
        await connect(server.uri, codec=JSON) as third,
    ):
        for number in range(100):
            await busy.fire_and_forget(number, route="slow")
        await until(lambda: len(handlers.begun) == 3)
        for number in range(100, 103):
            await other.fire_and_forget(number, route="slow")
        await until(lambda: len(handlers.begun) == 4)
        await third.fire_and_forget(200, route="slow")
        await until(lambda: len(handlers.begun) == 5)  # each connection may run one
        assert handlers.begun == [0, 1, 2, 100, 200]
        assert await third.request_response(route="hello") == "hello"
        handlers.gate.set()
        await until(lambda: len(handlers.done) == 104)
        assert server.dropped_requests == 0


class _Connection:
    """What a request sees of its connection."""

    ending = SimpleNamespace(reason=None)

    def __init__(self) -> None:
        self.is_full = False
        self.intake = SimpleNamespace(is_needed_by_handlers=False, set_full=self._set_full)
        self.close: Any = None

    def _set_full(self, is_full: bool) -> None:
        self.is_full = is_full

    def add_close_callback(self, callback: Any) -> None:
        self.close = callback


class _Work:
    """A request whose handler runs until its task is done."""

    payload = b"", None

    def __init__(self, driver: _Connection, name: str, seen: list[str]) -> None:
        self.driver, self.name, self.seen = driver, name, seen
        self.task: Any = None

    def begin(self) -> None:
        self.task = asyncio.get_running_loop().create_future()
        self.seen.append(self.name)

    def drop(self, reason: str) -> None:
        self.seen.append(f"{self.name}: {reason}")


async def test_connections_take_turns() -> None:
    errors: Any = []
    serving = FireAndForget(2, 3, "wait", None, errors.append)
    greedy: Any = _Connection()
    modest: Any = _Connection()
    seen: list[str] = []
    works: list[Any] = [_Work(greedy, f"greedy {n}", seen) for n in range(4)]
    works += [_Work(modest, f"modest {n}", seen) for n in range(2)]
    for each in works:
        serving.run(each)
    assert seen == ["greedy 0", "greedy 1", "modest 0"]
    assert greedy.is_full
    assert modest.is_full
    works[0].task.set_result(None)
    await until(lambda: seen[3:] == ["greedy 2"])
    works[4].task.set_result(None)  # its own turn, and then it waits for nothing
    await until(lambda: seen[4:] == ["modest 1"])
    assert not modest.is_full
    greedy.close(greedy)
    assert seen[5:] == ["greedy 3: the connection has ended"]
    assert serving.held_bytes(greedy) == 0


@pytest.mark.parametrize("name", ["max_fire_and_forget", "max_fire_and_forget_total"])
async def test_a_limit_of_none_is_refused(name: str) -> None:
    options: Any = {name: 0}
    with pytest.raises(ValueError, match=f"{name} must be at least 1"):
        loopback(Router(), **options)


async def test_an_unknown_policy_is_refused() -> None:
    policy: Any = "forget"
    with pytest.raises(ValueError, match="'wait' or 'drop_newest', not 'forget'"):
        loopback(Router(), fire_and_forget_overflow=policy)


# -- handlers that need the peer -------------------------------------------------------------------
async def test_a_handler_that_awaits_the_peer_is_not_blocked_by_others() -> None:
    router, names = Router(), list[str]()
    answers = Router()

    @answers.route("name.{n}")
    def name(n: int) -> str:
        return f"ann {n}"

    @router.route("greet")
    async def greet(payload: int, peer: Requester[Any]) -> None:
        names.append(await peer.request_response(route=f"name.{payload}"))
        names.extend(await peer.request_stream(route=f"name.{payload}").to_list(limit=2))

    client = ClientOptions(router=answers)
    async with loopback(router, codec=JSON, client=client, max_fire_and_forget=1) as requester:
        for number in range(50):
            await requester.fire_and_forget(number, route="greet")
        await until(lambda: len(names) == 100)
    assert names == [f"ann {number}" for number in range(50) for _ in range(2)]


async def test_two_sides_that_forward_to_each_other_do_not_block() -> None:
    done: list[int] = []

    def forwarding() -> Router:
        router = Router()

        @router.route("hop")
        async def hop(payload: int, peer: Requester[Any]) -> None:
            if payload:
                await peer.fire_and_forget(payload - 1, route="hop")
            else:
                done.append(1)

        return router

    limited = ResponderOptions(max_fire_and_forget=1)
    client = ClientOptions(router=forwarding(), responder_options=limited)
    async with loopback(forwarding(), codec=JSON, client=client, **limited) as requester:
        for _ in range(300):
            await requester.fire_and_forget(5, route="hop")
        await until(lambda: len(done) == 300)


# -- dropping --------------------------------------------------------------------------------------
async def test_dropped_requests_are_counted_reported_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    handlers, dropped = Handlers(), list[DroppedRequest]()
    options = ResponderOptions(
        max_fire_and_forget=3,
        fire_and_forget_overflow="drop_newest",
        on_drop=dropped.append,
        authenticate=lambda _: "ann",
    )
    with caplog.at_level(logging.WARNING, "reactive_aio.rsocket"):
        async with loopback(handlers.router, codec=JSON, **options) as requester:
            for number in range(10):
                await requester.fire_and_forget(number, route="slow")
            assert await requester.request_response(route="hello") == "hello"
            handlers.gate.set()
            await until(lambda: len(handlers.done) == 3)
    assert handlers.done == [0, 1, 2]
    assert [each.payload.data for each in dropped] == [b"%d" % n for n in range(3, 10)]
    assert {(each.reason, each.model, each.user) for each in dropped} == {
        ("too many handlers are running", InteractionModel.FNF, "ann")
    }
    [record] = [each for each in caplog.records if each.name == "reactive_aio.rsocket"]
    assert record.getMessage() == (
        "a fire-and-forget request was dropped: too many handlers are running. dropped_requests "
        "counts them, on_drop= receives each of them."
    )


async def test_requests_that_cannot_be_served_are_accounted_for() -> None:
    router, reasons, errors = Router(), list[str](), list[BaseException]()

    @router.route("number")
    def number(payload: int) -> None:
        raise RuntimeError("of the handler")

    def authorize(request: Request) -> bool:
        return request.route != "secret"

    async with loopback(
        router,
        codec=JSON,
        authorize=authorize,
        on_drop=lambda each: reasons.append(each.reason),
        on_error=errors.append,
    ) as requester:
        connection = requester._driver.connection
        await requester.fire_and_forget(1, route="nowhere")
        await requester.fire_and_forget(1, route="secret")
        connection.fire_and_forget(Payload(b"1", b"\xff"))
        requester.metadata_push(("a/b", b""))
        await requester.fire_and_forget(1, route="number")
        await until(lambda: len(errors) == 1 and len(reasons) == 4)
        router.on_metadata_push(lambda: None)
        connection.metadata_push(b"\xff")
        requester._driver.schedule_turn()
        await until(lambda: len(errors) == 1 and len(reasons) == 5)
    assert [str(error) for error in errors] == ["of the handler"]
    assert sorted(reasons) == [
        "INVALID (0x204): composite metadata ends within message/x.rsocket.composite-metadata.v0",
        "INVALID (0x204): there is no such route: 'nowhere'",
        "REJECTED (0x202): not authorized",
        "composite metadata ends within message/x.rsocket.composite-metadata.v0",
        "no function is decorated with @router.on_metadata_push",
    ]


@pytest.mark.parametrize("is_coroutine", [False, True])
async def test_a_metadata_push_passes_interceptors_and_authorize(is_coroutine: bool) -> None:
    seen: list[tuple[InteractionModel, bytes | None]] = []
    called: list[tuple[Any, Any]] = []
    dropped: list[DroppedRequest] = []
    router = Router()

    @router.on_metadata_push
    def pushed(metadata: Any, user: Any) -> Any:
        async def later() -> None:
            called.append((metadata[0].content, user))

        return later() if is_coroutine else called.append((metadata[0].content, user))

    async def interceptor(request: Request, proceed: Any) -> Any:
        seen.append((request.model, request.item("x/y")))
        return await proceed(request)

    def authorize(request: Request) -> Any:
        return "ann" if request.item("x/y") == b"good" else None

    async with loopback(
        router, authorize=authorize, interceptors=[interceptor], on_drop=dropped.append
    ) as requester:
        for content in (b"bad", b"good"):
            requester.metadata_push(("x/y", content))
        await until(lambda: len(dropped) == 1 and len(called) == 1)
    push = InteractionModel.PUSH
    assert seen == [(push, b"bad"), (push, b"good")]
    assert called == [(b"good", "ann")]
    assert [(each.model, each.reason) for each in dropped] == [
        (push, "REJECTED (0x202): not authorized")
    ]


async def test_an_error_of_on_drop_is_reported() -> None:
    errors: list[BaseException] = []

    def on_drop(_: DroppedRequest) -> None:
        raise RuntimeError("of the hook")

    async with loopback(Router(), on_drop=on_drop, on_error=errors.append) as requester:
        await requester.fire_and_forget(route="nowhere")
        await until(lambda: bool(errors))
        assert [str(error) for error in errors] == ["of the hook"]


async def test_requests_that_wait_at_the_end_of_the_connection_are_accounted_for() -> None:
    handlers, dropped = Handlers(), list[DroppedRequest]()
    options = ResponderOptions(max_fire_and_forget=2, on_drop=dropped.append)
    server = await serve("tcp://127.0.0.1:0", handlers.router, **options)
    async with await connect(server.uri, codec=JSON) as requester:
        for number in range(10):
            await requester.fire_and_forget(number, route="slow")
        await until(lambda: len(handlers.begun) == 2)
        await turns()
        await server.aclose()
        assert [each.reason for each in dropped] == ["the connection has ended"] * 8
        assert server.dropped_requests == 8


async def test_requests_before_a_close_in_good_order_are_handled() -> None:
    handlers = Handlers()
    async with await serve("tcp://127.0.0.1:0", handlers.router, max_fire_and_forget=2) as server:
        async with await connect(server.uri, codec=JSON) as requester:
            for number in range(500):
                await requester.fire_and_forget(number, route="slow")
        handlers.gate.set()
        await until(lambda: len(handlers.done) == 500)
        assert server.dropped_requests == 0


# -- signs of life ---------------------------------------------------------------------------------
@pytest.mark.virtual_time
@pytest.mark.parametrize("side", ["server", "client"])
async def test_a_connection_that_is_not_read_stays(side: str) -> None:
    """Neither side takes the pause for silence, and an unfinished frame is not late."""
    done: list[int] = []
    busy, hello = Router(), Router()

    @busy.route("work")
    async def work(payload: int) -> None:
        await asyncio.sleep(500)
        done.append(payload)

    for each in (busy, hello):
        each.route("hello")(lambda: "hello")
    limited = ResponderOptions(max_fire_and_forget=1)
    peers: asyncio.Queue[Requester[Any]] = asyncio.Queue()
    if side == "server":
        client, served = ClientOptions(keepalive=3, lifetime=8), busy
    else:
        client = ClientOptions(keepalive=3, lifetime=8, router=busy, responder_options=limited)
        served = hello
    async with loopback(
        served, codec=JSON, client=client, on_connect=peers.put_nowait, max_fire_and_forget=1
    ) as requester:
        await requester.request_response(route="hello")
        sender = requester if side == "server" else await peers.get()
        for number in range(3):
            await sender.fire_and_forget(number, route="work")
        await asyncio.sleep(1600)
        assert done == [0, 1, 2]
        assert await sender.request_response(route="hello") == "hello"


async def test_a_client_that_has_gone_is_noticed_while_nothing_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Handlers that never end would otherwise keep its connection for ever."""
    monkeypatch.setattr(connection, "_MIN_INTERVAL", 0.005)
    handlers, dropped = Handlers(), list[DroppedRequest]()
    options = ResponderOptions(max_fire_and_forget=1, on_drop=dropped.append)
    async with await serve("tcp://127.0.0.1:0", handlers.router, **options) as server:
        # A server that reads nothing sends a keepalive each 5 ms, as its client has declared.
        requester = await connect(server.uri, codec=JSON, keepalive=0.005, lifetime=60)
        for number in range(3):
            await requester.fire_and_forget(number, route="slow")
        await until(lambda: len(handlers.begun) == 1)
        requester._driver.ending.abort()
        await until(lambda: server.connections == 0)
        assert [each.payload.data for each in dropped] == [b"1", b"2"]


def test_a_server_that_reads_nothing_sends_keepalives_often_enough() -> None:
    connection = accepted(Setup(keepalive=2**31 - 1, lifetime=2**31 - 1))
    connection.pause_reading(1.0)
    assert connection.next_deadline() == 21.0
    connection.tick(21.0)
    assert sent(connection) == [KeepAlive(False)]
    connection.resume_reading(22.0)
    assert connection.next_deadline() == 622.0


def test_a_server_that_reads_nothing_sends_no_keepalive_each_millisecond() -> None:
    connection = accepted(Setup(keepalive=1, lifetime=2**31 - 1))
    connection.pause_reading(1.0)
    assert connection.next_deadline() == 2.0


# -- metadata pushes -------------------------------------------------------------------------------
async def test_ten_thousand_metadata_pushes_are_served() -> None:
    router, got = Router(), list[bytes]()

    @router.on_metadata_push
    async def pushed(metadata: tuple[MetadataItem, ...]) -> None:
        await asyncio.sleep(0)
        got.append(metadata[0].content)

    async with (
        await serve("tcp://127.0.0.1:0", router) as server,
        await connect(server.uri) as requester,
    ):
        for number in range(10_000):
            requester.metadata_push(("x/y", b"%d" % number))
        await until(lambda: len(got) == 10_000)
        assert server.dropped_requests == 0
        assert not requester.is_closed


async def test_a_loop_of_requests_can_be_cancelled_by_a_scope() -> None:
    router = Router()
    router.route("log")(lambda: None)
    serving, sent = serve("tcp://127.0.0.1:0", router), 0
    async with await serving as server, await connect(server.uri) as client:
        with CancelScope() as scope:
            while sent < 100_000:
                await client.fire_and_forget(route="log")
                sent += 1
                if sent == 10_000:
                    scope.cancel()
    assert 10_000 <= sent < 20_000
