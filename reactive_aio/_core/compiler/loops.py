"""The loops: all stages of an island, and the delivery, written into one generated function.

There is one loop for each kind of feed: a *pulled* iterator, the queue that a source *pushes* to,
an *asynchronous iterator*; and `flat_map` reads the iterables that its function returns by a loop
of its own, until one has to be subscribed to. The words in capitals in a loop are the places where
lines are inserted (`_Writer.place`). A loop is

* a generator (mode ``sync``) that yields the reason of each pause, when every stage is synchronous:
  its state stays in fast locals, a re-entrant ``request`` is one addition, nothing recurses
  (rule 3.3);
* a coroutine (``task``) when it awaits something;
* an async generator (``async_generator``) for ``async for`` over a pulled island, and a plain
  generator (``generator``) where a pulled island is an iterator inside another. Neither has a
  demand: its consumer takes one element after another.

Demand bounds what is *pulled*: with room for n elements, at most n are taken from the source. So a
stage needs no accounting. While there is much room, deliveries are counted by the batch; the loop
chooses for each batch whether it is ``counted`` one by one, which a subscriber that requests a few
elements at a time makes necessary.

A loop is compiled once per `LoopShape` and cached; the arguments of the stages are arguments of the
loop. In the text, ``S`` is the subscription, ``src`` the source and ``x`` the element. The text is
registered with ``linecache``: tracebacks show its lines, ``explain(code=True)`` prints them. It
contains names, never text of a user. ``STAGE_OF_LINE`` says for each line to which stage it belongs
(0: to none), so that what was raised is attributed to its stage; an element is in the loop's hands
at the lines of the stages, and nowhere else.
"""

import linecache
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, islice
from typing import Any, Final, Literal, NamedTuple
from weakref import finalize

from ..arguments import refuse_awaitable
from .discards import END
from .end_hooks import EndHooks, Hook
from .inline import DIRECTIVES, InlineStage
from .loop_runtime import (
    Done,
    Pause,
    SubscriberRaised,
    UpstreamFailed,
    close_source,
    length_hint_of,
    no_element,
)

Feed = Literal["pull", "push", "flatten", "aiter"]
Mode = Literal["sync", "task", "async_generator", "generator"]


class LoopShape(NamedTuple):
    """Everything that the text of a loop depends on."""

    feed: Feed
    mode: Mode
    delivery: Literal["call", "append", "inspect", "extend", "await", "yield"]
    checked: bool
    """Whether the source guarantees that no element is None."""
    stages: tuple[InlineStage, ...]
    discards: bool = False
    """Whether it gives back the elements that it discards (`Discards`)."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class CompiledLoop:
    """A generated loop and its text."""

    run: Callable[..., Any]
    text: str
    emits_first: bool
    """Whether a stage may emit ahead of the first element from upstream."""
    emits_unprompted: bool
    """Whether a stage may emit, or observe the end, without an element from upstream."""
    end_hooks: Callable[..., list[tuple[int, Hook]]] | None
    """Creates the end hooks from the stages' arguments; None if no stage has one."""


# -- the loops -------------------------------------------------------------------------------------
# A batch that is not counted leaves at least one element of demand. So `emitted` can be wrong only
# after the source has ended, and then the next read of the source ends the loop.
_PULL: Final = """
while True:
    WAIT
    room = S.limit - emitted
    counted = room < FEW
    size = batch if counted or batch < room else room - 1
    dropped = 0
    x = END
    for x in islice(src, size):
        ELEMENT
    if x is END:
        break
    SETTLE
    EXHAUSTED
    CLOCK
"""

# Without stages, from a source without None into a container, which keeps what precedes an error. A
# way of its own: `boundary` over a range or a list takes 12 % longer without it (CPython 3.13).
_PULL_INTO: Final = """
kept = S.subscriber.container
while True:
    WAIT
    size = min(batch, S.limit - emitted)
    held = len(kept)
    try:
        kept.extend(islice(src, size))
    finally:
        taken = len(kept) - held
        emitted += taken
    if taken < size:
        break
    CLOCK
"""

_ITERATE: Final = """
while True:
    x = END
    for x in islice(src, batch):
        ELEMENT
    if x is END:
        break
    CLOCK
"""

