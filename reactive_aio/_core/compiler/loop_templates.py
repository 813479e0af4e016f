"""The templates of generated loops: how elements enter, and how demand bounds them.

A line in capitals is replaced by lines of the chain or of the mode (`MODE_LINES`):

``DELIVER_BULK``         run one element through the stages; demand is counted after the batch
``DELIVER_COUNTED``      the same, counting each delivery
``DELIVER_CHECKED``      the same, checking demand before each delivery (one in, many out)
``DELIVER_PROVING``      like ``DELIVER_BULK``, with the lines that look at results of functions
``IF_PROVEN``            only if an element has passed those lines: the others do not have them
``IF_ROOM``              only if ``size`` elements fit into every stage that has a bound
``AWAIT_DEMAND``         pause until there is demand, or end if the source is known to be exhausted
``CHECK_DEMAND``         the same, only if there is no demand
``BREAK_IF_SPENT``       end if the source is known to be exhausted
``AWAIT_ELEMENTS``       request from upstream what the island needs, and pause until it arrives:
                         in the queue, unless the loop is resumed with it
``END_BATCH``            choose the size of the next batch; yield to the loop if the slice is over
``MEASURE_BATCH``        only choose the size (where elements are pushed)
``YIELD_IF_SLICE_OVER``  only yield, once there is more work
``TRACK …``              a line of a loop that gives discarded elements back: there, ``x`` is None
                         unless the loop has an undelivered element in its hands
``REFUSE_NONE``          refuse None (2.13), unless the source guarantees that there is none
``REFUSE_NONE_IN …``     the same for each element of a batch: those before it are kept
``ITERATE_TWICE …``      before that: make a list of what can be iterated only once
``MEASURE …``            in a named flow: what follows delivers a batch, from an iterable
``MEASURED``             the batch was delivered, and counted
"""

import re
from textwrap import indent
from typing import Final

# Bulk batches leave at least one element of demand. So `emitted` can be wrong only after the source
# has ended, and then the next read of the source ends the loop.
_PULL: Final = """
while True:
    room = S.limit - emitted
    size = batch if batch < room else room - 1
    if room > 8 IF_PROVEN IF_ROOM:
        dropped = 0
        x = END
        MEASURE src
        for x in islice(src, size):
            DELIVER_BULK
        if x is END:
            break
        emitted += size - dropped
        MEASURED
        END_BATCH
    elif room > 0:
        x = END
        for x in islice(src, batch):
            DELIVER_COUNTED
            if emitted >= S.limit:
                CHECK_DEMAND
                if S.limit - emitted > 8:
                    break
        else:
            if x is END:
                break
            BREAK_IF_SPENT
            END_BATCH
    else:
        AWAIT_DEMAND
"""

# From a source without stages into a container, which keeps the elements before an error.
_EXTEND: Final = """
while True:
    room = S.limit - emitted
    if room > 0:
        size = batch if batch < room else room
        held = len(kept)
        try:
            kept.extend(islice(src, size))
        finally:
            taken = len(kept) - held
            emitted += taken
        if taken < size:
            break
        END_BATCH
    else:
        AWAIT_DEMAND
"""

_PULL_MANY: Final = """
CHECK_DEMAND
while True:
    x = END
    for x in islice(src, batch):
        DELIVER_CHECKED
        CHECK_DEMAND
    if x is END:
        break
    END_BATCH
"""

# Where chunks are small, the clock is read once for several of them.
_NEXT_CHUNK: Final = """
queue = S.input_queue
waiting, left = queue.waiting, batch
while True:
    if not waiting and not queue.is_ended:
        AWAIT_ELEMENTS
    else:
        chunk = src(batch)
        if chunk is None:
            break
    size = len(chunk)
    TRACK chunk = rest = iter(chunk)
    YIELD_IF_SLICE_OVER
"""

