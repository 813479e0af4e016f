"""The life of a stream: every state against everything that can happen to it."""

import pytest

from reactive_aio.rsocket.protocol.states import (
    OPENED,
    RECEIVING,
    SENDING,
    TABLE,
    Action,
    Input,
    Model,
    State,
    step,
)

# Each line: a state; then, for each input in the order of the heading, what becomes of it.
# `.` nothing; otherwise the action, and after `>` the next state if it is another one.
EXPECTED = """
            NEXT         LAST             COMPLETE         REQUEST_N CANCEL         ERROR
GONE        .            .                .                .         .              .
ONE         FINISH>GONE  FINISH>GONE      FINISH>GONE      .         .              FAIL>GONE
MANY        DELIVER      FINISH>GONE      FINISH>GONE      .         .              FAIL>GONE
CALL        DELIVER      FINISH>CALL_OUT  FINISH>CALL_OUT  CREDIT    STOP>CALL_IN   ABORT>GONE
CALL_IN     DELIVER      FINISH>FLUSH     FINISH>FLUSH     .         .              FAIL>GONE
CALL_OUT    .            .                .                CREDIT    STOP>GONE      STOP>GONE
GATHER      OPEN         OPEN             OPEN             CREDIT    DROP>GONE      DROP>GONE
REPLY       .            .                .                .         STOP>GONE      .
SERVE       .            .                .                CREDIT    STOP>GONE      .
TALK        DELIVER      FINISH>TALK_OUT  FINISH>TALK_OUT  CREDIT    ABORT>GONE     ABORT>GONE
TALK_IN     DELIVER      FINISH>FLUSH     FINISH>FLUSH     .         FAIL>GONE      FAIL>GONE
TALK_OUT    .            .                .                CREDIT    STOP>GONE      STOP>GONE
FLUSH       .            .                .                .         DROP>GONE      DROP>GONE
"""
HERE = """
            EXCESS              SEND_COMPLETE   SEND_CANCEL         SEND_ERROR
GONE        .                   .               .                   .
ONE         REFUSE_CANCEL>GONE  .               CANCELLED>GONE      .
MANY        REFUSE_CANCEL>GONE  .               CANCELLED>GONE      .
CALL        REFUSE_CANCEL>GONE  ENDED>CALL_IN   CANCELLED>GONE      FAILED>FLUSH
CALL_IN     REFUSE_CANCEL>GONE  .               CANCELLED>GONE      .
CALL_OUT    .                   ENDED>FLUSH     .                   FAILED>FLUSH
GATHER      REFUSE_ERROR>GONE   .               .                   .
REPLY       .                   ENDED>FLUSH     .                   FAILED>FLUSH
SERVE       .                   ENDED>FLUSH     .                   FAILED>FLUSH
TALK        REFUSE_ERROR>GONE   ENDED>TALK_IN   CANCELLED>TALK_OUT  FAILED>FLUSH
TALK_IN     REFUSE_ERROR>GONE   .               CANCELLED>FLUSH     FAILED>FLUSH
TALK_OUT    .                   ENDED>FLUSH     .                   FAILED>FLUSH
FLUSH       .                   .               .                   .
"""


def drawn() -> list[tuple[State, Input, str]]:
    cells: list[tuple[State, Input, str]] = []
    for table in (EXPECTED, HERE):
        heading, *rows = [line.split() for line in table.strip("\n").splitlines()]
        for name, *outcomes in rows:
            for input_, outcome in zip(heading, outcomes, strict=True):
                cells.append((State[name], Input[input_], outcome))
    return cells


@pytest.mark.parametrize(("state", "input_", "outcome"), drawn())
def test_every_input_in_every_state(state: State, input_: Input, outcome: str) -> None:
    action, _, next_state = outcome.partition(">")
    expected = (State[next_state] if next_state else state, Action[action.replace(".", "IGNORE")])
    assert step(state, input_) == expected


def test_the_drawing_is_complete() -> None:
    cells = {(state, input_) for state, input_, _ in drawn()}
    assert cells | {(state, Input.REQUEST) for state in State} == TABLE.keys()


@pytest.mark.parametrize("state", State)
def test_a_request_on_a_stream_that_lives_means_nothing(state: State) -> None:
    assert step(state, Input.REQUEST) == (state, Action.IGNORE)


@pytest.mark.parametrize("state", State)
def test_who_receives_takes_elements_and_who_sends_takes_demand(state: State) -> None:
    takes = step(state, Input.NEXT).action in (Action.DELIVER, Action.FINISH)
    assert takes == (state in RECEIVING)
    ends = step(state, Input.SEND_COMPLETE).action is Action.ENDED
    assert ends == (state in SENDING)


def test_from_every_state_a_stream_can_end() -> None:
    ending = {State.GONE}
    while True:
        more = {state for (state, _), after in TABLE.items() if after.state in ending} | ending
        if more == ending:
            break
        ending = more
    # What is flushed is gone when it has been sent.
    assert ending == set(State)


def test_nothing_comes_after_the_end() -> None:
    assert all(step(State.GONE, input_).action is Action.IGNORE for input_ in Input)
    assert set(OPENED) == set(Model)
