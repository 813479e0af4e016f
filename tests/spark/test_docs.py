"""Every snippet of the documents that needs Spark runs, and prints the text of its comments."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).parents[2] / "docs"


class Snippet(NamedTuple):
    page: Path
    line: int
    code: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(DOCS)}:{self.line}"


def snippets() -> Iterator[Snippet]:
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        for found in re.finditer(r"^```python spark\n(.*?)^```", text, re.M | re.S):
            yield Snippet(page, text.count("\n", 0, found.start(1)), found.group(1))


SNIPPETS = [*snippets()]
PRINTED = re.compile(r"print\(.*\)  # (.+)$", re.M)

pytestmark = pytest.mark.spark


def test_the_pages_have_snippets() -> None:
    assert len(SNIPPETS) >= 4


def is_quick(snippet: Snippet) -> bool:
    """The data source starts processes of Spark, and has tests of its own."""
    return snippet.page.name == "spark.md" and "serve_flow" not in snippet.code


@pytest.mark.parametrize(
    "snippet",
    [
        pytest.param(each, marks=[] if is_quick(each) else [pytest.mark.thorough])
        for each in SNIPPETS
    ],
    ids=str,
)
def test_a_snippet_runs(
    snippet: Snippet, spark: "SparkSession", capfd: pytest.CaptureFixture[str]
) -> None:
    # Blank lines before it, so that a traceback shows the page's own lines.
    code = compile("\n" * snippet.line + snippet.code, str(snippet.page), "exec")
    exec(code, {"__name__": "snippet"})
    printed = capfd.readouterr().out.splitlines()
    promised = PRINTED.findall(snippet.code)
    if not any("Java" in line for line in promised):  # which Java is found differs
        assert sorted(printed) == sorted(promised)
