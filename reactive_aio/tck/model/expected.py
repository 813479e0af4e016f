"""What a pipeline has to deliver, computed on lists."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

__all__ = (
    "Effect",
    "Expected",
    "Parameters",
    "added",
    "each",
    "failing",
    "reordered",
    "repeated",
    "resumed",
    "same",
    "thinned",
    "unknown",
    "when_empty",
    "whole",
)

Parameters = Mapping[str, int]
"""The numbers in the text of a part, by their names."""


@dataclass(frozen=True)
class Expected:
    """The values that a flow delivers, as far as they are determined, and its end."""

    values: tuple[int, ...]
    is_ordered: bool = True
    """They are delivered in this order."""
    is_complete: bool = True
    """All of them are delivered."""
    is_known: bool = True
    """No other value is delivered."""
    fails: bool | None = False
    """Whether the flow fails; None if that depends on the order of events."""
    failures: int = 0
    """How many of its parts may fail: the error of one may come after that of another."""
    errors: frozenset[str] = frozenset({"PipelineError"})
    """The names of the errors with which it may fail."""
    discards: bool = False
    """Elements may be freed that were neither delivered nor dropped."""
    accounts: bool = True
    """None of them may, if the flow ends with `do_on_discard`."""
    slack: int | None = 0
    """How many elements may be held beyond the bound; None for any number."""
    is_whole: bool = True
    """The sink reads the flow to its end, and raises its error."""
    is_closed: bool = True
    """Each source has been closed when the consumer goes on."""
    is_serial: bool = True
    """A source that follows another one begins when that has cleaned up."""

    @property
    def is_exact(self) -> bool:
        return self.is_ordered and self.is_complete and self.is_known

    def complaints(self, received: list[int], errors: Collection[str]) -> Iterator[str]:
        """What is wrong with the values *received*, and with the end; *errors* have names."""
        has_failed = bool(errors)
        for name in {*errors} - self.errors:
            yield f"it failed with {name}"
        # Who leaves is told of an error of the cleanup, which no operator handles.
        is_of_the_cleanup = not self.is_whole and {*errors} == {"CleanupError"}
        if has_failed and self.fails is False and not is_of_the_cleanup:
            yield "it failed, and should have completed"
        if self.is_whole and self.fails and not has_failed:
            yield "it completed, and should have failed"
        if not self._allows(received, is_end=self.is_whole and has_failed is bool(self.fails)):
            yield f"{received} was delivered, and this is expected: {self}"

    def _allows(self, received: list[int], *, is_end: bool) -> bool:
        if not self.is_known:
            return True
        if self.is_exact:
            return tuple(received) == (self.values if is_end else self.values[: len(received)])
        if self.is_ordered:
            rest = iter(self.values)
            return all(value in rest for value in received)
        is_part = Counter(received) <= Counter(self.values)
        return is_part and (not self.is_complete or not is_end or len(received) == len(self.values))


Effect = Callable[[Expected, Parameters], Expected]
"""What is expected of a flow with one more operator."""


def same(expected: Expected, _: Parameters) -> Expected:
    """The operator passes all elements on."""
    return expected


def reordered(expected: Expected, _: Parameters) -> Expected:
    """The same elements in any order."""
    return replace(expected, is_ordered=False)


def thinned(expected: Expected, _: Parameters) -> Expected:
    """Some of the elements."""
    return replace(expected, is_complete=False)


def unknown(expected: Expected) -> Expected:
    return replace(expected, is_known=False)


def each(change: Callable[[int, Parameters], Iterable[int]]) -> Effect:
    """*change* has the values made of one value, whatever the others are."""

    def effect(expected: Expected, parameters: Parameters) -> Expected:
        values = [new for value in expected.values for new in change(value, parameters)]
        return replace(expected, values=tuple(values))

    return effect


def whole(
    change: Callable[[list[int], Parameters], Iterable[int]],
    *,
    shrinks: bool = True,
    fails: Callable[[list[int], Parameters], bool | None] | None = None,
) -> Effect:
    """*change* has the values made of all of them, which depend on their order.

    Where the order is not determined, the result is a part of the elements if it *shrinks*. With
    *fails*, the flow may complete before a source that fails, or fail before it completes.
    """

    def effect(expected: Expected, parameters: Parameters) -> Expected:
        given = list(expected.values)
        if expected.is_exact:
            after = replace(expected, values=tuple(change(given, parameters)))
            if fails is not None and (end := fails(given, parameters)) is not None:
                after = replace(after, fails=end)
            return after
        end = None if fails is not None else expected.fails
        if shrinks:
            return replace(expected, is_complete=False, fails=end)
        return unknown(replace(expected, fails=end))

    return effect


def added(others: Callable[[Parameters], Iterable[int]], *, after: bool = True) -> Effect:
    """*others* follow, or come first."""

    def effect(expected: Expected, parameters: Parameters) -> Expected:
        more = tuple(others(parameters))
        if not after:
            return replace(expected, values=more + expected.values)
        if expected.fails is None:
            expected = replace(expected, is_complete=False)
        if expected.fails:
            return expected
        return replace(expected, values=expected.values + more)

    return effect


def resumed(others: Callable[[Parameters], Iterable[int]]) -> Effect:
    """After a failure, *others* follow, and the flow completes."""

    def effect(expected: Expected, parameters: Parameters) -> Expected:
        if expected.fails is False:
            return expected
        values = expected.values + tuple(others(parameters))
        is_complete = expected.is_complete and expected.fails is True
        # An interruption is no `Exception`, and is passed on.
        fails = None if "Interrupted" in expected.errors else False
        return replace(expected, values=values, is_complete=is_complete, fails=fails)

    return effect


def when_empty(others: Callable[[Parameters], Iterable[int]]) -> Effect:
    """*others* follow a flow that completes without an element."""

    def effect(expected: Expected, parameters: Parameters) -> Expected:
        if expected.fails is True or (expected.is_complete and expected.values):
            return expected
        more = tuple(others(parameters))
        if expected.is_exact and expected.fails is False:
            return replace(expected, values=more)
        return replace(expected, values=expected.values + more, is_complete=False)

    return effect


def repeated(*, after_failure: bool | None) -> Effect:
    """The source runs as often as the parameter ``n`` says, while it fails or completes.

    None means after both.
    """

    def effect(expected: Expected, parameters: Parameters) -> Expected:
        if after_failure is not None and expected.fails is (not after_failure):
            return expected
        if expected.fails is None:
            expected = replace(expected, is_complete=False)
        return replace(expected, values=expected.values * parameters["n"])

    return effect


def failing(at: Callable[[int, Parameters], bool]) -> Effect:
    """The flow fails at the first value for which *at* is true."""

    def effect(expected: Expected, parameters: Parameters) -> Expected:
        expected = replace(expected, failures=expected.failures + 1)
        places = [index for index, value in enumerate(expected.values) if at(value, parameters)]
        if not places:
            return expected
        if expected.is_exact:
            return replace(expected, values=expected.values[: places[0]], fails=True)
        return replace(expected, is_complete=False, fails=None)

    return effect
