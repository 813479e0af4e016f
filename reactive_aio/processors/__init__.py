"""Hot sources: a processor delivers the elements emitted into it to its subscribers.

A processor is a flow, so it has every operator; it is a subscriber, so a publisher can feed it; and
producers emit into it: with ``try_emit`` without waiting, with ``await emit`` when there is room,
with ``emit_threadsafe`` from other threads. It belongs to the event loop on which it is first used.
"""

from .._core.queues.bounded_queue import Emission
from .hot_processor import ProcessorStats
from .latest import LatestProcessor
from .multicast import MulticastProcessor
from .replay import ReplayProcessor
from .unicast import UnicastProcessor

__all__ = (
    "Emission",
    "LatestProcessor",
    "MulticastProcessor",
    "ProcessorStats",
    "ReplayProcessor",
    "UnicastProcessor",
)
