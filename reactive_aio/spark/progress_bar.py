"""A progress bar on the terminal for those who read from Spark. Needs the extra ``progress``."""

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from weakref import finalize

from ..errors import MissingExtra

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bars, TaskID

    from .progress import Progress

__all__ = ("ProgressBar",)

LINE_EVERY: Final = 5.0
"""Seconds between two lines about a subscription, where there is no terminal."""
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


class ProgressBar:
    """Shows how far flows of Spark have got; give it to ``from_dataframe(progress=...)``.

    One bar for each subscription: partitions done of all, and behind it rows, their rate, bytes,
    the demand and what is waited for. It is drawn when it is called, so there is neither a thread
    nor a timer; what is printed meanwhile appears above it. Where *console* (by default standard
    error) is no terminal, or a dumb one, it prints a line every five seconds, and one at the end.

    One such object may serve several flows; their bars stand below each other.
    """

    def __init__(self, title: str = "Spark", *, console: "Console | None" = None) -> None:
        try:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn
        except ImportError as error:
            raise MissingExtra("reactive_aio.spark.ProgressBar", "progress") from error
        self.title: str = title
        self._console = console or Console(stderr=True)
        # Text is a value here, and no markup: a title may hold brackets.
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[told]}", markup=False),
        )
        self._bars: Bars = Progress(*columns, console=self._console, auto_refresh=False)
        self._shown: dict[int, TaskID] = {}
        self._ended: set[int] = set()
        self._lined: dict[int, float] = {}
        # A flow that is forgotten without an end must not take the cursor along.
        self._end = finalize(self, _stop, self._bars)

    def __call__(self, progress: "Progress") -> None:
        """Show *progress*."""
        if self._console.is_interactive:
            self._draw(progress)
        else:
            self._print(progress)

    def _draw(self, progress: "Progress") -> None:
        bars, number = self._bars, progress.number
        if number not in self._shown:
            self._shown[number] = bars.add_task(self.title, total=None, told="")
            bars.start()
        bars.update(
            self._shown[number],
            total=progress.partitions,
            completed=progress.done,
            told=told(progress),
        )
        bars.refresh()
        if progress.ended:
            self._close(number)

    def _close(self, number: int) -> None:
        """When no bar moves any more, they stay as they are, and the screen is given back."""
        self._ended.add(number)
        if len(self._ended) < len(self._shown):
            return
        self._bars.stop()
        for task in self._shown.values():
            self._bars.remove_task(task)
        self._shown.clear()
        self._ended.clear()

    def _print(self, progress: "Progress") -> None:
        last = self._lined.setdefault(progress.number, 0.0)
        if progress.ended:
            del self._lined[progress.number]
        elif progress.seconds - last < LINE_EVERY:
            return
        else:
            self._lined[progress.number] = progress.seconds
        line = f"{self.title}: {told(progress)}"
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def told(progress: "Progress") -> str:
    """A progress in a line."""
    partitions = "?" if progress.partitions is None else progress.partitions
    wanted = "unbounded" if progress.demand == float("inf") else f"{progress.demand:,.0f}"
    parts = (
        f"{progress.done}/{partitions} partitions",
        f"{progress.rows:,} rows",
        f"{progress.rows_per_second:,.0f} rows/s",
        size(progress.bytes),
        f"demand {wanted}",
        progress.state,
    )
    return "  ".join(parts)


def size(count: float) -> str:
    """So many bytes, in the unit that suits them."""
    unit = 0
    while count >= 1024 and unit < len(_UNITS) - 1:
        count /= 1024
        unit += 1
    return f"{count:,.0f} {_UNITS[unit]}" if not unit else f"{count:,.1f} {_UNITS[unit]}"


def _stop(bars: Any) -> None:
    with suppress(Exception):  # at the end of the program there may be no screen any more
        bars.stop()
