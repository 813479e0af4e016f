"""Operators that split a flow into windows: flows of consecutive elements, one after another."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .._shared.coerce import WINDOW
from ..stage import (
    Branch,
    BranchSource,
    Duration,
    InnerSubscriber,
    SplittingCoordinator,
    Timer,
    from_push,
    require_int,
    to_seconds,
)

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("window", "window_timeout")

T = TypeVar("T")

_REACHED: Final = 1e-5
"""A boundary that is this near has been reached: loops fire timers a little early."""


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
    return _windows(source, f"window({size})", size, 0.0, None)


def window_timeout(
    source: "Flow[T]", size: int, duration: Duration, *, align: bool | tzinfo = False
) -> "Flow[Flow[T]]":
    """Split the flow into windows of up to *size* elements, each open for up to *duration*.

    A window begins with its first element, so none is empty. Windows are read as those of
    ``window``, and the next one begins as it does there: *duration* is counted from then.

    With ``align=True``, windows end at multiples of *duration* by the wall clock: a minute is one
    from :00 to :00, an hour a full one, a day one of UTC. For hours and days elsewhere, give a time
    zone: ``align=ZoneInfo("Europe/Berlin")``. A day ends at midnight there, also a day of 23 or 25
    hours; the hour that comes twice makes two windows of an hour. The clock of the machine is read
    once for each event loop; after that only the loop's time counts, so that virtual time applies.

    ::

        a--b--c--|
        .window_timeout(9, 4).concat_map(lambda w: w.buffer(9))
        ----[a, b]----[c]|

    Demand: batched (*size* elements upstream, requested again as they are taken).
    Completes: when the source completes, with the last window.
    Fails: when the source fails, and with it the window that is open.
    Cancels: the source, when the subscriber has cancelled and the open window has ended. A window
        that nobody has subscribed to is over when the subscriber cancels or fails; when it
        completes, as with ``take`` and ``first``, such a window can still be read.
    Holds: 2 × *size* elements: of the open window, and before the next one is requested; a window
        that was delivered holds its elements until they are read.
    Rules: 1.1, 1.11
    """
    size = require_int("window_timeout", "size", size, least=1)
    seconds = to_seconds(duration, "window_timeout: duration")
    zone = _zone_of(align)
    return _windows(source, f"window_timeout({size}, {seconds:g})", size, seconds, zone)


def _zone_of(align: object) -> tzinfo | None:
    """The time zone of *align*; None if windows are not aligned."""
    if isinstance(align, tzinfo):
        return align
    if not isinstance(align, bool):
        raise TypeError(
            "window_timeout: align must be True, False or a tzinfo such as "
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


def _next_multiple(now: float, seconds: float, offset: float) -> float:
    return ((now + offset) // seconds + 1) * seconds - offset


def _offset(at: float, zone: tzinfo) -> float:
    """By how many seconds the clocks of *zone* are ahead of UTC."""
    offset = datetime.fromtimestamp(at, zone).utcoffset()
    return 0.0 if offset is None else offset.total_seconds()


def _windows(
    source: "Flow[T]", name: str, size: int, seconds: float, zone: tzinfo | None
) -> "Flow[Flow[T]]":
    return from_push(
        lambda downstream: _Windows(downstream, source, name, size, seconds, zone),
        name=name,
        holds=2 * size if seconds else size,
        checked=True,
        upstreams=(source,),
        one_by_one=True,
        contents=size * source.chain.weight,
    )


@dataclass(eq=False, repr=False)
class _Windows(SplittingCoordinator[Any]):
    _source: "Flow[Any]"
    _name: str
    _size: int
    _seconds: float
    """How long a window is open; 0 if it ends only by its size."""
    _zone: tzinfo | None
    """Whose clocks its windows are aligned to; None if they are not."""
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
        self._timer = Timer(self, self._close)

    # -- decisions --------------------------------------------------------------------------------
    def on_start(self) -> None:
        if self._zone is not None:
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
        return self._waits  # its size bounds a window

    def on_branch_demand(self, branch: Branch[Any]) -> None:
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
        if self._waits:
            self.on_elements(self._inner)

    @property
    def _is_taken(self) -> bool:
        """Whether the next window may begin: no other one waits, or is still to be read."""
        return not self.is_busy or self._last is None or not self._last.held

    def _begin(self) -> bool:
        """Emit the next window, if it is requested; return whether it takes elements."""
        if not self.demand or self.is_left or self.is_closed or not self._is_taken:
            return False
        self._missing = self._size
        branch = self._window = self._last = Branch[Any](self, f"a window of {self._name}")
        self.branches[branch] = None
        opened = BranchSource(branch, self.loop_handle)
        flow: Flow[Any] = from_push(
            opened, name=branch.name, holds=self._size, checked=True, pushes_lists=True
        )
        self.emit([flow])
        if self._seconds:
            self._timer.start(self._time_left())
        return True

    def _time_left(self) -> float:
        if self._zone is None:
            return self._seconds
        now = self.loop_handle.wall_time()
        return next_boundary(now + _REACHED, self._seconds, self._zone) - now

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
        needed = part = max(self._size, WINDOW)
        if self._seconds:
            needed = part = self._size
        elif self.downstream.awaits:
            needed = 0 if self._waits else self._missing or self._size
        elif not self.demand.unbounded:
            needed = self.demand.outstanding * self._size + self._missing
        missing = min(needed, part) - inner.outstanding
        if missing > 0 and (missing * 4 >= part or needed < part):
            inner.request(missing)
