"""Hot sources: what is emitted into a processor goes to whoever is subscribed to it.

A processor is a flow, so it has every operator; a subscriber, so a publisher can feed it; and it
has a producers' side: ``try_emit`` for who cannot wait, ``await emit`` for who can, and
``emit_threadsafe`` for other threads. It belongs to the event loop on which it is used first.
"""

from .._core.queues.bounded_queue import Emission
from .hot import ProcessorStats
from .multicast import MulticastProcessor
from .unicast import UnicastProcessor

__all__ = ("Emission", "MulticastProcessor", "ProcessorStats", "UnicastProcessor")
