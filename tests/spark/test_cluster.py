"""Every mode works on a cluster, and when a worker is killed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .cluster import Cluster
from .cluster_both_ways import ROWS as BOTH_WAYS

ROOT = Path(__file__).parents[2]
ROWS = 24_000


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.timeout(240)
def test_a_cluster_is_read_even_when_a_worker_is_killed(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        command = [sys.executable, "-W", "ignore", "-m", "tests.spark.cluster_driver"]
        ran = subprocess.run(
            [*command, cluster.master, str(cluster.workers[0]), str(tmp_path)],
            capture_output=True, text=True, timeout=200, check=False, cwd=ROOT,
        )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert told["master"] == cluster.master
    assert told["executors"] == 2

    for mode in ("arrow", "rows", "connect"):
        at_once, seconds = told["cancelled"][mode]
        assert at_once < 0.5, mode
        assert seconds < 5, mode
        # Rows of tasks that were lost are computed again, on the other worker; none comes twice.
        assert told["worker"][mode] == ["None", ROWS, ROWS], mode
        assert 0 < told["worker"]["seen"][mode] < ROWS, "it was in the midst of it"

    for done, found in told["both ways"].items():
        assert found == [BOTH_WAYS, sum(range(BOTH_WAYS))], done
    assert len(told["both ways"]) == 7

    for mode in ("arrow", "rows", "connect", "stream", "written", "writing"):
        kind, words, in_order = told["driver"][mode]
        # A flow of what is written may fail for reasons of each writer; the words are the same.
        assert kind == ("WriteFailed" if mode == "written" else "SparkSessionLost"), (mode, words)
        assert "make a new session" in words
        assert in_order
    assert told["gone"] < 5, "and not the ten minutes that PySpark tries to reach a server"
