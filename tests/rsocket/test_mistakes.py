"""Mistakes in how a server or a client is written, and errors that say too little."""

import re
from collections.abc import Iterator

import pytest

from reactive_aio.rsocket import JSON, ApplicationError, RequestCanceled, Router, error_of, loopback
from tests.harness.leftover_checks import Context


# -- errors of the other side ----------------------------------------------------------------------
def failing_later() -> Iterator[int]:
    yield 1
    raise ValueError("secret")


async def test_a_failed_handler_says_where_its_error_is(
    expects_loop_errors: list[Context],
) -> None:
    routes = Router()
    routes.route("fails")(lambda: 1 // 0)
    routes.route("fails later")(failing_later)
    message = "the handler of the other side failed, .* log there .*expose_errors=True"
    async with loopback(routes, codec=JSON) as requester:
        with pytest.raises(ApplicationError, match=message):
            await requester.request_response(route="fails")
        with pytest.raises(ApplicationError, match=message) as caught:
            await requester.request_stream(route="fails later").run()
        assert "secret" not in str(caught.value)
    assert [type(each["exception"]) for each in expects_loop_errors] == [
        ZeroDivisionError, ValueError
    ]  # fmt: skip


async def test_an_exposed_error_without_a_text_has_its_type(
    expects_loop_errors: list[Context],
) -> None:
    routes = Router()

    @routes.route("fails")
    def fails() -> None:
        raise KeyError

    async with loopback(routes, expose_errors=True) as requester:
        with pytest.raises(ApplicationError, match=r"^APPLICATION_ERROR \(0x201\): KeyError$"):
            await requester.request_response(route="fails")
    expects_loop_errors.clear()


def test_other_codes_without_a_text_do_not_blame_a_handler() -> None:
    canceled = error_of(0x203)
    assert isinstance(canceled, RequestCanceled)
    assert re.fullmatch(r"CANCELED \(0x203\): no reason was given", str(canceled))
