"""A stream through map_flow into a file sink: a query that failed, or was killed, goes on."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

from .stream_driver import ingest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
PER_FILE = 20
SECONDS = 120.0  # for one wait, on a busy machine


def add_files(folder: Path, first: int, count: int) -> None:
    """Write files of 20 rows, which Spark reads one in a micro-batch, in this order."""
    (folder / "in").mkdir(exist_ok=True)
    for file in range(first, first + count):
        rows = range(PER_FILE * file, PER_FILE * (file + 1))
        path = folder / "in" / f"{file}.json"
        path.write_text("".join(f'{{"id": {row}}}\n' for row in rows))
        os.utime(path, (file + 1, file + 1))


def stored(spark: "SparkSession", folder: Path, kind: str) -> list[tuple[int, int, int]]:
    """Return the rows in the sink: the number, its double, and its micro-batch."""
    df = spark.read.schema("id long, twice long, batch long").format(kind).load(str(folder / "out"))
    return sorted((row["id"], row["twice"], row["batch"]) for row in df.collect())


def expected(files: int) -> list[tuple[int, int, int]]:
    return [(row, 2 * row, row // PER_FILE) for row in range(PER_FILE * files)]


def calls(folder: Path) -> Counter[int]:
    """Return how often the pipeline was called for each row."""
    return Counter(int(line) for line in (folder / "calls").read_text().split())


@pytest.mark.parametrize(
    "kind", [pytest.param("parquet", marks=pytest.mark.thorough), pytest.param("json")]
)
def test_a_query_that_failed_goes_on_with_the_micro_batch_that_was_not_stored(
    spark: "SparkSession", tmp_path: Path, kind: str
) -> None:
    add_files(tmp_path, 0, 2)
    broken = tmp_path / "broken"
    broken.write_text(str(PER_FILE + 7))  # a row of the second file
    with pytest.raises(StreamingQueryException, match="the service has no answer for 27"):
        ingest(spark, tmp_path, kind)
    assert stored(spark, tmp_path, kind) == expected(1), "nothing of the one that failed"
    broken.unlink()
    ingest(spark, tmp_path, kind)
    assert stored(spark, tmp_path, kind) == expected(2)
    assert all(calls(tmp_path)[row] == 1 for row in range(PER_FILE)), "it was not repeated"


# -- killed ----------------------------------------------------------------------------------------
FILES, KILLS = 30, 3


def start(folder: Path, kind: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-W", "ignore", "-m", "tests.spark.stream_driver", str(folder), kind]
    return subprocess.Popen(command, cwd=ROOT, start_new_session=True, stderr=subprocess.PIPE)


def has_calls(folder: Path, count: int) -> bool:
    return len(calls(folder)) > count


def wait_for(condition: Callable[[], bool], process: Any) -> None:
    until = time.monotonic() + SECONDS
    while not condition():
        assert process.poll() is None, process.stderr.read().decode()
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_a_query_that_is_killed_stores_each_row_once(spark: "SparkSession", tmp_path: Path) -> None:
    kind = "parquet"
    add_files(tmp_path, 0, FILES)
    (tmp_path / "calls").touch()
    for _ in range(KILLS):
        process = start(tmp_path, kind)
        # In the middle of a micro-batch, whose number depends on the machine.
        wait_for(partial(has_calls, tmp_path, len(calls(tmp_path)) + 9 * PER_FILE // 2), process)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    process = start(tmp_path, kind)
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, errors.decode()
    assert stored(spark, tmp_path, kind) == expected(FILES)
    often = calls(tmp_path)
    assert len(often) == FILES * PER_FILE
    repeated = {row // PER_FILE for row, count in often.items() if count > 1}
    assert len(repeated) <= KILLS, "at most one micro-batch for each time"
    assert json.loads((tmp_path / "checkpoint" / "metadata").read_text())["id"]
