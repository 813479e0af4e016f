"""The figures of a named flow include the calls of the function that it runs with its elements."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow, observe
from reactive_aio._core.observation import registry
from reactive_aio._core.observation.registry import current_flow

pytestmark = pytest.mark.virtual_time

Consume = Callable[..., AbstractAsyncContextManager[object]]


@pytest.fixture(autouse=True)
def no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_names", {})


def running(flow: Flow[Any], *function: Any, **options: Any) -> AbstractAsyncContextManager[object]:
    return flow.running(*function, **options)


@asynccontextmanager
async def for_each(flow: Flow[Any], *function: Any, **options: Any) -> AsyncGenerator[None]:
    task = asyncio.create_task(flow.for_each(*function, **options))
    await asyncio.sleep(0)
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


CONSUMERS: dict[str, Consume] = {"running": running, "for_each": for_each}
FLOWS: dict[str, Callable[[], Flow[int]]] = {
    "pulled": lambda: r.range(100).name("orders"),
    "pushed": lambda: r.range(100).boundary(8).name("orders"),
    "awaited": lambda: r.range(100).do_on_next(str).filter_async(is_any).name("orders"),
    "named before a stage": lambda: r.range(100).boundary(8).name("orders").map(abs),
    "named twice": lambda: r.range(100).name("first").boundary(8).name("second").name("orders"),
}


async def is_any(_: int) -> bool:
    return True


async def save(x: int) -> None:
    """The first six calls take a second each, and the others an hour."""
    await asyncio.sleep(1 if x < 6 else 3600)


@pytest.mark.parametrize("kind", FLOWS)
@pytest.mark.parametrize("consumer", CONSUMERS)
async def test_what_runs_and_what_waits_is_a_part(consumer: str, kind: str) -> None:
    flow = FLOWS[kind]()
    async with CONSUMERS[consumer](flow, save, concurrency=3):
        await asyncio.sleep(1.5)
        [subscription] = flow.stats().subscriptions
        assert subscription.delivered == 3, "only those whose call has returned"
        await asyncio.sleep(8.5)
        flow.stats()
        await asyncio.sleep(20)
        stats = flow.stats()
        [subscription] = stats.subscriptions
        part = subscription.parts[0]
        assert part.name == f"{consumer}(save, concurrency=3)"
        assert (part.calls, subscription.delivered, stats.delivered) == (3, 6, 6)
        assert [line.partition(" ")[0] for line in part.awaited] == ["save"]
        assert subscription.waits_for == f"elements of {part.name}"
        assert (subscription.idle, part.oldest) == (20, 20)
        assert f"{part.name} → " in subscription.trail
    assert sorted(observe.snapshot().flows) == ["first"] * ("twice" in kind) + ["orders"]
    assert flow.stats().started == 1


@pytest.mark.parametrize("consumer", CONSUMERS)
async def test_a_call_that_hangs_is_a_stall(consumer: str) -> None:
    reports: list[str] = []
    flow = r.range(100).name("orders")
    async with (
        observe.watch(stall=10, block=None, on_report=reports.append),
        CONSUMERS[consumer](flow, save, concurrency=3),
    ):
        await asyncio.sleep(60)
    [report] = reports
    assert "orders: nothing was delivered for" in report
    assert "in save (" in report


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("concurrency", [1, 2])
async def test_a_failure_and_a_retry_of_a_call_are_counted(consumer: str, concurrency: int) -> None:
    async def fails(x: int) -> None:
        if x == 2:
            raise OSError("lost")

    flow = r.range(100).name("orders")
    with suppress(OSError):
        if consumer == "for_each":
            await flow.for_each(fails, concurrency=concurrency, retry=3)
        async with flow.running(fails, concurrency=concurrency, retry=3) as run:
            await run.wait()
    stats = flow.stats()
    assert (stats.failed, stats.cancelled, stats.retries) == (1, 0, 2)
    assert f">>{consumer}(" in stats.last_error
    assert "    with the element 2" in stats.last_error


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("concurrency", [1, 2])
async def test_the_calls_run_in_the_flow(consumer: str, concurrency: int) -> None:
    seen: list[str] = []

    async def work(_: int) -> None:
        flow = current_flow.get()
        seen.append("" if flow is None else flow.name)

    flow = r.range(3).boundary(2).name("orders")
    async with CONSUMERS[consumer](flow, work, concurrency=concurrency):
        await asyncio.sleep(1)
    assert seen == ["orders"] * 3


@pytest.mark.parametrize("consumer", CONSUMERS)
async def test_the_picture_of_the_flow_has_its_figures(consumer: str) -> None:
    flow = r.range(100).boundary(8).name("orders")
    another = flow.boundary(4).name("orders")
    async with CONSUMERS[consumer](flow, save, concurrency=2), another.running(save):
        await asyncio.sleep(60)
        graph = flow.graph()
    assert graph.running == 2, "itself, and as a part of another"
    assert "running" in graph.svg()


async def test_a_flow_without_a_name_has_none() -> None:
    async with r.range(9).running(save, concurrency=2):
        await asyncio.sleep(1)
        assert not observe.snapshot().flows
