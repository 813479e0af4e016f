"""How long the kit waits.

Two kinds of waiting, never mixed up. What *must come* is waited for long, and the wait ends the
moment it is there; what *must not come* is given a short while. So a law is quick on a subject
that keeps it, and a busy machine cannot make it fail.
"""

from dataclasses import dataclass

__all__ = ("Terms",)


@dataclass(frozen=True)
class Terms:
    """How a subject is judged. Seconds are those of the loop's clock unless said otherwise."""

    come: float = 10.0
    """For what must come."""
    come_again: float = 1.0
    """The same, once something has failed to come: a dead subject is not waited for forty times."""
    turns: int = 25
    """Turns of the loop for what must not come."""
    quiet: float = 0.005
    """Seconds besides."""
    held_up: float = 0.5
    """Wall-clock seconds that the subject may keep the loop from its other work (3.4, 3.5)."""
    stuck: float = 5.0
    """Wall-clock seconds without a turn of the loop after which a law is broken off."""
    longest: float = 60.0
    """Wall-clock seconds after which a law is broken off, whatever happens."""
