"""The life of a driver: every state against every input."""

from itertools import product

import pytest

from reactive_aio.rsocket.link.driver_lifecycle import OVER, TABLE, Action, Input, State

# Each block: a state, then what can happen, what is done, and the next state if it changes.
# Every other input is ignored.
EXPECTED = """
UNCONNECTED
    ATTACH   START            CONNECTED
    SUSPEND  WAIT             SUSPENDED
    LOSE     RELEASE          CLOSED
    CLOSE    NOTHING          CLOSING
    LEAVE    NOTHING          LEAVING
    DRAIN    NOTHING          DRAINED
    ABORT    ABORT_TRANSPORT  ABORTED
CONNECTED
    ATTACH   START
    SUSPEND  WAIT             SUSPENDED
    LOSE     RELEASE          CLOSED
    REJECT   NOTHING          REFUSING
    CLOSE    LIMIT            CLOSING
    LEAVE    LIMIT            LEAVING
    DRAIN    LIMIT            DRAINED
    SENT     CLOSE_TRANSPORT  CLOSING
    ABORT    ABORT_TRANSPORT  ABORTED
SUSPENDED
    ATTACH   START            CONNECTED
    SUSPEND  WAIT
    LOSE     RELEASE          CLOSED
    CLOSE    NOTHING          CLOSING
    LEAVE    NOTHING          LEAVING
    DRAIN    NOTHING          DRAINED
    ABORT    ABORT_TRANSPORT  ABORTED
CLOSING
    ATTACH   START
    LOSE     RELEASE          CLOSED
    SENT     CLOSE_TRANSPORT
    ABORT    ABORT_TRANSPORT  ABORTED
REFUSING
    LOSE     RELEASE          CLOSED
    CLOSE    LIMIT
    SENT     CLOSE_WRITING
    ABORT    ABORT_TRANSPORT  ABORTED
LEAVING
    ATTACH   START
    LOSE     LINGER           LINGERING
    SENT     CLOSE_TRANSPORT
    ABORT    ABORT_TRANSPORT
DRAINED
    ATTACH   START
    LOSE     LINGER           LINGERING
    SENT     CLOSE_WRITING
    ABORT    ABORT_TRANSPORT
ABORTED
    ATTACH   ABORT_TRANSPORT
    SUSPEND  WAIT
    LOSE     RELEASE          CLOSED
    ABORT    ABORT_TRANSPORT
LINGERING
    ATTACH   ABORT_TRANSPORT
    IDLE     REPORT           CLOSED
CLOSED
    ATTACH   ABORT_TRANSPORT
"""


def expected() -> dict[tuple[State, Input], tuple[State, Action]]:
    """The table, read from the text."""
    cells = {(state, each): (state, Action.NOTHING) for state, each in product(State, Input)}
    state = State.UNCONNECTED
    for line in EXPECTED.strip("\n").splitlines():
        words = line.split()
        if not line.startswith(" "):
            state = State[words[0]]
            continue
        next_state = State[words[2]] if len(words) > 2 else state
        cells[state, Input[words[0]]] = next_state, Action[words[1]]
    return cells


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("happened", Input)
def test_every_input_in_every_state(state: State, happened: Input) -> None:
    assert TABLE[state, happened] == expected()[state, happened]


def test_the_table_answers_every_input_in_every_state() -> None:
    assert TABLE.keys() == expected().keys()


@pytest.mark.parametrize("happened", Input)
def test_a_driver_whose_transport_has_ended_for_good_stays_over(happened: Input) -> None:
    for state in OVER:
        assert TABLE[state, happened][0] in OVER


def test_the_end_is_reported_once() -> None:
    reporting = {Action.RELEASE, Action.REPORT}
    for (state, _), (next_state, action) in TABLE.items():
        if action in reporting:
            assert state is not State.CLOSED
            assert next_state is State.CLOSED
