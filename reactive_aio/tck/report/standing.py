"""How each rule stands after a check: the verdicts of the laws, brought together rule by rule."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ..laws import LAWS
from ..network.rules import WIRE_RULES
from ..rules import HOUSE_RULES, RULES, UNJUDGED, Rule, Strength, in_order
from .show import rule_named
from .verdict import Outcome, Report, Verdict

__all__ = ("Standing", "all_rules", "left_out", "standings")

_STRONGEST: Final = tuple(Strength)


@dataclass(frozen=True)
class Standing:
    """What the laws say about one rule, for the subject in one role."""

    rule: str
    role: str
    strength: Strength
    outcome: Outcome
    why: str
    laws: int
    """How many laws of this rule were run."""
    passed: int
    """How many of them passed."""


def all_rules() -> list[Rule]:
    """The specification's rules, then the house's own."""
    return [*RULES.values(), *HOUSE_RULES.values()]


def standings(report: Report) -> list[Standing]:
    """One for each rule and role that a law is about, or that was broken on the way."""
    found = {(each.rule, each.role) for each in report}
    found |= {(each.broken or each.rule, each.role) for each in report if each.fails}
    roles = list(dict.fromkeys(each.role for each in report))
    pairs = sorted(found, key=lambda pair: (in_order(pair[0]), roles.index(pair[1])))
    return [_standing(report, rule, role) for rule, role in pairs]


def left_out(report: Report) -> dict[str, list[str]]:
    """The rules of the specification that are not among the standings, by the reason why."""
    found = {each.rule for each in standings(report)}
    reasons: dict[str, list[str]] = {}
    if any(rule in WIRE_RULES for rule in found):
        return reasons  # a server was judged, by rules of another kind
    for rule in RULES:
        if rule not in found:
            reasons.setdefault(_reason(rule), []).append(rule)
    return reasons


def _reason(rule: str) -> str:
    needs = {part for law in LAWS.values() if law.rule == rule for part in law.needs}
    if needs:
        return f"the subject has no {' and no '.join(sorted(needs))}"
    return UNJUDGED.get(rule, "there is no law for it")


def _standing(report: Report, rule: str, role: str) -> Standing:
    here = [each for each in report if each.role == role]
    own = [each for each in here if each.rule == rule]
    against = [each for each in here if each.fails and (each.broken or each.rule) == rule]
    laws = {each.law for each in own}
    passed = laws - {each.law for each in own if each.outcome is not Outcome.PASS}
    known = rule_named(rule)
    strength = known.strength if known is not None else (own or against)[0].strength
    if against:
        outcome, why = Outcome.FAIL, _offence(rule, against)
        strength = min((each.strength for each in against), key=_STRONGEST.index)
    elif passed:
        outcome, why = Outcome.PASS, "; ".join(_reasons(own, passed=True))
    else:
        outcome, why = Outcome.NOT_JUDGED, "; ".join(_reasons(own, passed=False))
    return Standing(rule, role, strength, outcome, why, len(laws), len(passed))


def _offence(rule: str, against: list[Verdict]) -> str:
    first = min(against, key=lambda each: each.rule != rule)
    others = len({each.law for each in against}) - 1
    further = f", and {others} more" if others else ""
    return f"{first.why.removeprefix(f'rule {rule}: ')} ({first.law}{further})"


def _reasons(own: list[Verdict], passed: bool) -> Iterator[str]:
    """Why those laws say nothing about their rule that do not."""
    elsewhere = {each.law: f"failed on rule {each.broken}" for each in own if each.fails}
    for why, count in Counter(elsewhere.values()).items():
        yield f"{_laws(count)} {why}" if passed else f"its {_laws(count).removeprefix('1 ')} {why}"
    silent = {each.law: each.why for each in own if each.outcome is Outcome.NOT_JUDGED}
    for why, count in Counter(silent.values()).items():
        yield f"{_laws(count)} not judged: {why}" if passed else why


def _laws(count: int) -> str:
    return "1 law" if count == 1 else f"{count} laws"
