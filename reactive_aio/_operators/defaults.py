"""Operators that add elements: before the first one, or in place of none."""

from typing import TYPE_CHECKING, TypeVar

from ..stage import InlineStage, require_element

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("default_if_empty", "start_with")

T = TypeVar("T")
R = TypeVar("R")

_START_WITH = InlineStage("start_with", params=("elements",), before="emit each $elements")

_DEFAULT = InlineStage(
    "default_if_empty",
    params=("element",),
    setup="$empty = True",
    each="$empty = False",
    after="""
    if $empty:
        emit $element
    """,
)


def start_with(source: "Flow[T]", *elements: R) -> "Flow[T | R]":
    """Emit the given elements first, then those of the source.

    ::

        a--b--|
        .start_with("x", "y")
        (xya)--b--|

    To put the elements of another flow first, use ``concat``.

    Demand: passed through, less the given elements.
    Completes: when the source completes.
    Fails: when the source fails.
    Cancels: when the subscriber cancels.
    Holds: nothing.
    Rules: 1.1, 2.13
    """
    for each in elements:
        require_element("start_with", "an element", each)
    return source.via(_START_WITH, elements)


def default_if_empty(source: "Flow[T]", element: R) -> "Flow[T | R]":
    """Emit *element* when the source completes without an element.

    ::

        ------|
        .default_if_empty("x")
        ------x|

    Demand: passed through.
    Completes: when the source completes, or after *element*.
    Fails: when the source fails.
    Cancels: when the subscriber cancels.
    Holds: nothing.
    Rules: 1.1, 2.13
    """
    require_element("default_if_empty", "element", element)
    return source.via(_DEFAULT, element)
