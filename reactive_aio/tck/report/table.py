"""The tables: the status of every rule after a check, and all rules with their laws."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from ..laws import LAWS
from ..rules import Rule, Strength, rule_order
from .formatting import Style, explain, heading
from .rule_status import NO_LAW, RuleStatus, kit_rules, rule_statuses, unjudged_rules
from .verdict import Outcome, Report, Verdict

_TONES: Final = {Outcome.PASS: "good", Outcome.FAIL: "bad", Outcome.NOT_JUDGED: "odd"}


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
