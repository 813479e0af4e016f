"""observe.otel: spans and metrics, as the SDK of OpenTelemetry receives them."""

import asyncio
import gc
import logging
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace as api
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import reactive_aio as r
from reactive_aio import Flow, RetryPolicy
from reactive_aio._core.observation import registry
from reactive_aio.errors import MissingExtra
from reactive_aio.observe import Snapshot, otel
from reactive_aio.observe.snapshots import take_snapshot
from reactive_aio.rsocket import (
    JSON,
    ClientOptions,
    Request,
    RequestInvalid,
    RequestRejected,
    Router,
    loopback,
)
from reactive_aio.testing import SubscriberProbe


class Spans:
    """A provider, and the spans that have ended, by name."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("test")

    def __getitem__(self, name: str) -> ReadableSpan:
        [span] = [each for each in self.exporter.get_finished_spans() if each.name == name]
        return span

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.exporter.get_finished_spans()]

    def parent(self, name: str) -> str:
        """The name of the parent of a span; empty if it has none among these."""
        parent = self[name].parent
        spans = self.exporter.get_finished_spans()
        found = [each.name for each in spans if parent and id_of(each) == parent.span_id]
        return found[0] if found else ""


def id_of(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return context.span_id


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return {name.rpartition(".")[2]: value for name, value in (span.attributes or {}).items()}


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spans]:
    monkeypatch.setattr(registry, "_names", {})
    made = Spans()
    with otel.trace(made.provider):
        yield made
    made.provider.shutdown()


class TestSpans:
    async def test_a_named_subscription_is_a_span_and_no_other_is(self, spans: Spans) -> None:
        await r.range(10).boundary(3).map(str).name("orders").boundary(2).run()
        span = spans["orders"]
        assert spans.names == ["orders"]
        assert attributes(span) == {
            "outcome": "completed",
            "delivered": 10,
            "discarded": 0,
            "operators": "range(0, 10) → boundary(3) → map(str) → name('orders')",
        }
        assert span.status.status_code is api.StatusCode.UNSET
        assert span.parent is None
        assert (span.end_time or 0) >= (span.start_time or 0) > 0

    async def test_a_failure_is_recorded_with_its_traceback(self, spans: Spans) -> None:
        def parse(_: int) -> int:
            raise ValueError("not a number")

        with pytest.raises(ValueError, match="not a number"):
            await r.range(9).map(parse).name("parsed").boundary(2).run()
        span = spans["parsed"]
        assert attributes(span)["outcome"] == "failed"
        assert span.status.status_code is api.StatusCode.ERROR
        assert span.status.description == "ValueError('not a number')"
        [event] = span.events
        assert "in parse" in str((event.attributes or {})["exception.stacktrace"])

    @pytest.mark.virtual_time
    async def test_a_cancelled_one_says_what_was_discarded(self, spans: Spans) -> None:
        probe = SubscriberProbe[int](2)
        probe.subscribed_to(r.range(9).boundary(5).name("left"))
        await asyncio.sleep(1)
        probe.cancel()
        found = attributes(spans["left"])
        assert (found["outcome"], found["delivered"], found["discarded"]) == ("cancelled", 2, 3)
        assert spans["left"].status.status_code is api.StatusCode.UNSET

    async def test_the_current_span_is_the_parent(self, spans: Spans) -> None:
        with spans.tracer.start_as_current_span("request"):
            await r.range(3).name("inner").boundary(2).name("outer").boundary(2).run()
            assert api.get_current_span().get_span_context() is not None
        assert spans.parent("inner") == "outer"
        assert spans.parent("outer") == "request"

    async def test_it_is_current_upstream_of_the_name_and_nowhere_else(self, spans: Spans) -> None:
        seen: dict[str, str] = {}

        def note(where: str) -> Any:
            def function(element: Any) -> Any:
                seen[where] = getattr(api.get_current_span(), "name", "none")
                return element

            return function

        async def note_async(element: Any) -> Any:
            await asyncio.sleep(0)
            return note("map_async")(element)

        def inner(element: int) -> Flow[int]:
            return r.just(element).map(note("flat_map")).boundary(1)

        def blocking() -> Iterator[int]:
            yield note("from_thread")(0)

        above = (
            r.from_thread(blocking)
            .map(note("map"))
            .map_async(note_async, concurrency=2)
            .map_in_thread(note("map_in_thread"), concurrency=1)
            .flat_map(inner)
        )
        below = above.name("orders").map_async(note_async, concurrency=2).map(note("after"))
        await below.map_in_thread(note("below")).run()
        assert seen.pop("below") == seen.pop("after") == "none"
        assert seen.pop("map_async") == "none", "the one that follows the name was called last"
        assert seen == dict.fromkeys(("from_thread", "map", "map_in_thread", "flat_map"), "orders")

    async def test_a_span_of_a_function_is_its_child(self, spans: Spans) -> None:
        async def save(element: int) -> int:
            with spans.tracer.start_as_current_span(f"save {element}"):
                await asyncio.sleep(0)
            return element

        await r.range(2).map_async(save, concurrency=2).name("orders").run()
        assert spans.parent("save 0") == spans.parent("save 1") == "orders"

    @pytest.mark.virtual_time
    async def test_an_error_after_which_it_tries_again_is_an_event(self, spans: Spans) -> None:
        failures = [OSError("one"), OSError("two")]

        async def load(element: int) -> int:
            if failures:
                raise failures.pop(0)
            return element

        policy = RetryPolicy(attempts=5, delay=1)
        await r.just(1).map_async(load, retry=policy).boundary(1).name("loaded").run()
        first, second = spans["loaded"].events
        assert (first.attributes or {})["exception.message"] == "one"
        assert (second.attributes or {})["reactive_aio.retried"] is True
        assert spans["loaded"].status.status_code is api.StatusCode.UNSET

    async def test_each_subscription_has_its_own(self, spans: Spans) -> None:
        flow = r.range(3).boundary(2).name("again")
        await asyncio.gather(flow.run(), flow.run())
        assert spans.names == ["again", "again"]

    async def test_a_subscription_that_is_freed_is_not_kept_by_its_span(self, spans: Spans) -> None:
        SubscriberProbe[int](1).subscribed_to(r.just(1, 2).name("freed"))
        gc.collect()
        assert not registry.named_flow("freed").subscriptions()
        assert spans.names == []

    async def test_an_exporter_that_raises_fails_no_flow(
        self, monkeypatch: pytest.MonkeyPatch, expects_error_logs: list[logging.LogRecord]
    ) -> None:
        class Broken(SpanProcessor):
            def on_start(self, span: Any, parent_context: Any = None) -> None:
                raise OSError("cannot start")

            def on_end(self, span: ReadableSpan) -> None:
                raise OSError("cannot end")

        provider = TracerProvider()
        provider.add_span_processor(Broken())
        with otel.trace(provider):
            assert await r.range(3).boundary(1).name("orders").to_list() == [0, 1, 2]
        assert expects_error_logs
        assert {each.getMessage() for each in expects_error_logs} == {
            "observe.otel: a span is incomplete"
        }
        expects_error_logs.clear()

    async def test_an_error_whose_message_raises_is_recorded_without_it(
        self, spans: Spans, expects_error_logs: list[logging.LogRecord]
    ) -> None:
        class Mute(Exception):
            def __str__(self) -> str:
                raise KeyError("no text")

        with pytest.raises(Mute):
            await r.error(Mute()).boundary(1).name("mute").run()
        assert spans["mute"].status.status_code is api.StatusCode.ERROR
        expects_error_logs.clear()
        assert r.just(1).name("mute").stats().last_error.startswith("Mute: its message raises")

    async def test_outside_the_block_there_are_none(self, spans: Spans) -> None:
        second = otel.trace(spans.provider)
        with pytest.raises(RuntimeError, match="the flows of this process are traced already"):
            second.__enter__()
        await r.range(2).boundary(1).name("inside").run()
        assert spans.names == ["inside"]


async def test_without_a_provider_flows_run_as_before() -> None:
    """The global provider does nothing until a program sets another."""
    with otel.trace(), otel.measure():
        assert await r.range(3).boundary(1).name("orders").to_list() == [0, 1, 2]
    assert await r.range(3).boundary(1).name("orders").to_list() == [0, 1, 2]


# -- metrics ---------------------------------------------------------------------------------------
class Measured:
    """A provider, and the values of each metric at the last collection, by their labels."""

    def __init__(self) -> None:
        self.reader = InMemoryMetricReader()
        self.provider = MeterProvider([self.reader])

    def read(self) -> dict[str, dict[tuple[Any, ...], float]]:
        data = self.reader.get_metrics_data()
        return {
            metric.name: {
                tuple((point.attributes or {}).values()): getattr(point, "value", 0)
                for point in metric.data.data_points
            }
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Iterator[Measured]:
    monkeypatch.setattr(registry, "_names", {})
    made = Measured()
    yield made
    made.provider.shutdown()


class TestMetrics:
    @pytest.mark.virtual_time
    async def test_they_are_those_of_the_snapshot(self, measured: Measured) -> None:
        async def save(element: int) -> int:
            await asyncio.sleep(1000)
            return element

        flow = r.interval(1).boundary(8).map_async(save, concurrency=2).name("orders")
        with otel.measure(measured.provider):
            async with flow.running():
                await asyncio.sleep(20)
                measured.read()
                await asyncio.sleep(5)
                found = measured.read()
                [stats] = flow.stats().subscriptions
        assert found["reactive_aio.flow.subscriptions"] == {("orders",): 1}
        assert found["reactive_aio.flow.delivered"] == {("orders",): 0}
        assert found["reactive_aio.flow.held"] == {("orders",): stats.held}
        assert found["reactive_aio.flow.oldest"] == {("orders",): 5}
        assert found["reactive_aio.flow.dropped"][("orders", "interval")] > 9
        assert found["reactive_aio.flow.waiting"] == {("orders", "elements"): 1}
        pool = "map_async(save, concurrency=2)"
        assert found["reactive_aio.part.calls"][("orders", pool)] == 2
        assert found["reactive_aio.part.held"][("orders", "boundary(8)")] == stats.parts[1].held

    async def test_another_thread_waits_for_the_event_loop(self, measured: Measured) -> None:
        with otel.measure(measured.provider):
            async with r.never().name("orders").running():
                found = await asyncio.to_thread(measured.read)
        assert found["reactive_aio.flow.subscriptions"] == {("orders",): 1}

    async def test_a_provider_measures_again_in_another_block(self, measured: Measured) -> None:
        for count in (1, 2, 3):
            with otel.measure(measured.provider):
                await r.range(3).boundary(1).name("orders").run()
                assert measured.read()["reactive_aio.flow.started"] == {("orders",): count}
                second = otel.measure(measured.provider)
                with pytest.raises(RuntimeError, match="measures the flows already"):
                    second.__enter__()

    async def test_each_collection_takes_one_snapshot(
        self, measured: Measured, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        taken: list[Snapshot] = []

        def take(*, is_look: bool) -> Snapshot:
            taken.append(take_snapshot(is_look=is_look))
            return taken[-1]

        monkeypatch.setattr("reactive_aio.observe.collection.take_snapshot", take)
        with otel.measure(measured.provider):
            for count in (1, 2, 3):
                measured.read()
                assert len(taken) == count

    async def test_after_the_block_there_are_no_values(self, measured: Measured) -> None:
        with otel.measure(measured.provider):
            await r.range(3).boundary(1).name("orders").run()
            assert measured.read()["reactive_aio.flow.ended"] == {
                ("orders", "completed"): 1,
                ("orders", "failed"): 0,
                ("orders", "cancelled"): 0,
            }
        assert not measured.read()

    def test_when_the_event_loop_is_closed_there_are_none(self, measured: Measured) -> None:
        async def main() -> Any:
            measuring = otel.measure(measured.provider)
            measuring.__enter__()
            return measuring

        measuring = asyncio.run(main())
        assert not measured.read()
        measuring.__exit__(None, None, None)

    @pytest.mark.virtual_time
    async def test_parts_that_are_made_for_elements_have_no_arguments_in_their_names(
        self, measured: Measured
    ) -> None:
        def inner(n: int) -> Flow[int]:
            return r.interval(1000 + n).boundary(n + 1)

        flow = r.range(9).flat_map(inner, concurrency=9).boundary(7).name("many")
        with otel.measure(measured.provider):
            async with flow.running():
                await asyncio.sleep(1)
                parts = {part for _, part in measured.read()["reactive_aio.part.held"]}
        assert "boundary(7)" in parts
        assert {each for each in parts if "inner" not in each} == {
            "boundary(7)",
            "boundary",
            "interval",
        }


# -- RSocket ---------------------------------------------------------------------------------------
def routes(seen: list[str]) -> Router:
    router = Router()

    @router.route("double")
    async def double(payload: int) -> int:
        seen.append(getattr(api.get_current_span(), "name", "none"))
        return 2 * payload

    @router.route("range.{n}")
    def count(n: int) -> Flow[int]:
        return r.range(n).boundary(2).name("numbers")

    @router.route("log")
    def log(payload: str) -> None:
        seen.append(payload)

    @router.route("fails")
    def fails() -> Flow[int]:
        return r.range(2).map(lambda x: 1 // (1 - x))

    return router


def trace_ids(spans: Spans) -> set[int]:
    contexts = [each.get_span_context() for each in spans.exporter.get_finished_spans()]
    return {context.trace_id for context in contexts if context is not None}


def of_kind(spans: Spans, kind: api.SpanKind) -> ReadableSpan:
    [span] = [each for each in spans.exporter.get_finished_spans() if each.kind is kind]
    return span


async def until_idle() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


class TestRSocket:
    async def test_a_response_is_part_of_the_trace_of_its_request(self, spans: Spans) -> None:
        seen: list[str] = []
        async with connected(seen) as requester:
            with spans.tracer.start_as_current_span("page"):
                assert await requester.request_response(4, route="double") == 8
        assert seen == ["double"]
        client, server = of_kind(spans, api.SpanKind.CLIENT), of_kind(spans, api.SpanKind.SERVER)
        assert server.parent is not None
        assert server.parent.span_id == id_of(client)
        assert server.parent.is_remote
        assert client.parent is not None
        assert client.parent.span_id == id_of(spans["page"])
        assert attributes(server) == {"system": "rsocket", "method": "double", "model": "response"}

    async def test_so_is_a_stream_with_the_flow_that_makes_it(self, spans: Spans) -> None:
        async with connected([]) as requester:
            flow = requester.request_stream(route="range.5")
            with spans.tracer.start_as_current_span("page"):
                assert await flow.to_list() == [0, 1, 2, 3, 4]
            await until_idle()
        server = of_kind(spans, api.SpanKind.SERVER)
        numbers = spans["numbers"]
        assert numbers.parent is not None
        assert numbers.parent.span_id == id_of(server)
        assert len(trace_ids(spans)) == 1
        assert attributes(server)["method"] == "range.5"

    async def test_each_subscription_to_a_stream_has_its_own(self, spans: Spans) -> None:
        async with connected([]) as requester:
            flow = requester.request_stream(route="range.2")
            await flow.run()
            await flow.take(1).run()
            await until_idle()
        assert spans.names.count("range.2") == 4
        assert len(trace_ids(spans)) == 2

    async def test_a_request_without_a_response_has_one_as_well(self, spans: Spans) -> None:
        seen: list[str] = []
        async with connected(seen) as requester:
            await requester.fire_and_forget("hello", route="log")
            while not seen:  # noqa: ASYNC110 - one turn at a time
                await asyncio.sleep(0)
            await until_idle()
        assert spans.names == ["log", "log"]
        assert len(trace_ids(spans)) == 1

    async def test_a_failure_is_recorded_on_both_sides(
        self, spans: Spans, expects_loop_errors: list[dict[str, Any]]
    ) -> None:
        async with connected([]) as requester:
            with pytest.raises(Exception, match="the handler of the other side failed"):
                await requester.request_stream(route="fails").run()
            with pytest.raises(RequestInvalid, match="no such route"):
                await requester.request_response(route="missing")
            await until_idle()
        assert isinstance(expects_loop_errors.pop()["exception"], ZeroDivisionError)
        spans_ended = spans.exporter.get_finished_spans()
        assert [each.name for each in spans_ended].count("fails") == 2
        assert [each.name for each in spans_ended].count("missing") == 2
        assert all(each.status.status_code is api.StatusCode.ERROR for each in spans_ended)

    @pytest.mark.parametrize("item", [b"", b"\xff\xfe", b"traceparent", b"traceparent:no"])
    async def test_a_malformed_context_begins_a_new_trace(self, spans: Spans, item: bytes) -> None:
        from reactive_aio.observe.otel.interceptors import TRACE_CONTEXT

        async with loopback(
            routes([]), codec=JSON, interceptors=[otel.server_interceptor]
        ) as requester:
            metadata = [(TRACE_CONTEXT, item)]
            assert await requester.request_response(1, route="double", metadata=metadata) == 2
        assert spans["double"].parent is None

    async def test_a_server_that_was_started_in_a_span_does_not_add_to_it(
        self, spans: Spans
    ) -> None:
        with spans.tracer.start_as_current_span("start"):
            server = loopback(routes([]), codec=JSON, interceptors=[otel.server_interceptor])
        async with server as requester:
            for _ in range(2):
                await requester.request_response(1, route="double")
        assert spans.names == ["start", "double", "double"]
        assert len(trace_ids(spans)) == 3

    async def test_requests_that_share_a_task_do_not_share_a_trace(self, spans: Spans) -> None:
        seen: list[str] = []
        async with loopback(
            routes(seen), codec=JSON, interceptors=[otel.server_interceptor]
        ) as requester:
            for text in "abc":
                await requester.fire_and_forget(text, route="log")
            while len(seen) < 3:  # noqa: ASYNC110 - one turn at a time
                await asyncio.sleep(0)
            await until_idle()
        assert len(trace_ids(spans)) == len(spans.names) == 3

    async def test_what_another_interceptor_refuses_is_recorded(self, spans: Spans) -> None:
        async def refuses(_: Request, __: Any) -> Any:
            raise RequestRejected(0x202, b"no tenant was given")

        interceptors = [otel.server_interceptor, refuses]
        async with loopback(routes([]), codec=JSON, interceptors=interceptors) as requester:
            with pytest.raises(RequestRejected):
                await requester.request_response(1, route="double")
        assert spans["double"].status.status_code is api.StatusCode.ERROR


def connected(seen: list[str]) -> Any:
    return loopback(
        routes(seen),
        codec=JSON,
        interceptors=[otel.server_interceptor],
        client=ClientOptions(interceptors=[otel.client_interceptor]),
    )


# -- the extra -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [("otel", "opentelemetry", "otel"), ("prometheus", "prometheus_client", "prometheus")],
)
def test_without_the_package_an_import_names_the_extra(
    module: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"reactive_aio.observe.{module}"
    for each in list(sys.modules):
        if each.startswith((name, f"{package}.")) or each == package:
            monkeypatch.delitem(sys.modules, each)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"pip install 'reactive-aio\[{extra}\]'"):
        __import__(name)


def test_observe_itself_needs_neither() -> None:
    code = "import reactive_aio.observe, sys; print(*sys.modules)"
    import subprocess

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not [each for each in done.stdout.split() if each.startswith(("opentelemetry", "prom"))]
    assert threading.active_count() >= 1
