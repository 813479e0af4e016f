"""Functions of FastAPI and Starlette return endpoints as their responses."""

import subprocess
import sys
from collections.abc import Callable
from datetime import date
from typing import Any

import httpx
import pytest
from fastapi import BackgroundTasks, FastAPI, HTTPException, Response
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route

from reactive_aio import Flow, error, never, range as numbers, timer
from reactive_aio.asgi import HttpRequest, Refused, javascript, ndjson, sse, stream, websocket
from reactive_aio.asgi.http_endpoint import HttpEndpoint
from reactive_aio.asgi.starlette_response import response_class
from tests.asgi.calls import Call

KINDS: dict[str, Callable[..., Any]] = {"sse": sse, "ndjson": ndjson, "stream": stream}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def client(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")


def served(answer: Callable[[], Any], **options: Any) -> httpx.AsyncClient:
    """Serve *answer* as a function of FastAPI."""
    app = FastAPI()
    app.get("/", **options)(answer)
    return client(app)


# -- what a function returns -----------------------------------------------------------------------
@every_kind
async def test_a_function_of_fastapi_returns_a_flow_as_its_response(kind: Any) -> None:
    async def answer() -> Response:
        response: Response = kind(numbers(3))
        return response

    async with served(answer) as http:
        found = await http.get("/")
    assert found.status_code == 200
    assert found.headers["content-type"] in ("text/event-stream", "application/x-ndjson")
    assert [line[-1] for line in found.text.splitlines() if line[-1:].isdigit()] == ["0", "1", "2"]


async def test_the_types_of_an_endpoint_are_those_of_a_response() -> None:
    async def answer() -> Response:
        return sse(numbers(1))

    async with served(answer) as http:
        assert "data: 0\n\n" in (await http.get("/")).text


@pytest.mark.parametrize("method", ["POST", "PUT", "GET"])
async def test_the_route_of_a_function_decides_on_the_method(method: str) -> None:
    app = FastAPI()

    @app.api_route("/", methods=[method])
    async def answer(body: dict[str, int]) -> Response:
        return ndjson(numbers(body["count"]))

    async with client(app) as http:
        assert (await http.request(method, "/", json={"count": 2})).text == "0\n1\n"


async def test_a_function_of_starlette_returns_a_flow_after_reading_the_body() -> None:
    async def answer(request: Request) -> Response:
        return ndjson(numbers(int(await request.body())))

    async with client(Starlette(routes=[Route("/", answer, methods=["POST"])])) as http:
        assert (await http.post("/", content=b"2")).text == "0\n1\n"
        assert (await http.get("/")).status_code == 405


async def test_an_endpoint_of_a_route_refuses_other_methods_itself() -> None:
    async with client(Starlette(routes=[Route("/", ndjson(numbers(2)))])) as http:
        refused = await http.post("/")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")


async def test_the_javascript_module_and_a_misplaced_socket_are_responses_too() -> None:
    async with served(lambda: javascript()) as http:
        assert (await http.get("/")).headers["content-type"].startswith("text/javascript")
    async with served(lambda: websocket({})) as http:
        assert (await http.get("/")).status_code == 426


# -- headers, status, background -------------------------------------------------------------------
async def test_headers_cookies_and_the_status_of_the_response_are_sent() -> None:
    async def answer() -> Response:
        response = ndjson(numbers(2), headers={"x-option": "1"})
        response.headers["x-set"] = "2"
        response.set_cookie("session", "3")
        response.status_code = 201
        return response

    async with served(answer) as http:
        found = await http.get("/")
    assert (found.status_code, found.text) == (201, "0\n1\n")
    assert (found.headers["x-option"], found.headers["x-set"]) == ("1", "2")
    assert found.cookies["session"] == "3"
    assert found.headers["cache-control"] == "no-store"
    assert "content-length" not in found.headers


async def test_a_content_type_that_is_set_replaces_the_default() -> None:
    async with client(ndjson(numbers(1), headers={"Content-Type": "application/jsonl"})) as http:
        found = await http.get("/")
    assert found.headers.get_list("content-type") == ["application/jsonl"]


async def test_background_tasks_run_after_the_response_of_their_request() -> None:
    log: list[Any] = []
    shared = ndjson(numbers(1).do_on_complete(lambda: log.append("complete")))
    app = FastAPI()

    @app.get("/{name}")
    async def answer(name: str, tasks: BackgroundTasks) -> Response:
        tasks.add_task(log.append, name)
        return shared

    async with client(app) as http:
        await http.get("/first")
        await http.get("/second")
    assert log == ["complete", "first", "complete", "second"]


async def test_background_tasks_run_when_the_client_has_disconnected() -> None:
    log: list[str] = []
    app = FastAPI()

    @app.get("/")
    async def answer(tasks: BackgroundTasks) -> Response:
        tasks.add_task(log.append, "ran")
        return ndjson(never().do_on_cancel(lambda: log.append("cancelled")), max_start_delay=0)

    call = Call(app, root_path="", http_version="1.1", scheme="http", server=("test", 80))
    await call.until(lambda: call.sent)
    await call.close()
    assert log == ["cancelled", "ran"]


# -- errors ----------------------------------------------------------------------------------------
FAILURES: dict[str, tuple[Exception, int, str]] = {
    "internal": (ValueError("the password is secret"), 500, "the stream failed"),
    "refused": (Refused(404, "no such thing"), 404, "no such thing"),
    "foreign": (HTTPException(402, "pay first"), 402, "pay first"),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
@every_kind
async def test_a_failure_before_the_first_element_is_a_status_without_internals(
    kind: Any, failure: tuple[Exception, int, str]
) -> None:
    cause, status, detail = failure
    reported: list[BaseException] = []

    async def answer() -> Response:
        response: Response = kind(error(cause), on_error=reported.append)
        return response

    async with served(answer) as http:
        found = await http.get("/")
    assert found.headers["content-type"] == "application/problem+json"
    assert found.json() == {"status": status, "detail": detail}
    assert found.status_code == status
    assert reported == ([cause] if status == 500 else [])


@pytest.mark.virtual_time
async def test_without_a_start_delay_a_late_failure_is_a_status() -> None:
    late: Flow[int] = timer(3600).then(error(Refused(503, "not today")))
    assert (await Call(sse(late, max_start_delay=None)).end(within=4000)).status == 503


# -- without Starlette -----------------------------------------------------------------------------
async def test_without_starlette_an_endpoint_is_an_asgi_app(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    response_class.cache_clear()
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "starlette.responses", None)
        endpoint = ndjson(numbers(2))
        assert type(endpoint) is HttpEndpoint
        assert (await Call(endpoint).end()).body == "0\n1\n"
    response_class.cache_clear()
    assert isinstance(ndjson(numbers(2)), Response)


@pytest.mark.slow
def test_starlette_is_imported_with_the_first_endpoint() -> None:
    code = (
        "import sys, reactive_aio.asgi as asgi; print('starlette' in sys.modules); "
        "made = asgi.sse([1]); import fastapi; print(isinstance(made, fastapi.Response))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\nTrue\n"


async def test_a_function_that_makes_the_flow_may_read_the_body_of_its_request() -> None:
    app = FastAPI()

    @app.post("/")
    async def answer(request: Request) -> Response:
        async def make(_: HttpRequest) -> Flow[int]:
            return numbers(await request.json())

        return ndjson(make)

    async with client(app) as http:
        assert (await http.post("/", json=3)).text == "0\n1\n2\n"


# -- HTTPException ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("detail", "sent"),
    [
        ("gone", "gone"),
        ({"code": 1, "why": "é"}, '{"code":1,"why":"é"}'),
        ([date(2024, 2, 29)], '["datetime.date(2024, 2, 29)"]'),
        ({(1, 2): 3}, "<dict>"),
    ],
    ids=str,
)
async def test_the_detail_of_an_http_exception_is_a_text_or_json(detail: Any, sent: str) -> None:
    def refuses(request: HttpRequest) -> Flow[int]:
        raise HTTPException(409, detail)

    call = await Call(sse(refuses)).end()
    assert call.problem == {"status": 409, "detail": sent}


@pytest.mark.parametrize("status", [204, 304])
async def test_a_status_without_content_is_sent_without_a_body(status: int) -> None:
    def refuses(request: HttpRequest) -> Flow[int]:
        raise HTTPException(status, headers={"etag": '"x"'})

    call = await Call(sse(refuses)).end()
    assert (call.status, call.body) == (status, "")
    assert call.headers == {"cache-control": "no-store", "etag": '"x"'}
