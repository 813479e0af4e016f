"""progress: shows on a terminal how far a flow is."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from .._core.arguments import require_text
from .._shared.coerce import WINDOW
from .._shared.progress_bars import REPORT_EVERY, Bars, bars_on, numbers
from ..stage import ForwardingCoordinator, InnerSubscriber, Timer, from_push, require_int

if TYPE_CHECKING:
    from rich.console import Console

    from ..flow import Flow

__all__ = ("progress",)

T = TypeVar("T")


def progress(
    source: "Flow[T]",
    total: int | None = None,
    *,
    title: str | None = None,
    always: bool = False,
    console: "Console | None" = None,
) -> "Flow[T]":
    """Show on the terminal how many elements have passed, their rate, and how long is left.

    ::

        a--b--c--|
        .progress(total=3)
        a--b--c--|

    Each subscription has a bar of its own, on standard error, while it runs. With *total*, the
    number of elements that are expected, the bar grows, and the time that is left is estimated by
    the rate so far. The *title* is by default the name of the flow (``name("orders")``). The bar is
    drawn when elements have passed, at most ten times a second; in the end it says whether the flow
    was completed, failed or cancelled.

    Where standard error is no terminal, such as in a log file, nothing is shown. With *always*, a
    line is printed there every five seconds, and one in the end. *console* is a console of ``rich``
    to use instead of standard error. It needs the extra ``progress``.

    Demand: passed through.
    Completes: when the source completes.
    Fails: when the source fails. What drawing raises goes to the loop's exception handler, and
        nothing more is drawn.
    Cancels: when the subscriber cancels.
    Holds: up to 256 elements in delivery.
    Rules: 1.1, 1.4
    """
    if total is not None:
        require_int("progress", "total", total, least=0)
    if title is not None:
        require_text("progress", "title", title)
    bars = bars_on(console, "flow.progress()")
    shown = source.chain.label or "elements" if title is None else title
    return from_push(
        lambda downstream: _Progress(
            downstream, source, shown, total, bars if always or bars.is_interactive else None
        ),
        name="progress()" if total is None else f"progress({total})",
        holds=WINDOW,
        checked=True,
        upstreams=(source,),
        window=WINDOW,
    )


@dataclass(eq=False, repr=False)
class _Progress(ForwardingCoordinator[Any]):
    """Shows how many elements it has emitted. Its timer runs only when there are new ones."""

    _source: "Flow[Any]"
    _title: str
    _total: int | None
    _bars: Bars | None
    """None if nothing is shown, or nothing more."""
    _state: Literal["running", "completed", "failed", "cancelled"] = "running"
    _number: int = field(default_factory=lambda: next(numbers))
    _since: float | None = None
    """The time of the first request."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._timer = Timer(self, self._show)

    # -- decisions --------------------------------------------------------------------------------
    def on_start(self) -> None:
        self._since = self.loop_handle.time()
        self._show()
        self.attach(self._source)

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        super().on_elements(inner)
        if self._bars is not None and not self.is_closed and not self._timer.is_running:
            self._timer.start(REPORT_EVERY)

    def on_stop(self) -> None:
        if self._state == "running":
            self._state = "cancelled"
        if self._since is not None:
            self._show()

    # -- acts -------------------------------------------------------------------------------------
    def complete(self) -> None:
        self._end_as("completed")
        super().complete()

    def fail(self, error: BaseException) -> None:
        self._end_as("failed")
        super().fail(error)

    def _end_as(self, state: Literal["completed", "failed"]) -> None:
        if not self.is_closed:
            self._state = state

    def _show(self) -> None:
        bars = self._bars
        if bars is None:
            return
        seconds = self.loop_handle.time() - (self._since or 0.0)
        try:
            bars.show(
                self._number,
                self._title,
                _summary(self.emitted, self._total, seconds, self._state),
                completed=self.emitted,
                total=self._total,
                seconds=seconds,
                is_done=self._state != "running",
            )
        except Exception as error:
            self._bars = None
            self.loop_handle.report("progress: the bar cannot be drawn; it is shown no more", error)


def _summary(count: int, total: int | None, seconds: float, state: str) -> str:
    """How far a flow is, in one line."""
    rate = count / seconds if seconds else 0.0
    parts = [f"{count:,}" if total is None else f"{count:,}/{total:,}"]
    if total:
        parts.append(f"{count / total:.0%}")
    if rate:
        parts.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s")
    if state != "running":
        parts.append(f"{state} in {timedelta(seconds=round(seconds))}")
    elif total is not None and rate:
        parts.append(f"{timedelta(seconds=round(max(0, total - count) / rate))} left")
    return "  ".join(parts)
