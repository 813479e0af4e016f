"""What clients receive for errors, and what the application receives."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from reactive_aio import Flow, range as numbers
from reactive_aio.asgi import connect, ndjson, sse, websocket
from reactive_aio.errors import Interrupted
from tests.asgi.calls import Call, SocketCall
from tests.asgi.routes import connected
from tests.harness.leftover_checks import Context


def failing_after_one() -> Flow[int]:
    return numbers(2).map(lambda each: 1 // (1 - each))


# -- on_error --------------------------------------------------------------------------------------
def broken(error: BaseException) -> None:
    raise LookupError("a bug of on_error")


async def on_error_later(error: BaseException) -> None:
    pytest.fail("it is refused")


def reported(contexts: list[Context]) -> list[type[BaseException]]:
    return [type(each["exception"]) for each in contexts]


async def test_an_on_error_that_raises_does_not_prevent_the_response(
    expects_loop_errors: list[Context],
) -> None:
    call = await Call(sse(lambda _: 1 / 0, on_error=broken)).end()  # type: ignore[arg-type,return-value]
    assert call.problem == {"status": 500, "detail": "the stream failed"}
    assert reported(expects_loop_errors) == [LookupError, ZeroDivisionError]
    assert expects_loop_errors[0]["message"] == "on_error of reactive_aio.asgi failed"
    call = await Call(ndjson(failing_after_one(), on_error=broken)).end()
    assert call.body == '1\n{"$failure":{"status":500,"detail":"the stream failed"}}\n'


async def test_an_on_error_that_raises_leaves_the_other_streams_of_a_socket(
    expects_loop_errors: list[Context],
) -> None:
    call = await connected({"fails": failing_after_one, "ok": numbers(1)}, on_error=broken)
    call.send("subscribe", 1, route="fails", n=2)
    assert await call.values(2) == [1, "error"]
    call.send("subscribe", 2, route="ok", n=1)
    assert (await call.values(4))[2:] == [0, "complete"]
    await call.close()
    assert reported(expects_loop_errors) == [LookupError, ZeroDivisionError]


@pytest.mark.parametrize(
    "wrong", ["print", on_error_later, lambda: None], ids=["text", "coroutine", "arity"]
)
def test_an_on_error_that_cannot_be_called_with_an_error_raises_at_once(wrong: Any) -> None:
    makers: dict[str, Any] = {
        "sse": lambda: sse(numbers(1), on_error=wrong),
        "websocket": lambda: websocket({}, on_error=wrong),
        "connect": lambda: connect("ws://x/", on_error=wrong),
    }
    for name, make in makers.items():
        with pytest.raises(TypeError, match=f"{name}: on_error (must be|is called with 1)"):
            make()


# -- errors without a text -------------------------------------------------------------------------
class Unprintable(Exception):
    def __str__(self) -> str:
        raise LookupError("a bug of __str__")


def unprintable() -> Flow[int]:
    raise Unprintable


@pytest.mark.parametrize(
    ("expose_errors", "detail"), [(False, "the stream failed"), (True, "Unprintable")]
)
async def test_an_error_whose_text_cannot_be_read_is_answered(
    expose_errors: bool, detail: str
) -> None:
    errors: list[BaseException] = []
    options: dict[str, Any] = {"expose_errors": expose_errors, "on_error": errors.append}
    call = await Call(sse(lambda _: unprintable(), **options)).end()
    assert call.problem == {"status": 500, "detail": detail}
    socket = await connected({"fails": unprintable, "ok": numbers(1)}, **options)
    socket.send("subscribe", 1, route="fails", n=2)
    assert (await socket.received(1))[0]["detail"] == detail
    socket.send("subscribe", 2, route="ok", n=1)
    assert (await socket.values(3))[1:] == [0, "complete"]
    await socket.close()
    assert [type(each) for each in errors] == [Unprintable, Unprintable]


# -- exceptions that are not an `Exception` --------------------------------------------------------
class Panic(BaseException):
    """As extensions in Rust raise it."""


def panics(*_: object) -> Any:
    raise Panic


async def panics_later(*_: object) -> Any:
    await asyncio.sleep(0)
    raise Panic


async def cancels_itself(*_: object) -> Any:
    raise asyncio.CancelledError


NO_EXCEPTIONS: dict[str, tuple[Callable[..., Any], type[BaseException]]] = {
    "function": (panics, Panic),
    "coroutine": (panics_later, Panic),
    "cancellation": (cancels_itself, Interrupted),
}


@pytest.mark.parametrize("case", NO_EXCEPTIONS.values(), ids=NO_EXCEPTIONS)
async def test_whatever_a_function_raises_is_answered(
    case: tuple[Callable[..., Any], type[BaseException]],
) -> None:
    function, kind = case
    errors: list[BaseException] = []
    options: dict[str, Any] = {"on_error": errors.append}
    response = await Call(sse(function, **options)).end()
    assert response.problem["status"] == 500

    def fails(payload: Any) -> Any:
        return function(payload)

    routes = {"fails": fails, "ok": numbers(1)}
    socket = await connected(routes, on_connect=function, **options)
    socket.send("subscribe", 1, route="fails", n=2)
    assert (await socket.received(1))[0]["type"] == "error"
    socket.send("subscribe", 2, route="ok", n=1)
    assert (await socket.values(3))[1:] == [0, "complete"]
    await socket.close()
    refused = await connected(routes, authenticate=function, **options)
    assert refused.sent[0]["status"] == 500
    assert [type(each) for each in errors] == [kind] * 4


async def test_whatever_encode_raises_ends_the_stream_alone() -> None:
    errors: list[BaseException] = []
    options: dict[str, Any] = {"encode": panics, "on_error": errors.append}
    assert (await Call(ndjson(numbers(1), **options)).end()).problem["status"] == 500
    socket = await connected({"a": numbers(1), "b": numbers(0)}, **options)
    socket.send("subscribe", 1, route="a", n=1)
    assert await socket.values(1) == ["error"]
    socket.send("subscribe", 2, route="b", n=1)
    assert await socket.values(2) == ["error", "complete"]
    await socket.close()
    assert [type(each) for each in errors] == [Panic, Panic]


async def test_a_cancellation_of_the_app_is_not_answered() -> None:
    entered = asyncio.Event()

    async def waits(_: object) -> Any:
        entered.set()
        await asyncio.Event().wait()

    call = Call(sse(waits))
    await entered.wait()
    call.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call.end()
    assert not call.sent


@pytest.mark.parametrize("kind", ["sse", "websocket", "websocket, coroutine"])
def test_what_stops_the_program_leaves_the_loop_even_if_the_server_catches_it(kind: str) -> None:
    def exits(*_: object) -> Any:
        raise SystemExit(3)

    async def exits_later() -> Any:
        exits()

    def logged(app: Any) -> Any:
        async def serve(*arguments: Any) -> None:
            with contextlib.suppress(
                BaseException
            ):  # as a server which logs whatever an app raises
                await app(*arguments)

        return serve

    async def serve() -> None:
        if kind == "sse":
            Call(logged(sse(exits, on_error=str)))
        else:
            routes = {"exits": (lambda: exits()) if kind == "websocket" else exits_later}
            call = SocketCall(logged(websocket(routes, on_error=str)))
            call.send("subscribe", 1, route="exits", n=1)
        await asyncio.sleep(5)

    with pytest.raises(SystemExit) as exit:
        asyncio.run(serve())
    assert exit.value.code == 3
