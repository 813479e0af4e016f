"""What one connection holds for its peer, as a part of what the process may hold for all peers.

That is output which the peer does not read, frames of which it has sent a part, requests that wait
to be served, and what is kept of a session to be sent again. Unfinished payloads in fragments
count by themselves, as they come (`fragmentation`). A connection that holds no more than
`watermark` counts nothing: the budget, when it is used up, is not in the way of who needs little.
"""

from .limits import Limits


class HeldMemory:
    """Counts what one connection holds."""

    __slots__ = ("_budget", "_free", "counted")

    def __init__(self, limits: Limits) -> None:
        self._budget = limits.budget
        self._free = limits.watermark
        self.counted: int = 0

    def count(self, held: int) -> bool:
        """Count *held* bytes, instead of those before; whether they are too much just now.

        That is so while the process holds more than it may, and this connection more than little.
        """
        counted = held if held > self._free else 0
        if counted != self.counted:
            self._budget.hold(counted - self.counted)
            self.counted = counted
        return counted > 0 and self._budget.is_exceeded
