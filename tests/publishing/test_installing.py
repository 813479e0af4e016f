"""What is said of installing the package is true before and after it is published."""

import re

from publishing.installing import NOTE, with_note
from publishing.project import ROOT, publication

FENCE = re.compile(r"^ *```(\w*).*\n((?:(?! *```).*\n)*) *```$", re.MULTILINE)
PAGE = """# Start

```sh
pip install reactive-aio
```

Then go on.

```console
$ pip install 'reactive-aio[spark]'
```
"""


def test_a_page_says_once_how_a_package_without_an_index_is_installed() -> None:
    text = with_note(PAGE, is_published=False)
    assert text.count(NOTE) == 1
    assert text.index(NOTE) < text.index("Then go on.")
    assert with_note(text, is_published=False) == text
    assert with_note(PAGE, is_published=True) == PAGE
    other = "```sh\npip install mkdocs\n```\n\nSee `pip install reactive-aio`.\n"
    assert with_note(other, is_published=False) == other


def test_the_readme_has_the_note_as_long_as_there_is_no_index() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert (NOTE in readme) == (not publication()["index"])


def test_each_block_that_installs_the_package_can_have_the_note() -> None:
    for path in (ROOT / "docs").rglob("*.md"):
        for language, block in FENCE.findall(path.read_text("utf-8")):
            if re.search(r"^(\$ )?pip install '?reactive-aio", block, re.MULTILINE):
                assert language in ("sh", "console"), f"{path}: name the language of {block}"
