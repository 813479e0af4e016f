"""The figures of named flows and processors, as observable instruments."""

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

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
    instruments = _instruments_of(meter_provider)
    instruments.begin(Collection("observe.otel.measure()", timeout))
    try:
        yield
    finally:
        instruments.end()


def _instruments_of(provider: "api.MeterProvider | None") -> "_Instruments":
    """Those of a provider, None for the global one: it refuses a second one of the same name."""
    if provider is None:
        return _of_global_provider()
    found = _of_providers.get(provider)
    if found is None:
        found = _of_providers[provider] = _Instruments(provider)
    return found


class _Instruments:
    """One for each metric. They cannot be removed, but have no values outside a block."""

    def __init__(self, provider: "api.MeterProvider | None") -> None:
        self._collection: Collection | None = None
        self._taken: Snapshot | None = None
        self._served: set[str] = set()
        """The metrics that have had their values from this snapshot: each asks once for each."""
        meter = api.get_meter(SCOPE, meter_provider=provider)
        for metric in METRICS:
            create = _creator(meter, metric)
            callbacks = [partial(self._observed, metric)]
            create(_PREFIX + metric.name, callbacks, metric.unit, metric.help)

    def begin(self, collection: Collection) -> None:
        if self._collection is not None:
            raise RuntimeError("otel.measure: this provider measures the flows already")
        self._collection = collection

    def end(self) -> None:
        self._collection = self._taken = None
        self._served.clear()

    def _observed(self, metric: Metric, _: api.CallbackOptions) -> Iterable[api.Observation]:
        if self._collection is None:
            return
        if not self._served or metric.name in self._served:
            self._served.clear()
            self._taken = self._collection.take()
        self._served.add(metric.name)
        if self._taken is not None:
            for labels, value in metric.values(self._taken):
                yield api.Observation(value, dict(zip(metric.labels, labels, strict=True)))


def _creator(meter: api.Meter, metric: Metric) -> Callable[..., object]:
    if metric.kind == "counter":
        return meter.create_observable_counter
    return meter.create_observable_gauge


@cache
def _of_global_provider() -> _Instruments:
    return _Instruments(None)


_of_providers: WeakKeyDictionary[api.MeterProvider, _Instruments] = WeakKeyDictionary()
