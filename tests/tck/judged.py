"""What every broken and every honest subject of the kit's own tests must show."""

from typing import Final

from reactive_aio.tck import Outcome, Subject, Terms, check
from reactive_aio.tck.laws import LAWS
from reactive_aio.tck.run.judge import Judge
from tests.tck.publishers import BrokenTrial

__all__ = ("HASTY", "PATIENT", "gives_verdicts", "is_caught")

HASTY: Final = Terms(come=0.2, come_again=0.1, held_up=0.03)
PATIENT: Final = Terms(come=20.0, come_again=20.0)
"""What an honest subject does is waited for, however busy the machine is."""
BRISK: Final = Terms(come=0.02, come_again=0.01, turns=10, quiet=0.001, held_up=0.1)


def is_caught(trial: BrokenTrial, role: str) -> None:
    """The law gives the verdict on the subject that the table says, in those words."""
    verdict = Judge(trial.make(), role, HASTY).judge(LAWS[trial.law])
    assert verdict.outcome is trial.outcome, str(verdict)
    assert trial.words in verdict.why, str(verdict)
    assert (verdict.broken if verdict.fails else verdict.rule) == trial.rule, str(verdict)


def gives_verdicts(subject: Subject) -> None:
    """Every law says something of *subject*, and none has an error of the kit."""
    for verdict in check(subject, terms=BRISK):
        assert verdict.outcome is Outcome.PASS or verdict.why, str(verdict)
        assert "came out of the subject" not in verdict.why, str(verdict)
        assert not verdict.stack, str(verdict)
