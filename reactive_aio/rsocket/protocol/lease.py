"""Leases: how many requests one side allows the other, and for how long."""

__all__ = ("Allowance",)


class Allowance:
    """One direction's lease. The last one counts, and none is as good as zero requests."""

    __slots__ = ("expires", "requests")

    def __init__(self) -> None:
        self.requests: int = 0
        self.expires: float = 0.0

    def grant(self, requests: int, ttl: float, now: float) -> None:
        self.requests = requests
        self.expires = now + ttl

    def take(self, now: float) -> bool:
        """Use it for one request; whether it allowed that."""
        if self.requests < 1 or now >= self.expires:
            return False
        self.requests -= 1
        return True
