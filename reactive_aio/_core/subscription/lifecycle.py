"""The life of one subscription as a table: (phase, input) → (next phase, action).

The table decides, `island` acts. Nothing here makes a call, so re-entrancy cannot interfere: an
input that arrives while a drain is running finds the phase DRAINING and is only recorded.

::

    OPENING ──paused──▶ IDLE ◀──paused── DRAINING        on_subscribe runs in OPENING
       │                 │ ──request/wake──▶ │
       └──cancel/fault──▶ CLOSING ◀──────────┘           stopping; a drain is still running
                         │ paused/finished
                         ▼
                       CLOSED
"""

from enum import IntEnum


class Phase(IntEnum):
    """The phase of a subscription. Signals run only in OPENING and DRAINING."""

    OPENING = 0
    IDLE = 1
    DRAINING = 2
    CLOSING = 3
    CLOSED = 4

    steps: "tuple[tuple[Phase, Action], ...]"
    """The rows of `TABLE` for this phase, by input."""


class Input(IntEnum):
    """What can happen to a subscription."""

    REQUEST = 0  # downstream requested more
    WAKE = 1  # upstream has more, or has ended
    CANCEL = 2  # downstream cancelled
    FAULT = 3  # downstream broke a rule that must be answered by on_error (3.9)
    PAUSED = 4  # the drain (or on_subscribe) returned: no demand, or no elements
    FINISHED = 5  # the drain ended: source exhausted, failed, or the subscriber raised


class Action(IntEnum):
    """What the driver does next, after the phase has changed."""

    NOTHING = 0
    DRAIN = 1  # run the drain
    RECHECK = 2  # check again: demand or elements may have arrived while the drain was pausing
    INTERRUPT = 3  # make the running drain return soon
    RELEASE = 4  # silently: cancel upstream, drop every reference (3.13)
    TERMINATE = 5  # release, then send the terminal signal (1.4, 1.5)


P, A = Phase, Action

TABLE: dict[tuple[Phase, Input], tuple[Phase, Action]] = {
    # No signal before on_subscribe has returned (1.3).
    (P.OPENING, Input.REQUEST): (P.OPENING, A.NOTHING),
    (P.OPENING, Input.WAKE): (P.OPENING, A.NOTHING),
    (P.OPENING, Input.CANCEL): (P.CLOSING, A.NOTHING),
    (P.OPENING, Input.FAULT): (P.CLOSING, A.NOTHING),
    (P.OPENING, Input.PAUSED): (P.IDLE, A.RECHECK),
    (P.OPENING, Input.FINISHED): (P.CLOSED, A.TERMINATE),
    (P.IDLE, Input.REQUEST): (P.DRAINING, A.DRAIN),
    (P.IDLE, Input.WAKE): (P.DRAINING, A.DRAIN),
    (P.IDLE, Input.CANCEL): (P.CLOSED, A.RELEASE),
    (P.IDLE, Input.FAULT): (P.CLOSED, A.TERMINATE),
    (P.IDLE, Input.PAUSED): (P.IDLE, A.NOTHING),
    (P.IDLE, Input.FINISHED): (P.CLOSED, A.TERMINATE),
    (P.DRAINING, Input.REQUEST): (P.DRAINING, A.NOTHING),  # an addition, no recursion (3.3)
    (P.DRAINING, Input.WAKE): (P.DRAINING, A.NOTHING),
    (P.DRAINING, Input.CANCEL): (P.CLOSING, A.INTERRUPT),
    (P.DRAINING, Input.FAULT): (P.CLOSING, A.INTERRUPT),
    (P.DRAINING, Input.PAUSED): (P.IDLE, A.RECHECK),
    (P.DRAINING, Input.FINISHED): (P.CLOSED, A.TERMINATE),
    (P.CLOSING, Input.REQUEST): (P.CLOSING, A.NOTHING),  # 3.6
    (P.CLOSING, Input.WAKE): (P.CLOSING, A.NOTHING),
    (P.CLOSING, Input.CANCEL): (P.CLOSING, A.NOTHING),  # 3.7
    (P.CLOSING, Input.FAULT): (P.CLOSING, A.NOTHING),
    (P.CLOSING, Input.PAUSED): (P.CLOSED, A.TERMINATE),
    (P.CLOSING, Input.FINISHED): (P.CLOSED, A.TERMINATE),
} | {(P.CLOSED, happened): (P.CLOSED, A.NOTHING) for happened in Input}  # 1.7, 3.6, 3.7
"""Total: every phase answers every input. TERMINATE out of CLOSING sends the fault, if one is
recorded, and is silent after a cancellation."""

STEPS = tuple(tuple(TABLE[phase, happened] for happened in Input) for phase in Phase)
"""The same by position: hashing members of an enumeration takes longer than all the rest."""

for _phase in Phase:
    _phase.steps = STEPS[_phase]
