"""A session that is stopped or killed under a flow: each flow ends, with cause and remedy."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness.outages import Lacking

from .full_disk import LONGEST_FILE, SMALL

pytestmark = [
    pytest.mark.spark,
    pytest.mark.thorough,
    pytest.mark.timeout(310, func_only=False),
]

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-W", "ignore", "-m", "tests.spark.lost_sessions"]


@pytest.fixture(scope="module")
def ends() -> dict[str, Any]:
    """How each flow of `lost_sessions` ended."""
    ran = subprocess.run(
        COMMAND, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr
    ends: dict[str, Any] = json.loads(ran.stdout)
    return ends


@pytest.mark.thorough
@pytest.mark.parametrize("when", ["while a job runs", "between partitions", "before the first row"])
def test_a_stopped_session_is_named_with_the_remedy(ends: dict[str, Any], when: str) -> None:
    kind, words, _ = ends[f"stopped {when}"]
    assert kind == "SparkSessionLost", words
    assert "has been stopped" in words
    assert "make a new session" in words


@pytest.mark.thorough
def test_rows_that_were_computed_before_the_stop_are_delivered(ends: dict[str, Any]) -> None:
    assert len(ends["stopped between partitions"][2]) == 10


def test_from_dataframe_refuses_a_stopped_session(ends: dict[str, Any]) -> None:
    assert "has been stopped" in ends["stopped before from_dataframe"]


def test_calls_with_a_stopped_session_say_so(ends: dict[str, Any]) -> None:
    assert len(ends["stopped before a call"]) == 4
    for text in ends["stopped before a call"]:
        assert text.startswith("SparkSessionLost: The Spark session has been stopped"), text


@pytest.mark.parametrize("when", ["before the first row", "in the last window"])
def test_a_killed_jvm_ends_the_flow(ends: dict[str, Any], when: str) -> None:
    kind, words, _ = ends[f"killed {when}"]
    assert kind == "SparkSessionLost", words
    assert "JVM" in words


def test_a_new_session_can_be_made_after_the_jvm_was_killed(ends: dict[str, Any]) -> None:
    assert "make a new session in this program" in ends["killed in the last window"][1]
    assert ends["a new session after that"] == ["NoneType", "None", [0, 1, 2]]


@pytest.mark.thorough
@pytest.mark.timeout(410, func_only=False)
@pytest.mark.parametrize("ways", ["arrow rows stream", "partitions files connect"])
def test_a_new_session_can_be_made_whatever_the_jvm_was_killed_under(ways: str) -> None:
    """By `local_session` and by the builder, with or without ``stop()`` of the lost one."""
    command = [*COMMAND[:-1], "tests.spark.killed_sessions", *ways.split()]
    ran = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=400, check=False
    )
    assert ran.returncode == 0, ran.stderr
    ends: dict[str, tuple[str, int]] = json.loads(ran.stdout)
    assert [*ends] == ways.split()
    for way, (text, rows) in ends.items():
        assert text.startswith("SparkSessionLost: The JVM of the Spark session has died"), way
        assert rows == 3, way


def test_a_full_disk_fails_a_write_and_loses_nothing_that_was_committed(tmp_path: Path) -> None:
    ran = subprocess.run(
        [*COMMAND[:-1], "tests.spark.full_disk", str(tmp_path / "out")],
        cwd=ROOT,
        preexec_fn=Lacking(file_size=LONGEST_FILE),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    end = json.loads(ran.stdout)
    assert "File too large" in end["text"]
    assert end["acknowledged"] == [*range(SMALL)]
    assert end["found"] == end["acknowledged"], "and the session goes on"


def test_rows_that_arrive_before_the_jvm_is_killed_are_in_order(ends: dict[str, Any]) -> None:
    rows = ends["killed in the last window"][2]
    assert rows == [*range(len(rows))]
    assert 0 < len(rows) < 300_000


def test_partitions_that_are_too_large_for_one_job_are_computed_by_several(
    ends: dict[str, Any],
) -> None:
    assert ends["skewed partitions"] == ["NoneType", "None", [*range(16, 32)]]


def test_a_partition_that_is_too_large_is_told_with_the_remedy(ends: dict[str, Any]) -> None:
    kind, words, _ = ends["a partition is too large"]
    assert kind == "PartitionTooLarge", words
    assert "a larger spark.driver.maxResultSize" in words


def test_the_rows_of_a_retried_task_come_once(ends: dict[str, Any]) -> None:
    assert ends["a task is retried"] == ["NoneType", "None", [*range(400)]]
