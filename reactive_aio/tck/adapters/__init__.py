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

from .functions import Operator, operator, sink
from .pulling import KEPT_BY_PULLING, from_aiostream, from_anyio_stream, from_async_iterable
from .pushing import from_aioreactive, from_reactivex, from_rsocket

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

_NO_OP_REQUESTS: Final = frozenset(
    ("2.7", "3.1", "3.2", "3.3", "3.4", "3.6", "3.10", "3.11", "3.16", "3.17")
)
"""The rules that a request without effect keeps."""

KEPT_BY_ADAPTER: Final[dict[str, frozenset[str]]] = {
    "from_async_iterable": KEPT_BY_PULLING,
    "from_anyio_stream": KEPT_BY_PULLING,
    "from_aiostream": KEPT_BY_PULLING,
    "from_aioreactive": _NO_OP_REQUESTS | {"1.9", "2.12", "3.5", "3.7", "3.15"},
    "from_reactivex": _NO_OP_REQUESTS | {"1.9", "2.12", "3.15"},
    "from_rsocket": frozenset(),
    "sink": frozenset(),
    "operator": frozenset(),
}
"""The rules that each adapter keeps by itself, for any object of the library."""
