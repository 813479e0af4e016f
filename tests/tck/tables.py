"""The tables of the documentation that are generated from the laws and the broken candidates.

    python -m tests.tck.tables        # writes them

A test fails if a page is out of date.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from reactive_aio.tck import Law
from reactive_aio.tck.laws import BLACK_BOX, PROCESSOR, PUBLISHER, WHITE_BOX
from reactive_aio.tck.network.laws import WIRE_LAWS
from reactive_aio.tck.network.server import ROUTES
from reactive_aio.tck.rules import WIRE_RULES
from tests.tck.broken_candidate import BrokenCandidate
from tests.tck.broken_processors import BROKEN_AS_SUBSCRIBERS, BROKEN_PROCESSORS
from tests.tck.broken_publishers import BROKEN_PUBLISHERS
from tests.tck.broken_servers import BROKEN_SERVERS
from tests.tck.broken_subscribers import BROKEN_BLACK_BOXES, BROKEN_WHITE_BOXES

DOCS: Final = Path(__file__).parents[2] / "docs"
LAWS_PAGE: Final = DOCS / "laws.md"
CONFORMANCE_PAGE: Final = DOCS / "conformance.md"
BEGIN: Final = "<!-- names: written by `python -m tests.tck.tables` -->"
END: Final = "<!-- end of the names -->"
PROTOCOL_PAGE: Final = DOCS / "protocol.md"
WIRE_BEGIN: Final = "<!-- wire: written by `python -m tests.tck.tables` -->"
WIRE_END: Final = "<!-- end of the wire -->"

HEAD: Final = """\
# The laws and the candidates that break them

Written by `python -m tests.tck.tables`. For each law there is at least one candidate that breaks it
on purpose, and the kit's tests require this verdict. If a verdict names another rule than the law's
own, that rule was broken first. `python -m reactive_aio.tck rules` says what each law does, as does
its docstring. The conforming but unusual candidates that must pass every law are in
`tests/tck/honest_publishers.py` and `tests/tck/flawed_subscriber.py`. How to use the kit:
[conformance.md](conformance.md).
"""

GROUPS: Final[tuple[tuple[str, tuple[Law, ...], list[BrokenCandidate]], ...]] = (
    ("Publishers", PUBLISHER, BROKEN_PUBLISHERS),
    ("Subscribers: the black box", BLACK_BOX, BROKEN_BLACK_BOXES),
    ("Subscribers: the white box", WHITE_BOX, BROKEN_WHITE_BOXES),
    ("Processors", PROCESSOR, BROKEN_PROCESSORS),
    (
        "Processors, judged as white-box subscribers",
        tuple(law for law in WHITE_BOX if law.name in {row.law for row in BROKEN_AS_SUBSCRIBERS}),
        BROKEN_AS_SUBSCRIBERS,
    ),
)
UNTESTED_BLACK_BOX: Final[dict[str, str]] = {
    "untested_spec206_blackbox_mustCallSubscriptionCancelIfItIsNoLongerValid": (
        "only the subscriber knows when it needs no more; a white box is commanded to cancel"
    ),
    "untested_spec211_blackbox_mustMakeSureThatAllCallsOnItsMethodsHappenBeforeTheProcessing"
    "OfTheRespectiveEvents": "its processing is not observed; that of a white box is",
}
"""Tests of the JVM's kit for which there is no law, and why."""
CLASSES: Final[tuple[tuple[str, tuple[Law, ...], Mapping[str, str]], ...]] = (
    ("PublisherVerification", PUBLISHER, {}),
    ("SubscriberBlackboxVerification", BLACK_BOX, UNTESTED_BLACK_BOX),
    ("SubscriberWhiteboxVerification", WHITE_BOX, {}),
    ("IdentityProcessorVerification", PROCESSOR, {}),
)


def laws_page() -> str:
    """All of docs/laws.md."""
    return "\n".join([HEAD, *_lines(GROUPS)]).rstrip() + "\n"


