"""Tools to test flows with; docs/testing.md shows each in a few lines.

Puppets and probes, journals and their drawings, marble diagrams with a demand lane, a step
verifier, a leak check, a ledger of elements, and a loop with virtual time; schedules are explored
by `reactive_aio.testing.schedules`. Nothing here imports the runtime, so that it judges strangers
and ourselves alike.
"""

from .drawing import draw
from .journal import Entry, Journal, Kind
from .leaks import no_leaks
from .ledger import Ledger, Token
from .marbles import Marbles, assert_marbles, play
from .probes import AsyncSubscriberProbe, PublisherProbe, SubscriberProbe
from .verifier import expect
from .virtual_time import Deadlock, VirtualTimeLoop

__all__ = (
    "AsyncSubscriberProbe",
    "Deadlock",
    "Entry",
    "Journal",
    "Kind",
    "Ledger",
    "Marbles",
    "PublisherProbe",
    "SubscriberProbe",
    "Token",
    "VirtualTimeLoop",
    "assert_marbles",
    "draw",
    "expect",
    "no_leaks",
    "play",
)
