"""The loops that `fusion` fills in: where elements come from, and how demand bounds them.

A line in capitals stands for lines of the chain or of the mode (`WAYS`):

``BULK``     one element through the stages; demand is accounted after the batch
``COUNTED``  the same, and each delivery is counted
``CHECKED``  the same, and demand is looked at before each delivery (one in, many out)
``WAIT``     pause until there is demand, or end if the source is known to have ended; ``CHECK``:
             only if there is none
``DRY``      ask upstream for what is needed, and pause until there are elements
``TURN``     look at the clock; give the loop a turn when the time slice is over. Where elements are
             pushed, ``PACE`` looks, and ``REST`` gives the turn only when there is more to do
"""

from typing import Final

__all__ = ("LOOP_TEMPLATES", "MODE_LINES")

# Bulk batches leave at least one element of demand over. So `emitted` may be wrong only when the
# source has ended, and then the next look at it finds nothing and ends the loop.
_PULL: Final = """
while True:
    room = S.limit - emitted
    if room > 8:
        size = batch if batch < room else room - 1
        dropped = 0
        x = END
        for x in islice(src, size):
            BULK
        if x is END:
            break
        emitted += size - dropped
        TURN
    elif room > 0:
        x = END
        for x in islice(src, batch):
            COUNTED
            if emitted >= S.limit:
                break
        else:
            if x is END:
                break
            TURN
    else:
        WAIT
"""

# From a source without stages straight into a container, which keeps what came before an error.
_EXTEND: Final = """
while True:
    room = S.limit - emitted
    if room > 0:
        size = batch if batch < room else room
        held = len(kept)
        kept.extend(islice(src, size))
        taken = len(kept) - held
        emitted += taken
        if taken < size:
            break
        TURN
    else:
        WAIT
"""

_PULL_MANY: Final = """
CHECK
while True:
    x = END
    for x in islice(src, batch):
        CHECKED
        CHECK
    if x is END:
        break
    TURN
"""

_PUSH: Final = """
while True:
    chunk = src(batch)
    if not chunk:
        if chunk is None:
            break
        DRY
        continue
    REST
    size = len(chunk)
    if S.limit - emitted >= size:
        dropped = 0
        for x in chunk:
            BULK
        emitted += size - dropped
    else:
        for x in chunk:
            CHECK
            COUNTED
    PACE
"""

_PUSH_MANY: Final = """
while True:
    chunk = src(batch)
    if not chunk:
        if chunk is None:
            break
        DRY
        continue
    REST
    for x in chunk:
        CHECK
        CHECKED
    PACE
"""

_AITER: Final = """
CHECK
left = batch
async for x in src:
    if not left:
        TURN
        left = batch
    left -= 1
    COUNTED
    CHECK
"""

# The same where no stage drops: each element taken is delivered, and one countdown does for all.
_AITER_BULK: Final = """
CHECK
size = left = min(batch, S.limit - emitted)
async for x in src:
    BULK
    left -= 1
    if not left:
        emitted += size
        TURN
        CHECK
        size = left = min(batch, S.limit - emitted)
"""

_AITER_MANY: Final = _AITER.replace("COUNTED", "CHECKED")

_ITERATE: Final = """
while True:
    x = END
    for x in islice(src, batch):
        BULK
    if x is END:
        break
    TURN
"""

_PLAIN: Final = """
for x in src:
    BULK
"""


def _counted(skeleton: str) -> str:
    """The same with `emitted` exact whenever the source ends: what comes then needs room too."""
    accounts = ("dropped = 0", "emitted += size - dropped")
    lines = skeleton.replace("BULK", "COUNTED").splitlines()
    return "\n".join(line for line in lines if line.strip() not in accounts)


