"""The life of a stream as a table: (state, input) → (next state, action).

The table decides, `stream_machine` acts. A stream is seen from one side; its states are what that
side still has to do::

    as requester                                   as responder
    REQUESTER_RESPONSE     awaits one element      RESPONDER_REASSEMBLY   awaits the whole request
    REQUESTER_STREAM       receives                RESPONDER_RESPONSE     owes one element
    REQUESTER_CHANNEL      receives and sends      RESPONDER_STREAM       sends
    REQUESTER_CHANNEL_IN   only receives           RESPONDER_CHANNEL      receives and sends
    REQUESTER_CHANNEL_OUT  only sends              RESPONDER_CHANNEL_IN   only receives
                                                   RESPONDER_CHANNEL_OUT  only sends
    FLUSHING  everything is queued, and not yet sent
    CLOSED    unknown, or not known any more

An input without an entry is ignored, as the protocol requires of frames that make no sense.
"""

from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias


class InteractionModel(IntEnum):
    """The four interactions, and the metadata push, by the types of the frames that begin them."""

    RESPONSE = 0x04
    FNF = 0x05
    STREAM = 0x06
    CHANNEL = 0x07
    PUSH = 0x0C


class State(IntEnum):
    """What this side still has to do."""

    CLOSED = 0
    REQUESTER_RESPONSE = 1
    REQUESTER_STREAM = 2
    REQUESTER_CHANNEL = 3
    REQUESTER_CHANNEL_IN = 4
    REQUESTER_CHANNEL_OUT = 5
    RESPONDER_REASSEMBLY = 6
    RESPONDER_RESPONSE = 7
    RESPONDER_STREAM = 8
    RESPONDER_CHANNEL = 9
    RESPONDER_CHANNEL_IN = 10
    RESPONDER_CHANNEL_OUT = 11
    FLUSHING = 12


class Input(IntEnum):
    """The events of a stream: a frame of the peer, or a command of this side."""

    REQUEST = 0
    NEXT = 1
    LAST = 2  # an element, and the end
    COMPLETE = 3
    REQUEST_N = 4
    CANCEL = 5
    ERROR = 6
    VIOLATION = 7  # more elements than requested, or larger ones
    SEND_COMPLETE = 8
    SEND_CANCEL = 9
    SEND_ERROR = 10


class Action(IntEnum):
    """The consequences for the application and the wire."""

    IGNORE = 0
    DELIVER = 1  # an element
    FINISH = 2  # an element and the end, or the end alone
    CREDIT = 3  # the peer requests more
    STOP_SENDING = 4  # the peer no longer receives
    FAIL_RECEIVING = 5  # the peer has failed its direction
    ABORT = 6  # both
    OPEN = 7  # the request is whole
    DROP = 8  # the request will never be whole
    REFUSE_CANCEL = 9  # the peer broke a rule: cancel, and fail what comes in
    REFUSE_ERROR = 10  # as responder: send an error, fail, stop
    COMPLETE_SENT = 11  # complete is queued
    CANCEL_SENT = 12  # cancel is queued
    ERROR_SENT = 13  # an error is queued


class Step(NamedTuple):
    state: State
    action: Action


S, A = State, Action

