"""Scores: the verdicts on one contestant, rule by rule, in the groups of the scoreboard."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from reactive_aio.tck import RULES, Outcome, Strength, Verdict
from reactive_aio.tck.law import SETUP
from reactive_aio.tck.rules import LIBRARY_RULES

from .contestant import Contestant

__all__ = ("GROUPS", "Score", "details", "score", "table")

GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "Factories": (SETUP,),
    "Signals": ("1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7"),
    "Subscribing": ("1.9", "1.10", "1.11"),
    "Demand": ("3.1", "3.2", "3.3", "3.4", "3.8", "3.9", "3.10", "3.11", "3.16", "3.17"),
    "Cancelling": ("1.8", "3.5", "3.6", "3.7", "3.12", "3.13", "3.14", "3.15"),
    "Subscribers, processors": tuple(rule for rule in RULES if rule[0] in "24"),
    "Library": tuple(LIBRARY_RULES),
}
"""Every rule, in one of the columns."""


@dataclass
class Score:
    """The status of each rule for one contestant."""

    kept: set[str] = field(default_factory=set[str])
    """Rules that the library keeps."""
    kept_by_adapter: set[str] = field(default_factory=set[str])
    """Rules that the adapter keeps for it."""
    unclear: set[str] = field(default_factory=set[str])
    """Rules whose laws failed on another rule."""
    broken: dict[str, list[Verdict]] = field(default_factory=dict[str, list[Verdict]])

    def is_must(self, rule: str) -> bool:
        """Whether a law of strength MUST found *rule* broken."""
        return any(verdict.strength is Strength.MUST for verdict in self.broken[rule])

    def cell(self, rules: tuple[str, ...]) -> str:
        """The cell for one group of rules."""
        broken = [rule for rule in rules if rule in self.broken]
        musts = [rule for rule in broken if self.is_must(rule)]
        shoulds = [rule for rule in broken if rule not in musts]
        kept, by_adapter, unclear = (
            len(found.intersection(rules))
            for found in (self.kept, self.kept_by_adapter, self.unclear)
        )
        parts = [
            f"**✗ {' '.join(musts)}**" if musts else "",
            f"△ {' '.join(shoulds)}" if shoulds else "",
            f"✓ {kept}" if kept else "",
            f"({by_adapter})" if by_adapter else "",
            f"? {unclear}" if unclear else "",
        ]
        return " · ".join(filter(None, parts)) or "–"


def score(verdicts: Iterable[Verdict], by_adapter: frozenset[str] = frozenset()) -> Score:
    """Combine the verdicts; a failed law counts for the rule that was broken."""
    made = Score()
    passed: set[str] = set()
    for verdict in verdicts:
        if verdict.fails:
            made.broken.setdefault(verdict.broken or verdict.rule, []).append(verdict)
            made.unclear.add(verdict.rule)
        elif verdict.outcome is Outcome.PASS:
            passed.add(verdict.rule)
    passed -= made.broken.keys()
    made.kept, made.kept_by_adapter = passed - by_adapter, passed & by_adapter
    made.unclear -= passed | made.broken.keys()
    return made


def table(scores: Mapping[Contestant, Score]) -> Iterator[str]:
    """The lines of the table."""
    yield f"| | {' | '.join(GROUPS)} |"
    yield f"|---|{'---|' * len(GROUPS)}"
    for contestant, found in scores.items():
        cells = " | ".join(found.cell(rules) for rules in GROUPS.values())
        yield f"| {contestant.name} | {cells} |"


def details(contestant: Contestant, found: Score) -> Iterator[str]:
    """The broken rules of one contestant, in words; nothing if there are none."""
    in_order = [rule for rules in GROUPS.values() for rule in rules if rule in found.broken]
    if not in_order:
        return
    yield f"**{contestant.name}** (`{contestant.where}`)"
    yield ""
    for rule in in_order:
        verdicts = found.broken[rule]
        # The law of the broken rule gives the best explanation.
        shown = min(verdicts, key=lambda verdict: (verdict.rule != rule, verdict.role))
        rules = {**LIBRARY_RULES, **RULES}
        text = rules[rule].text if rule in rules else shown.text
        others = f" and {len(verdicts) - 1} more" if len(verdicts) > 1 else ""
        sign = "✗" if found.is_must(rule) else "△"
        yield f"- {sign} {rule} *{text}* `{shown.law}`{others}: `{_plain(shown.why)}`"
    yield ""


def _plain(why: str) -> str:
    """*why* without what differs between runs, as a code span."""
    why = re.sub(r"^rule [\w.]+: ", "", " ".join(why.split()))
    why = re.sub(r" at 0x[0-9a-f]+", "", why)
    return why.replace("`", "'")
