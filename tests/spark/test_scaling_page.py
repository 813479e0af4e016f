"""The figures that docs/spark-scale.md reasons from are those that were measured."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "spark-scale.md").read_text("utf-8")
FIGURES = re.findall(r'^    "(.+)": (\d+),$', PAGE, re.M)
FACTOR = 1.5  # runs differ; beyond that the page says something else than the results


def measured() -> dict[str, float]:
    results: Any = json.loads((ROOT / "benchmarks" / "results.json").read_text("utf-8"))
    return {
        row["name"]: row["figure"]
        for key, question in results["questions"].items()
        if key.startswith("spark/") and question["unit"] == "ns"
        for row in question["rows"]
    }


@pytest.mark.parametrize(("way", "figure"), FIGURES)
def test_a_figure_of_the_page_is_one_of_the_results(way: str, figure: str) -> None:
    assert measured()[way] / FACTOR < int(figure) < measured()[way] * FACTOR, (
        "bring docs/spark-scale.md, and what it concludes, up to date with benchmarks/results.json"
    )


def test_the_page_has_figures() -> None:
    assert len(FIGURES) == 6
