"""Responses: formats, demand, errors and disconnects."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest

from reactive_aio import Flow, empty, error, from_iterable, just, never, range as numbers, timer
from reactive_aio.asgi import Counters, Event, HttpRequest, Refused, ndjson, sse, stream
from reactive_aio.testing.probes import PublisherProbe
from tests.asgi.calls import Call
from tests.harness.leftover_checks import Context

KINDS: dict[str, Callable[..., Any]] = {"sse": sse, "ndjson": ndjson, "stream": stream}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def failing(after: int) -> Flow[int]:
    return numbers(after).concat_with(error(ValueError("secret")))


# -- formats ---------------------------------------------------------------------------------------
async def test_ndjson_writes_one_line_per_element() -> None:
    call = await Call(ndjson(just({"a": 1}, "ä\n", [None, True]))).end()
    assert call.status == 200
    assert call.headers["content-type"] == "application/x-ndjson"
    assert call.headers["cache-control"] == "no-store"
    assert call.body == '{"a":1}\n"ä\\n"\n[null,true]\n'
    assert call.is_complete


async def test_sse_writes_one_event_per_element_and_one_at_the_end() -> None:
    call = await Call(sse(just("x", {"y": 2}))).end()
    assert call.headers["content-type"] == "text/event-stream"
    assert call.body == ':\n\ndata: "x"\n\ndata: {"y":2}\n\nevent: complete\ndata: {}\n\n'
    assert call.is_complete


async def test_sse_writes_ids_event_types_and_the_reconnection_delay() -> None:
    app = sse(
        numbers(1, 3),
        id=lambda each: each * 10,
        event=lambda each: "odd" if each % 2 else None,
        retry=timedelta(seconds=2.5),
    )
    assert (await Call(app).end()).body == (
        "retry: 2500\n\nid: 10\nevent: odd\ndata: 1\n\nid: 20\ndata: 2\n\n"
        "event: complete\ndata: {}\n\n"
    )
    named = await Call(sse(just(1), event="price")).end()
    assert named.body.startswith(":\n\nevent: price\ndata: 1\n\n")


async def test_an_event_sets_its_own_fields() -> None:
    call = await Call(sse(just(Event({"a": 1}, id="k", event="e", retry=5), Event(2)))).end()
    assert 'retry: 5\nid: k\nevent: e\ndata: {"a":1}\n\ndata: 2\n\n' in call.body


async def test_a_text_of_several_lines_is_one_event() -> None:
    call = await Call(sse(just("a\r\nb\rc\nd"), encode=str)).end()
    assert "data: a\ndata: b\ndata: c\ndata: d\n\n" in call.body


async def test_an_encoder_may_return_bytes() -> None:
    def encode(element: int) -> bytes:
        return b"<%d>" % element

    assert (await Call(ndjson(just(1, 2), encode=encode)).end()).body == "<1>\n<2>\n"
    assert "data: <1>\n\n" in (await Call(sse(just(1), encode=encode)).end()).body


@pytest.mark.parametrize("bad", ["a\nb", "a\rb", "a\0b"])
async def test_an_id_that_would_inject_fields_fails_the_stream(
    bad: str, expects_loop_errors: list[Context]
) -> None:
    call = await Call(sse(just(1), id=lambda _: bad)).end()
    assert call.status == 500
    assert "must be one line" in str(expects_loop_errors[0]["exception"])


ACCEPTS = {
    "*/*": "application/x-ndjson",
    "text/event-stream": "text/event-stream",
    "text/*": "text/event-stream",
    "application/x-ndjson": "application/x-ndjson",
    "application/x-ndjson;q=0.1, text/event-stream": "text/event-stream",
    "text/event-stream;q=0, */*": "application/x-ndjson",
    "text/event-stream;q=0.5, application/x-ndjson;q=0.5": "application/x-ndjson",
    "application/x-ndjson;q=nonsense, text/event-stream;q=0.01": "text/event-stream",
}


@pytest.mark.parametrize("accept", ACCEPTS)
async def test_stream_uses_the_format_that_the_client_accepts(accept: str) -> None:
    call = await Call(stream(just(1)), headers={"accept": accept}).end()
    assert call.headers["content-type"] == ACCEPTS[accept]
    assert call.headers["vary"] == "accept"


async def test_a_client_that_accepts_neither_format_gets_406_with_the_formats() -> None:
    call = await Call(stream(just(1)), headers={"accept": "text/html"}).end()
    assert call.status == 406
    assert "text/event-stream" in call.problem["detail"]


# -- methods, requests -----------------------------------------------------------------------------
@every_kind
async def test_head_returns_the_headers_without_subscribing(kind: Any) -> None:
    probe = PublisherProbe[int]()
    call = await Call(kind(probe), method="HEAD").end()
    assert (call.status, call.body) == (200, "")
    assert "content-type" in call.headers
    assert not probe.journal.entries


async def test_head_validates_the_request_like_get() -> None:
    def make(request: HttpRequest) -> Flow[int]:
        raise Refused(404)

    call = await Call(ndjson(make), method="HEAD").end()
    assert (call.status, call.body) == (404, "")


@every_kind
async def test_other_methods_are_not_allowed(kind: Any) -> None:
    call = await Call(kind(just(1)), method="POST").end()
    assert call.status == 405
    assert call.headers["allow"] == "GET, HEAD"


async def test_a_function_makes_the_flow_from_the_request() -> None:
    seen: list[HttpRequest] = []

    async def make(request: HttpRequest) -> Flow[str]:
        seen.append(request)
        await asyncio.sleep(0)
        return just(request.query["q"], str(request.path_params["name"]), request.headers["x-a"])

    call = await Call(
        ndjson(make),
        query="q=a%20b&empty=",
        headers={"X-A": "1", "x-a": "2", "last-event-id": "é7"},
        path_params={"name": "n"},
    ).end()
    assert call.body == '"a b"\n"n"\n"1, 2"\n'
    assert seen[0].last_event_id == "é7"
    assert seen[0].query["empty"] == ""
    assert (seen[0].method, seen[0].path) == ("GET", "/")


async def test_a_function_may_return_any_source() -> None:
    async def generated() -> AsyncIterator[int]:
        yield 1

    assert (await Call(ndjson(lambda _: [1, 2])).end()).body == "1\n2\n"
    assert (await Call(ndjson(lambda _: generated())).end()).body == "1\n"


async def test_none_instead_of_a_flow_is_204() -> None:
    call = await Call(ndjson(lambda _: None)).end()
    assert (call.status, call.body) == (204, "")


async def test_a_client_resumes_after_its_last_event() -> None:
    def make(request: HttpRequest) -> Flow[int]:
        return numbers(int(request.last_event_id or 0) + 1, 6)

    app = sse(make, id=lambda each: each)
    first = await Call(app, headers={"last-event-id": "3"}).end()
    assert first.body == ":\n\nid: 4\ndata: 4\n\nid: 5\ndata: 5\n\nevent: complete\ndata: {}\n\n"


async def test_a_browser_that_reconnects_and_missed_nothing_gets_204() -> None:
    assert (await Call(sse(empty()), headers={"last-event-id": "9"}).end()).status == 204
    assert (await Call(sse(empty())).end()).body == ":\n\nevent: complete\ndata: {}\n\n"
    assert (await Call(ndjson(empty()), headers={"last-event-id": "9"}).end()).status == 200


# -- demand ----------------------------------------------------------------------------------------
@every_kind
async def test_as_many_elements_are_requested_as_were_sent(kind: Any) -> None:
    """Rule 2.1; at most prefetch elements are outstanding."""
    probe = PublisherProbe[int]()
    call = Call(kind(probe, prefetch=4))
    await probe.expect_request(4)
    probe.emit(0)
    await probe.expect_request(5)
    probe.emit(1, 2, 3)
    await probe.expect_request(8)
    assert probe.outstanding == 4
    await call.close()
    await probe.expect_cancel()


async def test_nothing_is_requested_while_the_client_does_not_read() -> None:
    """Rule 1.1: nothing is requested before a send has returned."""
    probe, counters = PublisherProbe[int](), Counters()
    call = Call(ndjson(probe, prefetch=2, counters=counters))
    await probe.expect_request(2)
    call.pause()
    probe.emit(1)
    await probe.expect_nothing()
    probe.emit(2)
    await probe.expect_nothing()
    assert probe.outstanding == 0
    assert counters.outstanding <= 2
    call.resume()
    await probe.expect_request(4)
    await call.close()


@every_kind
async def test_a_source_that_never_waits_does_not_block_the_loop(kind: Any) -> None:
    call = Call(kind(numbers(2**60)))
    turns = 0
    while len(call.sent) < 20:
        await asyncio.sleep(0)
        turns += 1
    assert turns > 10
    await call.close()


async def test_large_elements_go_out_one_at_a_time() -> None:
    call = await Call(ndjson(numbers(4).map(lambda _: "x" * 100_000))).end()
    assert [len(each.get("body", b"")) for each in call.sent] == [0, *[100_003] * 4, 0]


async def test_no_more_is_requested_than_the_count_in_the_url() -> None:
    requested: list[int] = []
    app = sse(numbers(2**60).do_on_request(requested.append), count_parameter="n")
    call = await Call(app, query="n=3").end()
    assert call.body == ":\n\ndata: 0\n\ndata: 1\n\ndata: 2\n\n", (
        "a response that ends at its count is not complete"
    )
    assert sum(requested) == 3
    fewer = await Call(sse(numbers(2), count_parameter="n"), query="n=3").end()
    assert fewer.body.endswith("event: complete\ndata: {}\n\n")
    all_ = await Call(ndjson(numbers(2), count_parameter="n")).end()
    assert all_.body == "0\n1\n"


@pytest.mark.parametrize("n", ["0", "-1", "1.5", "many", "", "9" * 30])
async def test_an_invalid_count_is_refused(n: str) -> None:
    """Rule 3.9."""
    call = await Call(ndjson(just(1), count_parameter="n"), query=f"n={n}").end()
    assert call.status == 400
    assert "3.9" in call.problem["detail"]


# -- errors ----------------------------------------------------------------------------------------
@every_kind
async def test_an_error_before_the_first_element_is_a_status(
    kind: Any, expects_loop_errors: list[Context]
) -> None:
    call = await Call(kind(error(ValueError("secret")))).end()
    assert call.problem == {"status": 500, "detail": "the stream failed"}
    (context,) = expects_loop_errors
    assert "secret" in str(context["exception"])


async def test_an_error_after_an_element_is_sent_in_the_stream() -> None:
    errors: list[BaseException] = []
    line = await Call(ndjson(failing(1), on_error=errors.append)).end()
    assert line.body == '0\n{"$failure":{"status":500,"detail":"the stream failed"}}\n'
    event = await Call(sse(failing(1), on_error=errors.append)).end()
    assert event.body.endswith(
        'event: failure\ndata: {"status":500,"detail":"the stream failed"}\n\n'
    )
    assert line.is_complete
    assert event.is_complete
    assert [str(each) for each in errors] == ["secret", "secret"]


async def test_expose_errors_sends_the_text_of_an_error() -> None:
    call = await Call(ndjson(failing(1), expose_errors=True, on_error=str)).end()
    assert "secret" in call.body


async def test_a_refusal_is_sent_with_its_status_and_detail() -> None:
    def make(_: HttpRequest) -> Flow[int]:
        raise Refused(429, "later", headers={"Retry-After": "9"})

    call = await Call(ndjson(make)).end()
    assert call.problem == {"status": 429, "detail": "later"}
    assert call.headers["retry-after"] == "9"
    partial = await Call(ndjson(just(1).concat_with(error(Refused(410, "moved"))))).end()
    assert partial.body == '1\n{"$failure":{"status":410,"detail":"moved"}}\n'
    assert Refused(404).detail == "Not Found"
    with pytest.raises(ValueError, match="status"):
        Refused(200)


async def test_a_function_that_fails_is_500(expects_loop_errors: list[Context]) -> None:
    call = await Call(ndjson(lambda request: [request.query["missing"]])).end()
    assert call.status == 500
    assert isinstance(expects_loop_errors[0]["exception"], KeyError)


async def test_an_element_that_cannot_be_encoded_ends_the_stream() -> None:
    probe = PublisherProbe[object]()
    errors: list[BaseException] = []
    call = Call(ndjson(probe, on_error=errors.append))
    await probe.expect_request(3)
    probe.emit(1, float("nan"), 2)
    await call.end()
    assert call.body == '1\n{"$failure":{"status":500,"detail":"the stream failed"}}\n'
    await probe.expect_cancel()
    assert isinstance(errors[0], ValueError)


# -- time ------------------------------------------------------------------------------------------
@pytest.mark.virtual_time
async def test_a_stream_without_data_sends_heartbeats() -> None:
    for kind, beat in ((sse, ":\n\n"), (ndjson, "\n")):
        app: Any = kind(never(), heartbeat=10, max_start_delay=1)
        call = Call(app)
        await asyncio.sleep(1.5)
        opened = call.body
        assert call.status == 200, "the response starts without an element"
        await asyncio.sleep(30)
        assert call.body == opened + 3 * beat
        await call.close()


@pytest.mark.virtual_time
async def test_heartbeats_can_be_disabled() -> None:
    call = Call(ndjson(never(), heartbeat=None))
    await asyncio.sleep(10_000)
    assert call.body == ""
    await call.close()


@pytest.mark.virtual_time
async def test_an_error_within_the_start_delay_is_a_status() -> None:
    failing_later = timer(5).then(error(Refused(503, "not yet")))
    assert (await Call(ndjson(failing_later, max_start_delay=10)).end()).status == 503
    partial = await Call(ndjson(failing_later)).end()
    assert partial.status == 200
    assert partial.body == '{"$failure":{"status":503,"detail":"not yet"}}\n'


# -- disconnects -----------------------------------------------------------------------------------
@pytest.mark.virtual_time
@every_kind
async def test_a_send_that_never_returns_does_not_keep_a_disconnected_client(kind: Any) -> None:
    counters, closed = Counters(), asyncio.Event()

    async def source() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            closed.set()

    def make(request: HttpRequest) -> AsyncIterator[int]:
        return source()

    call = Call(kind(make, counters=counters))
    call.pause()
    await asyncio.sleep(5)
    assert counters.open == 1
    await call.close()
    assert closed.is_set()
    assert (counters.open, counters.cancelled, counters.outstanding) == (0, 1, 0)


@pytest.mark.virtual_time
@every_kind
async def test_a_client_that_does_not_read_loses_its_place(kind: Any) -> None:
    probe = PublisherProbe[int]()
    app = kind(probe, max_streams=1, send_timeout=10, heartbeat=None)
    call = Call(app)
    await probe.expect_request(64)
    probe.emit(1)
    await call.until(lambda: len(call.sent) == 2)
    call.pause()
    await asyncio.sleep(60)  # nothing is sent, so nothing is late
    assert not call.task.done()
    probe.emit(2)
    await asyncio.sleep(9)
    assert not call.task.done()
    await asyncio.sleep(1.5)
    await probe.expect_cancel()
    await call.end(within=0.1)
    assert "0 clients" in repr(app)


@pytest.mark.virtual_time
async def test_a_client_that_does_not_read_a_refusal_loses_its_place() -> None:
    def refuse(request: HttpRequest) -> Flow[int]:
        raise Refused(403)

    call = Call(sse(refuse))
    call.pause()
    await call.end(within=16)


@pytest.mark.virtual_time
async def test_a_client_may_be_waited_for_without_a_limit() -> None:
    call = Call(sse(numbers(1000), send_timeout=None))
    call.pause()
    await asyncio.sleep(3600)
    call.resume()
    await call.end()
    assert call.body.endswith("event: complete\ndata: {}\n\n")


@pytest.mark.virtual_time
async def test_the_cleanup_of_a_client_that_did_not_read_may_take_longer() -> None:
    cleaned_up = False

    async def source() -> AsyncIterator[int]:
        nonlocal cleaned_up
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(30)
            cleaned_up = True

    call = Call(sse(lambda _: source(), send_timeout=10))
    call.pause()
    await call.end(within=60)
    assert cleaned_up


@every_kind
async def test_a_disconnect_cancels_upstream_at_once(kind: Any) -> None:
    probe = PublisherProbe[int]()
    call = Call(kind(probe))
    await probe.expect_request(1)
    call.pause()
    probe.emit(1)
    call.disconnect()
    await probe.expect_cancel()
    call.resume()
    await call.end()


async def test_a_send_that_fails_counts_as_a_disconnect() -> None:
    probe = PublisherProbe[int]()
    call = Call(ndjson(probe))
    await probe.expect_request(1)
    call.send_error = OSError("the client has disconnected")
    probe.emit(1)
    await call.end()
    await probe.expect_cancel()


async def test_a_response_to_a_disconnected_client_raises_nothing() -> None:
    call = Call(ndjson(lambda _: None))
    call.send_error = OSError("the client has disconnected")
    await call.end()


async def test_a_server_that_stops_cancels_upstream() -> None:
    probe = PublisherProbe[int]()
    call = Call(ndjson(probe))
    await probe.expect_request(1)
    call.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call.task
    await probe.expect_cancel()


async def test_a_second_cancellation_leaves_no_flow_behind() -> None:
    probe = PublisherProbe[int]()
    call = Call(ndjson(probe))
    await probe.expect_request(1)
    call.task.cancel()
    await asyncio.sleep(0)
    call.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call.task
    await probe.expect_cancel()


async def test_the_app_waits_for_the_cleanup_of_its_flow() -> None:
    cleaned: list[str] = []

    async def source() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append("cleaned")

    call = Call(ndjson(lambda _: source()))
    await call.until(lambda: call.body)
    await call.close()
    assert cleaned == ["cleaned"]


# -- limits, counters, invalid options -------------------------------------------------------------
async def test_a_client_above_max_streams_gets_503() -> None:
    app = ndjson(never(), max_streams=1)
    first = Call(app)
    await asyncio.sleep(0)
    second = await Call(app).end()
    assert second.status == 503
    assert second.headers["retry-after"]
    assert "1 clients" in repr(app)
    await first.close()
    assert "0 clients" in repr(app)


async def test_counters_count_streams_elements_and_demand() -> None:
    counters = Counters()
    await Call(ndjson(numbers(10), counters=counters)).end()
    assert (counters.elements, counters.bytes, counters.completed) == (10, 20, 1)
    await Call(ndjson(failing(1), counters=counters, on_error=str)).end()
    leaving = Call(ndjson(never(), counters=counters, prefetch=7))
    await asyncio.sleep(0)
    assert (counters.open, counters.outstanding) == (1, 7)
    await leaving.close()
    assert (counters.open, counters.outstanding, counters.opened) == (0, 0, 3)
    assert (counters.completed, counters.failed, counters.cancelled) == (1, 1, 1)


async def test_an_endpoint_completes_the_lifespan_protocol() -> None:
    call = Call(ndjson(just(1)), kind="lifespan")
    call.incoming.get_nowait()
    for step in ("startup", "shutdown"):
        call.incoming.put_nowait({"type": f"lifespan.{step}"})
    await call.end()
    assert [each["type"] for each in call.sent] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]


async def test_an_http_endpoint_closes_websockets() -> None:
    call = await Call(ndjson(just(1)), kind="websocket").end()
    assert call.sent == [{"type": "websocket.close", "code": 1000}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prefetch": 0}, "prefetch"),
        ({"prefetch": "1"}, "prefetch"),
        ({"heartbeat": 0}, "heartbeat"),
        ({"max_start_delay": -1}, "max_start_delay"),
        ({"max_streams": 0}, "max_streams"),
        ({"encode": 1}, "encode"),
    ],
)
@every_kind
def test_invalid_options_raise_at_once(kind: Any, options: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        kind(from_iterable([1]), **options)


async def test_a_disconnect_cancels_the_function_that_makes_the_flow() -> None:
    cancelled = asyncio.Event()
    is_slow = True

    async def make(request: HttpRequest) -> Flow[int]:
        try:
            await (asyncio.Event().wait() if is_slow else asyncio.sleep(0))
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return numbers(1)

    app = ndjson(make, max_streams=1)
    call = Call(app)
    for _ in range(9):
        await asyncio.sleep(0)
    assert (await Call(app).end()).status == 503
    await call.close()
    assert cancelled.is_set()
    assert not call.sent
    is_slow = False
    call = await Call(app).end()
    assert call.body == "0\n", "its place in max_streams is free again"


async def test_a_timeout_of_the_function_that_makes_the_flow_is_an_error() -> None:
    async def make(request: HttpRequest) -> Flow[int]:
        raise TimeoutError("a database did not answer")

    assert (await Call(ndjson(make, on_error=str)).end()).status == 500


async def test_a_disconnect_ends_a_response_whose_flow_was_made_by_a_coroutine_function() -> None:
    probe = PublisherProbe[int]()

    async def make(request: HttpRequest) -> PublisherProbe[int]:
        await asyncio.sleep(0)
        return probe

    call = Call(ndjson(make))
    await probe.expect_subscriber()
    await call.close()
    await probe.expect_cancel()


async def later(element: object) -> str:
    return "x"


@pytest.mark.parametrize(
    "options",
    [
        *[{"id": "x"}, {"id": later}, {"id": lambda: 1}, {"id": 5}],
        *[{"event": 5}, {"event": later}, {"event": lambda: "x"}],
    ],
    ids=["id: text", "id: async", "id: arity", "id", "event", "event: async", "event: arity"],
)
@pytest.mark.parametrize("kind", [sse, stream])
def test_an_invalid_id_or_event_raises_at_once(kind: Any, options: Any) -> None:
    with pytest.raises(TypeError, match=rf"(sse|stream): {next(iter(options))} (must|is called)"):
        kind(numbers(1), **options)


@every_kind
def test_an_object_that_is_not_a_source_raises_at_once(kind: Any) -> None:
    with pytest.raises(TypeError, match="cannot be read as a flow"):
        kind("text")


async def test_elements_are_encoded_as_plain_json() -> None:
    call = await Call(ndjson(just({"ä": 1.5}))).end()
    assert json.loads(call.body) == {"ä": 1.5}


@pytest.mark.parametrize("name", KINDS)
def test_an_unknown_option_names_the_function_and_the_most_similar_one(name: str) -> None:
    with pytest.raises(
        TypeError, match=rf"^{name}: unknown max_stream; here it is called max_streams"
    ):
        KINDS[name](just(1), max_stream=3)
    with pytest.raises(TypeError, match=rf"^{name}: unknown zzz; known are .*encode, prefetch, "):
        KINDS[name](just(1), zzz=3)


@pytest.mark.parametrize("name", KINDS)
def test_a_function_that_makes_a_flow_takes_the_request(name: str) -> None:
    def many(request: HttpRequest, n: int) -> Flow[int]:
        return numbers(n)

    def few(request: HttpRequest, n: int = 3) -> Flow[int]:
        return numbers(n)

    message = rf"^{name}: source is called with 1 argument, and "
    with pytest.raises(TypeError, match=f"{message}many takes 2"):
        KINDS[name](many)
    with pytest.raises(TypeError, match=f"{message}<lambda> takes none"):
        KINDS[name](lambda: just(1))
    KINDS[name](few)
