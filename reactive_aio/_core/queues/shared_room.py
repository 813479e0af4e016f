"""SharedRoom: how much room the subscribers of a hot source have together."""

from collections.abc import Sequence
from typing import Any, Final

from ..compiler.chain import Downstream
from ..demand import UNBOUNDED
from .bounded_queue import OverflowPolicy
from .output_buffer import OutputBuffer

Outputs = Sequence[OutputBuffer[Any]]


class SharedRoom:
    """The room of the slowest subscriber under ``wait``; else of the fastest, which is no limit.

    To ask n subscribers whenever one of them requests would cost n² for each element. So the one
    that was last in the way is asked first, and then those after it, in a circle: after a delivery,
    each is passed once until all of them have room.
    """

    __slots__ = ("_capacity", "_in_the_way", "_policy")

    def __init__(self, capacity: int, policy: OverflowPolicy) -> None:
        self._capacity: Final = capacity
        self._policy: Final = policy
        self._in_the_way = 0  # an index, which may be that of another one after a change

    def now(self, outputs: Outputs) -> int:
        """How many elements of a publisher may be delivered now."""
        return self._least(outputs, 1) if self._policy == "wait" else UNBOUNDED

    def wanted(self, outputs: Outputs, enough: int) -> int:
        """How many elements a publisher may send now, of one subscriber or more.

        If that is less than *enough*, it is any number below that. Then the publisher waits for a
        subscriber under ``wait``, and otherwise for the next turn of the loop, in which subscribers
        that keep up process what has been sent.
        """
        if self._policy == "wait":
            return self._least(outputs, enough)
        if self._policy == "latest":
            return self._capacity  # the element held is to be new
        return max(output.room for output in outputs)

    def _least(self, outputs: Outputs, enough: int) -> int:
        count, least = len(outputs), UNBOUNDED
        for index in self._circle(count):
            room = outputs[index].room
            if room < enough:
                self._in_the_way = index % count
                return room
            least = min(least, room)
        return least

    def held_back_by(self, outputs: Outputs) -> Downstream[Any] | None:
        """The subscriber for which the source and all others wait."""
        slowest = min(outputs, key=lambda each: each.room, default=None)
        if slowest is None or self._policy != "wait" or slowest.room > 0:
            return None
        return slowest.downstream

    def is_any_full(self, outputs: Outputs) -> bool:
        """Whether one of them cannot hold one more element."""
        count = len(outputs)
        for index in self._circle(count):
            if outputs[index].queue.is_full:
                self._in_the_way = index % count
                return True
        return False

    def _circle(self, count: int) -> range:
        """All indexes, some of them negative, from that of the one that was last in the way."""
        first = self._in_the_way % max(count, 1)
        return range(first - count, first)