LOOP_TEMPLATES: Final[dict[str, tuple[str, str, str]]] = {
    # for chains of at most one out for one in; for those that also emit when the source has ended;
    # for those of many out for one in
    "pull": (_PULL, _counted(_PULL), _PULL_MANY),
    "extend": (_EXTEND, _EXTEND, _EXTEND),
    "push": (_PUSH, _counted(_PUSH), _PUSH_MANY),
    "aiter": (_AITER, _AITER, _AITER_MANY),
    "aiter bulk": (_AITER_BULK, _AITER, _AITER_MANY),
    "agen": (_ITERATE, _ITERATE, _ITERATE),
    "turns": (_ITERATE, _ITERATE, _ITERATE),
    "gen": (_PLAIN, _PLAIN, _PLAIN),
}

# A stage or a source that swallows its cancellation must not cause a signal after it (1.8).
_ALIVE = ["if S.dead: return"]

_CALL = """
try:
    r = on_next(x)
except Exception as error:
    raise SubscriberRaised(error) from error
"""

_FILL = """
on_next(x)
if not B.is_notified:
    B.flush()
    if S.dead: return
"""

_AWAIT = """
S.signalling = True
try:
    await on_next(x)
except Exception as error:
    raise SubscriberRaised(error) from error
S.signalling = False
"""


def _lines(text: str) -> list[str]:
    return text.strip().splitlines()


_COUNTING = ["emitted = 0", "batch = 8"]
_WAIT = _lines("S.emitted = emitted\nif S.spent(): raise Done\nyield WAIT")

MODE_LINES: Final[dict[str, dict[str, list[str]]]] = {
    "sync": {
        "prologue": _COUNTING,
        "WAIT": _WAIT,
        "CHECK": ["while emitted >= S.limit:", *("    " + line for line in _WAIT)],
        "WITHIN": _lines("while emitted >= S.limit:\n    S.emitted = emitted\n    yield WITHIN"),
        "DRY": _lines("NEED\nS.emitted = emitted\nyield DRY"),
        "TURN": _lines("batch = S.next_batch_size(batch)\nif S.is_slice_over: yield TURN"),
        "PACE": ["batch = S.next_batch_size(batch)"],
        "REST": ["if S.is_slice_over: yield TURN"],
        "deliver call": [*_lines(_CALL), "if r is not None and S.holds(r): yield HOLD"],
        "deliver fill": ["on_next(x)"],
        "deliver offer": ["on_next(x)"],
        "prologue extend": ["kept = on_next.__self__"],
    },
    "task": {
        "prologue": _COUNTING,
        "WAIT": ["await S.demand(emitted)"],
        "CHECK": _lines("if emitted >= S.limit:\n    await S.demand(emitted)"),
        "WITHIN": _lines("if emitted >= S.limit:\n    await S.demand(emitted, True)"),
        "DRY": _lines("NEED\nawait S.elements(emitted)"),
        "TURN": _lines(
            "batch = S.next_batch_size(batch)\nif S.is_slice_over: await S.yield_slice()"
        ),
        "PACE": ["batch = S.next_batch_size(batch)"],
        "REST": ["if S.is_slice_over: await S.yield_slice()"],
        "deliver call": [*_ALIVE, *_lines(_CALL), "if r is not None: await S.held(r)"],
        "deliver fill": [*_ALIVE, *_lines(_FILL)],
        "deliver offer": [*_ALIVE, *_lines(_FILL)],
        "prologue fill": ["B = S.subscriber"],
        "prologue offer": ["B = S.subscriber"],
        "deliver await": [*_ALIVE, *_lines(_AWAIT)],
    },
    "agen": {
        "prologue": ["batch = 8"],
        "CHECK": [],
        "TURN": _lines(
            "batch = S.next_batch_size(batch)\nif S.is_slice_over: await S.yield_slice()"
        ),
        "deliver yield": ["yield x"],
    },
    "turns": {
        "prologue": ["batch = 8"],
        "CHECK": [],
        "TURN": _lines("batch = S.next_batch_size(batch)\nif S.is_slice_over: yield TURN"),
        "deliver yield": ["yield x"],
    },
    "gen": {
        "prologue": [],
        "CHECK": [],
        "TURN": [],
        "deliver yield": ["yield x"],
    },
}