def _lines(groups: Iterable[tuple[str, tuple[Law, ...], list[BrokenCandidate]]]) -> Iterator[str]:
    for title, laws, table in groups:
        yield from (f"## {title}", "", "| law | | a candidate that … | breaks | with the verdict |")
        yield "|---|---|---|---|---|"
        for law in laws:
            yield from _rows(law, [each for each in table if each.law == law.name])
        yield ""


def _rows(law: Law, breakers: list[BrokenCandidate]) -> Iterator[str]:
    named = f"`{law.name}` | {law.strength.name}"
    for broken in breakers:
        verdict = f"{broken.rule} | … {_plain(broken.words)} …"
        yield f"| {named} | {_plain(broken.flaw)} | {verdict} |"
        named = "|"


def names() -> str:
    """The name map: each test of the JVM's kit, and the law with the same meaning."""
    lines: list[str] = []
    for title, laws, untested in CLASSES:
        found = {name: f"`{law.name}`" for law in laws for name in law.jvm}
        found |= {name: f"none: {why}" for name, why in untested.items()}
        lines += [f"### {title}", "", "| the JVM's test | the law |", "|---|---|"]
        lines += [f"| `{name}` | {law} |" for name, law in sorted(found.items(), key=_by_rule)]
        lines.append("")
    return "\n".join(lines).rstrip()


def _by_rule(row: tuple[str, str]) -> tuple[bool, int, int, str]:
    """Sort by the rule in the name of the test; names without one first."""
    _, spec, digits = row[0].partition("spec")
    number = digits.partition("_")[0]
    return (bool(spec), int(number[:1] or 0), int(number[1:] or 0), row[0])


def _plain(words: str) -> str:
    """Plain text in a cell of a Markdown table."""
    for special in ("_", "*", "|", "<", "["):
        words = words.replace(special, f"\\{special}")
    return words


def wire() -> str:
    """The routes that servers need, the rules of the wire, their laws, and the broken servers."""
    lines = ["#### Routes", "", "| | the route | what it does |", "|---|---|---|"]
    lines += [f"| `{name}` | `{route}` | {about} |" for name, (route, about) in ROUTES.items()]
    lines += ["", "#### The rules", "", "| rule | | meaning |", "|---|---|---|"]
    for rule in WIRE_RULES.values():
        lines.append(f"| {rule.number} | {rule.strength.name} | {_plain(rule.text)} |")
    lines += ["", "#### The laws and the servers that break them", ""]
    lines += ["| law | scenario | a server that … | breaks |", "|---|---|---|---|"]
    for law in WIRE_LAWS.values():
        named = f"`{law.name}` | {_plain(law.text)}"
        for broken in (each for each in BROKEN_SERVERS if each.law == law.name):
            lines.append(f"| {named} | {_plain(broken.flaw)} | {broken.rule} |")
            named = "|"
    return "\n".join(lines)


def with_names(page: str) -> str:
    """*page* with the current name map between its markers."""
    return _between(page, BEGIN, names(), END)


def with_wire(page: str) -> str:
    """*page* with the current tables of the wire between their markers."""
    return _between(page, WIRE_BEGIN, wire(), WIRE_END)


def _between(page: str, begin: str, text: str, end: str) -> str:
    before, begins, rest = page.partition(begin)
    _, ends, after = rest.partition(end)
    if not (begins and ends):
        raise SystemExit(f"the page has no markers for the tables: {begin} … {end}")
    return f"{before}{begin}\n\n{text}\n\n{end}{after}"


def write() -> None:
    """Write all pages."""
    LAWS_PAGE.write_text(laws_page(), "utf-8")
    CONFORMANCE_PAGE.write_text(with_names(CONFORMANCE_PAGE.read_text("utf-8")), "utf-8")
    PROTOCOL_PAGE.write_text(with_wire(PROTOCOL_PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    write()
