"""Adapters: objects of other libraries as candidates.

An adapter of publishers takes a factory and returns another one with the same arguments; the others
return one subscriber or processor::

    Candidate(publisher=from_async_iterable(rows), failing_publisher=from_async_iterable(broken))
    Candidate(subscriber=lambda: sink(consume))
    Candidate(processor=lambda size: operator(apply), max_subscribers=1)

An adapter translates signatures and repairs nothing: a publisher that sends without demand still
does. If a library lacks a concept altogether, the adapter may implement it. ``KEPT_BY_ADAPTER``
names the rules that an adapter keeps by itself: a pass there says nothing about the library. No
adapter imports its library, except `from_anyio_stream`.
"""

from typing import Final

from . import aioreactive, aiostream, anyio_streams, async_iterables, reactivex, rsocket
from .aioreactive import from_aioreactive
from .aiostream import from_aiostream
from .anyio_streams import from_anyio_stream
from .async_iterables import from_async_iterable
from .operators import Operator, operator
from .reactivex import from_reactivex
from .rsocket import from_rsocket
from .sinks import sink

__all__ = (
    "KEPT_BY_ADAPTER",
    "Operator",
    "from_aioreactive",
    "from_aiostream",
    "from_anyio_stream",
    "from_async_iterable",
    "from_reactivex",
    "from_rsocket",
    "operator",
    "sink",
)

KEPT_BY_ADAPTER: Final[dict[str, frozenset[str]]] = {
    "from_async_iterable": async_iterables.KEPT_BY_ADAPTER,
    "from_anyio_stream": anyio_streams.KEPT_BY_ADAPTER,
    "from_aiostream": aiostream.KEPT_BY_ADAPTER,
    "from_aioreactive": aioreactive.KEPT_BY_ADAPTER,
    "from_reactivex": reactivex.KEPT_BY_ADAPTER,
    "from_rsocket": rsocket.KEPT_BY_ADAPTER,
    "sink": frozenset(),
    "operator": frozenset(),
}
"""The rules that each adapter keeps by itself, for any object of the library."""