_PUSH: Final = f"""{_NEXT_CHUNK}\
    if emitted + size <= S.limit IF_PROVEN IF_ROOM:
        dropped = 0
        MEASURE chunk
        for x in chunk:
            DELIVER_BULK
        emitted += size - dropped
        MEASURED
    else:
        for x in chunk:
            CHECK_DEMAND
            DELIVER_COUNTED
    left -= size
    if left <= 0:
        MEASURE_BATCH
        left = batch
"""

# The same without stages into a container.
_PUSH_EXTEND: Final = f"""{_NEXT_CHUNK}\
    if emitted + size <= S.limit:
        ITERATE_TWICE chunk
        REFUSE_NONE_IN chunk
        kept.extend(chunk)
        emitted += size
    else:
        for x in chunk:
            CHECK_DEMAND
            REFUSE_NONE
            kept.append(x)
            emitted += 1
    left -= size
    if left <= 0:
        MEASURE_BATCH
        left = batch
"""

_PUSH_MANY: Final = f"""{_NEXT_CHUNK}\
    for x in chunk:
        CHECK_DEMAND
        DELIVER_CHECKED
    left -= size
    if left <= 0:
        MEASURE_BATCH
        left = batch
"""

# Iterables that have a length, one for each element of the source; from the first other result on,
# elements are pushed.
_NEXT_ITERABLE: Final = """
flattening = S.chain.source.flattening
function, plain = flattening.function, flattening.plain
left = batch
CHECK_DEMAND
for outer in src:
    TRACK x = outer
    inner = function(outer)
    TRACK x = None
    if inner.__class__ not in plain:
        src, left_in_source = S.push_rest(flattening, outer, inner), None
        break
    left -= 1
"""

_EACH_OF_ITERABLE: Final = """
for x in inner:
    left -= 1
    if left <= 0:
        END_BATCH
        left = batch
    CHECK_DEMAND_MID_ELEMENT
    DELIVER_COUNTED
"""

# One that fits into the batch and into the demand needs no counting.
_FITTING_ITERABLE: Final = """
size = len(inner)
if size < left and emitted + size <= S.limit IF_PROVEN IF_ROOM:
    left -= size
    dropped = 0
    MEASURE inner
    for x in inner:
        DELIVER_BULK
    emitted += size - dropped
    MEASURED
else:
"""

_AFTER_ITERABLE: Final = """
    if left <= 0:
        END_BATCH
        left = batch
    CHECK_DEMAND
else:
    raise Done
"""

_FLATTEN: Final = (
    _NEXT_ITERABLE
    + indent(_FITTING_ITERABLE, "    ")
    + indent(_EACH_OF_ITERABLE, "        ")
    + _AFTER_ITERABLE
    + _PUSH
)

# The same without stages into a container.
_KEPT_ITERABLE: Final = """
size = len(inner)
if size < left and emitted + size <= S.limit:
    REFUSE_NONE_IN inner
    kept.extend(inner)
    emitted += size
    left -= size
else:
    elements = iter(inner)
    while size > 0:
        if left <= 0:
            END_BATCH
            left = batch
        CHECK_DEMAND_MID_ELEMENT
        piece = [*islice(elements, min(size, left, S.limit - emitted))]
        if not piece:
            break
        REFUSE_NONE_IN piece
        kept.extend(piece)
        taken = len(piece)
        emitted += taken
        left -= taken
        size -= taken
"""

_FLATTEN_EXTEND: Final = (
    _NEXT_ITERABLE + indent(_KEPT_ITERABLE, "    ") + _AFTER_ITERABLE + _PUSH_EXTEND
)

_FLATTEN_MANY: Final = (
    _NEXT_ITERABLE
    + indent(_EACH_OF_ITERABLE, "    ").replace("DELIVER_COUNTED", "DELIVER_CHECKED")
    + _AFTER_ITERABLE
    + _PUSH_MANY
)

_AITER: Final = """
CHECK_DEMAND
left = batch
async for x in src:
    if not left:
        END_BATCH
        left = batch
    left -= 1
    DELIVER_COUNTED
    CHECK_DEMAND
"""

