"""A job that waits for an executor is reported, after a time that is stated."""

import asyncio
import logging
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import reactive_aio as rx
from reactive_aio.spark import (
    executor_watch,
    for_each_partition,
    from_dataframe,
    from_stream,
    streaming,
    tagged_jobs,
    to_dataframe,
)
from reactive_aio.spark.executor_watch import WARN_AFTER, ExecutorWatch, watch_executors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class FakeContext:
    """A context of a cluster, by what the watch asks it for."""

    def __init__(self, master: str = "spark://host:7077") -> None:
        self.master = master
        self.executors = 2
        self.jobs = [7]
        self.is_lost = False

    def statusTracker(self) -> Any:
        return SimpleNamespace(getActiveJobsIds=lambda: self.jobs)


class User:
    """What keeps a watch alive."""


def count(context: Any) -> int:
    if context.is_lost:
        raise ConnectionError("the JVM is gone")
    return int(context.executors)


@pytest.fixture(autouse=True)
def counting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor_watch, "count_executors", count)


class Watched:
    """A watch whose clock advances when it sleeps, and calls *then* at each second given."""

    def __init__(self, context: FakeContext) -> None:
        self.now = 0.0
        untyped: Any = context
        self.watch = ExecutorWatch(untyped, clock=lambda: self.now, sleep=self.sleep)
        self.context = context
        self.user: User | None = User()
        self.watch.users.add(self.user)
        self.plan: dict[float, Any] = {}

    def sleep(self, seconds: float) -> None:
        for at in sorted(at for at in self.plan if self.now < at <= self.now + seconds):
            self.plan[at]()
        self.now += seconds

    def leave(self) -> None:
        self.user = None


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_a_job_without_an_executor_is_reported_and_reported_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watched = Watched(FakeContext())
    lose = lambda: setattr(watched.context, "executors", 0)  # noqa: E731
    watched.plan = {20: lose, 120: watched.leave}
    with caplog.at_level(logging.WARNING, "reactive_aio.spark"):
        watched.watch.run()
    first, second = warnings_of(caplog)
    assert "spark://host:7077, which has had no executor for 15 s" in first
    assert "add .timeout(seconds) to the flow" in first
    assert "for 75 s" in second
    assert watched.now == 120, "without a user, the thread ends"


def test_executors_that_come_back_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched(FakeContext())
    watched.context.executors = 0
    come = lambda: setattr(watched.context, "executors", 1)  # noqa: E731
    watched.plan = {WARN_AFTER + 10: come, 200: watched.leave}
    with caplog.at_level(logging.WARNING, "reactive_aio.spark"):
        watched.watch.run()
    assert ["again" in each for each in warnings_of(caplog)] == [False, True]


@pytest.mark.parametrize("change", [{"executors": 1}, {"executors": 0, "jobs": []}])
def test_without_a_waiting_job_nothing_is_reported(
    caplog: pytest.LogCaptureFixture, change: dict[str, Any]
) -> None:
    watched = Watched(FakeContext())
    vars(watched.context).update(change)
    watched.plan = {100: watched.leave}
    watched.watch.run()
    assert not caplog.records


def test_the_watch_of_a_lost_session_ends() -> None:
    watched = Watched(FakeContext())
    watched.context.is_lost = True
    watched.watch.run()
    assert watched.now == 0


@pytest.mark.parametrize(
    ("master", "is_watched"),
    [("local[2]", False), ("local", False), ("local-cluster[2,1,512]", True), ("yarn", True)],
)
def test_only_clusters_are_watched(
    monkeypatch: pytest.MonkeyPatch, master: str, *, is_watched: bool
) -> None:
    started = list[str]()

    def run(_: object, name: str) -> None:
        started.append(name)

    new_threads = SimpleNamespace(run=run)
    monkeypatch.setattr(executor_watch, "NEW_THREADS", new_threads)
    context: Any = FakeContext(master)
    users = [User(), User()]
    for user in users:
        watch_executors(context, user)
    assert len(started) == is_watched


@pytest.mark.thorough
@pytest.mark.spark
async def test_every_kind_of_job_is_watched(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    users = list[str]()

    def watch(context: object, user: object) -> None:
        assert context is spark.sparkContext
        users.append(type(user).__name__)

    monkeypatch.setattr(tagged_jobs, "watch_executors", watch)
    monkeypatch.setattr(streaming, "watch_executors", watch)
    df = await asyncio.to_thread(spark.range, 3)
    for mode in ("arrow", "rows"):
        await (await asyncio.to_thread(partial(from_dataframe, df, mode=mode))).count()
        assert {*users} == {"TaggedJobs"}, mode
        users.clear()
    await to_dataframe(rx.just((1,)), spark, "id long")
    await for_each_partition(df, lambda rows: rows)
    assert {*users} == {"SparkCalls"}
    rate = await asyncio.to_thread(lambda: spark.readStream.format("rate").load())
    flow = await asyncio.to_thread(partial(from_stream, rate, checkpoint=None))
    await flow.take(1).to_list()
    assert "QueryRun" in users
