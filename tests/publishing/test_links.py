"""Links are changed outside of code only, and lead where they led."""

import pytest

from publishing.links import Link, index_page, rewrite
from publishing.project import ROOT

HOME = "https://forge.example/rx"


def targets(text: str) -> list[str]:
    found: list[str] = []

    def keep(link: Link) -> str:
        found.append(link.target)
        return str(link)

    assert rewrite(text, keep) == text
    return found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[a](x.md) and [b](y.md#z)", ["x.md", "y.md#z"]),
        ("![a\npicture](images/x.svg)", ["images/x.svg"]),
        ("[`code` in a link](x.md)", ["x.md"]),
        ("[a [b] c](x.md)", ["x.md"]),
        ("`[a](x.md)` ``[b`](x.md)`` [c](y.md)", ["y.md"]),
        ("```python\n[a](x.md)\n```\n[b](y.md)", ["y.md"]),
        ("- item\n\n  ```text\n  [a](x.md)\n  ```\n\n[b](y.md)", ["y.md"]),
        ("~~~\n[a](x.md)\n~~~\n", []),
        ("[a](https://x.example) [b](#here) [c](mailto:a@b.example) [d](//x.example)", []),
        ("f[0](x) is a call", ["x"]),
    ],
)
def test_relative_links_outside_of_code_are_found(text: str, found: list[str]) -> None:
    assert targets(text) == found


def test_a_link_is_resolved_from_its_document() -> None:
    link = Link("decision", "../decisions/0001.md#why")
    assert link.path_from("docs/how-to/page.md") == "docs/decisions/0001.md"
    assert link.anchor == "#why"
    assert Link("x", "docs/").path_from("README.md") == "docs"


README = "See [docs](docs/x.md#a), [b](#b), [home](https://a.example).\n\n![A](docs/i.png)\n"


def test_the_index_page_has_absolute_links() -> None:
    assert index_page(README, HOME, "main") == (
        f"See [docs]({HOME}/blob/main/docs/x.md#a), [b](#b), [home](https://a.example).\n\n"
        f"![A]({HOME}/raw/main/docs/i.png)\n"
    )


def test_without_an_address_the_index_page_has_no_link_to_the_repository() -> None:
    assert index_page(README, "", "main") == ("See docs, [b](#b), [home](https://a.example).\n\n\n")


def test_no_link_of_the_readme_is_relative_on_the_index_page() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert len(targets(readme)) > 10
    for repository in (HOME, ""):
        assert targets(index_page(readme, repository, "main")) == []
