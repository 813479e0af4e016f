"""Adapters: what other libraries make, in the shape that the kit judges.

Those of publishers take a factory and return another one, with the same arguments; the others
return one subscriber or processor::

    Subject(publisher=from_async_iterable(rows), failing_publisher=from_async_iterable(broken))
    Subject(subscriber=lambda: sink(consume))
    Subject(processor=lambda size: operator(apply), max_subscribers=1)

An adapter translates signatures, and repairs nothing: what sends without demand is seen to. Where a
library has no such notion at all, there is nothing to translate, and the adapter may have to answer
itself. For which rules it does is told by ``ANSWERED``: a pass there says nothing of the library.
No adapter imports the library that it is for, except `from_anyio_stream`.
"""

from typing import Final

from . import aioreactive, aiostreams, anyio_streams, iterables, reactivex, rsocket
from .aioreactive import from_aioreactive
from .aiostreams import from_aiostream
from .anyio_streams import from_anyio_stream
from .iterables import from_async_iterable
from .operators import Operator, operator
from .reactivex import from_reactivex
from .rsocket import from_rsocket
from .sinks import sink

__all__ = (
    "ANSWERED",
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

ANSWERED: Final[dict[str, frozenset[str]]] = {
    "from_async_iterable": iterables.ANSWERED,
    "from_anyio_stream": anyio_streams.ANSWERED,
    "from_aiostream": aiostreams.ANSWERED,
    "from_aioreactive": aioreactive.ANSWERED,
    "from_reactivex": reactivex.ANSWERED,
    "from_rsocket": rsocket.ANSWERED,
    "sink": frozenset(),
    "operator": frozenset(),
}
"""The rules that an adapter answers by itself, and not the library behind it."""
