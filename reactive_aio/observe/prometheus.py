"""Metrics for Prometheus: a collector for the registry of ``prometheus_client``.

::

    from prometheus_client import REGISTRY, start_http_server
    from reactive_aio.observe import prometheus

    async def main():
        REGISTRY.register(prometheus.Collector())
        start_http_server(9000)

The extra ``prometheus`` is needed.
"""

from collections.abc import Iterator
from typing import Final

from ..errors import MissingExtra
from ..stage import Duration
from .collection import Collection
from .metrics import METRICS, Metric
from .snapshots import Snapshot

try:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.registry import Collector as _Collector
except ModuleNotFoundError as _error:
    if (_error.name or "").partition(".")[0] != "prometheus_client":
        raise
    raise MissingExtra("observe.prometheus", "prometheus") from _error

__all__ = ("Collector",)

_PREFIX: Final = "reactive_aio_"
_Family = CounterMetricFamily | GaugeMetricFamily


class Collector(_Collector):
    """The figures of all named flows and processors, and what the process has lost.

    Create it on the event loop of the flows, and give it to a registry. A collection reads
    the figures once, on the event loop: a call on another thread waits for it, for at most
    *timeout* seconds, and raises TimeoutError if the loop does not answer; the collection
    has then failed. It changes no figure: the rates that `observe.report` shows are measured from
    other looks. When the loop is closed, there are no values.

    Without ``prometheus_client``, importing this module raises `MissingExtra`.
    """

    def __init__(self, *, timeout: Duration = 5.0) -> None:
        self._collection = Collection("observe.prometheus.Collector()", timeout)

    def describe(self) -> Iterator[_Family]:
        """The names of the metrics, for the registry."""
        return map(_family, METRICS)

    def collect(self) -> Iterator[_Family]:
        """The metrics, with their values at this moment."""
        taken = self._collection.take()
        return iter(()) if taken is None else iter([_filled(each, taken) for each in METRICS])


def _family(metric: Metric) -> _Family:
    name = _PREFIX + metric.name.replace(".", "_")
    if metric.kind == "counter":
        return CounterMetricFamily(name, metric.help, labels=metric.labels)
    unit = "seconds" if metric.unit == "s" else ""
    return GaugeMetricFamily(name, metric.help, labels=metric.labels, unit=unit)


def _filled(metric: Metric, taken: Snapshot) -> _Family:
    family = _family(metric)
    for labels, value in metric.values(taken):
        family.add_metric(labels, value)
    return family
