"""Bound: how many elements a flow holds at most, part by part."""

from collections.abc import Iterator
from dataclasses import dataclass

from .chain import Chain


@dataclass(frozen=True, slots=True)
class Bound:
    """How many elements a flow holds at most, part by part; `str` makes a sentence of it."""

    parts: tuple[tuple[str, int | None], ...]
    """The parts that hold elements, and how many; None for an unbounded one."""

    @property
    def total(self) -> int | None:
        """The sum, or None when something is unbounded."""
        sizes = [size for _, size in self.parts if size is not None]
        return sum(sizes) if len(sizes) == len(self.parts) else None

    @property
    def unbounded(self) -> tuple[str, ...]:
        """The names of the unbounded parts."""
        return tuple(name for name, size in self.parts if size is None)

    def __str__(self) -> str:
        if self.unbounded:
            return f"unbounded: {', '.join(self.unbounded)}"
        if not self.parts:
            return "holds no element"
        parts = ", ".join(f"{name} {size}" for name, size in self.parts)
        return f"holds at most {count_elements(self.total)} ({parts})"


def count_elements(count: int | None) -> str:
    """*count* with the word."""
    return f"{count} element{'' if count == 1 else 's'}"


def held(chain: Chain) -> Iterator[tuple[str, int | None]]:
    """The parts of a chain that hold elements; a list or tuple of n elements counts as n."""
    above, chains = [chain], list[Chain]()
    while above:  # no recursion, for flows of any depth
        each = above.pop()
        chains.append(each)
        above += [upstream.chain for upstream in each.source.upstreams]
    for each in reversed(chains):
        yield from _held_by(each)


def _held_by(chain: Chain) -> Iterator[tuple[str, int | None]]:
    if chain.source.holds != 0:
        yield chain.name, _times(chain.source.holds, chain.input_weight)
    weight = chain.source_weight
    for stage in chain.stages:
        if stage.holds != 0:
            yield str(stage), _times(stage.holds, weight)
        weight = stage.weight_after(weight)


def _times(count: int | None, weight: int) -> int | None:
    return None if count is None else count * weight
