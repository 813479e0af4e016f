"""observe.prometheus: what a scrape reads, parsed as Prometheus does; and the dashboard of it."""

import asyncio
import json
import re
import threading
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

import reactive_aio as r
from reactive_aio._core.observation import registry as flows
from reactive_aio.errors import NoRunningLoop
from reactive_aio.observe import Snapshot, metrics, prometheus
from reactive_aio.observe.snapshots import take_snapshot
from reactive_aio.testing import SubscriberProbe

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "examples" / "dashboards" / "grafana.json"
Samples = dict[tuple[str, ...], float]


@pytest.fixture(autouse=True)
def no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows, "_names", {})
    monkeypatch.setattr(flows, "_processors", WeakSet[Any]())


def registered(**options: Any) -> CollectorRegistry:
    made = CollectorRegistry()
    made.register(prometheus.Collector(**options))
    return made


def scraped(registry: CollectorRegistry) -> dict[str, Samples]:
    """The samples by name, each by the values of its labels in their order."""
    found: dict[str, Samples] = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


async def hangs(_: int) -> int:
    await asyncio.Event().wait()
    return 1


@pytest.mark.virtual_time
async def test_a_scrape_has_the_figures_of_named_flows() -> None:
    registry = registered()
    flow = r.interval(1).boundary(4).map_async(hangs, concurrency=2).name("orders")
    async with flow.running():
        await asyncio.sleep(20)
        scraped(registry)
        await asyncio.sleep(5)
        found = scraped(registry)
    assert found["reactive_aio_flow_subscriptions"] == {("orders",): 1}
    assert found["reactive_aio_flow_delivered_total"] == {("orders",): 0}
    assert found["reactive_aio_flow_oldest_seconds"] == {("orders",): 5}
    assert found["reactive_aio_flow_idle_seconds"] == {("orders",): 25}
    assert found["reactive_aio_flow_waiting"] == {("orders", "elements"): 1}
    assert found["reactive_aio_part_calls"]["orders", "map_async(hangs, concurrency=2)"] == 2
    assert found["reactive_aio_part_oldest_seconds"]["orders", "boundary(4)"] == 5
    assert found["reactive_aio_flow_dropped_total"]["interval", "orders"] > 10
    assert "reactive_aio_flow_requested" not in found, "it is unlimited"


async def test_counters_include_what_has_ended() -> None:
    registry = registered()
    for _ in range(3):
        await r.range(10).boundary(3).name("batches").run()
    with pytest.raises(OSError, match="lost"):
        await r.error(OSError("lost")).retry(4).name("batches").run()
    found = scraped(registry)
    assert found["reactive_aio_flow_delivered_total"] == {("batches",): 30}
    assert found["reactive_aio_flow_started_total"] == {("batches",): 4}
    assert found["reactive_aio_flow_retries_total"] == {("batches",): 3}
    assert found["reactive_aio_flow_ended_total"] == {
        ("batches", "completed"): 3,
        ("batches", "failed"): 1,
        ("batches", "cancelled"): 0,
    }


async def test_processors_and_losses_are_part_of_it() -> None:
    registry = registered()
    news = r.MulticastProcessor[int](capacity=2, overflow="drop_oldest", name='news "of" \\ day\n')
    probe = SubscriberProbe[int](1).subscribed_to(news)
    for i in range(6):
        news.try_emit(i)
    found = scraped(registry)
    probe.cancel()
    [name] = {key[0] for key in found["reactive_aio_processor_accepted_total"]}
    assert name == 'news "of" \\ day\n', "a name may contain anything"
    assert found["reactive_aio_processor_accepted_total"] == {(name,): 6}
    assert found["reactive_aio_processor_dropped_total"] == {("drop_oldest", name): 3}
    assert found["reactive_aio_processor_held"] == {(name,): 2}
    assert found["reactive_aio_processor_subscribers"] == {(name,): 1}
    assert found["reactive_aio_lost_elements_total"][f"{name}: drop_oldest",] >= 3
    assert found["reactive_aio_lost_errors_total"][()] >= 0


