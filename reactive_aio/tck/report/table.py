"""The status of every rule after a check, its table, and the list of all rules with their laws."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from ..laws import LAWS
from ..rules import LIBRARY_RULES, RULES, WIRE_RULES, Rule, Strength, find_rule, rule_order
from .verdict import Outcome, Report, Style, Verdict, explain, heading

__all__ = (
    "NO_LAW",
    "RuleStatus",
    "failures",
    "kit_rules",
    "rule_list",
    "rule_statuses",
    "summary",
    "table",
    "unjudged_rules",
)

NO_LAW: Final = "no law judges it"
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
            reasons.setdefault(_reason(rule), []).append(rule)
    return reasons


def _reason(rule: str) -> str:
    needs = {factory for law in LAWS.values() if law.rule == rule for factory in law.needs}
    return f"the candidate has no {' and no '.join(sorted(needs))}" if needs else NO_LAW


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
    failed = {(each.law, each.role): each for each in reversed(report.having(Outcome.FAIL))}
    same: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in reversed(failed.values()):
        same.setdefault((verdict.broken or verdict.rule, verdict.role), []).append(verdict)
    for (rule, _), verdicts in same.items():
        # The law of the broken rule gives the best explanation.
        verdicts.sort(key=lambda each: each.rule != rule)
        explained = verdicts[:1] if short else verdicts
        for verdict in explained:
            yield from _failure(verdict, style)
        others = ", ".join(each.law for each in verdicts[len(explained) :])
        if others:
            yield ""
            yield from style.wrap(f"failed on rule {rule} as well: {others}", 4, "  ")


def _failure(verdict: Verdict, style: Style) -> Iterator[str]:
    yield ""
    yield style.paint(heading(verdict), "bad")
    yield from style.wrap(verdict.why, 2)
    yield ""
    within = replace(style, width=style.width - 2)
    yield from (f"  {line}".rstrip() for line in explain(verdict, within))


def summary(report: Report, style: Style) -> Iterator[str]:
    """How many laws were run, and with which outcomes."""
    failed, unjudged = report.having(Outcome.FAIL), report.having(Outcome.NOT_JUDGED)
    passed = len(report.having(Outcome.PASS))
    run, seconds = passed + len(failed), sum(each.seconds for each in report)
    laws = "1 law" if run == 1 else f"{run} laws"
    parts = [f"{laws} run in {seconds:.1f} s", f"{passed} pass", f"{len(failed)} FAIL"]
    yield ""
    yield f"{report.candidate}: {', '.join(parts)}; {len(unjudged)} could not judge it"
    broken = {each.broken or each.rule: each.strength for each in reversed(failed)}
    for strength in Strength:
        names = sorted((rule for rule in broken if broken[rule] is strength), key=rule_order)
        if names:
            line = f"rules broken, of strength {strength.name}: {', '.join(names)}"
            yield style.paint(line, "bad" if strength is Strength.MUST else "odd")
    if not run:
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
    yield ""
    yield _counts(kit_rules())


def _counts(rules: Iterable[Rule]) -> str:
    judged_rules = {law.rule for law in LAWS.values()}
    numbers = [rule.number for rule in rules]
    judged = sum(number in judged_rules for number in numbers)
    return f"{len(numbers)} rules, {judged} of them judged by {len(LAWS)} laws"
