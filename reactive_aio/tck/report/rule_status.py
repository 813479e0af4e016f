"""The status of each rule after a check: the verdicts of its laws, combined."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ..laws import LAWS
from ..network.rules import WIRE_RULES
from ..rules import LIBRARY_RULES, RULES, Rule, Strength, rule_order
from .formatting import find_rule
from .verdict import Outcome, Report, Verdict

NO_LAW: Final = "no law judges it"
_STRONGEST: Final = tuple(Strength)


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