# The same where an element brings at most one: as many as are requested may be taken from the
# source, so one countdown serves the batch and the demand. The inner loop is for `drop` to leave.
_AITER_BULK: Final = """
CHECK_DEMAND
size = left = min(batch, S.limit - emitted)
unmeasured = dropped = 0
async for x in src:
    while True:
        DELIVER_PROVING
        break
    left -= 1
    if not left:
        emitted += size - dropped
        unmeasured += size
        dropped = 0
        if unmeasured >= batch:
            unmeasured = 0
            END_BATCH
        CHECK_DEMAND
        size = left = min(batch, S.limit - emitted)
"""

_AITER_MANY: Final = _AITER.replace("DELIVER_COUNTED", "DELIVER_CHECKED")

# Where an iterator has no demand, these lines run ahead of the main loop.
PROVING_ITERATION: Final = """
while not proven:
    x = END
    for x in islice(src, 8):
        DELIVER_PROVING
        if proven: break
    if x is END:
        break
    END_BATCH
"""

_PLAIN: Final = """
for x in src:
    DELIVER_BULK
"""


def _exact(skeleton: str) -> str:
    """The same template for stages that emit after the source has ended, and so need `emitted`.

    In bulk it can be wrong at the end of the source, which matters unless demand is unbounded.
    """
    without_limit = "S.limit - emitted > 1 << 61"
    return skeleton.replace("room > 8", without_limit).replace(
        "emitted + size <= S.limit", without_limit
    )


def in_batches(skeleton: str, rooms: list[str], *, is_proven: bool) -> str:
    """The template with the conditions for a batch: its size is at most each of *rooms*."""
    proven = " and proven" if is_proven else ""
    fits = "".join(f" and size <= {room}" for room in rooms)
    return skeleton.replace(" IF_PROVEN", proven).replace(" IF_ROOM", fits)


def keeping_together(skeleton: str, kept: str) -> str:
    """The same template where the first stage keeps all elements in *kept*: these are moved in C,
    and the last one of a batch as before, which shows whether there was one."""
    many = rf"\1{kept}.extend(islice(src, \2 - 1))\n\1for x in islice(src, 1):"
    text = re.sub(r"^( *)for x in islice\(src, (\w+)\):", many, skeleton, flags=re.MULTILINE)
    return re.sub(r"^( *)for x in src:", rf"\1{kept}.extend(src)\n\1for x in src:", text)


def _counted(skeleton: str) -> str:
    """The same template with `emitted` exact after each element."""
    accounts = ("dropped = 0", "emitted += size - dropped")
    lines = skeleton.replace("DELIVER_BULK", "DELIVER_COUNTED").splitlines()
    kept = [line for line in lines if line.strip() not in accounts]
    return "\n".join(line for line in kept if not line.strip().startswith("MEASURE"))


LOOP_TEMPLATES: Final[dict[str, tuple[str, str, str, str]]] = {
    # for chains that emit at most one element per element; for those that also emit after the
    # source has ended; for those that emit many elements per element; and for those whose
    # `emitted` is read while they are suspended
    "pull": (_PULL, _exact(_PULL), _PULL_MANY, _counted(_PULL)),
    "pull extend": (_EXTEND, _EXTEND, _EXTEND, _EXTEND),
    "push extend": (_PUSH_EXTEND, _PUSH_EXTEND, _PUSH_EXTEND, _PUSH_EXTEND),
    "flatten extend": (_FLATTEN_EXTEND, _FLATTEN_EXTEND, _FLATTEN_EXTEND, _FLATTEN_EXTEND),
    "push": (_PUSH, _exact(_PUSH), _PUSH_MANY, _counted(_PUSH)),
    "flatten": (_FLATTEN, _exact(_FLATTEN), _FLATTEN_MANY, _counted(_FLATTEN)),
    "aiter": (_AITER_BULK, _AITER, _AITER_MANY, _AITER),
    # an iterator has no demand: its mode has no lines that check it
    "async_generator": (_PULL_MANY, _PULL_MANY, _PULL_MANY, _PULL_MANY),
    "fair_generator": (_PULL_MANY, _PULL_MANY, _PULL_MANY, _PULL_MANY),
    "generator": (_PLAIN, _PLAIN, _PLAIN, _PLAIN),
}

