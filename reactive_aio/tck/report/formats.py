"""A report, and the list of all rules: as tables for people, as JSON and as JUnit XML."""

import json
import platform
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final
from xml.etree import ElementTree

from ..laws import LAWS
from ..rules import (
    LIBRARY_RULES,
    NO_LAW,
    RULES,
    WIRE_RULES,
    Rule,
    Strength,
    find_rule,
    rule_order,
)
from .verdict import Outcome, Report, Style, Verdict, explain, heading

_NOT_XML: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_STRONGEST: Final = tuple(Strength)
_TONES: Final = {Outcome.PASS: "good", Outcome.FAIL: "bad", Outcome.NOT_JUDGED: "odd"}


@dataclass(frozen=True)
class RuleStatus:
    """The combined verdict on one rule, for the candidate in one role."""

    rule: str
    role: str
    strength: Strength
    outcome: Outcome
    why: str
    laws: int
    """How many laws of this rule were run."""
    passed: int
    """How many of them passed."""


def kit_rules() -> list[Rule]:
    """The specification's rules, then the library's."""
    return [*RULES.values(), *LIBRARY_RULES.values()]


def rule_statuses(report: Report) -> list[RuleStatus]:
    """One for each rule and role that a law judged, or that another law found broken."""
    found = {(each.rule, each.role) for each in report}
    found |= {(each.broken or each.rule, each.role) for each in report if each.fails}
    roles = list(dict.fromkeys(each.role for each in report))
    pairs = sorted(found, key=lambda pair: (rule_order(pair[0]), roles.index(pair[1])))
    return [_status(report, rule, role) for rule, role in pairs]


def unjudged_rules(report: Report) -> dict[str, list[str]]:
    """The rules of the specification that have no status, by the reason."""
    found = {each.rule for each in rule_statuses(report)}
    reasons: dict[str, list[str]] = {}
    if any(rule in WIRE_RULES for rule in found):
        return reasons  # a server is judged by the rules of the wire alone
    for rule in RULES:
        if rule not in found:
            needs = {factory for law in LAWS.values() if law.rule == rule for factory in law.needs}
            reason = f"the candidate has no {' and no '.join(sorted(needs))}" if needs else NO_LAW
            reasons.setdefault(reason, []).append(rule)
    return reasons


def _status(report: Report, rule: str, role: str) -> RuleStatus:
    in_role = [each for each in report if each.role == role]
    own = [each for each in in_role if each.rule == rule]
    against = [each for each in in_role if each.fails and (each.broken or each.rule) == rule]
    laws = {each.law for each in own}
    passed = laws - {each.law for each in own if each.outcome is not Outcome.PASS}
    known = find_rule(rule)
    strength = known.strength if known is not None else (own or against)[0].strength
    if against:
        outcome, why = Outcome.FAIL, _violation(rule, against)
        strength = min((each.strength for each in against), key=_STRONGEST.index)
    elif passed:
        outcome, why = Outcome.PASS, "; ".join(_reasons(own, passed=True))
    else:
        outcome, why = Outcome.NOT_JUDGED, "; ".join(_reasons(own, passed=False))
    return RuleStatus(rule, role, strength, outcome, why, len(laws), len(passed))


def _violation(rule: str, against: list[Verdict]) -> str:
    first = min(against, key=lambda each: each.rule != rule)
    others = len({each.law for each in against}) - 1
    further = f", and {others} more" if others else ""
    return f"{first.why.removeprefix(f'rule {rule}: ')} ({first.law}{further})"


def _reasons(own: list[Verdict], passed: bool) -> Iterator[str]:
    """Why some laws of the rule did not judge it."""
    elsewhere = {each.law: f"failed on rule {each.broken}" for each in own if each.fails}
    for why, count in Counter(elsewhere.values()).items():
        yield f"{_laws(count)} {why}" if passed else f"its {_laws(count).removeprefix('1 ')} {why}"
    silent = {each.law: each.why for each in own if each.outcome is Outcome.NOT_JUDGED}
    for why, count in Counter(silent.values()).items():
        yield f"{_laws(count)} not judged: {why}" if passed else why


