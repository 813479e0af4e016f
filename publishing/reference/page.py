"""docs/operators.md, made of the sections of its operators."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from publishing.reference.diagram_runs import Run, run
from publishing.reference.docstrings import Docstring, markdown
from publishing.reference.example_runs import printed
from publishing.reference.libraries import ForeignName, foreign_names
from publishing.reference.needs import NEEDS
from publishing.reference.parameters import parameter_rows
from publishing.reference.pictures import picture, title
from publishing.reference.signatures import signature
from publishing.reference.vocabulary import ENTRIES, PARTS, Entry
from reactive_aio._shared.foreign_names import NO_EQUIVALENT
from reactive_aio.testing.marbles import Diagram, Lane, diagrams

__all__ = ("COMMAND", "PAGE", "page", "picture_path", "section", "sections")

COMMAND: Final = "python -m publishing.reference"
DOCS: Final = Path(__file__).parents[2] / "docs"
PAGE: Final = DOCS / "operators.md"
PICTURES: Final = DOCS / "images" / "operators"
FURTHER_DIAGRAMS: Final = {
    "to_dict": Diagram((Lane.parse("a--b--c--|"),), ".to_dict(str.upper)", Lane.parse("---|")),
}
"""Diagrams of operators whose docstring has none: the text of a lane has no sign for a dict."""

HEAD: Final = f"""\
# Operators

Every source, operator and sink. `{COMMAND}` writes this page from their docstrings,
runs each example, and draws each picture from a run in virtual time.

* [Which operator do I need?](#which-operator-do-i-need)
* {{parts}}
* [Names in other libraries](#names-in-other-libraries)

The examples run as they are in `python -m asyncio`; in a program, `await` belongs in a coroutine
function. `await flow.to_list()` is there to show the elements; `async for` reads them one by one.

In the pictures time goes to the right. Above the box are the elements of the source, below it those
of the result: a bar is the completion, a red cross an error, a slanted stroke the cancellation of
the source. An arrow with a number is a request; where none is drawn, demand is unbounded.
*Holds* says how many elements an operator holds at most: `flow.bound()` adds them up.

In the tables of parameters, `T` is the type of the elements, and a `Source` is anything that
elements can be read from: a flow, a publisher, an iterable or an asynchronous iterable.
"""
_CODE: Final = r'[\w.]+\(await [\w.]+\(\)\)|[\w.]+\(\)|[a-z]+(?:[_.]\w+)+(?:="\w+")?'
"""Code in a plain sentence: a call, or a name with an underscore or a dot."""
NAMES_HEAD: Final = """\
## Names in other libraries

Left out are names that differ only in case, such as `flatMap`. An operator here may do less or more
than its namesake: its section says what. Rx stands for RxJava, RxJS and RxPY. A flow knows these
names too: `flow.mergeMap` raises an error that suggests `flat_map`.
"""


# -- sections --------------------------------------------------------------------------------------
async def section(entry: Entry, example: str) -> tuple[str, str]:
    """The section of *entry* with the program *example*, and its picture, which may be empty."""
    played = await _played(entry)
    document = Docstring.of(entry.function)
    parts = [
        f"### `{entry.name}`",
        f"`{signature(entry)}`",
        _markdown(document.summary, entry),
        _image(entry, played) if played else "",
        _markdown(document.prose, entry),
        "\n".join(parameter_rows(entry, document)),
        "\n".join(_facts(document, entry)),
        f"```python\n{example}```",
        f"```output\n{await printed(example)}```",
    ]
    return "\n\n".join(filter(None, parts)) + "\n", picture(played) if played else ""


async def _played(entry: Entry) -> Run | None:
    found = diagrams(inspect.getdoc(entry.function) or "")
    diagram = found[0] if found else FURTHER_DIAGRAMS.get(entry.name)
    return await run(diagram) if diagram else None


def _image(entry: Entry, played: Run) -> str:
    described = re.sub(r"([\[\]*_`\\])", r"\\\1", title(played).replace("\n", " → "))
    return f"![{described}]({picture_path(entry).relative_to(DOCS)})"


def picture_path(entry: Entry) -> Path:
    """The file of the picture of *entry*."""
    return PICTURES / f"{entry.name}.svg"


def _facts(document: Docstring, entry: Entry) -> Iterator[str]:
    for name, body in document.sections.items():
        if name != "Rules":
            yield f"* *{name}:* {_markdown(body, entry)}"


def _markdown(words: str, entry: Entry) -> str:
    return markdown(words, ENTRIES, entry.name)


# -- the page --------------------------------------------------------------------------------------
def page(bodies: Mapping[str, str]) -> str:
    """The whole page, with the sections in *bodies*."""
    lines = [HEAD.format(parts="\n* ".join(f"[{each}](#{_anchor(each)})" for each in PARTS))]
    lines += [*_needs(), ""]
    for part in PARTS:
        here = [entry for entry in ENTRIES.values() if entry.part == part]
        lines += [f"## {part}", "", " · ".join(_link(each.name) for each in here), ""]
        lines += [bodies[each.name] for each in here]
    lines += [NAMES_HEAD, *_names(), "", *_left_out()]
    return "\n".join(lines) + "\n"


def sections(page: str) -> dict[str, str]:
    """The sections of a page, by the name of the operator."""
    found = re.finditer(r"^### `(\w+)`\n(?:.*\n)*?(?=\n##+ )", page, re.MULTILINE)
    return {each[1]: each[0] for each in found}


def _needs() -> Iterator[str]:
    yield "## Which operator do I need?"
    for theme, needs in NEEDS.items():
        yield from ("", f"**{theme}**", "")
        for need, names in needs.items():
            yield f"* {need}: {', '.join(map(_link, names.split()))}"


def _names() -> Iterator[str]:
    yield from ("| there | in | here |", "|---|---|---|")
    for row in foreign_names():
        yield f"| `{row.there}` | {', '.join(row.libraries)} | {_target(row)} |"


def _target(row: ForeignName) -> str:
    return _link(row.here) if row.here in ENTRIES else f"`{row.here}`"


def _left_out() -> Iterator[str]:
    yield from ("These have no equivalent:", "")
    reasons: dict[str, list[str]] = {}
    for name, reason in NO_EQUIVALENT.items():
        reasons.setdefault(reason, []).append(f"`{_in_camel_case(name)}`")
    for reason, names in reasons.items():
        yield f"* {', '.join(names)}: {_with_links(reason)}"


def _with_links(words: str) -> str:
    """*words*, in which calls and names with an underscore are code."""

    def code(found: re.Match[str]) -> str:
        return markdown(f"`{found[0]}`", ENTRIES, "")

    return re.sub(_CODE, code, words)


def _in_camel_case(name: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)


def _link(name: str) -> str:
    return f"[`{name}`](#{name})"


def _anchor(heading: str) -> str:
    return heading.lower().replace(" ", "-")


Sections = Callable[[Entry], tuple[str, str]]


def write(make: Sections) -> None:
    """Write the page and the pictures; *make* makes the section and the picture of an operator."""
    made = {name: make(entry) for name, entry in ENTRIES.items()}
    PICTURES.mkdir(exist_ok=True)
    for old in PICTURES.glob("*.svg"):
        old.unlink()
    for name, (_, drawn) in made.items():
        if drawn:
            picture_path(ENTRIES[name]).write_text(drawn, "utf-8")
    PAGE.write_text(page({name: body for name, (body, _) in made.items()}), "utf-8")