# Where chunks are small, the clock is read once for several of them.
_PUSH: Final = """
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
    chunk = queue.lent = iter(chunk)
    TURN
    counted = emitted + size > S.limit
    dropped = 0
    WAIT
    for x in chunk:
        ELEMENT
    SETTLE
    left -= size
    if left <= 0:
        MEASURE
        left = batch
"""

# Iterables that have a length, one for each element of the source; from the first other result on,
# elements are pushed.
_FLATTEN: Final = f"""
flattening = S.chain.source.flattening
function, plain = flattening.function, flattening.plain
left = batch
WAIT
for x in src:
    CALL
    if inner.__class__ not in plain:
        src, left_in_source = S.push_rest(flattening, x, inner), None
        break
    rest = len(inner)
    inner = iter(inner)
    left -= 1
    while True:
        size, part = rest, inner
        if size > left:
            size, part = left, islice(inner, left)
        counted = emitted + size > S.limit
        dropped = 0
        for x in part:
            ELEMENT
        SETTLE
        left -= size
        if left <= 0:
            CLOCK
            left = batch
        if part is inner:
            break
        rest = inner.__length_hint__()
        WAIT_WITHIN
    WAIT
else:
    raise Done
{_PUSH}"""

_AITER: Final = """
WAIT
left = batch
async for x in src:
    if not left:
        CLOCK_WITH_ELEMENT
        left = batch
    left -= 1
    ELEMENT
"""

_LOOPS: Final = {
    "pull": _PULL,
    "push": _PUSH,
    "flatten": _FLATTEN,
    "aiter": _AITER,
    "pull extend": _PULL_INTO,
    "async_generator": _ITERATE,
    "generator": "for x in src:\n    ELEMENT",
}

# -- how a loop waits, yields to the event loop and delivers ---------------------------------------
_ALIVE: Final = "if S.is_stopped: return"
_MEASURE: Final = "batch = S.next_batch_size(batch)"
_RAISED: Final = """
except BaseException as error:
    raise SubscriberRaised(error) from error
"""
# A loop that waits keeps no element alive: an idle group is over when it is freed.
_PAUSE_WITHOUT_DEMAND: Final = """
while emitted >= S.limit:
    S.emitted, x = emitted, None
    {unless}
    yield NO_DEMAND
"""

_SYNC: Final = {
    "WAIT": {
        "pull": _PAUSE_WITHOUT_DEMAND.format(
            unless="if left_in_source is not None and not left_in_source(): raise Done"
        ),
        "push": _PAUSE_WITHOUT_DEMAND.format(unless="if queue.is_over: break"),
    },
    "WAIT_MID_ELEMENT": "while emitted >= S.limit:\n    S.emitted = emitted\n    yield MID_ELEMENT",
    # More elements of the iterable follow, or the loop goes on with the next one.
    "WAIT_WITHIN": """
while emitted >= S.limit:
    S.emitted, x = emitted, None
    if not inner.__length_hint__(): break
    yield MID_ELEMENT
""",
    "AWAIT_ELEMENTS": """
REQUEST_NEEDED
S.emitted = emitted
chunk = queue.lent = x = None
chunk = yield NO_ELEMENTS
if chunk is None: continue
""",
    "TURN": "if S.is_slice_over:\n    S.emitted = emitted\n    yield SLICE_OVER",
    "call": f"""
try:
    r = on_next(x)
{_RAISED}
if r is not None and S.must_await(r): yield AWAIT_SIGNAL
{_ALIVE}
""",
    "append": "on_next(x)",
    "inspect": f"on_next(x)\n{_ALIVE}",
}