# A stage or a source that swallows its cancellation must not cause another signal (1.8).
_ALIVE = "if S.is_stopped: return"

_CALL = "r = on_next(x)"

_APPEND = f"""
{_ALIVE}
on_next(x)
if not B.is_notified:
    B.flush()
    if S.is_stopped: return
"""

_AWAIT = f"""
{_ALIVE}
S.is_signalling = True
await on_next(x)
S.is_signalling = False
"""

_WAIT = """
S.emitted = emitted
if left_in_source is not None and not left_in_source(): raise Done
yield NO_DEMAND
"""

_COUNTING = "emitted = 0\nbatch = 8"
_MEASURE = "batch = S.next_batch_size(batch)"
_YIELD = "if S.is_slice_over: yield SLICE_OVER"
_AWAIT_TURN = "if S.is_slice_over: await S.yield_slice()"

_MODES: Final[dict[str, dict[str, str]]] = {
    "sync": {
        "prologue": f"{_COUNTING}\nleft_in_source = length_hint_of(src)",
        "AWAIT_DEMAND": _WAIT,
        "BREAK_IF_SPENT": "if left_in_source is not None and not left_in_source(): break",
        "CHECK_DEMAND": "while emitted >= S.limit:" + indent(_WAIT, "    "),
        "CHECK_DEMAND_MID_ELEMENT": (
            "while emitted >= S.limit:\n    S.emitted = emitted\n    yield MID_ELEMENT"
        ),
        # A loop that waits keeps no element alive: an idle group is over when it is freed.
        "AWAIT_ELEMENTS": (
            "REQUEST_NEEDED\nS.emitted = emitted\nchunk = x = None\nchunk = yield NO_ELEMENTS\n"
            "if chunk is None: continue"
        ),
        "END_BATCH": f"{_MEASURE}\n{_YIELD}",
        "MEASURE_BATCH": _MEASURE,
        "YIELD_IF_SLICE_OVER": _YIELD,
        "deliver call": f"{_CALL}\nif r is not None and S.must_await(r): yield AWAIT_SIGNAL",
        "deliver append": "on_next(x)",
        "prologue extend": "kept = S.subscriber.container",
    },
    "task": {
        "prologue": _COUNTING,
        "AWAIT_DEMAND": "await S.wait_for_demand(emitted)",
        "BREAK_IF_SPENT": "",
        "CHECK_DEMAND": "if emitted >= S.limit:\n    await S.wait_for_demand(emitted)",
        "CHECK_DEMAND_MID_ELEMENT": (
            "if emitted >= S.limit:\n    await S.wait_for_demand(emitted, True)"
        ),
        "AWAIT_ELEMENTS": (
            "REQUEST_NEEDED\nchunk = x = None\nawait S.wait_for_elements(emitted)\ncontinue"
        ),
        "END_BATCH": f"{_MEASURE}\n{_AWAIT_TURN}",
        "MEASURE_BATCH": _MEASURE,
        "YIELD_IF_SLICE_OVER": _AWAIT_TURN,
        "deliver call": f"{_ALIVE}\n{_CALL}\nif r is not None: await S.await_signal(r)",
        "deliver append": _APPEND,
        "prologue append": "B = S.subscriber",
        "deliver await": _AWAIT,
    },
    "async_generator": {
        "prologue": "batch = 8",
        "CHECK_DEMAND": "",
        "END_BATCH": f"{_MEASURE}\n{_AWAIT_TURN}",
        "deliver yield": "yield x",
    },
    "fair_generator": {
        "prologue": "batch = 8",
        "CHECK_DEMAND": "",
        "END_BATCH": f"{_MEASURE}\n{_YIELD}",
        "deliver yield": "yield x",
    },
    "generator": {"prologue": "", "CHECK_DEMAND": "", "END_BATCH": "", "deliver yield": "yield x"},
}

MODE_LINES: Final = {
    mode: {word: text.strip().splitlines() for word, text in words.items()}
    for mode, words in _MODES.items()
}
