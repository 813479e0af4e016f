"""What clients receive for errors, and what the application receives."""

from typing import Any

import pytest

from reactive_aio import Flow, range as numbers
from reactive_aio.asgi import connect, ndjson, sse, websocket
from tests.asgi.calls import Call
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