@pytest.mark.virtual_time
async def test_a_scrape_changes_no_rate() -> None:
    registry = registered()
    flow = r.interval(1).name("ticks")
    async with flow.running():
        await asyncio.sleep(10.5)
        scraped(registry)
        assert flow.stats().subscriptions[0].rate == pytest.approx(10 / 10.5)


class TestThreads:
    async def test_another_thread_reads_on_the_event_loop(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        registry = registered()
        threads: list[int] = []

        def take(*, is_look: bool) -> Snapshot:
            threads.append(threading.get_ident())
            return take_snapshot(is_look=is_look)

        monkeypatch.setattr("reactive_aio.observe.collection.take_snapshot", take)
        async with r.never().name("orders").running():
            found = await asyncio.to_thread(scraped, registry)
        assert found["reactive_aio_flow_subscriptions"] == {("orders",): 1}
        assert threads == [threading.get_ident()]

    async def test_a_loop_that_is_blocked_fails_the_scrape(self) -> None:
        registry = registered(timeout=0.001)
        errors: list[BaseException] = []

        def scrape() -> None:
            try:
                scraped(registry)
            except TimeoutError as error:
                errors.append(error)

        thread = threading.Thread(target=scrape)
        thread.start()
        thread.join()  # on the loop, which is blocked by that
        assert "the event loop has not answered within 0.001 s" in str(errors[0])
        await asyncio.sleep(0)
        assert scraped(registry)

    def test_after_the_event_loop_there_is_nothing(self) -> None:
        async def main() -> CollectorRegistry:
            return registered()

        assert scraped(asyncio.run(main())) == {}

    def test_it_is_created_on_the_event_loop(self) -> None:
        with pytest.raises(NoRunningLoop, match=r"observe\.prometheus\.Collector\(\)"):
            prometheus.Collector()

    async def test_a_registry_refuses_a_second_one(self) -> None:
        registry = registered()
        with pytest.raises(ValueError, match="Duplicated timeseries"):
            registry.register(prometheus.Collector())


# -- the dashboard ---------------------------------------------------------------------------------
PAGES = {path.name: path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md")}
QUERIES: list[str] = []
"""Every query of the dashboard."""


def keep_query(node: dict[str, Any]) -> dict[str, Any]:
    QUERIES.extend(str(node[name]) for name in ("expr", "query", "definition") if name in node)
    return node


json.loads(DASHBOARD.read_text("utf-8"), object_hook=keep_query)


async def exported() -> dict[str, set[str]]:
    """Each metric of a process that has something to show for all of them, and its labels."""
    registry = registered()
    hub = r.MulticastProcessor[int](capacity=1, overflow="drop_newest", name="hub")
    probe = SubscriberProbe[int](2).subscribed_to(hub.boundary(2).name("readers"))
    dropping = r.interval(0.1).on_backpressure_drop().name("dropping")
    other = SubscriberProbe[int](1).subscribed_to(dropping)
    await asyncio.sleep(1)
    for i in range(9):
        hub.try_emit(i)
        await asyncio.sleep(1)
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    probe.cancel()
    other.cancel()
    return found


@pytest.mark.virtual_time
async def test_the_dashboard_shows_metrics_and_labels_that_exist() -> None:
    known = await exported()
    used: set[str] = set()
    for query in QUERIES:
        names = re.findall(r"\breactive_aio_\w+", query)
        assert names or query == "prometheus", query
        used.update(names)
        labels = re.findall(r"(\w+)\s*=~?", query)
        labels += [each for group in re.findall(r"by \(([^)]*)\)", query) for each in
                   re.split(r",\s*", group)]  # fmt: skip
        for name in names:
            assert name in known, f"{name} is not exported"
            assert set(labels) <= known[name], f"{query}: it has the labels {known[name]}"
    assert used == set(known), f"not shown: {set(known) - used}"


@pytest.mark.virtual_time
@pytest.mark.parametrize("page", ["telemetry.md", "production.md"])
async def test_pages_name_metrics_that_exist(page: str) -> None:
    known = await exported()
    named = set(re.findall(r"\breactive_aio_\w+", PAGES[page]))
    assert named
    assert named <= set(known)


def test_each_metric_is_exported_once() -> None:
    names = [each.name for each in metrics.METRICS]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z]+\.[a-z]+", name) for name in names)
