"""Every mode works on a cluster, and when a worker is killed."""

from pathlib import Path

import pytest

from .cluster import Cluster
from .cluster_both_ways import ROWS as BOTH_WAYS

ROWS = 24_000


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.timeout(240)
def test_a_cluster_is_read_even_when_a_worker_is_killed(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        results = cluster.run("cluster_driver", str(tmp_path))
    assert results["master"] == cluster.master
    assert results["executors"] == 2

    for mode in ("arrow", "rows", "connect"):
        at_once, seconds = results["cancelled"][mode]
        assert at_once < 0.5, mode
        assert seconds < 5, mode
        # Rows of lost tasks are computed again, on the other worker, and are delivered once.
        assert results["worker"][mode] == ["None", ROWS, ROWS], mode
        assert 0 < results["worker"]["seen"][mode] < ROWS, (
            "the worker was killed while rows were read"
        )

    for done, found in results["both ways"].items():
        assert found == [BOTH_WAYS, sum(range(BOTH_WAYS))], done
    assert len(results["both ways"]) == 7

    for mode in ("arrow", "rows", "connect", "stream", "written", "writing"):
        kind, words, in_order = results["driver"][mode]
        # A flow of written rows fails with WriteFailed; the message is the same.
        assert kind == ("WriteFailed" if mode == "written" else "SparkSessionLost"), (mode, words)
        assert "make a new session" in words
        assert in_order
    assert results["without server"] < 5, "PySpark itself retries for ten minutes"


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.timeout(240)
def test_a_cluster_without_executors_is_reported(tmp_path: Path) -> None:
    with Cluster(tmp_path, workers=1) as cluster:
        [message] = cluster.run("cluster_without_executors")
        assert f"it runs on {cluster.master}, which has had no executor for" in message
