"""The life of a driver as a table: (state, input) → (next state, action).

The table decides, `driver` acts::

    UNCONNECTED ── attach ──▶ CONNECTED ◀─ attach ─ SUSPENDED
                                  │  └──── suspend ────▶
                                  ├─ close ──▶ CLOSING ── lose ──▶ CLOSED
                                  ├─ reject ─▶ REFUSING ─ lose ──▶ CLOSED
                                  ├─ drain ──▶ DRAINED ── lose ──▶ LINGERING ── idle ──▶ CLOSED
                                  └─ leave ──▶ LEAVING ── lose ──▶ LINGERING
    any ── abort ──▶ ABORTED ── lose ──▶ CLOSED

A transport that is attached after an abort, or after the end, is aborted.
"""

from enum import IntEnum
from typing import Final


class State(IntEnum):
    """The relation of a driver to its transport."""

    UNCONNECTED = 0  # no transport yet
    CONNECTED = 1
    SUSPENDED = 2  # the session waits for another transport
    CLOSING = 3  # the connection has ended; its last frames are sent
    REFUSING = 4  # the same, after the client was rejected
    LEAVING = 5  # the same, after the peer closed in good order with no stream open
    ABORTED = 6  # the transport is aborted, or will be as soon as there is one
    LINGERING = 7  # no transport any more; handlers of the peer's last requests finish
    CLOSED = 8
    DRAINED = 9  # the connection has ended as this side announced, with no stream open


class Input(IntEnum):
    """The events of a driver's life."""

    ATTACH = 0  # a transport is ready
    SUSPEND = 1  # the transport has ended; the session may be resumed
    LOSE = 2  # the transport has ended, or there is none and nothing to send
    REJECT = 3  # the application rejects the client
    CLOSE = 4  # the connection ends by this side or by an error
    LEAVE = 5  # the connection ends because the peer closed it in good order
    SENT = 6  # the connection has ended, and its last frame is written
    ABORT = 7  # the application, or the time limit, ends the transport
    IDLE = 8  # the last task has finished
    DRAIN = 9  # the connection ends as this side announced, since no stream is open


class Action(IntEnum):
    """What the driver does once the state is set."""

    NOTHING = 0
    START = 1  # begin or resume on the transport
    WAIT = 2  # wait for another transport
    LIMIT = 3  # give the transport a limited time to end
    CLOSE_TRANSPORT = 4
    CLOSE_WRITING = 5  # close the sending half: the peer may still read why
    ABORT_TRANSPORT = 6
    LINGER = 7  # release everything but the tasks, and give them a limited time
    RELEASE = 8  # release everything and stop the tasks
    REPORT = 9  # call those that wait for the end


_S, _On, _A = State, Input, Action

_COMMON: Final[dict[Input, tuple[State, Action]]] = {
    _On.LOSE: (_S.CLOSED, _A.RELEASE),
    _On.ABORT: (_S.ABORTED, _A.ABORT_TRANSPORT),
}
_WITHOUT_TRANSPORT: Final = _COMMON | {
    _On.ATTACH: (_S.CONNECTED, _A.START),
    _On.SUSPEND: (_S.SUSPENDED, _A.WAIT),
    _On.CLOSE: (_S.CLOSING, _A.NOTHING),
    _On.LEAVE: (_S.LEAVING, _A.NOTHING),
    _On.DRAIN: (_S.DRAINED, _A.NOTHING),
}
_ROWS: Final[dict[State, dict[Input, tuple[State, Action]]]] = {
    _S.UNCONNECTED: _WITHOUT_TRANSPORT,
    _S.CONNECTED: _COMMON
    | {
        _On.ATTACH: (_S.CONNECTED, _A.START),
        _On.SUSPEND: (_S.SUSPENDED, _A.WAIT),
        _On.REJECT: (_S.REFUSING, _A.NOTHING),
        _On.CLOSE: (_S.CLOSING, _A.LIMIT),
        _On.LEAVE: (_S.LEAVING, _A.LIMIT),
        _On.DRAIN: (_S.DRAINED, _A.LIMIT),
        _On.SENT: (_S.CLOSING, _A.CLOSE_TRANSPORT),
    },
    _S.SUSPENDED: _WITHOUT_TRANSPORT,
    _S.CLOSING: _COMMON
    | {
        _On.ATTACH: (_S.CLOSING, _A.START),
        _On.SENT: (_S.CLOSING, _A.CLOSE_TRANSPORT),
    },
    _S.REFUSING: _COMMON
    | {
        _On.CLOSE: (_S.REFUSING, _A.LIMIT),
        _On.SENT: (_S.REFUSING, _A.CLOSE_WRITING),
    },
    _S.LEAVING: {
        _On.ATTACH: (_S.LEAVING, _A.START),
        _On.SENT: (_S.LEAVING, _A.CLOSE_TRANSPORT),
        _On.ABORT: (_S.LEAVING, _A.ABORT_TRANSPORT),
        _On.LOSE: (_S.LINGERING, _A.LINGER),
    },
    # Closing a socket with unread data would reset it, and the peer could lose the last elements.
    _S.DRAINED: {
        _On.ATTACH: (_S.DRAINED, _A.START),
        _On.SENT: (_S.DRAINED, _A.CLOSE_WRITING),
        _On.ABORT: (_S.DRAINED, _A.ABORT_TRANSPORT),
        _On.LOSE: (_S.LINGERING, _A.LINGER),
    },
    _S.ABORTED: {
        _On.ATTACH: (_S.ABORTED, _A.ABORT_TRANSPORT),
        _On.SUSPEND: (_S.ABORTED, _A.WAIT),
        _On.ABORT: (_S.ABORTED, _A.ABORT_TRANSPORT),
        _On.LOSE: (_S.CLOSED, _A.RELEASE),
    },
    _S.LINGERING: {
        _On.ATTACH: (_S.LINGERING, _A.ABORT_TRANSPORT),
        _On.IDLE: (_S.CLOSED, _A.REPORT),
    },
    _S.CLOSED: {
        _On.ATTACH: (_S.CLOSED, _A.ABORT_TRANSPORT),
    },
}

TABLE: Final[dict[tuple[State, Input], tuple[State, Action]]] = {
    (state, happened): _ROWS[state].get(happened, (state, _A.NOTHING))
    for state in State
    for happened in Input
}
"""Total: every state answers every input, with NOTHING unless its row says more."""

OVER: Final = frozenset({_S.LINGERING, _S.CLOSED})
"""The states without a transport that never get one again."""
