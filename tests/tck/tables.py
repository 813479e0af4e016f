"""The tables of the documentation that follow from the laws and from those that break them.

    python -m tests.tck.tables        # writes them anew

A test fails when they are not what this would write.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from reactive_aio.tck import Law
from reactive_aio.tck.laws import BLACK_BOX, PROCESSOR, PUBLISHER, WHITE_BOX
from reactive_aio.tck.laws.black_box import UNTESTED_BLACK_BOX
from reactive_aio.tck.laws.white_box import UNTESTED_WHITE_BOX
from reactive_aio.tck.network.laws import WIRE_LAWS
from reactive_aio.tck.network.server_profile import ROUTES
from reactive_aio.tck.network.rules import WIRE_RULES
from tests.tck.broken_subscribers import PROCESSORS, SUBSCRIBERS, WHITE_BOXES
from tests.tck.broken_servers import SERVERS
from tests.tck.broken_publishers import TRIALS, BrokenTrial

DOCS: Final = Path(__file__).parents[2] / "docs"
LAWS_PAGE: Final = DOCS / "laws.md"
CONFORMANCE_PAGE: Final = DOCS / "conformance.md"
BEGIN: Final = "<!-- names: written by `python -m tests.tck.tables` -->"
END: Final = "<!-- end of the names -->"
PROTOCOL_PAGE: Final = DOCS / "protocol.md"
WIRE_BEGIN: Final = "<!-- wire: written by `python -m tests.tck.tables` -->"
WIRE_END: Final = "<!-- end of the wire -->"

HEAD: Final = """\
# The laws, and who breaks them

Written by `python -m tests.tck.tables`. A kit that lets everybody pass is worth nothing: for each
law there is at least one candidate that breaks it on purpose, and the test of the kit asks for this
very verdict. Where a verdict names another rule than the law's own, that one was broken on the way.
What each law tries is said by `python -m reactive_aio.tck rules`, and in its docstring. The honest
but unusual candidates that must pass every law are in `tests/tck/unusual.py` and
`tests/tck/subscribers.py`. How the kit is used: [conformance.md](conformance.md).
"""

GROUPS: Final[tuple[tuple[str, tuple[Law, ...], list[BrokenTrial]], ...]] = (
    ("Publishers", PUBLISHER, TRIALS),
    ("Subscribers: the black box", BLACK_BOX, SUBSCRIBERS),
    ("Subscribers: the white box", WHITE_BOX, WHITE_BOXES),
    ("Processors", PROCESSOR, PROCESSORS),
)
CLASSES: Final[tuple[tuple[str, tuple[Law, ...], Mapping[str, str]], ...]] = (
    ("PublisherVerification", PUBLISHER, {}),
    ("SubscriberBlackboxVerification", BLACK_BOX, UNTESTED_BLACK_BOX),
    ("SubscriberWhiteboxVerification", WHITE_BOX, UNTESTED_WHITE_BOX),
    ("IdentityProcessorVerification", PROCESSOR, {}),
)


def laws_page() -> str:
    """All of docs/laws.md."""
    return "\n".join([HEAD, *_lines(GROUPS)]).rstrip() + "\n"


def _lines(groups: Iterable[tuple[str, tuple[Law, ...], list[BrokenTrial]]]) -> Iterator[str]:
    for title, laws, trials in groups:
        yield from (f"## {title}", "", "| law | | one that … | breaks | and is told |")
        yield "|---|---|---|---|---|"
        for law in laws:
            yield from _rows(law, [trial for trial in trials if trial.law == law.name])
        yield ""


def _rows(law: Law, breakers: list[BrokenTrial]) -> Iterator[str]:
    named = f"`{law.name}` | {law.strength.name}"
    for trial in breakers:
        told = f"{trial.rule} | … {_plain(trial.words)} …"
        yield f"| {named} | {_plain(trial.suspect)} | {told} |"
        named = "|"


def names() -> str:
    """The name map: each test of the JVM's kit, and the law of the same meaning."""
    lines: list[str] = []
    for title, laws, untested in CLASSES:
        found = {name: f"`{law.name}`" for law in laws for name in law.jvm}
        found |= {name: f"none: {why}" for name, why in untested.items()}
        lines += [f"### {title}", "", "| the JVM's test | the law |", "|---|---|"]
        lines += [f"| `{name}` | {law} |" for name, law in sorted(found.items(), key=_by_rule)]
        lines.append("")
    return "\n".join(lines).rstrip()


def _by_rule(row: tuple[str, str]) -> tuple[bool, int, int, str]:
    """By the rule in the name of the test; those without one first."""
    _, spec, digits = row[0].partition("spec")
    number = digits.partition("_")[0]
    return (bool(spec), int(number[:1] or 0), int(number[1:] or 0), row[0])


def _plain(words: str) -> str:
    """Words of a person, in a cell of Markdown."""
    for special in ("_", "*", "|", "<", "["):
        words = words.replace(special, f"\\{special}")
    return words


def wire() -> str:
    """The rules of the wire, the laws that judge them, who breaks these, and what is offered."""
    lines = ["#### What a server offers", "", "| | the route | what it does |", "|---|---|---|"]
    lines += [f"| `{name}` | `{route}` | {about} |" for name, (route, about) in ROUTES.items()]
    lines += ["", "#### The rules", "", "| rule | | what it asks |", "|---|---|---|"]
    for rule in WIRE_RULES.values():
        lines.append(f"| {rule.number} | {rule.strength.name} | {_plain(rule.text)} |")
    lines += ["", "#### The laws, and who breaks them", ""]
    lines += ["| law | what is tried | a server that … | breaks |", "|---|---|---|---|"]
    for law in WIRE_LAWS.values():
        named = f"`{law.name}` | {_plain(law.text)}"
        for broken in (each for each in SERVERS if each.law == law.name):
            lines.append(f"| {named} | {_plain(broken.flaw)} | {broken.rule} |")
            named = "|"
    return "\n".join(lines)


def with_names(page: str) -> str:
    """*page* with the name map of today between its markers."""
    return _between(page, BEGIN, names(), END)


def with_wire(page: str) -> str:
    """*page* with the tables of the wire between their markers."""
    return _between(page, WIRE_BEGIN, wire(), WIRE_END)


def _between(page: str, begin: str, text: str, end: str) -> str:
    before, begins, rest = page.partition(begin)
    _, ends, after = rest.partition(end)
    if not (begins and ends):
        raise SystemExit(f"there is no place for the tables: {begin} … {end}")
    return f"{before}{begin}\n\n{text}\n\n{end}{after}"


def write() -> None:
    """All pages."""
    LAWS_PAGE.write_text(laws_page(), "utf-8")
    CONFORMANCE_PAGE.write_text(with_names(CONFORMANCE_PAGE.read_text("utf-8")), "utf-8")
    PROTOCOL_PAGE.write_text(with_wire(PROTOCOL_PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    write()
