"""The table of a subscription's life, under every sequence of inputs."""

import itertools

from hypothesis import given, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from reactive_aio._core.subscription.lifecycle import STEPS, TABLE, Action, Input, Phase
from tests.core import machines

P, A = Phase, Action
ENDINGS = {A.RELEASE, A.TERMINATE}


def run(inputs: list[Input], phase: Phase = P.OPENING) -> list[tuple[Phase, Action]]:
    seen: list[tuple[Phase, Action]] = []
    for happened in inputs:
        phase, action = STEPS[phase][happened]
        seen.append((phase, action))
    return seen


def test_every_phase_answers_every_input() -> None:
    assert set(TABLE) == set(itertools.product(Phase, Input))


@given(st.lists(st.sampled_from(Input)))
def test_it_ends_at_most_once(inputs: list[Input]) -> None:
    """1.7, 3.7: one release or one terminal signal, never both."""
    assert sum(action in ENDINGS for _, action in run(inputs)) <= 1


@given(st.lists(st.sampled_from(Input)))
def test_nothing_happens_after_the_end(inputs: list[Input]) -> None:
    """1.7, 3.6, 3.7: CLOSED is left by nothing and does nothing."""
    seen = run(inputs)
    closed = [index for index, (phase, _) in enumerate(seen) if phase is P.CLOSED]
    if closed:
        assert {phase for phase, _ in seen[closed[0] :]} == {P.CLOSED}
        assert {action for _, action in seen[closed[0] + 1 :]} <= {A.NOTHING}


@given(st.lists(st.sampled_from(Input)))
def test_only_an_ending_reaches_closed(inputs: list[Input]) -> None:
    """3.13: a subscription that reaches it has dropped its references."""
    before = P.OPENING
    for phase, action in run(inputs):
        assert (phase is P.CLOSED and before is not P.CLOSED) == (action in ENDINGS)
        before = phase


def test_a_drain_starts_only_when_none_is_running() -> None:
    """1.3, 3.3: a request while a signal is under way is an addition."""
    begins = {phase for (phase, _), (_, action) in TABLE.items() if action is A.DRAIN}
    assert begins == {P.IDLE}


def test_it_checks_again_whenever_it_pauses() -> None:
    """No wake-up is lost: whatever came while it was leaving is seen by the recheck."""
    for (phase, happened), (then, action) in TABLE.items():
        if then is P.IDLE and phase is not P.IDLE:
            assert (happened, action) == (Input.PAUSED, A.RECHECK)


def test_only_a_running_drain_is_interrupted() -> None:
    for (phase, happened), (then, action) in TABLE.items():
        if action is A.INTERRUPT:
            assert (phase, then) == (P.DRAINING, P.CLOSING)
            assert happened in {Input.CANCEL, Input.FAULT}


@given(st.lists(st.sampled_from([Input.REQUEST, Input.WAKE])))
def test_requests_and_wake_ups_never_end_it(inputs: list[Input]) -> None:
    assert all(action not in ENDINGS for _, action in run(inputs))


class Driver(RuleBasedStateMachine):
    """A driver like `island`: it executes the actions of the table and reports what happened."""

    def __init__(self) -> None:
        super().__init__()
        self.phase = P.OPENING
        self.working = True  # on_subscribe is under way
        self.endings = 0

    def tell(self, happened: Input) -> None:
        self.phase, action = STEPS[self.phase][happened]
        if action is A.DRAIN:
            assert not self.working, "a second drain (1.3)"
            self.working = True
        elif action in ENDINGS:
            assert not self.working, "ended while a drain was running"
            self.endings += 1

    @rule(happened=st.sampled_from([Input.REQUEST, Input.WAKE, Input.CANCEL, Input.FAULT]))
    def from_outside(self, happened: Input) -> None:
        self.tell(happened)

    @precondition(lambda self: self.working)
    @rule(happened=st.sampled_from([Input.PAUSED, Input.FINISHED]))
    def the_drain_returns(self, happened: Input) -> None:
        self.working = False
        self.tell(happened)

    @invariant()
    def it_has_ended_once_exactly_when_it_is_closed(self) -> None:
        assert self.endings == (self.phase is P.CLOSED)

    @invariant()
    def a_drain_runs_in_the_phases_for_it(self) -> None:
        if self.phase is P.DRAINING or self.phase is P.OPENING:
            assert self.working
        if self.phase is P.IDLE or self.phase is P.CLOSED:
            assert not self.working


def test_a_driver_that_follows_the_table_never_overlaps_and_ends_once() -> None:
    machines.run(Driver)
