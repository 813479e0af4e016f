"""LoopShape, for which the compiler makes a loop, and the CompiledLoop that it makes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from .end_hooks import Hook
from .inline import InlineStage

Feed = Literal["pull", "push", "flatten", "aiter"]
Mode = Literal["sync", "task", "async_generator", "fair_generator", "generator"]


class LoopShape(NamedTuple):
    """Everything that the text of a loop depends on."""

    feed: Feed
    mode: Mode
    delivery: Literal["call", "append", "inspect", "extend", "await", "yield"]
    checked: bool
    """Whether the source guarantees that no element is None."""
    stages: tuple[InlineStage, ...]
    discards: bool = False
    """Whether it gives back the elements that it discards (`Discards`)."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class CompiledLoop:
    """A generated loop and its text."""

    run: Callable[..., Any]
    text: str
    emits_first: bool
    """Whether a stage may emit ahead of the first element from upstream."""
    emits_unprompted: bool
    """Whether a stage may emit, or observe the end, without an element from upstream."""
    end_hooks: Callable[..., list[tuple[int, Hook]]] | None
    """Creates the end hooks from the stages' arguments; None if no stage has one."""
