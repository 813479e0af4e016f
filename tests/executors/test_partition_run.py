"""A pipeline over one partition: demand, the end, failures, cancellation, and a slow Spark."""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from itertools import pairwise
from threading import Event
from typing import Any, cast

import pytest

from reactive_aio import Flow
from reactive_aio.errors import AlreadySubscribed, Interrupted
from reactive_aio.spark import TaskAbandoned, spark_task
from reactive_aio.spark.executors import partition_run, spark_connection
from tests.executors.worker import NUMBERS, Worker, new_worker, numbers, rows_of

Row = tuple[int]
Pipeline = Callable[[Flow[Row]], Flow[Any]]


async def doubled(row: Row) -> Row:
    await asyncio.sleep(0)
    return (row[0] * 2,)


def synchronous(rows: Flow[Row]) -> Flow[Row]:
    return rows.map(lambda row: (row[0] * 2,))


def awaited(rows: Flow[Row]) -> Flow[Row]:
    return rows.map_async(doubled, concurrency=4)


def queued(rows: Flow[Row]) -> Flow[Row]:
    return rows.boundary(4).map(lambda row: (row[0] * 2,))


BOTH_WAYS = pytest.mark.parametrize("pipeline", [synchronous, awaited, queued])
"""With nothing to wait for, and with something."""


class Batches:
    """Record batches of one row each, which counts those that were read."""

    def __init__(self, count: int) -> None:
        self.read = 0
        self._count = count

    def __iter__(self) -> Iterator[Any]:
        for batch in numbers(self._count, size=1):
            self.read += 1
            yield batch


# -- demand and the end ----------------------------------------------------------------------------
@BOTH_WAYS
def test_spark_reads_a_batch_and_the_flow_reads_what_it_needs(
    pipeline: Pipeline, worker: Worker
) -> None:
    given = Batches(1000)
    task = worker.task(pipeline, given)
    assert given.read == 0
    assert rows_of(next(task)) == [(0,)]
    assert given.read <= 1 + 2 * 4
    assert 1 <= len(rows_of(next(task))) <= 8
    assert given.read <= 9 + 2 * 4
    task.close()


@BOTH_WAYS
@pytest.mark.parametrize("count", [0, 1, 7, 100])
def test_every_row_comes_once_and_in_order(pipeline: Pipeline, count: int, worker: Worker) -> None:
    rows = worker.rows(pipeline, numbers(count, size=6), most=10)
    assert rows == [(2 * n,) for n in range(count)]


@BOTH_WAYS
def test_batches_grow_to_the_limit(pipeline: Pipeline, worker: Worker) -> None:
    sizes = [batch.num_rows for batch in worker.task(pipeline, numbers(400), most=100)]
    assert sizes[0] == 1
    assert max(sizes) <= 100
    assert all(later <= 8 * before for before, later in pairwise(sizes))


def test_the_bound_of_a_pipeline_includes_the_batch_that_spark_sends(worker: Worker) -> None:
    bounds: list[int | None] = []

    def pipeline(rows: Flow[Row]) -> Flow[Row]:
        flow = rows.boundary(4)
        bounds.append(flow.bound().total)
        return flow

    worker.rows(pipeline, numbers(3), most=100)
    assert bounds == [99 + 4]


def test_rows_have_the_requested_kind(worker: Worker) -> None:
    seen: list[Any] = []

    def pipeline(rows: Flow[Any]) -> Flow[Any]:
        return rows.do_on_next(seen.append).boundary(2)

    for rows in ("tuple", "row", "dict", "batch"):
        worker.rows(pipeline, numbers(1), rows=rows)
    assert seen[0] == (0,)
    assert seen[1].n == 0
    assert seen[2] == {"n": 0}
    assert rows_of(seen[3]) == [(0,)]


def test_each_task_runs_on_the_loop_of_the_worker(worker: Worker) -> None:
    loops: list[object] = []

    def pipeline(rows: Flow[Row]) -> Flow[Row]:
        # Synchronous functions may use the loop as well, as they may on one loop.
        return rows.do_on_next(lambda _: loops.append(asyncio.get_running_loop()))

    def queued_pipeline(rows: Flow[Row]) -> Flow[Row]:
        return pipeline(rows).boundary(4)

    worker.rows(pipeline, numbers(2))
    worker.rows(queued_pipeline, numbers(2))
    assert len(loops) == 4
    assert len({id(loop) for loop in loops}) == 1


