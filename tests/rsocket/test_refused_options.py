"""Wrong options are refused where they are given, with a remedy."""

import re
import ssl
from pathlib import Path
from typing import Any, cast

import pytest

from reactive_aio import just
from reactive_aio.rsocket import (
    JSON,
    ApplicationError,
    ClientOptions,
    Lease,
    Payload,
    Router,
    asgi_app,
    connect,
    connect_balanced,
    loopback,
    serve,
)

ANY: Any = None
HERE = "tcp://127.0.0.1:0"
THERE = "tcp://127.0.0.1:1"
"""Nothing is served there, so that an option that is accepted fails otherwise."""

OF_ALL: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"authenticate": "x"}, TypeError, "authenticate must be a function, not 'x' (str)"),
    ({"authenticate": lambda: 1}, TypeError, "authenticate is called with 1 argument"),
    ({"authorize": "x"}, TypeError, "authorize must be a function, not 'x' (str)"),
    ({"on_connect": "x"}, TypeError, "on_connect must be a function, not 'x' (str)"),
    ({"on_error": "x"}, TypeError, "on_error must be a function, not 'x' (str)"),
    ({"on_drop": "x"}, TypeError, "on_drop must be a function, not 'x' (str)"),
    ({"leases": [Lease(1, 1)]}, TypeError, "leases must be a function, not [Lease("),
    ({"codecs": [JSON]}, TypeError, "codecs must be of the class dict, not "),
    ({"codecs": {"a/b": 5}}, TypeError, "codecs['a/b'] must be a Codec such as JSON, not 5 (int)"),
    ({"limits": {}}, TypeError, "limits must be of the class Limits, not {} (dict)"),
]
OF_SERVERS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"max_connections": "10"}, TypeError, "max_connections must be an int, not '10' (str)"),
    ({"max_connections": 0}, ValueError, "max_connections must be at least 1, not 0"),
    ({"max_connections": -1}, ValueError, "max_connections must be at least 1, not -1"),
    ({"resume": True}, TypeError, "resume must be of the class Resumption, not True (bool)"),
]
OF_CLIENTS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"limits": {}}, TypeError, "limits must be of the class Limits, not {} (dict)"),
    ({"resume": True}, TypeError, "resume must be of the class Resumption, not True (bool)"),
    ({"data": "x"}, TypeError, "data must be bytes, not str: write value.encode()"),
    ({"credentials": "s3cret"}, TypeError, "credentials must be SimpleAuth, BearerToken or "),
    ({"credentials": lambda: "s3cret"}, TypeError, "credentials must be SimpleAuth, BearerToken"),
]


@pytest.mark.parametrize(("options", "kind", "message"), [*OF_ALL, *OF_SERVERS])
async def test_options_of_a_server(
    options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        await serve(HERE, Router(), **options)
    with pytest.raises(kind, match=re.escape(message)):
        asgi_app(Router(), **options)


@pytest.mark.parametrize(("options", "kind", "message"), OF_ALL)
async def test_options_of_a_loopback(
    options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        loopback(Router(), **options)


@pytest.mark.parametrize(("options", "kind", "message"), OF_CLIENTS)
async def test_options_of_a_client(
    options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=re.escape(message)) as raised:
        await connect(THERE, **options)
    assert "s3cret" not in str(raised.value)
    if "credentials" not in options:
        with pytest.raises(kind, match=re.escape(message)):
            loopback(Router(), client=cast("ClientOptions", options))


@pytest.mark.parametrize("codec", ["json", 5, dict])
async def test_a_codec_is_a_codec(codec: Any) -> None:
    message = "^codec must be a Codec such as JSON, not "
    with pytest.raises(TypeError, match=message):
        await connect(THERE, codec=codec)
    with pytest.raises(TypeError, match=message):
        loopback(Router(), codec=codec)
    async with loopback(Router()) as requester:
        with pytest.raises(TypeError, match=message):
            await requester.request_response(b"", route="x", codec=codec)
        with pytest.raises(TypeError, match=message):
            requester.request_stream(b"", route="x", codec=codec)
        with pytest.raises(TypeError, match=message):
            requester.request_channel([b""], route="x", codec=codec)
        with pytest.raises(TypeError, match=message):
            await requester.fire_and_forget(b"", route="x", codec=codec)


@pytest.mark.parametrize(
    ("route", "message"),
    [
        (5, r"^route must be a str, not 5 \(int\)$"),
        (b"a", r"^route must be a str, not b'a' \(bytes\): write route.decode\(\)$"),
    ],
)
async def test_a_route_is_a_text(route: Any, message: str) -> None:
    async with loopback(Router()) as requester:
        for _ in range(2):
            with pytest.raises(TypeError, match=message):
                await requester.request_response(b"", route=route)
        with pytest.raises(TypeError, match=message):
            requester.request_stream(b"", route=route)
        with pytest.raises(TypeError, match=message):
            await requester.fire_and_forget(b"", route=route)


async def test_an_address_is_a_text() -> None:
    with pytest.raises(TypeError, match=r"^serve: uri must be a URI such as .*, not 7000 \(int\)$"):
        await serve(7000, Router())  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match=r"^connect: where must be a URI .*, or a byte stream of anyio"
    ):
        await connect(ANY)
    with pytest.raises(TypeError, match=r"\(list\); connect_balanced takes several URIs$"):
        await connect([THERE])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="where must be a list of URIs, not 7000"):
        await connect_balanced(7000)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"must be a URI such as .*, not 7000"):
        await connect_balanced([7000])  # type: ignore[list-item]


@pytest.mark.parametrize("requests", [1.5, "1", True])
def test_a_lease_is_for_a_whole_number(requests: Any) -> None:
    with pytest.raises(TypeError, match=r"^Lease: requests must be an int, not "):
        Lease(requests, 1)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (Payload("x"), "the data of a Payload must be bytes, not str: write value.encode()"),  # type: ignore[arg-type]
        (Payload(b"x", "y"), "the metadata of a Payload must be bytes, not str"),  # type: ignore[arg-type]
    ],
)
async def test_a_payload_that_is_not_bytes_fails_its_request(
    payload: Payload, message: str
) -> None:
    errors: list[BaseException] = []
    router = Router()
    router.route("one")(lambda: payload)
    router.route("flow")(lambda: just(payload))
    router.route("fine")(lambda: 1)
    async with loopback(router, codec=JSON, on_error=errors.append) as requester:
        with pytest.raises(ApplicationError):
            await requester.request_response(route="one", timeout=10)
        with pytest.raises(ApplicationError):
            await requester.request_stream(route="flow", timeout=10).to_list(limit=1)
        assert await requester.request_response(route="fine") == 1
    assert [type(each) for each in errors] == [TypeError, TypeError]
    assert all(str(each).startswith(message) for each in errors)


@pytest.mark.parametrize("scheme", ["tls", "wss"])
async def test_a_context_of_the_other_side(scheme: str, certificate: Path) -> None:
    address = f"{scheme}://127.0.0.1:0"
    with pytest.raises(
        ValueError, match=r"ssl is a context for clients; a server needs ssl.create"
    ):
        await serve(address, Router(), ssl=ssl.create_default_context())
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_side.load_cert_chain(certificate)
    with pytest.raises(
        ValueError, match=r"ssl is a context for servers; a client needs ssl.create"
    ):
        await connect(address, ssl=server_side)
