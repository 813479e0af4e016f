"""What must follow from an error of the user's code."""

from tests.contract.raising.kinds import Kind
from tests.contract.raising.observe import Outcome


def check_received(outcome: Outcome, kind: Kind) -> None:
    """The consumer receives it, or what stands for it, with the original as its cause."""
    assert isinstance(outcome.end, kind.received), outcome.end
    assert kind.make().__class__ in (type(outcome.end), type(outcome.end.__cause__))
    assert outcome.reported == []


def check_raised_by_cleanup(outcome: Outcome, kind: Kind) -> None:
    """The consumer that awaits a cleanup receives its error."""
    if outcome.end is not None or not kind.may_be_an_end:
        assert isinstance(outcome.end, kind.may_be_an_end or kind.received), outcome.end
    assert outcome.reported == []


def check_reported(outcome: Outcome, kind: Kind) -> None:
    """It goes to the loop's exception handler, once."""
    allowed = kind.may_be_an_end or kind.received
    assert [type(each) for each in outcome.reported if not isinstance(each, allowed)] == []
    assert len(outcome.reported) == 1 or (kind.may_be_an_end and not outcome.reported)


def check_nothing_is_left(outcome: Outcome) -> None:
    """Each source that was opened is closed, once, and no task goes on."""
    assert outcome.code.opened == outcome.code.closed
    assert not outcome.is_open
    assert outcome.left == set()
