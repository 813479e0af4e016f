"""The metrics of the flights service for Prometheus: of its clients, and of Spark."""

from collections.abc import Iterator
from math import isinf

from pyspark import SparkContext

from reactive_aio.asgi import Counters
from reactive_aio.spark import Progress

__all__ = ("Metrics",)


class Metrics:
    """Counted on the event loop; `text` calls the JVM, and may be called on any thread."""

    def __init__(self, context: SparkContext) -> None:
        self.counters = Counters()
        self._context = context
        self._latest: dict[int, Progress] = {}
        self._rows = 0
        self._bytes = 0
        self._partitions = 0
        self._cancelled = 0

    def watch(self, progress: Progress) -> None:
        """Record the progress of a job."""
        before = self._latest.get(progress.number, Progress())
        self._rows += progress.rows - before.rows
        self._bytes += progress.bytes - before.bytes
        self._partitions += progress.computed - before.computed
        self._latest[progress.number] = progress
        if progress.is_done:
            del self._latest[progress.number]
            # Spark was planning, which runs jobs as well, or had not computed all launched windows.
            is_running = before.state == "planning" or progress.launched > progress.computed
            self._cancelled += progress.state == "cancelled" and is_running

    def text(self) -> str:
        """Return the metrics in the text format of Prometheus."""
        return "".join(f"# TYPE {name} {kind}\n{lines}" for name, kind, lines in self._metrics())

    def _metrics(self) -> Iterator[tuple[str, str, str]]:
        counters, waiting = self.counters, [*self._latest.values()]
        demand = sum(int(each.demand) for each in waiting if not isinf(each.demand))
        active = len(self._context.statusTracker().getActiveJobsIds())
        yield _one("flights_connections", "gauge", counters.open)
        yield _one("flights_connections_total", "counter", counters.opened)
        outcomes = {name: getattr(counters, name) for name in ("completed", "failed", "cancelled")}
        yield (
            "flights_ended_total",
            "counter",
            "".join(f'flights_ended_total{{how="{how}"}} {n}\n' for how, n in outcomes.items()),
        )
        yield _one("flights_rows_total", "counter", counters.elements)
        yield _one("flights_bytes_total", "counter", counters.bytes)
        yield _one("flights_outstanding_rows", "gauge", counters.outstanding)
        yield _one("spark_outstanding_rows", "gauge", demand)
        yield _one("spark_rows_total", "counter", self._rows)
        yield _one("spark_bytes_total", "counter", self._bytes)
        yield _one("spark_partitions_total", "counter", self._partitions)
        yield _one("spark_cancelled_jobs_total", "counter", self._cancelled)
        yield _one("spark_active_jobs", "gauge", active)


def _one(name: str, kind: str, value: int) -> tuple[str, str, str]:
    return name, kind, f"{name} {value}\n"