Row: TypeAlias = dict[Input, tuple[State, Action]]
_REQUESTER_ENDS: Final[Row] = {
    Input.ERROR: (S.CLOSED, A.FAIL_RECEIVING),
    Input.VIOLATION: (S.CLOSED, A.REFUSE_CANCEL),
    Input.SEND_CANCEL: (S.CLOSED, A.CANCEL_SENT),
}
"""How a requester that only receives ends its stream."""
_SENDER_ENDS: Final[Row] = {
    Input.CANCEL: (S.CLOSED, A.STOP_SENDING),
    Input.SEND_COMPLETE: (S.FLUSHING, A.COMPLETE_SENT),
    Input.SEND_ERROR: (S.FLUSHING, A.ERROR_SENT),
}
"""How a side that only sends ends its stream."""
_ROWS: Final[dict[State, Row]] = {
    S.CLOSED: {},
    S.REQUESTER_RESPONSE: _REQUESTER_ENDS
    | {
        Input.NEXT: (S.CLOSED, A.FINISH),  # one element is the end, flagged or not
        Input.LAST: (S.CLOSED, A.FINISH),
        Input.COMPLETE: (S.CLOSED, A.FINISH),
    },
    S.REQUESTER_STREAM: _REQUESTER_ENDS
    | {
        Input.NEXT: (S.REQUESTER_STREAM, A.DELIVER),
        Input.LAST: (S.CLOSED, A.FINISH),
        Input.COMPLETE: (S.CLOSED, A.FINISH),
    },
    S.REQUESTER_CHANNEL: {
        Input.NEXT: (S.REQUESTER_CHANNEL, A.DELIVER),
        Input.LAST: (S.REQUESTER_CHANNEL_OUT, A.FINISH),
        Input.COMPLETE: (S.REQUESTER_CHANNEL_OUT, A.FINISH),
        Input.REQUEST_N: (S.REQUESTER_CHANNEL, A.CREDIT),
        Input.CANCEL: (S.REQUESTER_CHANNEL_IN, A.STOP_SENDING),
        Input.ERROR: (S.CLOSED, A.ABORT),
        Input.VIOLATION: (S.CLOSED, A.REFUSE_CANCEL),
        Input.SEND_COMPLETE: (S.REQUESTER_CHANNEL_IN, A.COMPLETE_SENT),
        Input.SEND_CANCEL: (S.CLOSED, A.CANCEL_SENT),
        Input.SEND_ERROR: (S.FLUSHING, A.ERROR_SENT),
    },
    S.REQUESTER_CHANNEL_IN: _REQUESTER_ENDS
    | {
        Input.NEXT: (S.REQUESTER_CHANNEL_IN, A.DELIVER),
        Input.LAST: (S.FLUSHING, A.FINISH),
        Input.COMPLETE: (S.FLUSHING, A.FINISH),
    },
    S.REQUESTER_CHANNEL_OUT: _SENDER_ENDS
    | {
        Input.REQUEST_N: (S.REQUESTER_CHANNEL_OUT, A.CREDIT),
        Input.ERROR: (S.CLOSED, A.STOP_SENDING),
    },
    S.RESPONDER_REASSEMBLY: {
        Input.NEXT: (S.RESPONDER_REASSEMBLY, A.OPEN),  # and then its state of RESPONDER_STATES
        Input.LAST: (S.RESPONDER_REASSEMBLY, A.OPEN),
        Input.COMPLETE: (S.RESPONDER_REASSEMBLY, A.OPEN),
        Input.REQUEST_N: (S.RESPONDER_REASSEMBLY, A.CREDIT),
        Input.CANCEL: (S.CLOSED, A.DROP),
        Input.ERROR: (S.CLOSED, A.DROP),
        Input.VIOLATION: (S.CLOSED, A.REFUSE_ERROR),
    },
    S.RESPONDER_RESPONSE: _SENDER_ENDS,
    S.RESPONDER_STREAM: _SENDER_ENDS | {Input.REQUEST_N: (S.RESPONDER_STREAM, A.CREDIT)},
    S.RESPONDER_CHANNEL: {
        Input.NEXT: (S.RESPONDER_CHANNEL, A.DELIVER),
        Input.LAST: (S.RESPONDER_CHANNEL_OUT, A.FINISH),
        Input.COMPLETE: (S.RESPONDER_CHANNEL_OUT, A.FINISH),
        Input.REQUEST_N: (S.RESPONDER_CHANNEL, A.CREDIT),
        Input.CANCEL: (S.CLOSED, A.ABORT),
        Input.ERROR: (S.CLOSED, A.ABORT),
        Input.VIOLATION: (S.CLOSED, A.REFUSE_ERROR),
        Input.SEND_COMPLETE: (S.RESPONDER_CHANNEL_IN, A.COMPLETE_SENT),
        Input.SEND_CANCEL: (S.RESPONDER_CHANNEL_OUT, A.CANCEL_SENT),
        Input.SEND_ERROR: (S.FLUSHING, A.ERROR_SENT),
    },
    S.RESPONDER_CHANNEL_IN: {
        Input.NEXT: (S.RESPONDER_CHANNEL_IN, A.DELIVER),
        Input.LAST: (S.FLUSHING, A.FINISH),
        Input.COMPLETE: (S.FLUSHING, A.FINISH),
        Input.CANCEL: (S.CLOSED, A.FAIL_RECEIVING),
        Input.ERROR: (S.CLOSED, A.FAIL_RECEIVING),
        Input.VIOLATION: (S.CLOSED, A.REFUSE_ERROR),
        Input.SEND_CANCEL: (S.FLUSHING, A.CANCEL_SENT),
        Input.SEND_ERROR: (S.FLUSHING, A.ERROR_SENT),
    },
    S.RESPONDER_CHANNEL_OUT: _SENDER_ENDS
    | {
        Input.REQUEST_N: (S.RESPONDER_CHANNEL_OUT, A.CREDIT),
        Input.ERROR: (S.CLOSED, A.STOP_SENDING),
    },
    S.FLUSHING: {
        Input.CANCEL: (S.CLOSED, A.DROP),
        Input.ERROR: (S.CLOSED, A.DROP),
    },
}

TABLE: Final[dict[tuple[State, Input], Step]] = {
    (state, input_): Step(*_ROWS[state].get(input_, (state, A.IGNORE)))
    for state in State
    for input_ in Input
}


RECEIVING_STATES: Final = frozenset(state for state in State if Input.SEND_CANCEL in _ROWS[state])
"""The states in which this side can cancel."""
SENDING_STATES: Final = frozenset(state for state in State if Input.SEND_COMPLETE in _ROWS[state])
"""The states in which this side can complete."""
RESPONDER_STATES: Final[dict[InteractionModel, State]] = {
    InteractionModel.RESPONSE: S.RESPONDER_RESPONSE,
    InteractionModel.FNF: S.CLOSED,
    InteractionModel.STREAM: S.RESPONDER_STREAM,
    InteractionModel.CHANNEL: S.RESPONDER_CHANNEL,
}
"""The first state of a stream that the peer opened, once its request is whole."""
