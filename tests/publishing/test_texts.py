"""Docstrings as Markdown, the texts for language models, and the check of what a page loads."""

from pathlib import Path

import pytest

from publishing.docstrings import markdown
from publishing.llms import Page, full, overview
from publishing.offline import foreign_resources


# -- docstrings ------------------------------------------------------------------------------------
def test_a_literal_block_is_code_and_sections_are_a_list() -> None:
    docstring = (
        "Pass on.\n\n::\n\n    a--b|\n\nAs in::\n\n    x()\n\n"
        "Demand: passed\n    through.\nHolds: nothing.\n"
    )
    assert markdown(docstring) == (
        "Pass on.\n\n\n\n    a--b|\n\nAs in:\n\n    x()\n"
        "\n* *Demand:* passed through.\n* *Holds:* nothing."
    )


def test_a_docstring_without_them_is_unchanged() -> None:
    assert markdown("One.\n\nTwo: three.\n") == "One.\n\nTwo: three.\n"


# -- llms.txt --------------------------------------------------------------------------------------
PAGES = [
    Page(
        "Start", "Home", "index.md", "# Rx\n\n```python\nx = 1. # no\n```\n\nIt [runs](a.md). No."
    ),
    Page("Start", "Tables", "t.md", "# T\n\n| a |\n|---|\n\n<div>\n\nAll of it:\n"),
    Page("Reference", "Empty", "e.md", "# E\n"),
]


def test_the_overview_lists_pages_with_their_first_sentence() -> None:
    assert overview("rx", "Streams.", PAGES) == (
        "# rx\n\n> Streams.\n\n## Start\n\n- [Home](index.md): It runs.\n"
        "- [Tables](t.md): All of it\n\n## Reference\n\n- [Empty](e.md)\n"
    )


def test_the_full_text_has_each_page() -> None:
    text = full("rx", "Streams.", PAGES)
    assert text.index("Page: index.md\n\n# Rx") < text.index("Page: t.md") < text.index("# E")


# -- what a page loads -----------------------------------------------------------------------------
LOADING = """\
<script src="https://cdn.example/x.js"></script>
<script async src=//cdn.example/x.js></script>
<link rel="stylesheet" href="https://cdn.example/x.css">
<link rel="preconnect" href="https://fonts.example">
<img alt="x" src="http://cdn.example/x.png">
<style>@import 'https://cdn.example/x.css';</style>
<p style="background: url(https://cdn.example/x.png)">
<pre class="mermaid"><code>graph</code></pre>
"""
NOT_LOADING = """\
<a href="https://www.example/">a link is not loaded</a>
<link rel="canonical" href="https://docs.example/x/">
<script src="../assets/x.js"></script><img src="data:image/png;base64,//AA">
<style>a { background: url(x.png) }</style>
"""


@pytest.mark.parametrize("html", LOADING.splitlines())
def test_what_is_loaded_from_elsewhere_is_found(html: str, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(html + NOT_LOADING, "utf-8")
    [found] = foreign_resources(tmp_path)
    assert found.startswith("index.html: ")


def test_what_is_not_loaded_is_allowed_and_a_style_sheet_is_searched(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(NOT_LOADING, "utf-8")
    (tmp_path / "x.css").write_text("a { background: url('https://cdn.example/x.png') }", "utf-8")
    assert [*foreign_resources(tmp_path)] == ["x.css: https://cdn.example/x.png"]
