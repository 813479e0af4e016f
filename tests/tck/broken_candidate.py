"""Candidates that break a law, and the checks that the law detects them.

The tables of broken candidates are in the modules ``broken_*``, their flaws in ``flawed_*``.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from reactive_aio.tck import Candidate, Case, Law, Outcome, Timeouts, check
from reactive_aio.tck.laws import LAWS
from reactive_aio.tck.run.checking import Judge

__all__ = (
    "HASTY",
    "PATIENT",
    "BrokenCandidate",
    "require_broken_candidates",
    "require_caught",
    "require_verdicts",
)

HASTY: Final = Timeouts(response=0.2, reduced_response=0.1, max_block=0.03)
PATIENT: Final = Timeouts(response=20.0, reduced_response=20.0)
"""Conforming candidates get enough time on a busy machine."""
BRISK: Final = Timeouts(
    response=0.02, reduced_response=0.01, quiet_turns=10, quiet_period=0.001, max_block=0.1
)


@dataclass(frozen=True)
class BrokenCandidate:
    """One law, a candidate that breaks it, and the expected verdict."""

    law: str
    flaw: str
    """What the candidate does wrong: "a publisher that …"."""
    make: Callable[[], Candidate]
    rule: str
    """The rule that the verdict names."""
    words: str
    """A part of the verdict's text."""
    outcome: Outcome = Outcome.FAIL

    def __str__(self) -> str:
        return f"{self.law}: {self.flaw}"


def require_caught(broken: BrokenCandidate, role: str) -> None:
    """Require the expected verdict of the law on the candidate."""
    verdict = Judge(HASTY).judge(Case(role, broken.make(), LAWS[broken.law]))
    assert verdict.outcome is broken.outcome, (
        f"the flaw {broken.flaw!r} does not lead to {broken.outcome.value}; "
        f"is it implemented in a module flawed_*?\n{verdict}"
    )
    assert broken.words in verdict.why, str(verdict)
    assert (verdict.broken if verdict.fails else verdict.rule) == broken.rule, str(verdict)


def require_broken_candidates(
    laws: Iterable[Law], table: Iterable[BrokenCandidate], module: str
) -> None:
    """Require a row in *table* for each of *laws*, and no others."""
    names, rows = {law.name for law in laws}, {broken.law for broken in table}
    missing, unknown = sorted(names - rows), sorted(rows - names)
    assert not missing, (
        f"add a row to tests/tck/{module} for each of {', '.join(missing)}; its flaw goes into "
        "the module flawed_* beside it; then run python -m tests.tck.tables"
    )
    assert not unknown, f"tests/tck/{module} names laws that do not exist: {', '.join(unknown)}"


def require_verdicts(candidate: Candidate) -> None:
    """Require a verdict of every law on *candidate*, without an error of the kit."""
    for verdict in check(candidate, timeouts=BRISK):
        assert verdict.outcome is Outcome.PASS or verdict.why, str(verdict)
        assert "came out of the candidate" not in verdict.why, str(verdict)
        assert not verdict.stack, str(verdict)
