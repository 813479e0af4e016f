"""The example that enriches a DataFrame over HTTP: each way finds the name of every row."""

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRAM = Path(__file__).parents[2] / "examples" / "spark_enrich.py"

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]


@pytest.mark.thorough
def test_each_way_finds_every_name(
    spark: "SparkSession", capsys: pytest.CaptureFixture[str]
) -> None:
    # Not a module, so that its functions are sent to the workers with their text.
    example: dict[str, Any] = {"__name__": "example"}
    exec(compile(PROGRAM.read_text("utf-8"), PROGRAM, "exec"), example)
    assert example["run"](spark, Namespace(rows=110, rate=1000, slow=4))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        "map_flow", "mapPartitions, an event loop", "a UDF, row by row",
    ]  # fmt: skip
    assert " 0 refused" in lines[0], "the limit keeps the flow below the rate of the server"
    assert "   0 failed" not in lines[0], "three attempts in a hundred fail, and are repeated"
