"""What every broken and every honest candidate of the kit's own tests must show."""

from typing import Final

from reactive_aio.tck import Outcome, Candidate, Timeouts, check
from reactive_aio.tck.laws import LAWS
from reactive_aio.tck.run.judge import Judge
from tests.tck.broken_publishers import BrokenTrial

__all__ = ("HASTY", "PATIENT", "gives_verdicts", "is_caught")

HASTY: Final = Timeouts(response=0.2, reduced_response=0.1, max_block=0.03)
PATIENT: Final = Timeouts(response=20.0, reduced_response=20.0)
"""What an honest candidate does is waited for, however busy the machine is."""
BRISK: Final = Timeouts(response=0.02, reduced_response=0.01, quiet_turns=10, quiet_period=0.001, max_block=0.1)


def is_caught(trial: BrokenTrial, role: str) -> None:
    """The law gives the verdict on the candidate that the table says, in those words."""
    verdict = Judge(trial.make(), role, HASTY).judge(LAWS[trial.law])
    assert verdict.outcome is trial.outcome, str(verdict)
    assert trial.words in verdict.why, str(verdict)
    assert (verdict.broken if verdict.fails else verdict.rule) == trial.rule, str(verdict)


def gives_verdicts(candidate: Candidate) -> None:
    """Every law says something of *candidate*, and none has an error of the kit."""
    for verdict in check(candidate, timeouts=BRISK):
        assert verdict.outcome is Outcome.PASS or verdict.why, str(verdict)
        assert "came out of the candidate" not in verdict.why, str(verdict)
        assert not verdict.stack, str(verdict)
