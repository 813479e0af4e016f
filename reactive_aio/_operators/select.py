"""Operators that pass on some of the elements, by position or because they are new."""

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import Overflow
from ..stage import InlineStage, describe, from_pull, require_int, require_sync_callable

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = (
    "distinct",
    "distinct_until_changed",
    "skip",
    "skip_last",
    "skip_while",
    "take",
    "take_last",
    "take_while",
)

T = TypeVar("T")

_USE_MAP_ASYNC = "use map_async before it, to pair each element with the answer."

TAKE = InlineStage(
    "take",
    params=("count",),
    setup="$left = $count",
    each="""
    $left -= 1
    if not $left:
        last
    """,
    demand="need = min(need, $left)",
)

_TAKE_WHILE = InlineStage(
    "take_while",
    params=("predicate",),
    each="""
    $passes = $predicate(x)
    sync $passes of $predicate
    if not $passes:
        done
    """,
)

_TAKE_WHILE_INCLUSIVE = InlineStage(
    "take_while",
    params=("predicate",),
    each="""
    $passes = $predicate(x)
    sync $passes of $predicate
    if not $passes:
        last
    """,
)


def drained(kept: deque[Any]) -> Iterator[Any]:
    """The elements, each taken out when it is emitted."""
    while kept:
        yield kept.popleft()


_TAKE_LAST = InlineStage(
    "take_last",
    params=("count",),
    uses=(deque, drained),
    setup="$kept = deque(maxlen=$count)",
    each="$kept.append(x)\ndrop",
    after="emit each drained($kept)",
    held="$kept",
    checked=True,
)

_SKIP = InlineStage(
    "skip",
    params=("count",),
    setup="$left = $count",
    each="""
    if $left:
        $left -= 1
        drop
    """,
)

_SKIP_WHILE = InlineStage(
    "skip_while",
    params=("predicate",),
    setup="$skips = True",
    each="""
    if $skips:
        $passes = $predicate(x)
        sync $passes of $predicate
        if $passes:
            drop
        $skips = False
    """,
)

_SKIP_LAST = InlineStage(
    "skip_last",
    params=("count",),
    uses=(deque,),
    setup="$kept = deque()",
    each="""
    $kept.append(x)
    if len($kept) <= $count:
        drop
    x = $kept.popleft()
    """,
    held="$kept",
    checked=True,
)


def unhashable(key: object) -> TypeError:
    kind = type(key).__name__
    return TypeError(
        f"distinct: {describe(key)} ({kind}) cannot be hashed; give a key: distinct(key=...) "
        "with a function that returns something hashable for an element, such as a tuple"
    )


def too_many_keys(max_keys: int) -> Overflow:
    remedy = (
        "allow more with max_keys=..., give a coarser key, or use distinct_until_changed "
        "where equal elements are adjacent."
    )
    return Overflow("distinct", max_keys, remedy)


_DISTINCT_SETUP = """
    $seen = set()
    $room = 1 << 62 if $max_keys is None else $max_keys
"""

_DISTINCT_LINES = """
    try:
        if {key} in $seen:
            drop
        $seen.add({key})
    except TypeError as error:
        raise unhashable({key}) from error
    $room -= 1
    if $room < 0:
        raise too_many_keys($max_keys)
"""

_DISTINCT = InlineStage(
    "distinct",
    params=("max_keys",),
    uses=(too_many_keys, unhashable),
    setup=_DISTINCT_SETUP,
    each=_DISTINCT_LINES.format(key="x"),
)

_DISTINCT_KEY = InlineStage(
    "distinct",
    params=("key", "max_keys"),
    uses=(too_many_keys, unhashable),
    setup=_DISTINCT_SETUP,
    each="    $value = $key(x)\n    sync $value of $key" + _DISTINCT_LINES.format(key="$value"),
)


