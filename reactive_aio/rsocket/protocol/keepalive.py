"""Signs of life: when a keepalive is due, and when the peer has been silent for too long."""

from typing import Final

_GRACE: Final = 1.0


class KeepAliveTimer:
    """The deadlines of one connection: an *interval* of keepalives, a *lifetime* of silence.

    Times are in seconds.

    Any bytes of the peer prove that it is alive, not only its keepalives. Only a client sends
    keepalives unprompted (`interval` is None on a server). A process that was stopped or busy has
    not read either: if a deadline is noticed late, the peer gets a second more.
    """

    __slots__ = ("_next", "deadline", "has_grace", "interval", "lifetime")

    def __init__(self, now: float, lifetime: float, interval: float | None) -> None:
        self.lifetime: float = lifetime
        self.interval: float | None = interval
        self._next = now + interval if interval is not None else None
        self.deadline: float = now + lifetime
        self.has_grace: bool = True

    def reset(self, now: float) -> None:
        self.deadline = now + self.lifetime
        self.has_grace = True

    def is_due(self, now: float) -> bool:
        """Whether it is time to send one; then the next is due an interval later."""
        if self._next is None or self.interval is None or now < self._next:
            return False
        self._next = now + self.interval
        return True

    def is_expired(self, now: float) -> bool:
        if now < self.deadline:
            return False
        if now - self.deadline > _GRACE and self.has_grace:
            self.has_grace = False
            self.deadline = now + _GRACE
            return False
        return True

    def next_deadline(self) -> float:
        return self.deadline if self._next is None else min(self.deadline, self._next)
