"""The rows of a model: sources, operators and consumers, and what programs of them need."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from .expected import Effect, Parameters, same
from .run import Run

__all__ = ("Consumer", "Operator", "Source", "Vocabulary")


def _up_to_n(parameters: Parameters) -> Iterable[int]:
    return range(parameters["n"])


@dataclass(frozen=True)
class Source:
    """A source; *text* may contain ``n``, the number of elements, and ``k``, the seed of pauses."""

    text: str
    values: Callable[[Parameters], Iterable[int]] = _up_to_n
    fails: bool | None = False
    """None if it may, with one of *errors*, after some of them."""
    errors: tuple[str, ...] = ("PipelineError",)


@dataclass(frozen=True)
class Operator:
    """An operator with its arguments, or several where the first changes the type.

    *text* is a call on ``{flow}``. The parameters are ``n`` and ``m``, small and at least 1; ``k``,
    a value; ``v``, the first value of other sources.
    """

    text: str
    effect: Effect = same
    discards: bool = False
    """Elements may be discarded that its source has sent."""
    unaccounted: str = ""
    """Why an element may be neither delivered nor given to a function, not to `do_on_discard`."""
    loses_on_failure: bool = False
    """When the source fails, elements that it has sent are discarded."""
    may_fail: str = ""
    """The error with which it may fail, by itself."""
    slack: int | None = 0
    """Elements held beyond the bound; None where their number is not bounded."""
    detaches: bool = False
    """A consumer that leaves does not wait for its source, which others may read or a publisher
    of another library is."""


@dataclass(frozen=True)
class Consumer:
    """What a program does with ``{flow}``."""

    text: str
    is_whole: bool = True
    """It reads the flow to its end, and raises the error of a flow that fails."""
    waits: bool = True
    """When it goes on, each source has been closed."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The rows that a pipeline may be made of, by name."""

    sources: Mapping[str, Source]
    operators: Mapping[str, Operator]
    consumers: Mapping[str, Consumer]
    header: str
    """The lines above a program: they import what its text names, besides ``run``."""
    run: Callable[[str], Run] = Run
    """Makes the ``run`` of a program, of a kind of errors."""
    run_text: str = "Run"
    """How a script writes it."""
    with_small_bounds: tuple[str, ...] = ()
    """Operators whose bounds depend on their arguments: they alone can reach their bound."""
    holding_nothing: tuple[str, ...] = ()
    """Sources that hold no elements, so that the bound of a flow is that of its operators."""
    only_exceptions: frozenset[str] = frozenset()
    """What does nothing with an error that is no `Exception`."""
    changed_by_a_drain: frozenset[str] = frozenset()
    """What they emit next depends on whether a drain has completed the source."""
    imports: str = ""
    """Lines of a script alone, ahead of the header."""
