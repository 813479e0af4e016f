"""The figures of named flows and processors, as observable instruments."""

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from opentelemetry import metrics as api

from ...stage import Duration
from ..collection import Collection
from ..metrics import METRICS, Metric
from .spans import SCOPE

if TYPE_CHECKING:
    from ..snapshots import Snapshot

__all__ = ("measure",)

_PREFIX: Final = "reactive_aio."


@contextmanager
def measure(
    meter_provider: "api.MeterProvider | None" = None, *, timeout: Duration = 5.0
) -> Generator[None]:
    """Measure all named flows and processors, and what the process has lost, inside the block.

    Each figure is an observable instrument. A collection reads the figures once, on the event loop
    on which the block was entered, and waits for that for at most *timeout* seconds. It
    changes no figure. Without *meter_provider*, the global one is used.

    End the program's meter provider after the event loop, or in a thread: its last collection would
    wait for the loop that waits for it.
    """
    collection = _SharedCollection(Collection("observe.otel.measure()", timeout))
    meter = api.get_meter(SCOPE, meter_provider=meter_provider)
    for metric in METRICS:
        create = _creator(meter, metric)
        create(_PREFIX + metric.name, [partial(_observed, collection, metric)], metric.unit,
               metric.help)  # fmt: skip
    try:
        yield
    finally:
        collection.end()  # instruments cannot be removed, but may have no values


def _creator(meter: api.Meter, metric: Metric) -> Callable[..., object]:
    if metric.kind == "counter":
        return meter.create_observable_counter
    return meter.create_observable_gauge


def _observed(
    collection: "_SharedCollection", metric: Metric, _: api.CallbackOptions
) -> Iterable[api.Observation]:
    taken = collection.take(metric.name)
    if taken is None:
        return
    for labels, value in metric.values(taken):
        yield api.Observation(value, dict(zip(metric.labels, labels, strict=True)))


class _SharedCollection:
    """One snapshot for all instruments of a collection, each of which asks once."""

    def __init__(self, collection: Collection) -> None:
        self._collection: Collection | None = collection
        self._taken: Snapshot | None = None
        self._served: set[str] = set()

    def take(self, name: str) -> "Snapshot | None":
        if self._collection is None:
            return None
        if not self._served or name in self._served:
            self._served.clear()
            self._taken = self._collection.take()
        self._served.add(name)
        return self._taken

    def end(self) -> None:
        self._collection = self._taken = None
