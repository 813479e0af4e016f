"""map_flow on a cluster that loses a worker, and over a partition of ten million rows."""

import subprocess
import sys
from pathlib import Path

import pytest

from .cluster import Cluster

ROOT = Path(__file__).parents[2]
ROWS = 4000


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.timeout(240)
def test_tasks_of_a_lost_worker_run_again_on_the_other(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        results = cluster.run("map_flow_cluster", str(tmp_path))
    assert results["mapped"] == [ROWS, sum(range(ROWS)) * 2]
    sink = results["sink"]
    assert sink["partitions"] == [*range(8)]
    assert sink["elements"] == ROWS
    attempts = [name for name in sink["begun"] if not name.endswith("-0")]
    assert attempts, "a task of the lost worker was running"


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.timeout(400)
def test_the_memory_of_a_worker_does_not_grow_with_the_partition() -> None:
    command = [sys.executable, "-m", "benchmarks.spark.workers", "100000", "10000000"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert ran.returncode == 0, ran.stderr
    small, large = [int(line.split()[-2]) for line in ran.stdout.splitlines()]
    assert large < small + 20, ran.stdout
