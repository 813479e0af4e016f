"""Every snippet of docs/spark.md runs, and prints the text of its comments."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


def snippets() -> Iterator[str]:
    text = PAGE.read_text(encoding="utf-8")
    for found in re.finditer(r"^```python spark\n(.*?)^```", text, re.M | re.S):
        # Blank lines before it, so that a traceback shows the page's own lines.
        yield "\n" * text.count("\n", 0, found.start(1)) + found.group(1)


SNIPPETS = [*snippets()]
PRINTED = re.compile(r"print\(.*\)  # (.+)$", re.M)

pytestmark = pytest.mark.spark


def test_the_page_has_snippets() -> None:
    assert len(SNIPPETS) >= 4


@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(1, len(SNIPPETS) + 1))
def test_a_snippet_runs(
    snippet: str, spark: "SparkSession", capfd: pytest.CaptureFixture[str]
) -> None:
    exec(compile(snippet, str(PAGE), "exec"), {"__name__": "snippet"})
    printed = capfd.readouterr().out.splitlines()
    promised = PRINTED.findall(snippet)
    if not any("Java" in line for line in promised):  # which Java is found differs
        assert sorted(printed) == sorted(promised)
