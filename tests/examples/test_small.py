"""The short examples: each runs, checks its results, and causes no warnings."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# asyncio says this of any callback on a busy machine.
_TOOK_LONG = re.compile(r"^Executing <.* took \d+\.\d+ seconds\n", re.MULTILINE)


@pytest.mark.parametrize("name", ["own_operator", "two_sides"])
def test_an_example_runs_without_warnings(name: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", ROOT / "examples" / f"{name}.py"],
        capture_output=True,
        text=True,
        timeout=50,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert (ran.returncode, _TOOK_LONG.sub("", ran.stderr)) == (0, "")
    assert ran.stdout
