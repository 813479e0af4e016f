"""One Spark session for all tests, and the jobs that a flow has started."""

import asyncio
import gc
import logging
import threading
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import pytest

from reactive_aio.spark import from_dataframe, local_session
from reactive_aio.spark.spark_version import pyspark_version
from reactive_aio.testing.probes import SubscriberProbe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reactive_aio import Flow
    from reactive_aio.spark.read_mode import ReadMode

FAST = {
    # The same JVM is a Spark Connect server as well: tests see the jobs that it runs.
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    # On a busy machine, a Python worker needs more than 15 s to start.
    "spark.python.authenticate.socketTimeout": "60s",
}
if pyspark_version() < (4, 0):  # its jars have no server of Spark Connect
    del FAST["spark.plugins"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Do not count the start of Spark as time of the first test: it takes minutes under load."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            found = item.get_closest_marker("timeout")
            seconds = found.args if found else ()
            item.add_marker(pytest.mark.timeout(*seconds, func_only=True), append=False)


@pytest.fixture(autouse=True)
def quiet_connect_client() -> None:
    """Turn off the logger of Spark Connect's client, as PySpark does when it is imported.

    A test that configures logging, as uvicorn does, turns it on again.
    """
    logging.getLogger("pyspark.sql.connect.logging").disabled = True


@pytest.fixture(scope="session")
def niceness() -> int:
    """The workers of pytest-xdist keep all processors busy: the default would starve the JVM."""
    return 1


@pytest.fixture(scope="session")
def spark(niceness: int) -> "Iterator[SparkSession]":
    session = local_session(
        "reactive_aio tests", cores=2, quick=True, niceness=niceness, config=FAST
    )
    yield session
    session.stop()


def service_of(spark: "SparkSession") -> Any:
    """The server of Spark Connect, an object of Scala's."""
    jvm: Any = spark.sparkContext._jvm
    service = getattr(jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
    return getattr(service, "MODULE$")


@pytest.fixture(scope="session")
def connect_port(spark: "SparkSession") -> int:
    """Where the server of Spark Connect listens."""
    return cast("int", service_of(spark).localPort())


def connected(spark: "SparkSession") -> Any:
    """Return a session of Spark Connect with the server in the JVM of *spark*.

    Not from pyspark.sql's builder: that allows no such session beside a classic one.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySpark about pandas
        from pyspark.sql.connect.session import SparkSession

        builder: Any = SparkSession.builder
        return builder.remote(f"sc://127.0.0.1:{service_of(spark).localPort()}").create()


@pytest.fixture(scope="session")
def remote(spark: "SparkSession") -> "Iterator[SparkSession]":
    """A session of Spark Connect."""
    session = connected(spark)
    yield session
    session.stop()  # before the server: otherwise it tries for ten minutes to reach it


@pytest.fixture
def session(spark: "SparkSession", remote: "SparkSession", mode: "ReadMode") -> "SparkSession":
    """The session whose DataFrames are read in this mode."""
    return remote if mode == "connect" else spark


@dataclass(frozen=True)
class TracedFlow:
    """A flow of a DataFrame whose jobs have a group of their own; of deliveries, if it resumes."""

    flow: "Flow[Any]"
    spark: "SparkSession"
    group: str

    async def jobs(self) -> list[int]:
        """Return the jobs started for it so far."""
        return await asyncio.to_thread(self._jobs)

    async def partitions(self) -> list[int]:
        """Return how many partitions each of these jobs had."""
        return await asyncio.to_thread(self._partitions)

    async def active(self) -> list[int]:
        """Return the jobs that run."""
        return await asyncio.to_thread(self._active)

    def _jobs(self) -> list[int]:
        return sorted(self.spark.sparkContext.statusTracker().getJobIdsForGroup(self.group))

    def _partitions(self) -> list[int]:
        tracker: Any = self.spark.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(each) for each in self._jobs()]
        stages = [[tracker.getStageInfo(each) for each in job.stageIds] for job in jobs]
        return [sum(each.numTasks for each in job if each is not None) for job in stages]

    def _active(self) -> list[int]:
        running = self.spark.sparkContext.statusTracker().getActiveJobsIds()
        return sorted(set(running) & set(self._jobs()))


Make = Callable[["SparkSession"], "DataFrame"]


class Trace(Protocol):
    """Build a DataFrame and trace the flow of it."""

    def __call__(
        self, make: Make, *, batch: int = 1024, window: int = 16, checkpoint: Path | None = None
    ) -> Awaitable[TracedFlow]: ...


_groups = count(1)


@pytest.fixture(params=["arrow", "rows"])
def mode(request: pytest.FixtureRequest) -> "ReadMode":
    """Each mode of a classic session."""
    return cast("ReadMode", request.param)


@pytest.fixture
def trace(spark: "SparkSession", mode: "ReadMode") -> Trace:
    """``await trace(make)``: the flow of the DataFrame that ``make(spark)`` builds.

    It calls the JVM and blocks, so it runs on a thread. The job group is set only there: that the
    flow's jobs have it shows that local properties are inherited.
    """

    def begin(make: Make, batch: int, window: int, checkpoint: Path | None) -> TracedFlow:
        context, group = spark.sparkContext, f"traced-{next(_groups)}"
        context.setJobGroup(group, "a test")
        read: Any = from_dataframe
        if checkpoint is not None:
            read = partial(read, checkpoint=checkpoint)
        try:
            flow = read(make(spark), mode=mode, batch=batch, window=window)
            return TracedFlow(flow, spark, group)
        finally:
            context.setLocalProperty("spark.jobGroup.id", "")

    async def traced(
        make: Make, *, batch: int = 1024, window: int = 16, checkpoint: Path | None = None
    ) -> TracedFlow:
        return await asyncio.to_thread(begin, make, batch, window, checkpoint)

    return traced


async def wait_for_elements(probe: SubscriberProbe[Any], count: int) -> None:
    """Wait until *count* elements have arrived."""
    await wait_until(lambda: len(probe.elements) >= count)


async def wait_until(condition: Callable[[], Any], seconds: float = 60.0) -> float:
    """Wait for *condition*, which may be a coroutine function; return how long that took.

    *seconds* is for a busy machine: a job of some milliseconds may take many of them there.
    """
    began = time.perf_counter()
    async with asyncio.timeout(seconds):
        while True:
            met = condition()
            if met if not asyncio.iscoroutine(met) else await met:
                return time.perf_counter() - began
            await asyncio.sleep(0.005)


async def wait_collected(threads: Callable[[], list[str]]) -> None:
    """Wait until the garbage collector has ended all *threads*, those of abandoned subscriptions.

    One collection may come too early: a thread that has just posted a result refers to its
    subscription a moment longer.
    """

    def ended() -> bool:
        gc.collect()
        return not threads()

    await wait_until(ended)


def flow_threads() -> list[str]:
    return [each.name for each in threading.enumerate() if "from_dataframe" in each.name]


async def wait_released(traced: TracedFlow) -> float:
    """Wait until no job runs and no thread is left."""

    async def free() -> bool:
        return not flow_threads() and not await traced.active()

    return await wait_until(free)
