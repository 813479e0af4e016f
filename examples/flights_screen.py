"""The output of the ingestion: counters, a progress bar or plain lines, a table."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from time import monotonic
from typing import Final

from flights_store import Route
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table

__all__ = ("Meter", "console", "progress", "table")

console: Final = Console(highlight=False, soft_wrap=True)

_REFRESH: Final = 0.1
_LINE_EVERY: Final = 2.0


class Meter:
    """Counters at both ends of the pipeline, so that their difference is what it holds."""

    def __init__(self) -> None:
        self.requested = 0
        self.entered = 0
        self.delivered = 0
        self.highest = 0
        self.number = 0
        self._began = monotonic()

    def request(self, rows: int) -> None:
        """Demand has reached Spark's flow."""
        self.requested += rows

    def enter(self, row: Sequence[object]) -> None:
        """A row has left Spark."""
        self.entered += 1
        self.highest = max(self.highest, self.buffered)

    def leave(self, batch: Sequence[object]) -> None:
        """A batch is complete, and goes to the database."""
        self.delivered += len(batch)

    def written(self, rows: int) -> int:
        """A batch has been committed."""
        self.number += rows
        return rows

    @property
    def buffered(self) -> int:
        """Rows between Spark and the database."""
        return self.entered - self.delivered

    @property
    def outstanding(self) -> int:
        """Demand that Spark has not met yet."""
        return self.requested - self.entered

    @property
    def rate(self) -> float:
        """Rows per second since the start."""
        return self.number / max(monotonic() - self._began, 1e-9)

    def __str__(self) -> str:
        return (
            f"{self.number:>9,} rows  {self.rate:>7,.0f} rows/s  "
            f"outstanding demand {self.outstanding:>5,}  buffered {self.buffered:>5,}"
        )


@asynccontextmanager
async def progress(meter: Meter, rows: int) -> AsyncGenerator[None, None]:
    """Show *meter* while the body runs: a bar on a terminal, otherwise a line at intervals."""
    show = _bar if console.is_terminal else _lines
    shown = asyncio.create_task(show(meter, rows))
    try:
        yield
    finally:
        shown.cancel()
        await asyncio.wait([shown])


async def _bar(meter: Meter, rows: int) -> None:
    columns = (SpinnerColumn(), BarColumn(bar_width=24), TextColumn("{task.fields[meter]}"))
    with Progress(*columns, console=console, auto_refresh=False) as bar:
        task = bar.add_task("", total=rows, meter=meter)
        try:
            while True:
                bar.update(task, completed=meter.number, refresh=True)
                await asyncio.sleep(_REFRESH)
        finally:
            bar.update(task, completed=meter.number, refresh=True)


async def _lines(meter: Meter, rows: int) -> None:
    try:
        while True:
            await asyncio.sleep(_LINE_EVERY)
            console.print(meter)
    finally:
        console.print(meter)


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
