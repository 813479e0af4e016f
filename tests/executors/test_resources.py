"""A resource is opened once in a worker, shared by its tasks, and closed."""

import asyncio
import logging
import pickle
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from threading import Event
from typing import Any

import pytest
from pyspark import cloudpickle

import reactive_aio as rx
from reactive_aio import Flow
from reactive_aio.spark import map_flow
from reactive_aio.spark.executors.resources import WorkerResource
from tests.executors.worker import Worker, new_worker, numbers

events: list[str] = []
closed = Event()


@pytest.fixture(autouse=True)
def no_events() -> None:
    events.clear()
    closed.clear()


@asynccontextmanager
async def open_client() -> AsyncGenerator[int]:
    events.append("opens")
    await asyncio.sleep(0.001)
    try:
        yield 10
    finally:
        await asyncio.sleep(0)
        events.append("closed")
        closed.set()


@contextmanager
def open_plain() -> Generator[int]:
    yield 20
    events.append("closed")


def looks_up(client: WorkerResource[int]) -> Any:
    async def look(row: tuple[int]) -> tuple[int]:
        return (row[0] + await client(),)

    def pipeline(rows: Flow[tuple[int]]) -> Flow[tuple[int]]:
        return rows.map_async(look, concurrency=4)

    return pipeline


def test_the_tasks_of_a_worker_share_a_resource(worker: Worker) -> None:
    pipeline = looks_up(map_flow.resources(open_client))
    assert worker.numbers(pipeline, 5) == [10, 11, 12, 13, 14]
    sent: Any = cloudpickle
    again = pickle.loads(sent.dumps(pipeline))  # as for the next task
    assert worker.numbers(again, 2) == [10, 11]
    assert events == ["opens"]
    worker.loop.close()
    assert events == ["opens", "closed"]


def test_a_plain_context_manager_is_a_resource(worker: Worker) -> None:
    assert worker.numbers(looks_up(map_flow.resources(open_plain)), 2) == [20, 21]
    worker.loop.close()
    assert events == ["closed"]


def test_an_idle_worker_closes_its_resources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REUSE_WORKER", "1")
    with new_worker(idle_seconds=0.001) as worker:
        pipeline = looks_up(map_flow.resources(open_client))
        worker.numbers(pipeline, 1)
        assert closed.wait(60)
        assert worker.numbers(pipeline, 1) == [10]  # opened again
    assert events == ["opens", "closed", "opens", "closed"]


def test_a_failed_task_closes_the_resources_for_spark_ends_the_worker(worker: Worker) -> None:
    def fail(row: tuple[int]) -> tuple[int]:
        raise OSError("the disk is full")

    pipeline = looks_up(map_flow.resources(open_client))
    with pytest.raises(OSError, match="full"):
        worker.numbers(lambda rows: pipeline(rows).map(fail), 3)
    assert events == ["opens", "closed"]


def test_a_resource_that_does_not_open_fails_those_who_wait_and_is_tried_again(
    worker: Worker,
) -> None:
    attempts: list[int] = []

    @asynccontextmanager
    async def flaky() -> AsyncGenerator[int]:
        attempts.append(1)
        await asyncio.sleep(0)
        if len(attempts) == 1:
            raise ConnectionError("no server yet")
        yield 5

    client = map_flow.resources(flaky)
    pipeline = looks_up(client)
    found: list[int] = []

    async def look(row: tuple[int]) -> tuple[int]:
        try:
            found.append(await client())
        except ConnectionError:
            found.append(-1)
        return row

    worker.numbers(lambda rows: rows.map_async(look, concurrency=3), 3)
    assert found == [-1, -1, -1]
    assert worker.numbers(pipeline, 1) == [5]
    assert len(attempts) == 2


def test_an_error_of_closing_is_logged(worker: Worker, caplog: pytest.LogCaptureFixture) -> None:
    @asynccontextmanager
    async def stubborn() -> AsyncGenerator[int]:
        yield 1
        raise OSError("not closed")

    worker.numbers(looks_up(map_flow.resources(stubborn)), 1)
    with caplog.at_level(logging.WARNING):
        worker.loop.close()
    assert "a resource of map_flow could not be closed" in caplog.text


async def test_on_a_loop_of_ones_own_it_is_entered() -> None:
    client = map_flow.resources(open_client)
    pipeline = looks_up(client)
    rows = rx.range(2).map(lambda n: (n,))
    with pytest.raises(RuntimeError, match="on a loop of your own write `async with resource:`"):
        await pipeline(rows).to_list()
    async with client:
        assert await pipeline(rows).to_list() == [(10,), (11,)]
        with pytest.raises(RuntimeError, match="is open already"):
            await client.__aenter__()
    assert events == ["opens", "closed"]
    assert repr(client) == "<WorkerResource open_client>"


def test_anything_but_a_context_manager_is_refused(worker: Worker) -> None:
    with pytest.raises(TypeError, match=r"open must be a function .* not 3 \(int\)"):
        map_flow.resources(3)  # type: ignore[arg-type]

    async def coroutine() -> int:
        return 1

    wrong: Any = coroutine
    with pytest.raises(TypeError, match="coroutine returned coroutine, which is not a context man"):
        worker.numbers(looks_up(map_flow.resources(wrong)), 1)


def test_a_begun_task_keeps_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REUSE_WORKER", "1")
    with new_worker() as worker:
        task = worker.task(looks_up(map_flow.resources(open_client)), numbers(3))
        next(task)
        worker.loop.close()  # as the timer does that had begun to close
        assert [batch.num_rows for batch in task]
        assert events == ["opens"]