def _laws(count: int) -> str:
    return "1 law" if count == 1 else f"{count} laws"


# -- tables ----------------------------------------------------------------------------------------
def table(report: Report, style: Style, *, complete: bool = True) -> Iterator[str]:
    """One line for each rule; if *complete*, also the rules that no law judged."""
    rows = rule_statuses(report)
    has_roles = len({row.role for row in rows}) > 1
    names = ["RULE", "STRENGTH", *(["ROLE"] if has_roles else []), "VERDICT", "LAWS"]
    cells = [_cells(row, has_roles) for row in rows]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    yield style.paint(_line(names, widths), "dim")
    for row, texts in zip(rows, cells, strict=True):
        yield from _row(row, texts, widths, style)
    if complete:
        yield ""
        for reason, rules in unjudged_rules(report).items():
            yield from style.wrap(f"not judged: {', '.join(rules)} ({reason})", 2, "- ")


def _cells(row: RuleStatus, has_roles: bool) -> list[str]:
    role = [row.role] if has_roles else []
    laws = str(row.laws) if row.passed == row.laws else f"{row.passed}/{row.laws}"
    return [row.rule, row.strength.name, *role, row.outcome.value, laws]


def _line(cells: Iterable[str], widths: list[int]) -> str:
    parts = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return "  ".join(parts).rstrip()


def _row(row: RuleStatus, cells: list[str], widths: list[int], style: Style) -> Iterator[str]:
    """The reason follows the cells, or stands below them if the screen is narrow."""
    line = _line(cells, widths)
    at = sum(widths) + 2 * len(widths)
    is_beside = bool(row.why) and style.width - at >= 30
    indent = at if is_beside else 6
    why = list(style.wrap(row.why, indent)) if row.why else []
    if is_beside:
        line = line.ljust(at) + why.pop(0).strip()
    yield line.replace(row.outcome.value, style.paint(row.outcome.value, _TONES[row.outcome]), 1)
    yield from why


def failures(report: Report, style: Style, *, short: bool = False) -> Iterator[str]:
    """Every failure, explained; if *short*, one for each rule and role, with the others named."""
    within = replace(style, width=style.width - 2)
    failed = {(each.law, each.role): each for each in reversed(report.having(Outcome.FAIL))}
    same: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in reversed(failed.values()):
        same.setdefault((verdict.broken or verdict.rule, verdict.role), []).append(verdict)
    for (rule, _), verdicts in same.items():
        # The law of the broken rule gives the best explanation.
        verdicts.sort(key=lambda each: each.rule != rule)
        explained = verdicts[:1] if short else verdicts
        for verdict in explained:
            yield ""
            yield style.paint(heading(verdict), "bad")
            yield from style.wrap(verdict.why, 2)
            yield ""
            yield from (f"  {line}".rstrip() for line in explain(verdict, within))
        others = ", ".join(each.law for each in verdicts[len(explained) :])
        if others:
            yield ""
            yield from style.wrap(f"failed on rule {rule} as well: {others}", 4, "  ")


def summary(report: Report, style: Style) -> Iterator[str]:
    """How many laws were run, and with which outcomes."""
    failed, unjudged = report.having(Outcome.FAIL), report.having(Outcome.NOT_JUDGED)
    passed = len(report.having(Outcome.PASS))
    run, seconds = passed + len(failed), sum(each.seconds for each in report)
    parts = [f"{_laws(run)} run in {seconds:.1f} s", f"{passed} pass", f"{len(failed)} FAIL"]
    yield ""
    yield f"{report.candidate}: {', '.join(parts)}; {len(unjudged)} could not judge it"
    broken = {each.broken or each.rule: each.strength for each in reversed(failed)}
    for strength in Strength:
        names = sorted((rule for rule in broken if broken[rule] is strength), key=rule_order)
        if names:
            line = f"rules broken, of strength {strength.name}: {', '.join(names)}"
            yield style.paint(line, "bad" if strength is Strength.MUST else "odd")
    if not report.has_judged:
        yield style.paint("nothing was judged: no law could be run to its end", "bad")


