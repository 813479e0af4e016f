"""Bars on a console: how far flows are. Needs the extra ``progress``."""

from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary, finalize

from ..errors import MissingExtra

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

__all__ = ("LINE_EVERY", "REPORT_EVERY", "Bars", "bars_on", "numbers")

REPORT_EVERY: Final = 0.1
"""Seconds between two reports of one subscription, at least; the last one is shown at once."""
LINE_EVERY: Final = 5.0
"""Seconds between two lines about a subscription, without a terminal."""

numbers: Final = count(1)
"""The numbers of subscriptions, unique in the process."""


class Bars:
    """The bars on one console, below each other; where that is no terminal, lines.

    It is drawn when something is shown, so it needs neither a thread nor a timer; other output
    appears above it.
    """

    def __init__(self, feature: str, console: "Console | None") -> None:
        try:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn
        except ImportError as error:
            raise MissingExtra(feature, "progress") from error
        self._console = console or Console(stderr=True)
        # Text is not markup here: a title may contain brackets.
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[summary]}", markup=False),
        )
        self._bars = Progress(*columns, console=self._console, auto_refresh=False)
        self._tasks: dict[int, TaskID] = {}  # by the number of a subscription that is not done
        self._printed_at: dict[int, float] = {}
        # A flow that is dropped without a terminal signal must not leave the cursor hidden.
        finalize(self, _stop, self._bars)

    @property
    def is_interactive(self) -> bool:
        """Whether the console is a terminal that can draw over what it has drawn."""
        return self._console.is_interactive

    def show(
        self,
        number: int,
        title: str,
        summary: str,
        *,
        completed: int,
        total: int | None,
        seconds: float,
        is_done: bool,
    ) -> None:
        """Show how far the subscription *number* is, *seconds* after its beginning."""
        if self.is_interactive:
            self._draw(number, title, summary, completed, total, is_done)
        elif self._is_line_due(number, seconds, is_done):
            line = f"{title}: {summary}"
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _draw(
        self, number: int, title: str, summary: str, completed: int, total: int | None, done: bool
    ) -> None:
        bars = self._bars
        if number not in self._tasks:
            self._tasks[number] = bars.add_task(title, total=None, summary="")
            bars.start()
        bars.update(self._tasks[number], total=total, completed=completed, summary=summary)
        bars.refresh()
        if done:
            del self._tasks[number]
            if not self._tasks:  # leave the bars as they are, and release the screen
                bars.stop()
                for task in bars.task_ids:
                    bars.remove_task(task)

    def _is_line_due(self, number: int, seconds: float, is_done: bool) -> bool:
        last = self._printed_at.setdefault(number, 0.0)
        if is_done:
            del self._printed_at[number]
            return True
        if seconds - last < LINE_EVERY:
            return False
        self._printed_at[number] = seconds
        return True


_known: Final[WeakValueDictionary["Console | None", Bars]] = WeakValueDictionary()


def bars_on(console: "Console | None", feature: str) -> Bars:
    """The bars on *console*, or on standard error: a terminal can draw only one group of them."""
    bars = _known.get(console)
    if bars is None:
        _known[console] = bars = Bars(feature, console)
    return bars


def _stop(bars: Any) -> None:
    with suppress(Exception):  # when the program exits, the screen may be gone
        if bars.live.is_started:
            bars.stop()
