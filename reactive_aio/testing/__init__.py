"""Tools to test flows with: probes, marble diagrams, a loop with virtual time.

Nothing here imports the runtime, so that it judges strangers and ourselves alike.
"""

from .probes import AsyncSubscriberProbe, PublisherProbe, SubscriberProbe

__all__ = ("AsyncSubscriberProbe", "PublisherProbe", "SubscriberProbe")