# A stage or a source that swallows its cancellation must not cause another signal (1.8).
_TASK: Final[dict[str, Any]] = {
    "WAIT": "if emitted >= S.limit:\n    x = None\n    await S.wait_for_demand(emitted)",
    "WAIT_MID_ELEMENT": "if emitted >= S.limit:\n    await S.wait_for_demand(emitted, True)",
    "AWAIT_ELEMENTS": """
REQUEST_NEEDED
chunk = queue.lent = x = None
await S.wait_for_elements(emitted)
continue
""",
    "TURN": "if S.is_slice_over:\n    S.emitted = emitted\n    await S.yield_slice()",
    "call": f"""
LET_GO_IF_STOPPED
try:
    r = on_next(x)
{_RAISED}
if r is not None: await S.await_signal(r)
{_ALIVE}
""",
    "append": f"""
LET_GO_IF_STOPPED
on_next(x)
if not S.subscriber.is_notified:
    S.subscriber.flush()
    {_ALIVE}
""",
    "await": f"""
LET_GO_IF_STOPPED
S.is_signalling = True
try:
    await on_next(x)
except BaseException as error:
    if S.is_cancelled(error): raise
    raise SubscriberRaised(error) from error
S.is_signalling = False
{_ALIVE}
""",
}
_TASK["inspect"] = _TASK["append"]
_ITERATED: Final = {"TURN": "if S.is_slice_over: await S.yield_slice()", "yield": "yield x"}
_MODES: Final[dict[str, dict[str, Any]]] = {
    "sync": _SYNC,
    "task": _TASK,
    "async_generator": _ITERATED,
    "generator": {"TURN": "", "yield": "yield x"},
}

_numbers = count(1)
_POSITION: Final = re.compile(r"  # (\d+)$", re.MULTILINE)
_REFUSE: Final = "raise no_element('the source')"
_FEW: Final = 8
"""Below so many elements of demand, deliveries are counted one by one."""
_PRACTICALLY_UNBOUNDED: Final = "1 << 61"


@lru_cache(maxsize=1024)
def compile_loop(shape: LoopShape) -> CompiledLoop:
    """Return the loop for *shape*, compiled on first use."""
    source = _Writer(shape).text()
    number = next(_numbers)
    chain = "-".join(stage.name for stage in shape.stages) or "source"
    name = f"<reactive_aio {shape.mode} {number}: {chain}>"
    lines = source.splitlines()
    positions = [int(found[1]) if (found := _POSITION.search(line)) else 0 for line in lines]
    source = _POSITION.sub("", source)
    space: dict[str, Any] = {each.__name__: each for each in _USED}
    space |= {"END": END, "STAGE_OF_LINE": [0, *positions]}
    space |= {pause.name: pause for pause in Pause}
    for number, stage in enumerate(shape.stages, 1):
        space |= stage.used(number)
    exec(compile(source, name, "exec"), space)
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    emits_first = any(stage.before for stage in shape.stages)
    emits_unprompted = emits_first or any(stage.after or stage.on_end for stage in shape.stages)
    loop = CompiledLoop(space["loop"], source, emits_first, emits_unprompted, space.get("hooks"))
    finalize(loop, linecache.cache.pop, name, None)
    return loop


_USED: Final = (
    islice,
    length_hint_of,
    Done,
    EndHooks,
    SubscriberRaised,
    UpstreamFailed,
    no_element,
    close_source,
    refuse_awaitable,
)


