"""The life of a stream as a table: (state, input) → (next state, action).

The table decides, `exchanges` acts. A stream is seen from one side; the states are what this side
is still to do with it::

    it asked                                  it answers
    ONE       awaits one element              GATHER     awaits the rest of a fragmented request
    MANY      receives                        REPLY      owes one element
    CALL      channel: receives and sends     SERVE      sends
    CALL_IN   channel: only receives          TALK       channel: receives and sends
    CALL_OUT  channel: only sends             TALK_IN    channel: only receives
                                              TALK_OUT   channel: only sends
    FLUSH     everything is said and not yet sent
    GONE      unknown, or known no more

What has no entry is passed over, as the protocol demands of everything that makes no sense.
"""

from enum import IntEnum
from typing import Final, NamedTuple

__all__ = ("OPENED", "RECEIVING", "SENDING", "TABLE", "Action", "Input", "Model", "State", "step")


class Model(IntEnum):
    """The four interactions."""

    RESPONSE = 0x04
    FNF = 0x05
    STREAM = 0x06
    CHANNEL = 0x07


class State(IntEnum):
    """What this side is still to do."""

    GONE = 0
    ONE = 1
    MANY = 2
    CALL = 3
    CALL_IN = 4
    CALL_OUT = 5
    GATHER = 6
    REPLY = 7
    SERVE = 8
    TALK = 9
    TALK_IN = 10
    TALK_OUT = 11
    FLUSH = 12


class Input(IntEnum):
    """What can happen to a stream: by a frame of the peer, or by this side's own will."""

    REQUEST = 0
    NEXT = 1
    LAST = 2  # an element, and the end
    COMPLETE = 3
    REQUEST_N = 4
    CANCEL = 5
    ERROR = 6
    EXCESS = 7  # more elements than were asked for, or larger ones
    SEND_COMPLETE = 8
    SEND_CANCEL = 9
    SEND_ERROR = 10


class Action(IntEnum):
    """What follows for the application and the wire."""

    IGNORE = 0
    DELIVER = 1  # an element
    FINISH = 2  # an element and the end, or the end alone
    CREDIT = 3  # the peer wants more
    STOP = 4  # the peer wants no more
    FAIL = 5  # what comes in has failed
    ABORT = 6  # both
    OPEN = 7  # the request is whole
    DROP = 8  # the request never will be
    REFUSE_CANCEL = 9  # the peer broke a rule: cancel, and fail what comes in
    REFUSE_ERROR = 10  # the same on the other side: send an error, fail, stop
    ENDED = 11  # complete is on its way
    CANCELLED = 12  # cancel is on its way
    FAILED = 13  # an error is on its way


class Step(NamedTuple):
    state: State
    action: Action


S, A = State, Action

