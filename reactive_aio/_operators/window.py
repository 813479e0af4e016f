"""Operators that split a flow into windows: flows of consecutive elements, one after another."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar, cast

from .._core.arguments import require_element
from .._shared.coerce import WINDOW
from ..stage import (
    UNBOUNDED,
    Branch,
    BranchSource,
    Duration,
    InnerSubscriber,
    SplittingCoordinator,
    Timer,
    from_push,
    require_int,
    require_sync_callable,
    timed_from_push,
    to_seconds,
)

if TYPE_CHECKING:
    from ..flow import Flow, WindowFlow

__all__ = ("Windowed", "window", "window_reduce", "window_timeout")

T = TypeVar("T")
R = TypeVar("R")
_RESULTS = 128  # of windows that wait for a reader

_REACHED: Final = 1e-5
"""A boundary that is this near has been reached: loops fire timers a little early."""
_SOON: Final = 1.0
"""A window that begins so many seconds after the end of the one before follows it directly: its
timer was late."""


def window(source: "Flow[T]", size: int) -> "Flow[Flow[T]]":
    """Split the flow into windows of *size* elements: each is a flow, and ends before the next.

    A window begins with its first element, so none is empty. Unlike the lists of ``buffer``, a
    window can be read while it grows. It serves one subscriber; the elements of a window that is
    freed without a subscriber are discarded. A subscriber that cancels receives no more windows,
    and the open one goes on.

    Where a function is awaited with each window, as by ``for_each`` and ``map_async`` without
    *concurrency*, the next window begins when the last one has been read, or the function has
    returned: windows do not pile up in front of it.

    ::

        a--b--c--|
        .window(2).concat_map(lambda w: w.buffer(9))
        ---[a, b]-----[c]|

    Demand: multiplied: as many elements as the requested windows still need; of windows that are
        awaited one after another, as many as the open one needs.
    Completes: when the source completes, with the last window.
    Fails: when the source fails, and with it the window that is open.
    Cancels: the source, when the subscriber has cancelled and the open window has ended. A window
        that nobody has subscribed to is over when the subscriber cancels or fails; when it
        completes, as with ``take`` and ``first``, such a window can still be read.
    Holds: *size* elements of the open window; a window that was delivered holds its elements until
        they are read.
    Rules: 1.1, 1.11
    """
    size = require_int("window", "size", size, least=1)
    return _windows(source, f"window({size})", size)


def window_timeout(
    source: "Flow[T]",
    size: int | None,
    duration: Duration,
    *,
    align: bool | tzinfo = False,
    emit_empty: bool = False,
) -> "Flow[WindowFlow[T]]":
    """Split the flow into windows of up to *size* elements, each open for up to *duration*.

    A window begins with its first element, so none is empty. Windows are read as those of
    ``window``, and the next one begins as it does there: *duration* is counted from then. With None
    for the *size*, only the time ends a window; while one holds 256 elements that nobody has read,
    no more are requested.

    Each window has its ``start`` and its ``end``, as a `datetime` with a time zone; one that is
    full ends earlier. With *emit_empty*, a window begins as soon as it is requested, and the next
    one where it ends, whether there are elements or not. To make one value of each window in
    constant memory, use ``window_reduce``.

    With ``align=True``, windows end at multiples of *duration* by the wall clock: a minute is one
    from :00 to :00, an hour a full one, a day one of UTC. For hours and days elsewhere, give a time
    zone: ``align=ZoneInfo("Europe/Berlin")``. A day ends at midnight there, also a day of 23 or 25
    hours; the hour that comes twice makes two windows of an hour. The clock of the machine is read
    once for each event loop; after that only the loop's time counts, so that virtual time applies.
    The ``start`` of such a window is that of its minute or day, although it may begin later.

    ::

        a--b--c--|
        .window_timeout(9, 4).concat_map(lambda w: w.buffer(9))
        ----[a, b]----[c]|

    Demand: batched (*size* elements upstream, or 256, requested again as they are taken).
    Completes: when the source completes, with the last window.
    Fails: when the source fails, and with it the window that is open.
    Cancels: the source, when the subscriber has cancelled and the open window has ended. A window
        that nobody has subscribed to is over when the subscriber cancels or fails; when it
        completes, as with ``take`` and ``first``, such a window can still be read.
    Holds: 2 × *size* elements, or 2 × 256: of the open window, and before the next one is
        requested; a window that was delivered holds its elements until they are read.
    Rules: 1.1, 1.11
    """
    if size is not None:
        require_int("window_timeout", "size", size, least=1)
    seconds = to_seconds(duration, "window_timeout: duration")
    zone = _zone_of("window_timeout", align)
    name = f"window_timeout({size}, {seconds:g})"
    return cast("Flow[Any]", _windows(source, name, size, seconds, zone, emit_empty))


class Windowed(NamedTuple, Generic[R]):
    """What ``window_reduce`` has made of the elements of a time."""

    start: datetime
    end: datetime
    value: R


def window_reduce(
    source: "Flow[T]",
    duration: Duration,
    reducer: Callable[[R, T], R],
    seed: R,
    *,
    align: bool | tzinfo = False,
    emit_empty: bool = False,
) -> "Flow[Windowed[R]]":
    """Combine the elements of each *duration* into one value: ``reducer(so_far, element)``.

    Each window begins with *seed*, the same object every time, so the reducer must not change it.
    The result is a tuple of ``start``, ``end`` and ``value``: a count for each minute, however many
    elements that has, takes the memory of one value. *align* and *emit_empty* are those of
    ``window_timeout``: with *emit_empty*, a time without elements results in *seed*.

    ::

        1--2--3--|
        .window_reduce(4, operator.add, 0).map(lambda window: window.value)
        ----3----(3|)

    Demand: as many elements as the window takes; the next window begins when the result of the one
        before is requested.
    Completes: when the source completes, after the result of the last window.
    Fails: when the source fails; when *reducer* raises or returns None.
    Cancels: when the subscriber cancels.
    Holds: 2 × 256 elements, and 257 of results.
    Rules: 1.1, 1.7
    """
    require_sync_callable("window_reduce", "reducer", reducer, "use map_async before it.", takes=2)
    require_element("window_reduce", "seed", seed)
    seconds = to_seconds(duration, "window_reduce: duration")
    zone = _zone_of("window_reduce", align)

    def reduced(window: "WindowFlow[T]") -> "Flow[Windowed[R]]":
        start, end = window.start, window.end
        result = window.scan(reducer, seed=seed).take_last(1)
        return result.map(lambda value: Windowed(start, end, value))

    windows: Flow[Any] = _windows(
        source, f"window_reduce({seconds:g})", None, seconds, zone, emit_empty, contents=1
    )
    # Windows are folded whether or not a reader has room for their results.
    return windows.concat_map(reduced).boundary(_RESULTS)


def _zone_of(operator: str, align: object) -> tzinfo | None:
    """The time zone of *align*; None if windows are not aligned."""
    if isinstance(align, tzinfo):
        return align
    if not isinstance(align, bool):
        raise TypeError(
            f"{operator}: align must be True, False or a tzinfo such as "
            f"zoneinfo.ZoneInfo('Europe/Berlin'), not {align!r}"
        )
    return UTC if align else None


def next_boundary(now: float, seconds: float, zone: tzinfo) -> float:
    """When the clocks of *zone* next show a multiple of *seconds*; *now* is in seconds since 1970.

    Where the clocks are set forward, past such a time, it is the moment at which they would have
    shown it.
    """
    before = _offset(now, zone)
    expected = _next_multiple(now, seconds, before)
    after = _offset(expected, zone)
    if after == before:
        return expected
    # The clocks are set meanwhile: look for the first one that they show after that.
    shown = _next_multiple(now, seconds, after)
    while _offset(shown, zone) != after:
        shown += seconds
    return shown if after < before else min(shown, expected)


def last_boundary(now: float, seconds: float, zone: tzinfo) -> float:
    """When the clocks of *zone* have last shown a multiple of *seconds*."""
    offset = _offset(now, zone)
    last = _next_multiple(now, seconds, offset) - seconds
    before = _offset(last, zone)
    return last if before == offset else _next_multiple(now, seconds, before) - seconds


def _next_multiple(now: float, seconds: float, offset: float) -> float:
    return ((now + offset) // seconds + 1) * seconds - offset


def _offset(at: float, zone: tzinfo) -> float:
    """By how many seconds the clocks of *zone* are ahead of UTC."""
    offset = datetime.fromtimestamp(at, zone).utcoffset()
    return 0.0 if offset is None else offset.total_seconds()


def _windows(
    source: "Flow[T]",
    name: str,
    size: int | None,
    seconds: float = 0.0,
    zone: tzinfo | None = None,
    emits_empty: bool = False,
    contents: int | None = None,
) -> "Flow[Flow[T]]":
    most = WINDOW if size is None else size
    return from_push(
        lambda downstream: _Windows(downstream, source, name, size, seconds, zone, emits_empty),
        name=name,
        holds=2 * most if seconds else most,
        checked=True,
        upstreams=(source,),
        one_by_one=True,
        lossy=False,
        contents=(most if contents is None else contents) * source.chain.weight,
    )


@dataclass(eq=False, repr=False)
class _Windows(SplittingCoordinator[Any]):
    _source: "Flow[Any]"
    _name: str
    _size: int | None
    """None if a window ends only by its time."""
    _seconds: float
    """How long a window is open; 0 if it ends only by its size."""
    _zone: tzinfo | None
    """Whose clocks its windows are aligned to; None if they are not."""
    _emits_empty: bool
    """Whether a window begins without an element."""
    _end: float = field(default=-1.0, init=False)
    """When the window that has begun last ends, or has ended, in seconds since 1970."""
    _window: Branch[Any] | None = field(default=None, init=False)
    """The open window. It is None as well when its subscriber has cancelled."""
    _left_window: Branch[Any] | None = field(default=None, init=False)
    """The window that has begun last, if its subscriber has cancelled."""
    _missing: int = field(default=0, init=False)
    """How many more elements belong to the window that has begun last."""
    _last: Branch[Any] | None = field(default=None, init=False)
    """The window that has begun last, whatever has become of it."""
    _waits: bool = field(default=False, init=False)
    """Whether the next window begins when the last one has been read."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._timer = Timer(self, self._on_time)

    # -- decisions --------------------------------------------------------------------------------
    def on_start(self) -> None:
        if self._seconds:
            self.loop_handle.wall_time()  # the clock is read before virtual time passes
        self._inner: InnerSubscriber[Any] = self.subscribe_to(self._source)

    def on_demand(self) -> None:
        self.on_elements(self._inner)

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        while inner.elements and (self._missing or self._begin()):
            chunk = inner.take(self._missing)
            self._missing -= len(chunk)
            if (window := self._window or self._left_window) is not None:
                window.put(chunk)
            if not self._missing:
                self._close()
        if self._emits_empty and not self._missing and not inner.is_done:
            self._begin()
        self.end_with(inner)
        self._request(inner)

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self.on_elements(inner)

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        self.on_elements(inner)

    def on_processed(self) -> None:
        self._begin_waiting()

    @property
    def needs_room(self) -> bool:
        return self._waits or self._size is None  # its size bounds a window

    def on_branch_demand(self, branch: Branch[Any]) -> None:
        if self._size is None:
            self.on_elements(self._inner)
        self._begin_waiting()

    def on_branch_finished(self, branch: Branch[Any]) -> None:
        self._begin_waiting()

    def on_branch_cancel(self, branch: Branch[Any]) -> None:
        if branch is self._window:  # the elements that belong to it are discarded
            self._window, self._left_window = None, branch
        super().on_branch_cancel(branch)
        self._begin_waiting()

    # -- acts -------------------------------------------------------------------------------------
    def _begin_waiting(self) -> None:
        if self._waits and not self.is_closed:
            self.on_elements(self._inner)

    @property
    def _is_taken(self) -> bool:
        """Whether the next window may begin: no other one waits, or is still to be read."""
        return not self.is_busy or self._last is None or not self._last.held

    def _begin(self) -> bool:
        """Emit the next window, if it is requested; return whether it takes elements."""
        if not self.demand or self.is_left or self.is_closed or not self._is_taken:
            return False
        self._missing = UNBOUNDED if self._size is None else self._size
        branch = self._window = self._last = Branch[Any](self, f"a window of {self._name}")
        self.branches[branch] = None
        self.emit([self._flow_of(branch)])
        if self._seconds:
            self._timer.start(self._end - self.loop_handle.wall_time())
        return True

    def _flow_of(self, branch: Branch[Any]) -> "Flow[Any]":
        opened = BranchSource(branch, self.loop_handle)
        holds = WINDOW if self._size is None else self._size
        if not self._seconds:
            return from_push(opened, name=branch.name, holds=holds, checked=True, pushes_lists=True)
        zone = self._zone or UTC
        start, end = (datetime.fromtimestamp(each, zone) for each in self._times())
        return timed_from_push(opened, start, end, name=branch.name, holds=holds, pushes_lists=True)

    def _times(self) -> tuple[float, float]:
        """When the window that begins now starts, and when it ends."""
        now = self.loop_handle.wall_time() + _REACHED
        if self._zone is not None:
            start = last_boundary(now, self._seconds, self._zone)
            self._end = next_boundary(now, self._seconds, self._zone)
            return start, self._end
        # One that follows directly starts where the last one has ended: errors do not add up.
        follows = self._emits_empty and 0 <= now - self._end < _SOON
        start = self._end if follows else now - _REACHED
        self._end = start + self._seconds
        return start, self._end

    def _on_time(self) -> None:
        self._close()
        if self._emits_empty:
            self.on_elements(self._inner)

    def _close(self) -> None:
        """The window that has begun last is complete."""
        self._timer.stop()
        self._missing = 0
        window, self._window, self._left_window = self._window, None, None
        if window is not None:
            self.close_branch(window)

    def _request(self, inner: InnerSubscriber[Any]) -> None:
        """Request what the windows still need, in parts; with a time limit, one window ahead.

        Of windows that are read one after another, only one is requested at a time.
        """
        if self.is_closed or self.is_left or not (self.demand or self._missing):
            self._waits = False
            return
        self._waits = not self._missing and not self._is_taken
        size, window = self._size, self._window
        if size is None:
            needed, least = WINDOW - (0 if window is None else window.held), WINDOW // 4
        else:
            needed, least = self._needed(size)
        missing = needed - inner.outstanding
        if missing > 0 and missing >= least:
            inner.request(missing)

    def _needed(self, size: int) -> tuple[int, int]:
        """How many elements windows of *size* need, and how many are requested at least."""
        needed = part = size if self._seconds else max(size, WINDOW)
        if self._seconds:
            pass
        elif self.downstream.awaits:
            needed = 0 if self._waits else self._missing or size
        elif not self.demand.unbounded:
            needed = self.demand.outstanding * size + self._missing
        return min(needed, part), 1 if needed < part else (part + 3) // 4
