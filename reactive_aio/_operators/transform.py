"""Operators that map elements, leave them out, or add some."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar, overload

from .._core.arguments import require_element
from ..stage import InlineStage, require_int, require_sync_callable

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = (
    "default_if_empty",
    "enumerate",
    "filter",
    "filter_map",
    "map",
    "of_type",
    "pairwise",
    "scan",
    "start_with",
    "transform",
)

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S")

_MAP = InlineStage(
    "map",
    params=("mapper",),
    each="""
    x = $mapper(x)
    sync x of $mapper
    if x is None:
        raise no_element("map")
    """,
    checked=True,
)

_FILTER = InlineStage(
    "filter",
    params=("predicate",),
    each="""
    $passes = $predicate(x)
    sync $passes of $predicate
    if not $passes:
        drop
    """,
)

_FILTER_MAP = InlineStage(
    "filter_map",
    params=("mapper",),
    each="""
    x = $mapper(x)
    sync x of $mapper
    if x is None:
        drop
    """,
    checked=True,
)

_OF_TYPE = InlineStage(
    "of_type",
    params=("kind",),
    each="""
    if not isinstance(x, $kind):
        drop
    """,
)

_SCAN = InlineStage(
    "scan",
    params=("accumulator",),
    setup="$total = END",
    each="""
    if $total is not END:
        x = $accumulator($total, x)
        sync x of $accumulator
        if x is None:
            raise no_element("scan")
    $total = x
    """,
    checked=True,
)

_SCAN_SEED = InlineStage(
    "scan",
    params=("accumulator", "seed"),
    setup="$total = $seed",
    before="emit $seed",
    each="""
    x = $total = $accumulator($total, x)
    sync x of $accumulator
    if x is None:
        raise no_element("scan")
    """,
    checked=True,
)

_ENUMERATE = InlineStage(
    "enumerate",
    params=("start",),
    setup="$index = $start",
    each="""
    x = ($index, x)
    $index += 1
    """,
    checked=True,
)

_PAIRWISE = InlineStage(
    "pairwise",
    setup="$last, $alone = END, ()",
    each="""
    if $last is END:
        $last, $alone = x, (x,)
        drop
    x, $last, $alone = ($last, x), x, ()
    """,
    held="$alone",
    checked=True,
)

_START_WITH = InlineStage(
    "start_with", params=("elements",), before="emit each $elements", checked=True
)

_DEFAULT = InlineStage(
    "default_if_empty",
    params=("element",),
    setup="$empty = True",
    each="$empty = False",
    after="""
    if $empty:
        emit $element
    """,
    checked=True,
)


def map(source: "Flow[T]", mapper: Callable[[T], R]) -> "Flow[R]":
    """Replace each element by ``mapper(element)``.

    ::

        a--b--c--|
        .map(str.upper)
        A--B--C--|

    Demand: passed through.
    Completes: when the source completes.
    Fails: when the source fails, or *mapper* raises or returns None (use ``filter_map``).
    Cancels: when the subscriber cancels.
    Holds: nothing.
    Rules: 2.13
    """
    require_sync_callable(
        "map", "mapper", mapper, "use map_async, or flat_map for a generator.", takes=1
    )
    return source.via(_MAP, mapper)


@overload
def filter(source: "Flow[T]", predicate: Callable[[T], TypeGuard[R]]) -> "Flow[R]": ...
@overload
def filter(source: "Flow[T]", predicate: Callable[[T], object]) -> "Flow[T]": ...
def filter(source: "Flow[Any]", predicate: Callable[[Any], object]) -> "Flow[Any]":
    """Pass on the elements for which *predicate* returns a true value.

    ::

        a--B--c--|
        .filter(str.islower)
        a-----c--|

    Demand: passed through; one more is requested for each element left out.
    Completes: when the source completes.
    Fails: when the source fails, or *predicate* raises.
    Cancels: when the subscriber cancels.
    Holds: nothing.
    Rules: 1.1
    """
    require_sync_callable("filter", "predicate", predicate, "use filter_async.", takes=1)
    return source.via(_FILTER, predicate)


def filter_map(source: "Flow[T]", mapper: Callable[[T], R | None]) -> "Flow[R]":
    """Replace each element by ``mapper(element)``, and leave it out where that is None.

    ::

        a--b--c--|
        .filter_map({"a": "x", "c": "z"}.get)
        x-----z--|

    Demand: passed through; one more is requested for each element left out.
    Completes: when the source completes.
    Fails: when the source fails, or *mapper* raises.
    Cancels: when the subscriber cancels.
    Holds: nothing.
    Rules: 1.1, 2.13
    """
    require_sync_callable("filter_map", "mapper", mapper, "use map_async and then filter.", takes=1)
    return source.via(_FILTER_MAP, mapper)


def of_type(source: "Flow[Any]", kind: type[R]) -> "Flow[R]":
    """Pass on the elements that are instances of *kind*.

    ::

        a--1--b--|
        .of_type(int)
        ---1-----|

    Demand: passed through; one more is requested for each element left out.
    Completes: when the source completes.
    Fails: when the source fails.
    Cancels: when the subscriber cancels.
    Holds: nothing.
    Rules: 1.1
    """
    try:
        isinstance(source, kind)
    except TypeError as error:
        raise TypeError(f"of_type: kind must be a class, not {kind!r}") from error
    return source.via(_OF_TYPE, kind)


@overload
def scan(source: "Flow[T]", accumulator: Callable[[T, T], T]) -> "Flow[T]": ...
@overload
def scan(source: "Flow[T]", accumulator: Callable[[S, T], S], *, seed: S) -> "Flow[S]": ...
def scan(
    source: "Flow[Any]", accumulator: Callable[[Any, Any], Any], *, seed: Any = ...
) -> "Flow[Any]":
    """Emit the running result of ``accumulator(result, element)``.

    ::

        1--2--3--|
        .scan(operator.add)
        1--3--6--|

    As with ``itertools.accumulate``, the first result is *seed*, emitted before the first element
    is requested; without a seed it is the first element. Every subscription starts with the same
    *seed*, so the accumulator should return a new result rather than change its argument.

    Demand: passed through; the seed uses one.
    Completes: when the source completes.
    Fails: when the source fails, or *accumulator* raises or returns None.
    Cancels: when the subscriber cancels.
    Holds: 1 element, the latest result.
    Rules: 1.1, 2.13
    """
    require_sync_callable("scan", "accumulator", accumulator, "use map_async before it.", takes=2)
    if seed is ...:
        return source.via(_SCAN, accumulator, holds=1)
    require_element("scan", "seed", seed)
    return source.via(_SCAN_SEED, accumulator, seed, holds=1)


def enumerate(source: "Flow[T]", start: int = 0) -> "Flow[tuple[int, T]]":
    """Number the elements: emit ``(index, element)``, counting from *start*.

    ::

        a--b--c--|
        .enumerate()
        (0,a)--(1,b)--(2,c)--|

    Demand: passed through.
    Completes: when the source completes.
    Fails: when the source fails.
    Cancels: when the subscriber cancels.
    Holds: nothing.
    Rules: 1.1
    """
    return source.via(_ENUMERATE, require_int("enumerate", "start", start, least=-(2**63)))


def pairwise(source: "Flow[T]") -> "Flow[tuple[T, T]]":
    """Emit each element together with the one before it.

    ::

        a--b--c--|
        .pairwise()
        ---(a,b)--(b,c)--|

    A source with fewer than two elements yields no pair.

    Demand: passed through; one more is requested for the first element.
    Completes: when the source completes.
    Fails: when the source fails.
    Cancels: when the subscriber cancels.
    Holds: 1 element.
    Rules: 1.1
    """
    return source.via(_PAIRWISE, holds=1, contents=2)


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


def transform(source: "Flow[T]", change: "Callable[[Flow[T]], R]") -> R:
    """Return ``change(flow)``: apply a function that combines operators.

    ::

        a--b--c--|
        .transform(lambda flow: flow.skip(1).map(str.upper))
        ---B--C--|

    It runs once, when the flow is assembled, and may return anything.

    Demand: depends on *change*.
    Completes: depends on *change*.
    Fails: depends on *change*.
    Cancels: depends on *change*.
    Holds: nothing of its own.
    Rules: none
    """
    require_sync_callable("transform", "change", change, "it returns a flow.", takes=1)
    return change(source)
