"""The pages are what the runner writes of its results, and a reader can understand them."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.runner.cases import Row
from benchmarks.runner.catalog import entries, places
from benchmarks.runner.pages import BEGIN, PLACE, pages, write_pages
from benchmarks.runner.plots import plot
from benchmarks.runner.results import Result, Results, Run
from benchmarks.runner.tables import amount, cases, circumstances, goal, shortfalls, summary

RUN = Run("2026-01-02 03:04", "a machine", "CPython 3.11.7", "asyncio", 7, 1.0, (("peer", "1.0"),))
HANDWRITTEN = Row("hand-written", "hand-written", 100.0, 1.0)
OURS = Row("`async for`", "ours", 120.0, 1.2, goal=1.3)
PEER = Row("a peer", "peer", 900.0, 9.0)


def result(*rows: Row, unit: str = "ns", is_goal_a_figure: bool = False) -> Result:
    return Result("async_for/zip.question", "Zip", unit, is_goal_a_figure, RUN, list(rows))


def results(*rows: Row) -> Results:
    return Results({"async_for/zip.question": result(*rows)})


def test_no_page_was_edited_handwritten() -> None:
    stored = Results.load()
    readme = (PLACE / "README.md").read_text("utf-8")
    for name, text in pages(stored, readme).items():
        assert (PLACE / name).read_text("utf-8") == text, (
            f"benchmarks/{name} differs from results.json: run python -m benchmarks.runner.pages"
        )


SLOWER = Row("another peer", "peer", 5000.0, 50.0)
FASTER = Row("a peer", "peer", 110.0, 1.1)
BROKEN = Row("`async for`", "ours", None, None, 1.3, "fails: LookupError: no")
ABSENT = Row("a peer", "peer", None, None, None, "peer is not installed")


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([OURS, SLOWER, PEER], "| `async for` | 120 ns | **1.20** | ≤ 1.3 ✓ | a peer: × 9.00 |"),
        (
            [OURS, FASTER],
            "| `async for` | 120 ns | **1.20** | ≤ 1.3 ✓ | a peer: × 1.10, **less** |",
        ),
        ([BROKEN], "| `async for` | fails |  | ≤ 1.3 ✗ | – |"),
    ],
    ids=["the best peer", "a peer that costs less", "a way without a figure"],
)
def test_the_table_shows_the_way_its_cost_its_ratio_and_the_best_peer(
    rows: list[Row], line: str
) -> None:
    _, _, heading, *lines = summary(results(HANDWRITTEN, *rows)).splitlines()
    assert heading == "| **Read by `async for`** | | | | |"
    assert line in lines


def test_a_peer_that_is_not_installed_is_named_with_the_cases() -> None:
    assert "not installed" in summary(results(HANDWRITTEN, OURS, ABSENT))
    listed = cases(result(HANDWRITTEN, OURS, ABSENT))
    assert "| peer | a peer |  |  |  | peer is not installed |" in listed


def test_the_message_of_an_error_stays_within_its_cell() -> None:
    broken = Row("`async for`", "ours", None, None, None, "fails: TypeError: int | str\nor so")
    assert r"| fails: TypeError: int \| str or so |" in cases(result(HANDWRITTEN, broken))


@pytest.mark.parametrize(
    ("figure", "unit", "written"),
    [
        (97.3, "ns", "97.3 ns"),
        (1234.0, "ns", "1.23 µs"),
        (45.6e6, "ns", "45.6 ms"),
        (961.2, "B", "961 B"),
        (120.0, "ns each", "120 ns each"),
    ],
)
def test_an_amount_is_written_in_a_unit_that_fits(figure: float, unit: str, written: str) -> None:
    assert amount(figure, unit) == written


@pytest.mark.parametrize(
    ("ratio", "of", "figure", "mark"),
    [(1.3, 1.3, False, "≤ 1.3 ✓"), (1.31, 1.3, False, "≤ 1.3 ✗"), (9.6, 700, True, "≤ 700 B ✗")],
)
def test_a_goal_of_a_ratio_or_a_figure_is_marked_as_reached_or_not(
    ratio: float, of: float, figure: bool, mark: str
) -> None:
    row = Row("idle", "ours", 100 * ratio, ratio, of)
    unit = "B" if figure else "ns"
    assert goal(result(HANDWRITTEN, row, unit=unit, is_goal_a_figure=figure), row) == mark


def test_the_circumstances_name_machine_python_and_versions() -> None:
    text = circumstances(results(HANDWRITTEN, OURS))
    for part in ("`async_for`", "2026-01-02", "CPython 3.11.7", "a machine", "peer 1.0"):
        assert part in text


def test_results_are_stored_and_read_again(tmp_path: Path) -> None:
    stored = results(HANDWRITTEN, OURS, PEER)
    stored.save(tmp_path / "results.json")
    assert Results.load(tmp_path / "results.json") == stored
    assert Results.load(tmp_path / "none.json") == Results()


def test_results_of_questions_that_are_gone_are_dropped() -> None:
    [zipped, *_] = entries("async_for", "zip")
    gone = ["async_for/zip.old", "async_for/removed.question"]
    kept = ["async_for/zip.question", "async_for/merge.question"]
    stored = Results({key: result(HANDWRITTEN) for key in gone + kept})
    stored.keep({*places()}, [zipped])
    assert list(stored.of) == kept


def test_writing_replaces_only_the_written_part(tmp_path: Path) -> None:
    readme = (PLACE / "README.md").read_text("utf-8")
    (tmp_path / "README.md").write_text(readme, "utf-8")
    write_pages(results(HANDWRITTEN, OURS), tmp_path)
    written = (tmp_path / "README.md").read_text("utf-8")
    assert written.partition(BEGIN)[0] == readme.partition(BEGIN)[0]
    assert "| `async for` | 120 ns |" in written
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        "README.md",
        "async_for.svg",
        "cases.md",
        "results.json",
    ]


def test_a_page_without_its_marks_is_refused() -> None:
    with pytest.raises(LookupError, match=r"README\.md lacks the line"):
        pages(Results(), "# Benchmarks\n")


def test_the_ways_that_miss_their_goal_or_are_undercut_are_listed() -> None:
    slow = Row("`async for`", "ours", 1000.0, 10.0, 1.3)
    assert shortfalls([result(HANDWRITTEN, slow, PEER)]) == (
        "Not reached:\n  `async for`: 10.0, ≤ 1.3 ✗\n\n"
        "A peer costs less:\n  `async for`: 10.0; a peer: × 9.00, **less**\n"
    )
    assert shortfalls([result(HANDWRITTEN, OURS, PEER)]) == ""
    large = Row("idle", "ours", 960.0, 1.4, goal=700)
    listed = shortfalls([result(HANDWRITTEN, large, unit="B", is_goal_a_figure=True)])
    assert listed == "Not reached:\n  idle: 960 B, ≤ 700 B ✗\n"


class TestPlots:
    def drawn(self, *rows: Row) -> ElementTree.Element:
        return ElementTree.fromstring(plot([result(*rows)], "Read by `async for`"))

    def texts(self, drawn: ElementTree.Element) -> list[str]:
        return [each.text or "" for each in drawn.iter() if each.tag.endswith("text")]

    def test_a_plot_names_the_way_its_ratio_and_the_best_peer(self) -> None:
        texts = self.texts(self.drawn(HANDWRITTEN, OURS, PEER))
        for text in ("Read by async for", "async for", "1.20", "× hand-written", "a peer  ×9.00"):
            assert text in texts

    def test_the_axis_is_logarithmic_and_everything_is_inside_of_the_picture(self) -> None:
        far = Row("far", "peer", 1e6, 10_000.0)
        drawn = self.drawn(HANDWRITTEN, OURS, PEER, far)
        width = float(drawn.attrib["width"])
        marks = [each for each in drawn.iter() if each.tag.endswith("circle")]
        assert all(0 < float(mark.attrib["cx"]) < width for mark in marks)
        assert {"0.1", "1", "10", "100", "1,000", "10,000"} - {*self.texts(drawn)} <= {"0.1"}

    def test_names_are_escaped_and_long_ones_are_cut(self) -> None:
        long = Row("`a < b` " * 20, "ours", 120.0, 1.2, 1.3)
        [name] = [
            text for text in self.texts(self.drawn(HANDWRITTEN, long)) if text.startswith("a < b")
        ]
        assert name.endswith("…")

    def test_no_plot_is_drawn_without_a_ratio(self) -> None:
        assert plot([result(Row("bytes", "ours", 100.0, None, 200))], "Bytes") == ""