class _Writer:
    """Writes the text of one loop.

    *within* is the position of the innermost stage that still emits for its current element (0 for
    none): ``last`` or ``done`` in that stage or before it does not cut that emission short.
    """

    def __init__(self, shape: LoopShape) -> None:
        self.shape = shape
        self.stages = stages = shape.stages
        self.words = _MODES[shape.mode]
        self.iterated = shape.mode in ("async_generator", "generator")
        self.expands = any(s.expands or "emit each" in s.before + s.after for s in stages)
        self.many = any(stage.emits_many for stage in stages)
        self.ends = any(stage.after for stage in stages)
        self.stops = any(stage.stops for stage in stages)
        self.hooked = any(stage.on_end for stage in stages)
        self.last_look = max((i for i, stage in enumerate(stages, 1) if stage.looks), default=0)
        labels = [i for i, stage in enumerate(stages, 1) if stage.role == "label"]
        self.label = 0 if self.iterated or not labels else labels[-1]
        self.always_counts = self.many or shape.feed == "aiter" or (self.ends and self.stops)
        self.counts_each = self.always_counts
        """Whether each delivery is counted in the lines that are being written."""
        self.emitting = 0
        """The stage that emits in them ahead of the elements, or after them."""
        self.delivery = shape.delivery
        kind = shape.mode if self.iterated else shape.feed
        self.skeleton = _LOOPS[f"{kind} extend" if shape.delivery == "extend" else kind]
        self.is_chunked = False
        """Whether the elements of a queue are processed."""

    def text(self) -> str:
        args = ", ".join(f"{name}_{i}" for i, s in enumerate(self.stages, 1) for name in s.params)
        head = ["S", "src", "report" if self.iterated else "on_next", "arguments"]
        head += ["D"] * (self.shape.discards and self.iterated)
        keyword = "async def" if self.shape.mode in ("task", "async_generator") else "def"
        numbered = enumerate(self.stages, 1)
        return "\n".join(
            [
                *(self._hooks(args) if self.hooked else []),
                f"{keyword} loop({', '.join(head)}):",
                # An async generator runs to here when it is made (`generate`).
                *_indent(1, ["yield"] if self.shape.mode == "async_generator" else []),
                *_indent(1, [f"{args}, = arguments"] if args else []),
                *_indent(1, ["emitted = 0"] if not self.iterated else []),
                *_indent(1, ["batch = 8"]),
                *_indent(1, ["left_in_source = length_hint_of(src)"] if self._is_sized() else []),
                *_indent(1, [line for i, s in numbered for line in s.lines("setup", i)]),
                *_indent(1, ["stop = 0"] if self.stops or self.ends or self.hooked else []),
                *_indent(1, ["spent = 0"] if self.expands else []),
                *_indent(1, ["looking = True"] if self.last_look else []),
                *_indent(1, self._letting_go(self._guarded(args) if self.hooked else self._run())),
                "",
            ]
        )

    def _is_sized(self) -> bool:
        return self.shape.mode == "sync" and self.shape.feed in ("pull", "flatten")

    def _run(self) -> list[str]:
        body = [line for raw in self.skeleton.splitlines() if raw.strip() for line in self._at(raw)]
        run = ["try:", *_indent(1, [*self._beginnings(), *body]), *self._except_done()]
        run += self._endings()
        if self.shape.discards:
            run = self._discarding(run)
        if self.shape.mode == "async_generator":
            # It runs in the consumer's task, which must not take an error for its cancellation.
            handler = ["except Exception as error:", "    S.annotate(error)", "    raise"]
            handler += ["except BaseException as error:", "    raise S.failure_of(error)"]
            return ["try:", *_indent(1, run), *handler]
        return run

    def _letting_go(self, lines: list[str]) -> list[str]:
        """Let go of the source at the end: an error that is kept refers to the frame of the loop.

        The source of an iterator is closed, which no island does.
        """
        if not self.iterated:
            return ["try:", *_indent(1, lines), "finally:", "    src = None"]
        by_operator = ", is_read_by_operator=True" if self.shape.mode == "generator" else ""
        return [
            "try:",
            *_indent(1, lines),
            "except BaseException as error:",
            "    close_source(src, report, S.failure_of, error)",
            "    raise",
            f"close_source(src, report, S.failure_of{by_operator})",
        ]

    # -- the places of a loop ---------------------------------------------------------------------
    def _at(self, raw: str) -> list[str]:
        """The lines for one line of a loop."""
        word = raw.strip()
        if word == "queue = S.input_queue":
            self.is_chunked = True
        return _indent((len(raw) - len(raw.lstrip())) // 4, self._place(word))

    def _place(self, word: str) -> list[str]:
        match word.split()[0]:
            case "ELEMENT":
                return self._refusing_none() + self._stage(0, 0) + self._after_element()
            case "SETTLE":
                settle = ["if not counted:", "    emitted += size - dropped"]
                return [] if self.always_counts else settle
            case "WAIT":
                return self._wait()
            case "MEASURE":
                return [_MEASURE]
            case "CLOCK":
                return [_MEASURE, *self._lines_of("TURN")] if self.words["TURN"] else []
            case "CLOCK_WITH_ELEMENT":
                return self._holding(self._place("CLOCK"))
            case "EXHAUSTED":  # which saves a short source a look at the clock
                known = "if left_in_source is not None and not left_in_source(): break"
                return [known] * self._is_sized()
            case "WAIT_WITHIN":
                return [] if self.many else self._lines_of(word)
            case "REQUEST_NEEDED":
                return self._request_needed()
            case "CALL":
                return self._call()
            case "WAIT_MID_ELEMENT":
                # The element is in the loop's hands, and has passed every stage.
                return self._positioned(self._lines_of(word), len(self.stages) + 1)
            case "TURN" | "AWAIT_ELEMENTS":
                return self._lines_of(word)
            case _:
                few = _PRACTICALLY_UNBOUNDED if self.ends else str(_FEW)
                return [word.replace("FEW", few)]

    def _lines_of(self, word: str) -> list[str]:
        lines = [line for line in self.words[word].splitlines() if line.strip()]
        return [each for line in lines for each in (self._at(line) if line != word else [line])]

    def _call(self) -> list[str]:
        """Call the function of `flat_map`; it is a part of the source, which is at position 0."""
        return self._holding(["inner = function(x)"])

    def _holding(self, lines: list[str]) -> list[str]:
        """*lines*, with an element in the loop's hands that has not reached the first stage."""
        if not self.shape.discards:
            return lines
        return [
            "try:",
            *_indent(1, lines),
            "except BaseException:",
            "    D.lost(0, x)",
            "    raise",
        ]

    def _wait(self) -> list[str]:
        """Pause until there is demand, or end if the source is known to be exhausted."""
        wait = self.words["WAIT"]
        if not isinstance(wait, str):
            wait = wait["push" if self.is_chunked else "pull"]
        return [line for line in wait.splitlines() if line.strip()]

    def _after_element(self) -> list[str]:
        """What follows in the main loop after an element that may have been delivered."""
        if self.iterated or not self.many or (self.shape.feed == "flatten" and not self.is_chunked):
            return []
        return self._wait()

    def _refusing_none(self) -> list[str]:
        return [] if self.shape.checked else ["if x is None:", f"    {_REFUSE}"]

    def _request_needed(self) -> list[str]:
        numbered = reversed([*enumerate(self.stages, 1)])
        demand = [line for i, stage in numbered for line in stage.lines("demand", i)]
        if not demand:
            return ["S.requested_limit = S.limit"]
        translated = ["need = limit - emitted", "if need > 0:", *_indent(1, demand)]
        return ["S.requested_limit = limit = S.limit", *translated, "S.needed = need"]

    # -- one element ------------------------------------------------------------------------------
    def _positioned(self, lines: list[str], number: int) -> list[str]:
        """Append the position of the stage to *lines*, to find the stage that raised."""
        return [line if _POSITION.search(line) else f"{line}  # {number}" for line in lines]

    def _stage(self, index: int, within: int) -> list[str]:
        """The lines for an element that has reached stage *index* (0-based)."""
        out: list[str] = []
        for number, stage in enumerate(self.stages[index:], index + 1):
            lines: list[str] = []
            for line in stage.lines("each", number):
                lines += self._line(line, number - 1, within)
            lines += ["S.passed += 1"] * (number == self.label)
            out += self._positioned(lines, number)
            if not stage.emits_many:
                out += self._positioned(self._refusing_made_none(number), number)
                if number < len(self.stages):
                    out += self._let_go_after_call(number)
            else:  # its `emit` lines contain the stages that follow
                return out + self._stopped(within, number)
        return out + self._deliver(within)

    def _line(self, line: str, index: int, within: int) -> list[str]:
        found = DIRECTIVES.match(line)
        if found is None:
            return [line]
        number, rest = index + 1, found["rest"]
        match found["word"]:
            case "drop":
                counts = not (self.counts_each or self.iterated)
                stopped = self._stopped(within, index)
                in_hand = ["x = None"] if stopped and self.shape.discards else []
                alive = [_ALIVE] * self._may_return_late(number)
                lines = [*["dropped += 1"] * counts, *in_hand, *stopped, *alive, "continue"]
            case "last":
                lines = [f"stop = {number}"]
            case "done":
                lines = [f"stop = {number}", *["x = None"] * self.shape.discards, "raise Done"]
            case "sync":
                lines = self._look(rest, number)
            case "emit each":  # one element may expand into an endless iterable
                lines = [f"for x in {rest}:", *_indent(1, self._turn_mid_element())]
                lines = self._keeping_element([*lines, *_indent(1, self._made(number))], number)
            case _:
                lines = [f"for x in ({rest},):", *_indent(1, self._made(number))]
                lines = self._keeping_element(lines, number)
        return [found["pad"] + each for each in self._positioned(lines, number)]

    def _keeping_element(self, lines: list[str], number: int) -> list[str]:
        """*lines* of an emission, after which ``x`` is the element again, if it is read then."""
        if self.emitting != number:
            lines = [*self._let_go_after_call(number), *lines]
        # In its own `before` and `after`, the stage has no element.
        if self.emitting == number or not self.stages[number - 1].reads_after_emit:
            return lines
        return [f"element_{number} = x", *lines, f"x, element_{number} = element_{number}, None"]

    def _may_return_late(self, number: int) -> bool:
        """Whether a call of that stage may return after the flow was cancelled: while it cleans up.

        Then no function of the stages that follow is called, and no other element is begun.
        """
        return self.stages[number - 1].awaits and not self.iterated

    def _let_go_after_call(self, number: int) -> list[str]:
        if not self._may_return_late(number):
            return []
        return self._let_go_if_stopped("LET_GO_IF_STOPPED", number)

    def _made(self, number: int) -> list[str]:
        """What follows when the stage at position *number* has emitted an element."""
        refusing = self._positioned(self._refusing_made_none(number), number)
        return [*refusing, *self._stage(number, number)]

    def _refusing_made_none(self, number: int) -> list[str]:
        stage = self.stages[number - 1]
        if not stage.may_make_none:
            return []
        return ["if x is None:", f"    raise no_element({stage.name!r})"]

    def _look(self, rest: str, number: int) -> list[str]:
        result, _, function = rest.partition(" of ")
        refuse = f"refuse_awaitable({self.stages[number - 1].name!r}, {function}, {result})"
        # An element that a stage emits ahead of the others has not passed the stages before it.
        passed = self.stages[: self.emitting]
        is_last = number == self.last_look and not any(stage.looks for stage in passed)
        return ["if looking:", f"    {refuse}", *["    looking = False"] * is_last]

    def _stopped(self, within: int, index: int) -> list[str]:
        """End here if a stage up to *index* has stopped, and no stage still emits."""
        if not any(stage.lasts for stage in self.stages[within:index]):
            return []
        return [f"if stop > {within}: raise Done" if within else "if stop: raise Done"]

    def _turn_mid_element(self) -> list[str]:
        if not (clock := self._place("CLOCK")):
            return []
        return ["spent += 1", "if spent >= batch:", "    spent = 0", *_indent(1, clock)]

    def _deliver(self, within: int) -> list[str]:
        deliver = [
            each
            for line in self.words[self.delivery].splitlines()
            if line.strip()
            for each in self._let_go_if_stopped(line, len(self.stages) + 1)
        ]
        stopped = self._stopped(within, len(self.stages))
        if self.iterated:  # what was delivered is no longer in the loop's hands
            let_go = ["x = None"] * (self.shape.discards and bool(stopped))
            return [*self._positioned(deliver, 0), *let_go, *stopped]
        if not self.counts_each:
            return [*deliver, *stopped, "if counted:", *_indent(1, self._counted())]
        if not (self.many or self.emitting):
            return [*deliver, "emitted += 1", *stopped, *self._wait()]
        let_go = ["x = None"] * self.shape.discards
        return [*self._place("WAIT_MID_ELEMENT"), *deliver, "emitted += 1", *let_go, *stopped]

    def _let_go_if_stopped(self, line: str, number: int) -> list[str]:
        if line != "LET_GO_IF_STOPPED":
            return [line]
        if not self.shape.discards:
            return [_ALIVE]
        return ["if S.is_stopped:", f"    D.lost({number}, x)", "    return"]

    def _counted(self) -> list[str]:
        """What follows a delivery in a batch that is counted."""
        if self.is_chunked:
            return ["emitted += 1", *self._wait()]
        if self.shape.feed == "flatten":
            return ["emitted += 1", *self._lines_of("WAIT_WITHIN")]
        # With enough demand for a batch, the next elements are not counted one by one.
        enough = f"if S.limit - emitted > {_FEW}: break"
        return ["emitted += 1", "if emitted >= S.limit:", *_indent(1, [*self._wait(), enough])]

    # -- before and after the elements ------------------------------------------------------------
    def _part(self, part: str, index: int) -> list[str]:
        self.emitting = number = index + 1
        self.counts_each = True
        lines: list[str] = []
        for line in self.stages[index].lines(part, number):
            lines += self._line(line, index, number)
        self.emitting, self.counts_each = 0, self.always_counts
        return self._positioned(lines, number)

    def _beginnings(self) -> list[str]:
        """What stages emit before the first element, last stage first."""
        return [line for i in reversed(range(len(self.stages))) for line in self._part("before", i)]

    def _endings(self) -> list[str]:
        """What stages emit after the elements have ended, first stage first."""
        out = ["x = END"] if self.ends or self.hooked else []  # so that no error names an element
        out += ["H.stop_at(stop)"] if self.hooked and self.stops else []
        for number, stage in enumerate(self.stages, 1):
            if stage.after:
                lines = _indent(1, self._part("after", number - 1))
                tried = ["try:", *lines, *self._except_done()]
                out += [f"if stop < {number}:", *_indent(1, tried)]
                if self.hooked and self.stops:
                    out.append("H.stop_at(stop)")
            if stage.on_end:
                out += [] if self.iterated else [_ALIVE]
                completed = [f"H.complete_at({number})"]
                out += [f"if stop < {number}:", *_indent(1, self._positioned(completed, number))]
        return out

    # -- the end of a loop, and of its elements ---------------------------------------------------
    def _discarding(self, run: list[str]) -> list[str]:
        """Give back what the loop has in its hands when it ends, and what its stages hold."""
        numbered = enumerate(self.stages, 1)
        held = [f"D.give({i}, {line})" for i, stage in numbered for line in stage.lines("held", i)]
        held += ["D.rest(inner)"] * (self.shape.feed == "flatten")
        # The `raise` leaves the traceback as it is, and so the position of what was raised.
        return [
            *([] if self.iterated else ["D = S.discards"]),
            *(["x = inner = None"] if self.shape.feed == "flatten" else ["x = None"]),
            "try:",
            *_indent(1, run),
            "except BaseException as error:",
            *_indent(1, self._lost_at("error")),
            "    raise",
            "finally:",
            *_indent(1, held or ["pass"]),
        ]

    def _lost_at(self, error: str) -> list[str]:
        position = f"STAGE_OF_LINE[{error}.__traceback__.tb_lineno]"
        return [f"if {position}:", f"    D.lost({position}, x)"]

    def _except_done(self) -> list[str]:
        if not self.shape.discards:
            return ["except Done:", "    pass"]
        # A wait ends by it when the flow is cancelled.
        alive = [] if self.iterated else [_ALIVE]
        return ["except Done as done:", *_indent(1, [*self._lost_at("done"), "x = None", *alive])]

    def _hooks(self, args: str) -> list[str]:
        out = [f"def hooks({args}):"]
        numbers = [i for i, stage in enumerate(self.stages, 1) if stage.on_end]
        for i in numbers:
            lines = self._positioned(self.stages[i - 1].lines("on_end", i), i)
            out += [f"    def over_{i}(how, error):", *_indent(2, lines)]
        pairs = ", ".join(f"({i}, over_{i})" for i in numbers)
        return [*out, f"    return [{pairs}]", ""]

    def _guarded(self, args: str) -> list[str]:
        opening = "H = S.end_hooks"
        if self.iterated:
            opening = f"H = EndHooks(hooks({args}), report, S.failure_of)"
        failure = "H.fail_at(STAGE_OF_LINE[error.__traceback__.tb_lineno], error)"
        # A task can be cancelled. What is raised after that is an error of the cleanup.
        cancelled = {
            "task": "S.is_stopped or S.is_cancelled(error)",
            "async_generator": "S.is_cancelled(error)",
        }.get(self.shape.mode)
        return [
            opening,
            "try:",
            *(["    src = src()"] if self.iterated else []),
            *_indent(1, self._run()),
            "except SubscriberRaised:",
            "    raise",
            "except UpstreamFailed as failed:",
            "    raise UpstreamFailed(H.pass_error(failed.error))",
            "except (GeneratorExit, KeyboardInterrupt, SystemExit):",
            "    raise",
            "except BaseException as error:",
            *([f"    if {cancelled}: raise"] if cancelled else []),
            f"    raise {failure}",
            "finally:",
            "    H.cancel_rest()",
        ]


def _indent(depth: int, lines: Iterable[str]) -> list[str]:
    return ["    " * depth + line for line in lines]
