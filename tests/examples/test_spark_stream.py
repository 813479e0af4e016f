"""The streaming example: run once, and killed between delivery and checkpoint and run again."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.timeout(400),
    pytest.mark.skipif(find_spec("pyspark") is None, reason="not installed: pyspark"),
]

PROGRAM = Path(__file__).parents[2] / "examples" / "spark_stream.py"


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(PROGRAM), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=190, check=False)


@pytest.mark.thorough
def test_each_row_is_written_once(tmp_path: Path) -> None:
    done = run("--directory", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        *(f"micro-batch {number}: 250 rows" for number in range(4)),
        "1000 rows, 1000 distinct, in 4 micro-batches",
    ]


@pytest.mark.thorough
def test_a_crash_between_delivery_and_checkpoint_neither_loses_nor_repeats_rows(
    tmp_path: Path,
) -> None:
    died = run("--crash", "2", "--directory", str(tmp_path))
    assert died.returncode == 3, died.stderr
    assert "micro-batch 1: 250 rows" in died.stdout
    again = run("--directory", str(tmp_path))
    assert again.returncode == 0, again.stdout + again.stderr
    assert again.stdout.splitlines() == [
        "micro-batch 1 is repeated, and has been written already",
        "micro-batch 2: 250 rows",
        "micro-batch 3: 250 rows",
        "1000 rows, 1000 distinct, in 4 micro-batches",
    ]