def rule_list(style: Style) -> Iterator[str]:
    """Every rule: number, strength, meaning, and the laws that judge it."""
    for rule in kit_rules():
        first = f"{rule.number:<5} {rule.strength.name:<7} "
        yield from style.wrap(rule.text, len(first), first)
        laws = [law.name for law in LAWS.values() if law.rule == rule.number]
        mark = " " * len(first)
        for name in laws:
            yield style.paint(f"{mark}· {name} ({LAWS[name].strength.name})", "good")
        if not laws:
            yield style.paint(f"{mark}· not judged: {NO_LAW}", "odd")
    judged_rules = {law.rule for law in LAWS.values()}
    judged = sum(rule.number in judged_rules for rule in kit_rules())
    yield ""
    yield f"{len(kit_rules())} rules, {judged} of them judged by {len(LAWS)} laws"


# -- for other programs ----------------------------------------------------------------------------
def _versions() -> dict[str, str]:
    try:
        kit = version("reactive-aio")
    except PackageNotFoundError:
        kit = "unknown"
    return {"reactive_aio": kit, "python": platform.python_version()}


def report_as_json(report: Report, about: Mapping[str, Any] | None = None) -> str:
    """The status of every rule and every verdict; *about* describes the check."""
    statuses = [
        {**asdict(each), "strength": each.strength.value, "outcome": each.outcome.value}
        for each in rule_statuses(report)
    ]
    unjudged = {rule: reason for reason, rules in unjudged_rules(report).items() for rule in rules}
    data = {
        "candidate": report.candidate,
        "ok": report.ok,
        "versions": _versions(),
        **(about or {}),
        "counts": {each.value: len(report.having(each)) for each in Outcome},
        "rules": statuses,
        "not judged": unjudged,
        "verdicts": [each.to_json() for each in report],
    }
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def rules_as_json() -> str:
    """All rules, each with its laws."""
    data = [
        {
            "rule": rule.number,
            "strength": rule.strength.value,
            "text": rule.text,
            "library": rule.number in LIBRARY_RULES,
            "laws": [
                {
                    "name": law.name,
                    "strength": law.strength.value,
                    "text": law.text,
                    "needs": law.needs,
                    "jvm": law.jvm,
                }
                for law in LAWS.values()
                if law.rule == rule.number
            ],
            "not judged": None if any(law.rule == rule.number for law in LAWS.values()) else NO_LAW,
        }
        for rule in kit_rules()
    ]
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def report_as_junit(report: Report, *, strict: bool = False) -> str:
    """A test case for each law. A broken SHOULD is reported as skipped, unless *strict*."""
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", name=_clean(f"rs-tck {report.candidate}"))
    counts = {"failure": 0, "skipped": 0}
    for verdict in report:
        name = f"{verdict.law}-{verdict.strength.name}"
        names = {"classname": _clean(f"{report.candidate}.{verdict.role}"), "name": _clean(name)}
        case = ElementTree.SubElement(suite, "testcase", names, time=f"{verdict.seconds:.3f}")
        is_failure = verdict.fails and (strict or verdict.strength is Strength.MUST)
        kind = "failure" if is_failure else "" if verdict.outcome is Outcome.PASS else "skipped"
        if kind:
            counts[kind] += 1
            element = ElementTree.SubElement(case, kind, message=_clean(verdict.why))
            if verdict.fails:
                element.text = _clean("\n".join(explain(verdict)))
    suite.set("tests", str(len(report.verdicts)))
    suite.set("failures", str(counts["failure"]))
    suite.set("errors", "0")
    suite.set("skipped", str(counts["skipped"]))
    suite.set("time", f"{sum(each.seconds for each in report):.3f}")
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _clean(text: str) -> str:
    """Replace the characters that XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)
