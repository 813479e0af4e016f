"""A progress bar on the terminal for flows of Spark. Needs the extra ``progress``."""

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
"""Seconds between two lines about a subscription, without a terminal."""
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


class ProgressBar:
    """Shows the progress of Spark flows; pass it to ``from_dataframe(progress=...)``.

    It has one bar for each subscription: the partitions done, followed by the rows, their rate, the
    bytes, the demand and the state. It is drawn when it is called, so it needs neither a thread nor
    a timer; other output appears above it. Where *console* (by default standard error) is not a
    terminal, or a dumb one, it prints a line every five seconds, and one at the end.

    One object may serve several flows; their bars are drawn below each other.
    """

    def __init__(self, title: str = "Spark", *, console: "Console | None" = None) -> None:
        try:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn
        except ImportError as error:
            raise MissingExtra("reactive_aio.spark.ProgressBar", "progress") from error
        self.title: str = title
        self._console = console or Console(stderr=True)
        # Text is not markup here: a title may contain brackets.
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[summary]}", markup=False),
        )
        self._bars: Bars = Progress(*columns, console=self._console, auto_refresh=False)
        self._tasks: dict[int, TaskID] = {}  # by the number of a subscription that is not done
        self._printed_at: dict[int, float] = {}
        # A flow that is dropped without a terminal signal must not leave the cursor hidden.
        self._finalizer = finalize(self, _stop, self._bars)

    def __call__(self, progress: "Progress") -> None:
        """Show *progress*."""
        if self._console.is_interactive:
            self._draw(progress)
        else:
            self._print(progress)

    def _draw(self, progress: "Progress") -> None:
        bars, number = self._bars, progress.number
        if number not in self._tasks:
            self._tasks[number] = bars.add_task(self.title, total=None, summary="")
            bars.start()
        bars.update(
            self._tasks[number],
            total=progress.partitions,
            completed=progress.done,
            summary=summary(progress),
        )
        bars.refresh()
        if progress.is_done:
            del self._tasks[number]
            if not self._tasks:  # leave the bars as they are, and release the screen
                bars.stop()
                for task in bars.task_ids:
                    bars.remove_task(task)

    def _print(self, progress: "Progress") -> None:
        last = self._printed_at.setdefault(progress.number, 0.0)
        if progress.is_done:
            del self._printed_at[progress.number]
        elif progress.seconds - last < LINE_EVERY:
            return
        else:
            self._printed_at[progress.number] = progress.seconds
        line = f"{self.title}: {summary(progress)}"
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def summary(progress: "Progress") -> str:
    """Return a progress in one line."""
    partitions = "?" if progress.partitions is None else progress.partitions
    demand = "unbounded" if progress.demand == float("inf") else f"{progress.demand:,.0f}"
    parts = (
        f"{progress.done}/{partitions} partitions",
        f"{progress.rows:,} rows",
        f"{progress.rows_per_second:,.0f} rows/s",
        format_bytes(progress.bytes),
        f"demand {demand}",
        progress.state,
    )
    return "  ".join(parts)


def format_bytes(count: float) -> str:
    """Return a number of bytes in a suitable unit."""
    unit = 0
    while count >= 1024 and unit < len(_UNITS) - 1:
        count /= 1024
        unit += 1
    return f"{count:,.0f} {_UNITS[unit]}" if not unit else f"{count:,.1f} {_UNITS[unit]}"


def _stop(bars: Any) -> None:
    with suppress(Exception):  # when the program exits, the screen may be gone
        bars.stop()
