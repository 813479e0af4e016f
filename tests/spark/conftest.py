"""One Spark session for all tests, and a way to see which jobs a flow has started."""

import asyncio
import threading
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol, cast

import pytest

from reactive_aio.spark import from_dataframe, local_session
from reactive_aio.testing.probes import SubscriberProbe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from reactive_aio import Flow
    from reactive_aio.spark.mode import Mode

FAST = {
    # The same JVM is a server of Spark Connect as well: tests see the jobs that it runs.
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
}


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    session = local_session("reactive_aio tests", cores=2, quick=True, config=FAST)
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


@pytest.fixture(scope="session")
def remote(connect_port: int) -> "Iterator[SparkSession]":
    """A session of Spark Connect.

    Not from pyspark.sql's builder: that allows no such session beside a classic one.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySpark about pandas
        from pyspark.sql.connect.session import SparkSession

        session: Any = SparkSession.builder.remote(f"sc://127.0.0.1:{connect_port}").create()
    yield session
    session.stop()  # before the server: without it, it would try for ten minutes to say goodbye


@pytest.fixture
def session(spark: "SparkSession", remote: "SparkSession", mode: "Mode") -> "SparkSession":
    """The session that is read in this mode."""
    return remote if mode == "connect" else spark


@dataclass(frozen=True)
class Observed:
    """A flow of a DataFrame whose jobs can be told from all others."""

    flow: "Flow[Row]"
    spark: "SparkSession"
    group: str

    async def jobs(self) -> list[int]:
        """All jobs ever started for it."""
        return await asyncio.to_thread(self._jobs)

    async def active(self) -> list[int]:
        """Those that run."""
        return await asyncio.to_thread(self._active)

    def _jobs(self) -> list[int]:
        return sorted(self.spark.sparkContext.statusTracker().getJobIdsForGroup(self.group))

    def _active(self) -> list[int]:
        running = self.spark.sparkContext.statusTracker().getActiveJobsIds()
        return sorted(set(running) & set(self._jobs()))


Make = Callable[["SparkSession"], "DataFrame"]


class Observe(Protocol):
    """Build a DataFrame and observe the flow of it."""

    def __call__(self, make: Make, *, batch: int = 1024) -> Awaitable[Observed]: ...


_groups = count(1)


@pytest.fixture(params=["arrow", "rows"])
def mode(request: pytest.FixtureRequest) -> "Mode":
    """Every way out of Spark."""
    return cast("Mode", request.param)


@pytest.fixture
def observe(spark: "SparkSession", mode: "Mode") -> Observe:
    """``await observe(make)``: the flow of the DataFrame that ``make(spark)`` builds.

    What talks to the JVM blocks, so it happens on a thread. The job group is set there and not
    elsewhere: that the flow's jobs have it shows that local properties are inherited.
    """

    def begin(make: Make, batch: int) -> Observed:
        context, group = spark.sparkContext, f"observed-{next(_groups)}"
        context.setJobGroup(group, "a test")
        try:
            flow = from_dataframe(make(spark), mode=mode, batch=batch)
            return Observed(flow, spark, group)
        finally:
            context.setLocalProperty("spark.jobGroup.id", "")

    async def observed(make: Make, *, batch: int = 1024) -> Observed:
        return await asyncio.to_thread(begin, make, batch)

    return observed


async def arrived(probe: SubscriberProbe[Any], count: int) -> None:
    """Wait until *count* elements have come."""
    await until(lambda: len(probe.elements) >= count)


async def until(condition: Callable[[], Any], seconds: float = 15.0) -> float:
    """Wait for *condition*, which may be a coroutine function; return how long that took."""
    began = time.perf_counter()
    async with asyncio.timeout(seconds):
        while True:
            met = condition()
            if met if not asyncio.iscoroutine(met) else await met:
                return time.perf_counter() - began
            await asyncio.sleep(0.005)


def bridge_threads() -> list[str]:
    return [each.name for each in threading.enumerate() if "from_dataframe" in each.name]


async def freed(observed: Observed) -> float:
    """Wait until no job runs and no thread is left."""

    async def free() -> bool:
        return not bridge_threads() and not await observed.active()

    return await until(free)