def test_a_worker_that_spark_does_not_reuse_closes_its_loop(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_REUSE_WORKER")
    loops: list[asyncio.AbstractEventLoop] = []

    async def look(row: Row) -> Row:
        loops.append(asyncio.get_running_loop())
        return row

    worker.rows(lambda rows: rows.map_async(look), numbers(1))
    worker.rows(lambda rows: rows.map_async(look), numbers(1))
    assert all(loop.is_closed() for loop in loops)


def test_a_flow_without_a_task_of_spark_has_partition_0(worker: Worker) -> None:
    rows = worker.numbers(lambda rows: rows.map(lambda _: (spark_task().partition,)), 2)
    assert rows == [0, 0]
    assert str(spark_task()) == "partition 0, attempt 0 (stage 0, task 0)"


# -- failures --------------------------------------------------------------------------------------
def at_three(row: Row) -> Row:
    return (1 // (row[0] - 3),)


async def at_three_async(row: Row) -> Row:
    return at_three(row)


def failing(rows: Flow[Row]) -> Flow[Row]:
    return rows.map(at_three)


def failing_after_a_queue(rows: Flow[Row]) -> Flow[Row]:
    return rows.boundary(4).map(at_three)


def failing_when_awaited(rows: Flow[Row]) -> Flow[Row]:
    return rows.map_async(at_three_async, concurrency=2)


@pytest.mark.parametrize(
    ("pipeline", "operator"),
    [
        (failing, "→ >>map(at_three)<<"),
        (failing_after_a_queue, "→ boundary(4) → >>map(at_three)<<"),
        (failing_when_awaited, "→ >>map_async(at_three_async, concurrency=2)<<"),
    ],
)
def test_an_error_names_operator_element_and_partition(
    pipeline: Pipeline, operator: str, worker: Worker
) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        worker.rows(pipeline, numbers(10))
    notes = "\n".join(caught.value.__notes__)
    assert f"in the flow: the rows of a partition {operator}" in notes
    assert "with the element (3,)" in notes
    assert notes.endswith("in map_flow: partition 0, attempt 0 (stage 0, task 0)")


@pytest.mark.parametrize("pipeline", [synchronous, awaited])
def test_an_error_of_spark_is_raised(pipeline: Pipeline, worker: Worker) -> None:
    def broken() -> Iterator[Any]:
        yield from numbers(1)
        raise EOFError("the connection broke")

    with pytest.raises(EOFError, match="the connection broke"):
        worker.rows(pipeline, broken())


def test_stop_iteration_of_a_function_fails_the_task(worker: Worker) -> None:
    def stop(row: Row) -> Row:
        raise StopIteration

    with pytest.raises(RuntimeError, match="StopIteration"):
        worker.rows(lambda rows: rows.map(stop), numbers(3))


def test_a_pipeline_has_to_return_a_flow(worker: Worker) -> None:
    async def coroutine(rows: Flow[Row]) -> int:
        return await rows.count()

    with pytest.raises(TypeError, match="coroutine returned coroutine, which is not a flow"):
        worker.rows(cast("Pipeline", coroutine), numbers(1))
    with pytest.raises(TypeError, match=r"returned str, which is not a flow"):
        worker.rows(cast("Pipeline", str), numbers(1))


def test_the_rows_can_be_read_once(worker: Worker) -> None:
    with pytest.raises(AlreadySubscribed, match=r"map_async\(…, retry=…\)"):
        worker.rows(lambda rows: rows.merge_with(rows), numbers(3))


def test_rows_that_cannot_be_made_fail_the_flow(worker: Worker) -> None:
    def broken() -> Iterator[Any]:
        yield object()

    with pytest.raises(AttributeError):
        worker.rows(awaited, broken())


# -- cancellation ----------------------------------------------------------------------------------
def test_closing_the_result_cancels_the_flow_and_waits_for_its_cleanup(worker: Worker) -> None:
    events: list[str] = []

    async def look(row: Row) -> Row:
        try:
            await asyncio.sleep(3600 if row[0] else 0)
        finally:
            await asyncio.sleep(0)
            events.append(f"look {row[0]}")
        return row

    def pipeline(rows: Flow[Row]) -> Flow[Row]:
        return rows.map_async(look, concurrency=3).do_on_cancel(lambda: events.append("cancelled"))

    task = worker.task(pipeline, numbers(10))
    assert rows_of(next(task)) == [(0,)]
    task.close()
    assert {"cancelled", "look 0", "look 1", "look 2"} <= set(events)


def test_closing_the_result_ends_a_synchronous_flow(worker: Worker) -> None:
    events: list[str] = []
    task = worker.task(
        lambda rows: rows.do_finally(lambda _: events.append("finally")), numbers(1000)
    )
    next(task)
    assert not events
    task.close()
    assert events == ["finally"]


def test_an_error_of_the_cleanup_is_raised_when_the_flow_has_completed(worker: Worker) -> None:
    def fail(_: object) -> None:
        raise OSError("not flushed")

    with pytest.raises(OSError, match="not flushed"):
        worker.rows(lambda rows: rows.boundary(2).do_finally(fail), numbers(3))


def test_an_error_of_the_cleanup_is_logged_when_the_task_has_failed(
    worker: Worker, expects_error_logs: list[logging.LogRecord]
) -> None:
    async def look(row: Row) -> Row:
        try:
            await asyncio.sleep(0 if row[0] < 2 else 3600)
        finally:
            if row[0] > 2:
                raise OSError("not flushed")
        return row if row[0] else (1.5,)  # type: ignore[return-value]

    with pytest.raises(TypeError, match="does not fit"):
        worker.rows(lambda rows: rows.map_async(look, concurrency=4), numbers(4))
    [record] = expects_error_logs
    assert record.getMessage() == "the cleanup of the flow has failed"
    assert record.exc_info


# -- a slow Spark ----------------------------------------------------------------------------------
def test_the_loop_goes_on_while_spark_computes_the_next_batch(worker: Worker) -> None:
    done = Event()

    async def look(row: Row) -> Row:
        await asyncio.sleep(0.001)
        done.set()
        return row

    def slow() -> Iterator[Any]:
        yield from numbers(1)
        assert done.wait(60), "a loop that stands still would never answer"
        yield from numbers(2)

    rows = worker.rows(lambda rows: rows.map_async(look, concurrency=8), slow())
    assert rows == [(0,), (0,), (1,)]


def test_rows_do_not_wait_for_a_full_batch(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_run, "LONGEST_WAIT", 0.0)
    monkeypatch.setattr(partition_run, "TICK", 0.01)
    received = Event()

    async def look(row: Row) -> Row:
        if row[0] == 3:
            await asyncio.to_thread(received.wait, 60)
        return row

    task = worker.task(lambda rows: rows.map_async(look, concurrency=2), numbers(5))
    rows = rows_of(next(task)) + rows_of(next(task))
    while rows[-1] != (2,):  # the second batch would have eight rows
        rows += rows_of(next(task))
    received.set()
    for batch in task:
        rows += rows_of(batch)
    assert rows == [(n,) for n in range(5)]


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """Spark's end of the connection to the worker."""
    ours, theirs = socket.socketpair()
    monkeypatch.setattr(partition_run, "TICK", 0.01)
    with ours, theirs, ours.makefile("wb") as output:
        monkeypatch.setattr(spark_connection, "worker_output", lambda: output)
        yield theirs


def test_a_task_that_spark_has_abandoned_cancels_its_flow(
    worker: Worker, connection: socket.socket
) -> None:
    cancelled = Event()

    async def look(row: Row) -> Row:
        try:
            connection.close()  # as Spark does when it needs no more rows
            await asyncio.sleep(3600)
        finally:
            cancelled.set()
        return row

    with pytest.raises(TaskAbandoned, match="the query needs no more rows"):
        worker.rows(lambda rows: rows.map_async(look, concurrency=2), numbers(10))
    assert cancelled.is_set()


@pytest.mark.parametrize("pipeline", [synchronous, awaited])
def test_a_connection_that_was_closed_is_not_the_end_of_the_partition(
    pipeline: Pipeline, worker: Worker, connection: socket.socket
) -> None:
    completed: list[bool] = []

    def broken() -> Iterator[Any]:
        yield from numbers(2)
        connection.close()

    def form(rows: Flow[Row]) -> Flow[Row]:
        return pipeline(rows).do_on_complete(lambda: completed.append(True))

    with pytest.raises(TaskAbandoned):
        worker.rows(form, broken())
    assert not completed


def test_a_connection_that_is_open_completes(worker: Worker, connection: socket.socket) -> None:
    connection.send(b"more")
    assert worker.numbers(awaited, 3) == [0, 2, 4]


def test_each_batch_is_sent_at_once(worker: Worker, connection: socket.socket) -> None:
    output: Any = vars(spark_connection)["worker_output"]()
    task = worker.task(synchronous, numbers(100))
    connection.setblocking(False)
    for _ in range(2):
        next(task)
        output.write(b"a batch")  # as PySpark does, into a buffer
    assert connection.recv(100) == b"a batch"
    task.close()


# The loop stops meanwhile, and with it what was submitted to run on it.
@pytest.mark.filterwarnings("ignore:.*BlockingPortal._call_func")
def test_system_exit_in_a_coroutine_ends_the_task(worker: Worker) -> None:
    async def look(row: Row) -> Row:
        raise SystemExit(3)

    with pytest.raises(Interrupted, match="failed with SystemExit"):
        worker.rows(lambda rows: rows.map_async(look), numbers(2))
    # A task after it gets another loop.
    with new_worker() as other:
        assert other.numbers(awaited, 2) == [0, 2]


def test_columns_of_the_input_and_the_output_may_differ(worker: Worker) -> None:
    from pyspark.sql.types import DoubleType, StringType, StructField, StructType

    output = StructType([StructField("text", StringType()), StructField("half", DoubleType())])
    rows = worker.rows(
        lambda rows: rows.map(lambda row: {"half": row[0] / 2, "text": str(row[0])}),
        numbers(3), output=output, schema=NUMBERS,
    )  # fmt: skip
    assert rows == [("0", 0.0), ("1", 0.5), ("2", 1.0)]