class Unlike:
    """What no element equals: ``last`` before the first one. It is on the left of ``==``, so that
    it decides, and not an element that equals everything."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return False


_CHANGED = InlineStage(
    "distinct_until_changed",
    uses=(Unlike,),
    setup="$last = Unlike()",
    each="""
    if $last == x:
        drop
    $last = x
    """,
)

_CHANGED_KEY = InlineStage(
    "distinct_until_changed",
    params=("key",),
    uses=(Unlike,),
    setup="$last = Unlike()",
    each="""
    $value = $key(x)
    sync $value of $key
    if $last == $value:
        drop
    $last = $value
    """,
)


def take(source: "Flow[T]", count: int) -> "Flow[T]":
    """Pass on the first *count* elements, then complete.

    ::

        a--b--c--d--|
        .take(2)
        a--b|

    With a *count* of 0 the source is not subscribed to.

    Demand: passed through, never more than the rest of *count*.
    Completes: with the last of *count* elements, or when the source completes.
    Fails: when the source fails.
    Cancels: after *count* elements, or when the subscriber cancels.
    Holds: nothing.
    Rules: 1.2, 1.5
    """
    if require_int("take", "count", count) == 0:
        return from_pull(partial(iter, ()), name="take(0)", checked=True)
    return source.via(TAKE, count)


def take_while(
    source: "Flow[T]", predicate: Callable[[T], object], *, inclusive: bool = False
) -> "Flow[T]":
    """Pass on elements while *predicate* is true, then complete.

    ::

        a--b--C--d--|
        .take_while(str.islower)
        a--b--|

    With *inclusive*, the first element for which it is false is passed on as the last one.

    Demand: passed through.
    Completes: at the first element for which *predicate* is false, or with the source.
    Fails: when the source fails, or *predicate* raises.
    Cancels: when it completes before the source, or when the subscriber cancels.
    Holds: nothing.
    Rules: 1.2
    """
    require_sync_callable("take_while", "predicate", predicate, _USE_MAP_ASYNC, takes=1)
    return source.via(_TAKE_WHILE_INCLUSIVE if inclusive else _TAKE_WHILE, predicate)


def take_last(source: "Flow[T]", count: int) -> "Flow[T]":
    """Pass on the last *count* elements, once the source has completed.

    ::

        a--b--c--d--|
        .take_last(2)
        ------------(cd)|

    Demand: passed through; one more is requested for each element held or dropped.
    Completes: after the last element.
    Fails: when the source fails; the elements held are discarded.
    Cancels: when the subscriber cancels.
    Holds: *count* elements.
    Rules: 1.1
    """
    return source.via(_TAKE_LAST, require_int("take_last", "count", count), holds=count)


def skip(source: "Flow[T]", count: int) -> "Flow[T]":
    """Leave out the first *count* elements.

    ::

        a--b--c--d--|
        .skip(2)
        ------c--d--|

    Demand: passed through; one more is requested for each element left out.
    Completes: when the source completes.
    Fails: when the source fails.
    Cancels: when the subscriber cancels.
    Holds: nothing.
    Rules: 1.1
    """
    return source.via(_SKIP, require_int("skip", "count", count))


def skip_while(source: "Flow[T]", predicate: Callable[[T], object]) -> "Flow[T]":
    """Leave out elements while *predicate* is true; pass on the first other one and the rest.

    ::

        a--b--C--d--|
        .skip_while(str.islower)
        ------C--d--|

    Demand: passed through; one more is requested for each element left out.
    Completes: when the source completes.
    Fails: when the source fails, or *predicate* raises.
    Cancels: when the subscriber cancels.
    Holds: nothing.
    Rules: 1.1
    """
    require_sync_callable("skip_while", "predicate", predicate, _USE_MAP_ASYNC, takes=1)
    return source.via(_SKIP_WHILE, predicate)


def skip_last(source: "Flow[T]", count: int) -> "Flow[T]":
    """Leave out the last *count* elements.

    ::

        a--b--c--d--|
        .skip_last(2)
        ------a--b--|

    Each element is passed on when *count* more have arrived.

    Demand: passed through; *count* more are requested at first.
    Completes: when the source completes.
    Fails: when the source fails; the elements held are discarded.
    Cancels: when the subscriber cancels.
    Holds: *count* elements.
    Rules: 1.1
    """
    return source.via(_SKIP_LAST, require_int("skip_last", "count", count), holds=count)


def distinct(
    source: "Flow[T]",
    key: Callable[[T], Hashable] | None = None,
    *,
    max_keys: int | None = 10_000,
) -> "Flow[T]":
    """Leave out elements that equal an earlier one; with *key*, those whose key does.

    ::

        a--b--a--c--|
        .distinct()
        a--b-----c--|

    Elements, or their keys, must be hashable, and are kept until the subscription ends. More than
    *max_keys* of them fail the flow with `Overflow`; None allows any number.

    Demand: passed through; one more is requested for each element left out.
    Completes: when the source completes.
    Fails: when the source fails, *key* raises, an element or key cannot be hashed, or there are too
        many of them.
    Cancels: when the subscriber cancels.
    Holds: *max_keys* elements, or their keys.
    Rules: 1.1
    """
    if max_keys is not None:
        require_int("distinct", "max_keys", max_keys, least=1)
    if key is None:
        return source.via(_DISTINCT, max_keys, holds=max_keys)
    require_sync_callable("distinct", "key", key, _USE_MAP_ASYNC, takes=1)
    return source.via(_DISTINCT_KEY, key, max_keys, holds=max_keys)


def distinct_until_changed(
    source: "Flow[T]", key: Callable[[T], object] | None = None
) -> "Flow[T]":
    """Leave out elements that equal the previous one; with *key*, those whose key does.

    ::

        a--a--b--a--|
        .distinct_until_changed()
        a-----b--a--|

    Demand: passed through; one more is requested for each element left out.
    Completes: when the source completes.
    Fails: when the source fails, or *key* or the comparison raises.
    Cancels: when the subscriber cancels.
    Holds: 1 element, or its key.
    Rules: 1.1
    """
    if key is None:
        return source.via(_CHANGED, holds=1)
    require_sync_callable("distinct_until_changed", "key", key, _USE_MAP_ASYNC, takes=1)
    return source.via(_CHANGED_KEY, key, holds=1)
