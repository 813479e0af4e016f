"""The life of a stream: every state against everything that can happen to it."""

import pytest

from reactive_aio.rsocket.protocol.stream_states import (
    RECEIVING_STATES,
    RESPONDER_STATES,
    SENDING_STATES,
    TABLE,
    Action,
    Input,
    InteractionModel,
    State,
)

# Each block: a state, what can happen to it, what is done, and the next state if it changes.
# Every other input is ignored.
EXPECTED = """
CLOSED
REQUESTER_RESPONSE
    NEXT           FINISH          CLOSED
    LAST           FINISH          CLOSED
    COMPLETE       FINISH          CLOSED
    ERROR          FAIL_RECEIVING  CLOSED
    VIOLATION      REFUSE_CANCEL   CLOSED
    SEND_CANCEL    CANCEL_SENT     CLOSED
REQUESTER_STREAM
    NEXT           DELIVER
    LAST           FINISH          CLOSED
    COMPLETE       FINISH          CLOSED
    ERROR          FAIL_RECEIVING  CLOSED
    VIOLATION      REFUSE_CANCEL   CLOSED
    SEND_CANCEL    CANCEL_SENT     CLOSED
REQUESTER_CHANNEL
    NEXT           DELIVER
    LAST           FINISH          REQUESTER_CHANNEL_OUT
    COMPLETE       FINISH          REQUESTER_CHANNEL_OUT
    REQUEST_N      CREDIT
    CANCEL         STOP_SENDING    REQUESTER_CHANNEL_IN
    ERROR          ABORT           CLOSED
    VIOLATION      REFUSE_CANCEL   CLOSED
    SEND_COMPLETE  COMPLETE_SENT   REQUESTER_CHANNEL_IN
    SEND_CANCEL    CANCEL_SENT     CLOSED
    SEND_ERROR     ERROR_SENT      FLUSHING
REQUESTER_CHANNEL_IN
    NEXT           DELIVER
    LAST           FINISH          FLUSHING
    COMPLETE       FINISH          FLUSHING
    ERROR          FAIL_RECEIVING  CLOSED
    VIOLATION      REFUSE_CANCEL   CLOSED
    SEND_CANCEL    CANCEL_SENT     CLOSED
REQUESTER_CHANNEL_OUT
    REQUEST_N      CREDIT
    CANCEL         STOP_SENDING    CLOSED
    ERROR          STOP_SENDING    CLOSED
    SEND_COMPLETE  COMPLETE_SENT   FLUSHING
    SEND_ERROR     ERROR_SENT      FLUSHING
RESPONDER_REASSEMBLY
    NEXT           OPEN
    LAST           OPEN
    COMPLETE       OPEN
    REQUEST_N      CREDIT
    CANCEL         DROP            CLOSED
    ERROR          DROP            CLOSED
    VIOLATION      REFUSE_ERROR    CLOSED
RESPONDER_RESPONSE
    CANCEL         STOP_SENDING    CLOSED
    SEND_COMPLETE  COMPLETE_SENT   FLUSHING
    SEND_ERROR     ERROR_SENT      FLUSHING
RESPONDER_STREAM
    REQUEST_N      CREDIT
    CANCEL         STOP_SENDING    CLOSED
    SEND_COMPLETE  COMPLETE_SENT   FLUSHING
    SEND_ERROR     ERROR_SENT      FLUSHING
RESPONDER_CHANNEL
    NEXT           DELIVER
    LAST           FINISH          RESPONDER_CHANNEL_OUT
    COMPLETE       FINISH          RESPONDER_CHANNEL_OUT
    REQUEST_N      CREDIT
    CANCEL         ABORT           CLOSED
    ERROR          ABORT           CLOSED
    VIOLATION      REFUSE_ERROR    CLOSED
    SEND_COMPLETE  COMPLETE_SENT   RESPONDER_CHANNEL_IN
    SEND_CANCEL    CANCEL_SENT     RESPONDER_CHANNEL_OUT
    SEND_ERROR     ERROR_SENT      FLUSHING
RESPONDER_CHANNEL_IN
    NEXT           DELIVER
    LAST           FINISH          FLUSHING
    COMPLETE       FINISH          FLUSHING
    CANCEL         FAIL_RECEIVING  CLOSED
    ERROR          FAIL_RECEIVING  CLOSED
    VIOLATION      REFUSE_ERROR    CLOSED
    SEND_CANCEL    CANCEL_SENT     FLUSHING
    SEND_ERROR     ERROR_SENT      FLUSHING
RESPONDER_CHANNEL_OUT
    REQUEST_N      CREDIT
    CANCEL         STOP_SENDING    CLOSED
    ERROR          STOP_SENDING    CLOSED
    SEND_COMPLETE  COMPLETE_SENT   FLUSHING
    SEND_ERROR     ERROR_SENT      FLUSHING
FLUSHING
    CANCEL         DROP            CLOSED
    ERROR          DROP            CLOSED
"""


def expected() -> dict[tuple[State, Input], tuple[State, Action]]:
    """The table, read from the text."""
    cells = {(state, input_): (state, Action.IGNORE) for state in State for input_ in Input}
    state = State.CLOSED
    for line in EXPECTED.strip("\n").splitlines():
        words = line.split()
        if not line.startswith(" "):
            state = State[words[0]]
            continue
        next_state = State[words[2]] if len(words) > 2 else state
        cells[state, Input[words[0]]] = next_state, Action[words[1]]
    return cells


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("input_", Input)
def test_every_input_in_every_state(state: State, input_: Input) -> None:
    assert TABLE[state, input_] == expected()[state, input_]


def test_the_table_answers_every_input_in_every_state() -> None:
    assert TABLE.keys() == expected().keys()


@pytest.mark.parametrize("state", State)
def test_a_request_on_an_open_stream_is_ignored(state: State) -> None:
    assert TABLE[state, Input.REQUEST] == (state, Action.IGNORE)


@pytest.mark.parametrize("state", State)
def test_receiving_states_accept_elements_and_sending_states_demand(state: State) -> None:
    takes = TABLE[state, Input.NEXT].action in (Action.DELIVER, Action.FINISH)
    assert takes == (state in RECEIVING_STATES)
    ends = TABLE[state, Input.SEND_COMPLETE].action is Action.COMPLETE_SENT
    assert ends == (state in SENDING_STATES)


def test_from_every_state_a_stream_can_end() -> None:
    ending = {State.CLOSED}
    while True:
        more = {state for (state, _), after in TABLE.items() if after.state in ending} | ending
        if more == ending:
            break
        ending = more
    # What is flushed is gone when it has been sent.
    assert ending == set(State)


def test_nothing_comes_after_the_end() -> None:
    assert all(TABLE[State.CLOSED, input_].action is Action.IGNORE for input_ in Input)
    assert set(RESPONDER_STATES) == set(InteractionModel) - {InteractionModel.PUSH}
