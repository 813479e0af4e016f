"""Tools to test flows with; docs/testing.md shows each in a few lines.

Probes of subscribers and publishers, journals and their drawings, a verifier of steps and of marble
diagrams with a demand lane, a leak check, a ledger of elements, and a loop with virtual time;
`reactive_aio.testing.schedules` explores the legal orders of a scenario. Nothing here imports the
runtime, so it tests any implementation of the specification.
"""

from .drawing import draw
from .journal import Entry, Journal, Kind
from .leaks import no_leaks
from .ledger import Ledger, Token
from .marbles import Marbles, play
from .probes import AsyncSubscriberProbe, PublisherProbe, SubscriberProbe
from .verifier import expect
from .virtual_time import Deadlock, Parkable, TooManyTurns, VirtualTimeLoop

__all__ = (
    "AsyncSubscriberProbe",
    "Deadlock",
    "Entry",
    "Journal",
    "Kind",
    "Ledger",
    "Marbles",
    "Parkable",
    "PublisherProbe",
    "SubscriberProbe",
    "Token",
    "TooManyTurns",
    "VirtualTimeLoop",
    "draw",
    "expect",
    "no_leaks",
    "play",
)