_ROWS: Final[dict[State, dict[Input, tuple[State, Action]]]] = {
    S.GONE: {},
    S.ONE: {
        Input.NEXT: (S.GONE, A.FINISH),  # one element is the end, said or not
        Input.LAST: (S.GONE, A.FINISH),
        Input.COMPLETE: (S.GONE, A.FINISH),
        Input.ERROR: (S.GONE, A.FAIL),
        Input.EXCESS: (S.GONE, A.REFUSE_CANCEL),
        Input.SEND_CANCEL: (S.GONE, A.CANCELLED),
    },
    S.MANY: {
        Input.NEXT: (S.MANY, A.DELIVER),
        Input.LAST: (S.GONE, A.FINISH),
        Input.COMPLETE: (S.GONE, A.FINISH),
        Input.ERROR: (S.GONE, A.FAIL),
        Input.EXCESS: (S.GONE, A.REFUSE_CANCEL),
        Input.SEND_CANCEL: (S.GONE, A.CANCELLED),
    },
    S.CALL: {
        Input.NEXT: (S.CALL, A.DELIVER),
        Input.LAST: (S.CALL_OUT, A.FINISH),
        Input.COMPLETE: (S.CALL_OUT, A.FINISH),
        Input.REQUEST_N: (S.CALL, A.CREDIT),
        Input.CANCEL: (S.CALL_IN, A.STOP),
        Input.ERROR: (S.GONE, A.ABORT),
        Input.EXCESS: (S.GONE, A.REFUSE_CANCEL),
        Input.SEND_COMPLETE: (S.CALL_IN, A.ENDED),
        Input.SEND_CANCEL: (S.GONE, A.CANCELLED),
        Input.SEND_ERROR: (S.FLUSH, A.FAILED),
    },
    S.CALL_IN: {
        Input.NEXT: (S.CALL_IN, A.DELIVER),
        Input.LAST: (S.FLUSH, A.FINISH),
        Input.COMPLETE: (S.FLUSH, A.FINISH),
        Input.ERROR: (S.GONE, A.FAIL),
        Input.EXCESS: (S.GONE, A.REFUSE_CANCEL),
        Input.SEND_CANCEL: (S.GONE, A.CANCELLED),
    },
    S.CALL_OUT: {
        Input.REQUEST_N: (S.CALL_OUT, A.CREDIT),
        Input.CANCEL: (S.GONE, A.STOP),
        Input.ERROR: (S.GONE, A.STOP),
        Input.SEND_COMPLETE: (S.FLUSH, A.ENDED),
        Input.SEND_ERROR: (S.FLUSH, A.FAILED),
    },
    S.GATHER: {
        Input.NEXT: (S.GATHER, A.OPEN),  # and then the state that OPENED says
        Input.LAST: (S.GATHER, A.OPEN),
        Input.COMPLETE: (S.GATHER, A.OPEN),
        Input.REQUEST_N: (S.GATHER, A.CREDIT),
        Input.CANCEL: (S.GONE, A.DROP),
        Input.ERROR: (S.GONE, A.DROP),
        Input.EXCESS: (S.GONE, A.REFUSE_ERROR),
    },
    S.REPLY: {
        Input.CANCEL: (S.GONE, A.STOP),
        Input.SEND_COMPLETE: (S.FLUSH, A.ENDED),
        Input.SEND_ERROR: (S.FLUSH, A.FAILED),
    },
    S.SERVE: {
        Input.REQUEST_N: (S.SERVE, A.CREDIT),
        Input.CANCEL: (S.GONE, A.STOP),
        Input.SEND_COMPLETE: (S.FLUSH, A.ENDED),
        Input.SEND_ERROR: (S.FLUSH, A.FAILED),
    },
    S.TALK: {
        Input.NEXT: (S.TALK, A.DELIVER),
        Input.LAST: (S.TALK_OUT, A.FINISH),
        Input.COMPLETE: (S.TALK_OUT, A.FINISH),
        Input.REQUEST_N: (S.TALK, A.CREDIT),
        Input.CANCEL: (S.GONE, A.ABORT),
        Input.ERROR: (S.GONE, A.ABORT),
        Input.EXCESS: (S.GONE, A.REFUSE_ERROR),
        Input.SEND_COMPLETE: (S.TALK_IN, A.ENDED),
        Input.SEND_CANCEL: (S.TALK_OUT, A.CANCELLED),
        Input.SEND_ERROR: (S.FLUSH, A.FAILED),
    },
    S.TALK_IN: {
        Input.NEXT: (S.TALK_IN, A.DELIVER),
        Input.LAST: (S.FLUSH, A.FINISH),
        Input.COMPLETE: (S.FLUSH, A.FINISH),
        Input.CANCEL: (S.GONE, A.FAIL),
        Input.ERROR: (S.GONE, A.FAIL),
        Input.EXCESS: (S.GONE, A.REFUSE_ERROR),
        Input.SEND_CANCEL: (S.FLUSH, A.CANCELLED),
        Input.SEND_ERROR: (S.FLUSH, A.FAILED),
    },
    S.TALK_OUT: {
        Input.REQUEST_N: (S.TALK_OUT, A.CREDIT),
        Input.CANCEL: (S.GONE, A.STOP),
        Input.ERROR: (S.GONE, A.STOP),
        Input.SEND_COMPLETE: (S.FLUSH, A.ENDED),
        Input.SEND_ERROR: (S.FLUSH, A.FAILED),
    },
    S.FLUSH: {
        Input.CANCEL: (S.GONE, A.DROP),
        Input.ERROR: (S.GONE, A.DROP),
    },
}

TABLE: Final[dict[tuple[State, Input], Step]] = {
    (state, input_): Step(*_ROWS[state].get(input_, (state, A.IGNORE)))
    for state in State
    for input_ in Input
}

RECEIVING: Final = frozenset({S.ONE, S.MANY, S.CALL, S.CALL_IN, S.TALK, S.TALK_IN})
SENDING: Final = frozenset({S.CALL, S.CALL_OUT, S.REPLY, S.SERVE, S.TALK, S.TALK_OUT})

OPENED: Final[dict[Model, State]] = {
    Model.RESPONSE: S.REPLY,
    Model.FNF: S.GONE,
    Model.STREAM: S.SERVE,
    Model.CHANNEL: S.TALK,
}
"""Where a stream that the peer asked for begins."""


def step(state: State, input_: Input) -> Step:
    return TABLE[state, input_]
