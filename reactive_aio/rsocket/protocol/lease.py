"""Leases: how many requests one side allows the other, and for how long."""

__all__ = ("Allowance",)


class Allowance:
    """The lease of one direction: a new one replaces it, and before the first, none is allowed."""

    __slots__ = ("expires", "requests")

    def __init__(self) -> None:
        self.requests: int = 0
        self.expires: float = 0.0

    def grant(self, requests: int, ttl: float, now: float) -> None:
        self.requests = requests
        self.expires = now + ttl

    def take(self, now: float) -> bool:
        """Use it for one request; whether it allows that."""
        if self.requests < 1 or now >= self.expires:
            return False
        self.requests -= 1
        return True
