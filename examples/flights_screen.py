"""The output of the ingestion: live figures as a progress bar or as plain lines, and a table."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any, Final

from flights_store import Route
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress as Bars, SpinnerColumn, TextColumn
from rich.table import Column, Table

from reactive_aio import Flow
from reactive_aio.spark import Progress

__all__ = ("Figures", "console", "shown", "table")

console: Final = Console(highlight=False, soft_wrap=True)

_REFRESH: Final = 0.1
_LINE_EVERY: Final = 2.0


class Figures:
    """What the flow and Spark report about themselves, and the rows that were written."""

    def __init__(self) -> None:
        self.rows = 0
        self.held = 0
        self.most_held = 0
        self.spark = Progress()
        self._first = 0
        self._began = 0.0

    def report(self, progress: Progress) -> None:
        """Spark's side has made progress."""
        if progress.resumed and self.spark.partitions is None:
            partitions = progress.resumed + (progress.partitions or 0)
            console.print(f"resumed: {progress.resumed} of {partitions} partitions were done")
        self.spark = progress

    def written(self, rows: int) -> None:
        """A batch is in the database."""
        if not self.rows:
            self._first, self._began = rows, monotonic()
        self.rows += rows

    def look(self, flow: Flow[Any]) -> None:
        """Ask a running flow how many batches it holds."""
        self.held = sum(each.held for each in flow.stats().subscriptions)
        self.most_held = max(self.most_held, self.held)

    @property
    def rate(self) -> float:
        """Rows per second since the first batch: Spark's start and its planning do not count."""
        rows = self.rows - self._first
        return rows / (monotonic() - self._began) if rows else 0.0

    @property
    def partitions(self) -> int | None:
        """Those of the query, once Spark has planned it; how many rows they have is unknown."""
        spark = self.spark
        return None if spark.partitions is None else spark.resumed + spark.partitions

    @property
    def done(self) -> int:
        """The partitions that were read, in this run or in one before."""
        return self.spark.resumed + self.spark.done

    def __str__(self) -> str:
        spark, partitions = self.spark, "?" if self.partitions is None else self.partitions
        return (
            f"{self.rows:>9,} rows  {self.rate:>7,.0f} rows/s  {self.held:>2} batches held, "
            f"{spark.demand:.0f} requested  partitions: {self.done} of {partitions} "
            f"read, {spark.computed - spark.done} waiting, {spark.launched - spark.computed} being "
            f"computed  Spark: {spark.state}"
        )


@asynccontextmanager
async def shown(figures: Figures, flow: Flow[Any]) -> AsyncGenerator[None, None]:
    """Show *figures* while the body runs: a bar on a terminal, otherwise a line at intervals."""
    show = _bar if console.is_terminal else _lines
    showing = asyncio.create_task(show(figures, flow))
    try:
        yield
    finally:
        showing.cancel()
        await asyncio.wait([showing])


async def _bar(figures: Figures, flow: Flow[Any]) -> None:
    wrapped = Column(no_wrap=False)  # on a terminal of 80 columns, the figures have several lines
    text = TextColumn("{task.fields[figures]}", table_column=wrapped)
    columns = (SpinnerColumn(), BarColumn(bar_width=24), text)
    with Bars(*columns, console=console, auto_refresh=False) as bars:
        task = bars.add_task("", total=None, figures=figures)

        def draw() -> None:
            figures.look(flow)
            bars.update(task, total=figures.partitions, completed=figures.done, refresh=True)

        try:
            while True:
                draw()
                await asyncio.sleep(_REFRESH)
        finally:
            draw()


async def _lines(figures: Figures, flow: Flow[Any]) -> None:
    try:
        while True:
            await asyncio.sleep(_LINE_EVERY)
            figures.look(flow)
            console.print(figures)
    finally:
        figures.look(flow)
        console.print(figures)


def table(routes: Sequence[Route]) -> Table:
    """The worst routes."""
    shown = Table("from", "to", title="The worst routes", title_justify="left", box=SIMPLE_HEAD)
    for name in ("flights", "mean delay", "late", "rough weather"):
        shown.add_column(name, justify="right")
    for route in routes:
        shown.add_row(
            route.origin,
            route.destination,
            f"{route.flights:,}",
            f"{route.minutes:.1f} min",
            f"{route.late:.0%}",
            f"{route.rough:.0%}",
        )
    return shown
