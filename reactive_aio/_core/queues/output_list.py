"""OutputList: the output buffers of the current subscribers of a hot source."""

from collections.abc import Iterator
from typing import Generic, TypeVar

from .output_buffer import OutputBuffer

T = TypeVar("T")


class OutputList(Generic[T]):
    """The output buffers of a hot source, in the order in which their subscribers came.

    One that has left stays in `all` until half of these have left, since n subscribers that leave
    one by one would otherwise cost n²: it is ended, and accepts nothing. A delivery goes to those
    that were there when it began: `all` may grow meanwhile, but nothing is removed from it. Those
    that are left are copied to a new list.
    """

    __slots__ = ("_gone", "all")

    def __init__(self) -> None:
        self.all: list[OutputBuffer[T]] = []
        """The current ones, and some that have left. If there is only one current one, there is no
        other; without one, it is empty."""
        self._gone = 0

    def __len__(self) -> int:
        """How many current ones there are."""
        return len(self.all) - self._gone

    def __iter__(self) -> Iterator[OutputBuffer[T]]:
        """The current ones, even if some leave meanwhile."""
        return iter([each for each in self.all if each.is_listed])

    def add(self, output: OutputBuffer[T]) -> None:
        """Add *output*, unless its subscriber has cancelled already."""
        if not output.is_closed:
            output.is_listed = True
            self.all.append(output)

    def remove(self, output: OutputBuffer[T]) -> None:
        """*output* has left."""
        if output.is_listed:
            output.is_listed = False
            self._gone += 1
            if self._gone * 2 >= len(self.all):
                self.all = [*self]
                self._gone = 0
