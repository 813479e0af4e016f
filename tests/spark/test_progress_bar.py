"""The progress bar, on a terminal and without one."""

import asyncio
import io
import sys
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from reactive_aio._shared.progress_bars import LINE_EVERY
from reactive_aio.errors import MissingExtra
from reactive_aio.spark import Progress, ProgressBar, from_dataframe
from reactive_aio.spark.progress import format_bytes, summary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reactive_aio import Flow


@pytest.fixture(autouse=True)
def clever(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that can move its cursor."""
    monkeypatch.setenv("TERM", "xterm")


def screen(*, terminal: bool) -> tuple[ProgressBar, io.StringIO]:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=160, color_system=None)
    return ProgressBar("[flights]", console=console), file


def report(number: int = 1, **figures: Any) -> Progress:
    return Progress(number=number, partitions=4, state=figures.pop("state", "running"), **figures)


def test_a_progress_is_formatted_in_one_line() -> None:
    progress = report(done=2, rows=1_234_567, bytes=3 << 20, demand=1024, seconds=0.5)
    assert summary(progress) == (
        "2/4 partitions  1,234,567 rows  2,469,134 rows/s  3.0 MiB  demand 1,024  running"
    )
    assert summary(Progress(demand=float("inf"))).startswith(
        "0/? partitions  0 rows  0 rows/s  0 B"
    )
    assert "demand unbounded  planning" in summary(Progress(demand=float("inf")))


def test_partitions_that_are_not_computed_again_are_shown() -> None:
    assert summary(report(done=1, resumed=6)).startswith("1/4 partitions  6 resumed  0 rows")
    assert "resumed" not in summary(report(done=1))
    bar, file = screen(terminal=True)
    bar(report(done=1, resumed=6))
    bar(report(done=4, resumed=6, state="completed"))
    assert "1/4 partitions  6 resumed" in file.getvalue()
    assert "4/4 partitions  6 resumed" in file.getvalue()


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1,023 B"), (1536, "1.5 KiB"), (1 << 50, "1,024.0 TiB")],
)
def test_numbers_of_bytes_have_a_unit(count: int, text: str) -> None:
    assert format_bytes(count) == text


def test_on_a_terminal_it_is_a_bar_that_grows() -> None:
    bar, file = screen(terminal=True)
    try:
        bar(report(done=1, rows=10))
        first = file.getvalue()
        bar(report(done=3, rows=30))
        assert "[flights]" in first
        assert "1/4 partitions  10 rows" in first
        assert "3/4 partitions  30 rows" in file.getvalue()[len(first) :]
        assert "━" in first
        assert "\x1b[?25l" in first, "the cursor is hidden"
    finally:
        bar(report(done=4, state="completed"))
    assert file.getvalue().endswith("\x1b[?25h"), "and shown at the end"


def test_the_bars_of_several_flows_are_drawn_below_each_other() -> None:
    bar, file = screen(terminal=True)
    bar(report(1, rows=1))
    bar(report(2, rows=2))
    bar(report(1, rows=7, state="cancelled"))
    seen = len(file.getvalue())
    bar(report(2, rows=9, state="completed"))
    last = file.getvalue()[seen:]
    assert "7 rows" in last
    assert "9 rows" in last
    seen = len(file.getvalue())
    bar(report(3, rows=3, state="completed"))
    assert "7 rows" not in file.getvalue()[seen:], "a bar of a finished group is not drawn again"


def test_without_a_terminal_lines_are_printed() -> None:
    bar, file = screen(terminal=False)
    for seconds in (0.0, 0.1, LINE_EVERY - 1, LINE_EVERY, LINE_EVERY + 0.1, 2 * LINE_EVERY):
        bar(report(rows=int(10 * seconds), seconds=seconds))
    bar(report(done=4, rows=400, seconds=2 * LINE_EVERY + 1, resumed=6, state="failed"))
    lines = file.getvalue().splitlines()
    assert [line.split("  ")[1] for line in lines] == ["50 rows", "100 rows", "6 resumed"]
    assert lines[0].startswith("[flights]: 0/4 partitions")
    assert "400 rows" in lines[-1]
    assert lines[-1].endswith("failed")
    assert "\x1b" not in file.getvalue()


def test_a_bar_that_is_dropped_shows_the_cursor() -> None:
    bar, file = screen(terminal=True)
    bar(report())
    del bar
    assert file.getvalue().endswith("\x1b[?25h")


def test_without_rich_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with pytest.raises(MissingExtra, match=r"reactive-aio\[progress\]"):
        ProgressBar()


async def count(flow: "Flow[Any]") -> int:
    return await flow.count()


@pytest.mark.spark
async def test_a_bar_shows_the_progress_of_a_flow(spark: "SparkSession") -> None:
    bar, file = screen(terminal=True)
    flow = await asyncio.to_thread(lambda: from_dataframe(spark.range(0, 40, 1, 4), progress=bar))
    assert await flow.count() == 40
    assert "4/4 partitions  40 rows" in file.getvalue()
    assert "completed" in file.getvalue()


@pytest.mark.spark
def test_true_means_a_bar_on_standard_error(
    spark: "SparkSession", capfd: pytest.CaptureFixture[str]
) -> None:
    flow = from_dataframe(spark.range(0, 40, 1, 4), progress=True)
    assert asyncio.run(count(flow)) == 40
    shown = capfd.readouterr()
    assert "Spark: 4/4 partitions  40 rows" in shown.err
    assert shown.out == ""


@pytest.mark.spark
def test_true_without_rich_raises_at_once(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(MissingExtra, match=r"reactive-aio\[progress\]"):
        from_dataframe(spark.range(1), progress=True)
