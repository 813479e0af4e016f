"""group_by: a flow for each key."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, get_args

from .._core.arguments import drop_handler, require_hashable
from .._core.compiler.error_notes import short_text
from .._core.losses import DropCounter
from ..errors import Overflow, Stalled
from ..stage import (
    Branch,
    BranchSource,
    Duration,
    InnerSubscriber,
    SplittingCoordinator,
    Timer,
    describe,
    from_push,
    grouped_from_push,
    require_int,
    require_sync_callable,
    to_seconds,
)

if TYPE_CHECKING:
    from ..flow import Flow, GroupedFlow

__all__ = ("OnFull", "group_by")

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

OnFull = Literal["fail", "evict", "drop", "wait"]
"""What happens when an element has a new key, and *max_groups* groups are open.

``fail``   the flow fails with `Overflow`
``evict``  a group completes, and its key opens a new one later: of the groups that are empty, or of
           all if none is, the one whose last element is the oldest
``drop``   the element is dropped
``wait``   the element waits until a group ends, and the source with it
"""

_NO_KEY: Final = object()
_AHEAD: Final = 4
"""How many times *prefetch* elements are requested of the source, to be sorted together: a group
costs as much for a list of elements as for one."""


def group_by(
    source: "Flow[T]",
    key: Callable[[T], K],
    *,
    max_groups: int = 1024,
    prefetch: int = 32,
    on_full: OnFull = "fail",
    idle: Duration | None = None,
    stalled_after: Duration | None = 60.0,
    on_drop: Callable[[T], object] | None = None,
) -> "Flow[GroupedFlow[K, T]]":
    """Emit a flow for each key, which emits the elements with that key; ``.key`` is its key.

    A group opens with its first element. Each group holds up to *prefetch* elements; when the group
    of the next element is full, the source waits, and with it the other groups. So what follows has
    to read all groups at the same time: with ``flat_map``, let *concurrency* be *max_groups*.

    At most *max_groups* groups are open; *on_full* says what happens to an element with another
    key:

    - ``"fail"``: the flow fails with `Overflow`.
    - ``"evict"``: a group completes, after the elements that it holds. It is the least recently
      active one of those that are empty, or of all, if none is. (Where a function is awaited with
      one group after another, as by ``for_each``, the element waits until one is empty.)
    - ``"wait"``: the element waits until a group ends, and the source with it. Groups end by
      *idle*, or when their subscribers cancel.
    - ``"drop"``: the element is dropped, and *on_drop* is called with it.

    With *idle*, a group completes when no element of its key has arrived for that time, and it is
    empty: everything that it delivered has been processed. A group serves one subscriber; when it
    cancels, or when the group is freed without one, the group is over.

    A key whose group has ended opens a new one later, and the order within the key holds: the next
    element of the key waits, and the source with it, until the last group has been processed. So
    one group of a key is processed at a time. A group has been processed

    - when everything made of its elements has been, through all operators up to the one that reads
      the groups, such as ``flat_map`` (what ``share``, ``replay``, ``cache`` and processors hand
      over counts as processed);
    - and when the call that has received it has returned: the function of ``map_async``,
      ``for_each`` or ``running``, or of ``from_awaitable`` in ``flat_map``.

    What is done afterwards with what such a call returns may overlap with the next group: so does
    ``from_awaitable(group.to_list).map_async(work)`` in ``flat_map``, and so do tasks of your own.
    Write ``flat_map(lambda group: group.buffer(9).map_async(work))``, or read and work in one call.

    When the next element has no place, while every group with a subscriber has delivered all its
    elements and has demand, the flow has stalled: after *stalled_after* seconds (None: never) it
    fails with `Stalled`, which names the group. A slow subscriber does not stall it.

    ::

        (abab|)
        .group_by(lambda x: x).map(lambda group: group.key)
        (ab|)

    Demand: batched (4 × *prefetch* upstream, requested again as elements reach their groups).
    Completes: when the source completes, with all groups.
    Fails: when the source fails or *key* raises, with all groups; by *on_full* with `Overflow`;
        with `Stalled`.
    Cancels: the source, when the subscriber and those of all groups have cancelled. After the
        subscriber has cancelled, no group opens, and elements with new keys are dropped. A group
        that nobody has subscribed to is over when the subscriber cancels or fails; when it
        completes, as with ``take`` and ``first``, such a group can still be read.
    Holds: *max_groups* × *prefetch* elements in groups, and 4 × *prefetch* of the
        source; a group that was evicted holds its elements until they are read.
    Rules: 1.1, 1.11
    """
    remedy = "make the key without awaiting; map_async can add it to the element first."
    require_sync_callable("group_by", "key", key, remedy, takes=1)
    max_groups = require_int("group_by", "max_groups", max_groups, least=1)
    prefetch = require_int("group_by", "prefetch", prefetch, least=1)
    if on_full not in get_args(OnFull):
        known = ", ".join(get_args(OnFull))
        raise ValueError(f"group_by: on_full must be one of {known}, not {on_full!r}")
    limits = _Limits(
        max_groups,
        prefetch,
        on_full,
        None if idle is None else to_seconds(idle, "group_by: idle"),
        None if stalled_after is None else to_seconds(stalled_after, "group_by: stalled_after"),
        drop_handler("group_by", on_drop),
    )
    return from_push(
        lambda downstream: _GroupBy(downstream, source, key, limits),
        name=f"group_by({describe(key)})",
        holds=(max_groups + _AHEAD) * prefetch,
        checked=True,
        upstreams=(source,),
        one_by_one=True,
        lossy=False,
        contents=1,
    )


@dataclass(slots=True)
class _Limits:
    max_groups: int
    prefetch: int
    on_full: OnFull
    idle: float | None
    stalled_after: float | None
    on_drop: Callable[[Any], object] | None


@dataclass(slots=True)
class _Chunk:
    """Elements on their way to their group."""

    group: Branch[Any]
    room: int
    """How many elements the group takes; more, if its subscriber has processed some meanwhile."""
    elements: list[Any] = field(default_factory=list[Any])
    append: Callable[[Any], None] = field(init=False)

    def __post_init__(self) -> None:
        self.append = self.elements.append


@dataclass(eq=False, repr=False)
class _GroupBy(SplittingCoordinator[Any]):
    _source: "Flow[Any]"
    _key: Callable[[Any], Any]
    _limits: _Limits
    _groups: dict[Any, Branch[Any]] = field(default_factory=dict[Any, "Branch[Any]"], init=False)
    """The open groups by their keys; with a limit for idle groups, or with ``evict``, that with the
    oldest last element comes first."""
    _active_at: dict[Branch[Any], float] = field(
        default_factory=dict["Branch[Any]", float], init=False
    )
    """When the last element of a group arrived; only with a limit for idle groups."""
    _next_key: Any = field(default=_NO_KEY, init=False)
    """The key of the element that waits for a place, so that it is not computed again."""
    _chunks: dict[Any, "_Chunk"] = field(default_factory=dict[Any, "_Chunk"], init=False)
    """Elements on their way to their groups, by the groups' keys."""
    _ending: dict[Any, Branch[Any]] = field(default_factory=dict[Any, "Branch[Any]"], init=False)
    """The group of a key that has ended, as long as its elements are processed."""
    _overdue: dict[Branch[Any], None] = field(default_factory=dict["Branch[Any]", None], init=False)
    """The groups that were idle for long enough, and end as soon as they are empty."""
    _recent_keys: list[Any] | None = field(default=None, init=False)
    """The key of each element sorted since `_order_groups`; only with ``evict``."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._limits.on_full == "evict":
            self._recent_keys = []
        self._idle_timer = Timer(self, self._complete_idle)
        self._stall_timer = Timer(self, self._fail_if_stalled)
        self._drops = DropCounter("group_by")

    # -- decisions --------------------------------------------------------------------------------
    def on_start(self) -> None:
        self._inner: InnerSubscriber[Any] = self.subscribe_to(
            self._source, request=_AHEAD * self._limits.prefetch
        )

    def on_demand(self) -> None:
        self._sort()

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        if self._next_key is _NO_KEY:  # otherwise they come after that element
            self._sort()

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self._sort()

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        self._sort()

    @property
    def needs_room(self) -> bool:
        return self._next_key is not _NO_KEY or bool(self._overdue)

    def on_branch_demand(self, branch: Branch[Any]) -> None:
        if branch in self._overdue and not branch.held:
            self._close(branch)
        self._sort_waiting()

    def on_branch_cancel(self, branch: Branch[Any]) -> None:
        self._close(branch)
        self._sort_waiting()  # there is room for another group

    def on_processed(self) -> None:
        self._sort_waiting()

    def on_branch_finished(self, branch: Branch[Any]) -> None:
        if self._ending.get(branch.tag) is branch:
            del self._ending[branch.tag]
            self._sort_waiting()  # the key has room for another group

    def on_left(self) -> None:
        self._sort()

    # -- sorting ----------------------------------------------------------------------------------
    def _sort_waiting(self) -> None:
        if self._next_key is not _NO_KEY:
            self._sort()

    def _sort(self) -> None:
        """Put the elements into their groups, up to one that has no place."""
        if self.is_closed:
            return
        inner, key_of, chunk_of = self._inner, self._key, self._chunks.get
        recent_keys = self._recent_keys
        sorted_count, key = 0, self._next_key
        try:
            for element in inner.elements:
                if key is _NO_KEY:
                    key = key_of(element)
                try:
                    chunk = chunk_of(key)
                except TypeError:  # it cannot be hashed
                    chunk = None
                if chunk is None:
                    self._next_key = key
                    chunk = self._chunk_for(key, element)
                    if chunk is None and self._next_key is not _NO_KEY:
                        break
                if chunk is not None:
                    if chunk.room <= len(chunk.elements) and not self._find_room(chunk):
                        self._next_key = key
                        break
                    chunk.append(element)
                    if recent_keys is not None:
                        recent_keys.append(key)
                key = _NO_KEY
                sorted_count += 1
            else:
                self._next_key = _NO_KEY
        finally:
            inner.take(sorted_count)
            self._put()
        self._after_sorting(inner, sorted_count)

    def _chunk_for(self, key: Any, element: Any) -> "_Chunk | None":
        """The chunk of the group of *key*; None if *element* is dropped, or waits."""
        require_hashable("group_by", self._key, key)
        group = self._groups.get(key) or self._open(key, element)
        if group is None:
            return None
        chunk = self._chunks[key] = _Chunk(group, self._limits.prefetch - group.held)
        return chunk

    def _find_room(self, chunk: "_Chunk") -> bool:
        """Whether the group of *chunk* takes one more, since its subscriber has processed some."""
        chunk.room = self._limits.prefetch - chunk.group.held
        return chunk.room > len(chunk.elements)

    def _put(self) -> None:
        """Hand the elements to their groups."""
        self._order_groups()
        groups, idle = self._groups, self._limits.idle
        now = self.loop_handle.time() if idle is not None else 0.0
        chunks, self._chunks = self._chunks, {}
        for key, chunk in chunks.items():
            group = chunk.group
            if idle is not None and chunk.elements and groups.get(key) is group:
                if self._recent_keys is None:
                    groups[key] = groups.pop(key)
                self._active_at[group] = now
                self._overdue.pop(group, None)
            group.put(chunk.elements)
        if idle is not None and groups and not self._idle_timer.is_running:
            self._idle_timer.start(idle)

    def _order_groups(self) -> None:
        """Move the groups that have new elements to the end, in the order of the last ones."""
        groups, recent_keys = self._groups, self._recent_keys
        if recent_keys:
            for key in reversed(dict.fromkeys(reversed(recent_keys))):
                if key in groups:
                    groups[key] = groups.pop(key)
            recent_keys.clear()

    def _after_sorting(self, inner: InnerSubscriber[Any], sorted_count: int) -> None:
        self.end_with(inner)
        if self.is_closed:
            return
        ahead = _AHEAD * self._limits.prefetch
        missing = ahead - inner.outstanding
        if missing * 4 >= ahead:
            inner.request(missing)
        self._watch(has_advanced=sorted_count > 0)

    def _open(self, key: Any, element: Any) -> Branch[Any] | None:
        """Open a group; None if *element* is dropped, or waits until a group is requested."""
        limits = self._limits
        is_full = len(self._groups) >= limits.max_groups
        if self.is_left or (is_full and limits.on_full == "drop"):
            self._next_key = _NO_KEY
            self._drops.add("")
            if limits.on_drop is not None:
                limits.on_drop(element)
            elif self.is_left:
                self.discard((element,))
            return None
        predecessor = self._ending.get(key)
        if predecessor is not None and not predecessor.is_finished:
            return None  # the order within the key
        if is_full and limits.on_full == "fail":
            remedy = (
                "allow more with max_groups=..., end idle groups with idle=..., or choose "
                "on_full='wait', 'evict' or 'drop'."
            )
            raise Overflow("group_by", limits.max_groups, remedy)
        if is_full and limits.on_full == "wait":
            return None
        if is_full:
            # Before a group is requested: what follows may request none until one completes.
            evicted = self._group_to_evict()
            if self.is_busy and not self._is_empty(evicted):
                return None  # its elements would be held besides those of the open groups
            self._close(evicted)
        if not self.demand:
            return None
        group = self._groups[key] = Branch(self, f"the group of {short_text(key)}", key)
        self.branches[group] = None
        opened = BranchSource(group, self.loop_handle)
        flow: GroupedFlow[Any, Any] = grouped_from_push(
            opened, key, name=group.name, holds=limits.prefetch, pushes_lists=True
        )
        self.emit([flow])
        return group

    def _group_to_evict(self) -> Branch[Any]:
        """The least recently active of the groups that are empty; of all, if none is."""
        self._order_groups()
        groups = self._groups.values()
        return next(filter(self._is_empty, groups), None) or next(iter(groups))

    def _is_empty(self, group: Branch[Any]) -> bool:
        chunk = self._chunks.get(group.tag)
        return not group.held and (chunk is None or not chunk.elements)

    def _close(self, group: Branch[Any]) -> None:
        if self._groups.get(group.tag) is group:
            del self._groups[group.tag]
        if not group.is_finished:
            self._ending[group.tag] = group
        self._active_at.pop(group, None)
        self._overdue.pop(group, None)
        chunk = self._chunks.get(group.tag)
        if chunk is not None and chunk.group is group:
            del self._chunks[group.tag]
            group.put(chunk.elements)
        self.close_branch(group)

    # -- idle groups, and stalls ------------------------------------------------------------------
    def _complete_idle(self) -> None:
        idle = self._limits.idle
        assert idle is not None
        now = self.loop_handle.time()
        for group in list(self._groups.values()):
            left = self._active_at[group] + idle - now
            if left > 0:
                self._idle_timer.start(left)
                break
            if self._is_empty(group):
                self._close(group)
            else:
                self._overdue[group] = None
        self._sort_waiting()

    def _watch(self, *, has_advanced: bool) -> None:
        seconds = self._limits.stalled_after
        if seconds is None:
            return
        if has_advanced or not self._is_stalled():
            self._stall_timer.stop()
        if not self._stall_timer.is_running and self._is_stalled():
            self._stall_timer.start(seconds)

    def _is_stalled(self) -> bool:
        """Whether an element has no place, and no subscriber of a group has anything to do."""
        if self._next_key is _NO_KEY:
            return False
        groups = self._groups
        group = groups.get(self._next_key) or self._ending.get(self._next_key)
        if group is not None and (group.is_subscribed or group.held_by):
            return False  # its subscriber is slow
        if self._limits.idle is not None and not all(each.held for each in groups.values()):
            return False  # one of them ends when it has been idle for long enough
        unfinished = (*groups.values(), *self._ending.values())
        reading = [each for each in unfinished if each.is_subscribed]
        if not reading and self.is_busy:
            return False  # what follows is slow
        return all(each.is_hungry for each in reading)

    def _fail_if_stalled(self) -> None:
        if not self._is_stalled():
            return
        key, groups, limits = self._next_key, self._groups, self._limits
        reading = sum(each.is_subscribed for each in groups.values())
        if key in groups:
            what = f"the group of {short_text(key)} is full, and has never been subscribed to"
        elif key in self._ending:
            what = (
                f"the next key is {short_text(key)}, and its last group, which has ended, has "
                "never been subscribed to"
            )
        elif limits.on_full == "wait" and len(groups) >= limits.max_groups:
            what = f"{len(groups)} groups are open, and the next key is {short_text(key)}"
        else:
            what = f"no further group is requested, and the next key is {short_text(key)}"
        self.fail(
            Stalled(
                f"group_by: for {limits.stalled_after:g} s {what}, while all {reading} "
                "groups with a subscriber wait for elements; let what follows read more groups at "
                "the same time (flat_map: concurrency=...), or end groups with idle=... or "
                "on_full='evict'. If what follows is only slow, give a larger stalled_after."
            )
        )
