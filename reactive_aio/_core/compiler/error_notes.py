"""The notes that an error carries out of a flow: the operators it passed, and where it was raised.

::

    ZeroDivisionError: division by zero
    in the flow: range(0, 3) → >>map(divide)<< → boundary(2) → map(str)
        with the element 0
        File "app.py", line 12, in main
            flow = rx.range(3).map(divide).boundary(2)
                               ^^^^^^^^^^^

There is one note for each flow that an error leaves. Each island replaces the note of the island
above it with its own, longer one. The failing stage is found in the traceback, so that a loop has
no line for it; where it is written was noted when the flow was made (`places`).
"""

from collections.abc import Callable
from contextlib import suppress
from reprlib import Repr
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from ...errors import are_elements_shown
from .inline import safe_repr
from .places import describe_place

if TYPE_CHECKING:
    from .chain import Chain
    from .inline import AppliedStage

E = TypeVar("E", bound=BaseException)

_START: Final = "in the flow: "
_RESULT: Final = "raised by the cleanup, after the flow had a result"
_STARTS: Final = (_START, _RESULT, "retry: ")
_ELEMENT: Final = "\n    with the element "
_MARKS: Final = (">>", "<<")
_MOST_NOTES: Final = 8  # an exception instance may be raised in any number of flows
_MOST_ISLANDS: Final = 50
_MOST_BESIDE: Final = 4  # upstreams of one operator
_FIRST_STAGES, _LAST_STAGES = 8, 16  # of one island
_MOST_SEARCHED: Final = 10_000  # chains, for the failing stage
_MOST_FRAMES: Final = 200
_LONGEST_TEXT: Final = 200

_short = Repr()
_short.maxstring = _short.maxother = _LONGEST_TEXT


class Failure(NamedTuple):
    """Where an error was raised."""

    path: tuple[int, ...]
    """The way up from a chain: which upstream, and which upstream of that …"""
    position: int
    """The stage in that chain, counted from 1; 0 for its source."""
    frame: FrameType | None = None
    """The frame of the loop that was running."""

    def above(self, upstream: int) -> "Failure | None":
        """The same, seen from one of the upstreams."""
        if self.path[:1] != (upstream,):
            return None
        return self._replace(path=self.path[1:])


def annotate(chain: "Chain", error: BaseException, failure: Failure | None = None) -> str:
    """Note in *error* that it was passed on by *chain*, and the failing stage; return the note.

    The stage is that of *failure*, or is found in the traceback.
    """
    text = ""
    with suppress(Exception):  # an exception may be frozen, and user code describes the arguments
        above, text = _note(chain, error, failure or failure_in(chain, error))
        if above is not None:
            error.__notes__[above] = text
        else:
            add_bounded_note(error, _START, text)
    return text


def note_consumer(chain: "Chain", error: BaseException, consumer: str) -> None:
    """Note in *error* that *consumer*, which reads *chain*, has raised it."""
    with suppress(Exception):  # user code describes the arguments
        add_bounded_note(error, _START, f"{_START}{trail(chain)} → {consumer.join(_MARKS)}")


def note_stage(chain: "Chain", error: BaseException, x: object) -> None:
    """Note in *error*, which is not raised, that the last operator of *chain* has failed at *x*."""
    note_element(error, x)
    annotate(chain, error, Failure((), len(chain.stages)))


def _note(chain: "Chain", error: BaseException, failure: Failure | None) -> tuple[int | None, str]:
    """The note of *chain*, and the position of the one that it replaces."""
    notes: list[str] = getattr(error, "__notes__", [])
    element = _pop_element(notes)
    line = trail(chain, failure)
    ours = [i for i, note in enumerate(notes) if note.startswith(_START)]
    above = next((i for i in ours if _trail_of(notes[i]) in _unmarked(line)), None)
    if failure is not None:
        text = _START + line + (element or _element_of(chain, failure)) + _written(chain, failure)
    elif above is not None and not element:
        text = _lengthened(notes[above], line)
    else:  # the source raised it, and is not a loop
        failure = Failure((), 0)
        text = _START + trail(chain, failure) + element + _written(chain, failure)
    return above, text


def trail_of(chain: "Chain", error: BaseException) -> str:
    """What `annotate` would note, if a flow that *chain* reads has passed on *error* before."""
    line = trail(chain)
    with suppress(Exception):  # user code may have changed the notes
        notes: list[str] = getattr(error, "__notes__", [])
        for note in notes:
            if note.startswith(_START) and _trail_of(note) in line:
                return _lengthened(note, line)
    return _START + line


def add_bounded_note(error: BaseException, start: str, text: str) -> None:
    """Add a note that begins with *start*; the ninth one replaces the eighth.

    It raises if the exception does not allow notes.
    """
    notes: list[str] = getattr(error, "__notes__", [])
    alike = [i for i, note in enumerate(notes) if note.startswith(start)]
    if len(alike) < _MOST_NOTES:
        error.add_note(text)
    else:
        notes[alike[-1]] = text


def _trail_of(note: str) -> str:
    """The trail in one of our notes, without the marks."""
    return _unmarked(note[len(_START) :].partition("\n")[0])


def _unmarked(line: str) -> str:
    for mark in _MARKS:
        line = line.replace(mark, "")
    return line


def _lengthened(note: str, trail: str) -> str:
    """The note of an island above, for an island with *trail*."""
    line, newline, element = note[len(_START) :].partition("\n")
    return _START + trail.replace(_unmarked(line), line, 1) + newline + element


def _element_of(chain: "Chain", failure: Failure) -> str:
    stage = _stage_of(chain, failure)
    # `x` of a stage that emits several is what it has emitted last.
    if failure.frame is None or stage is None or stage.stage.emits_many:
        return ""
    local = failure.frame.f_locals
    x = local.get("x")
    if x is None or x is failure.frame.f_globals["END"]:
        return ""
    return _element(x)


def _element(x: object) -> str:
    return f"{_ELEMENT}{short_text(x)}" if are_elements_shown() else ""


def _written(chain: "Chain", failure: Failure) -> str:
    """Where the failing stage is written, and the line."""
    stage = _stage_of(chain, failure)
    place = _chain_of(chain, failure).place if stage is None else stage.place
    text = "" if place is None else describe_place(place)
    return "".join(f"\n    {line}" for line in text.splitlines())


def _chain_of(chain: "Chain", failure: Failure) -> "Chain":
    """The chain in which it was raised, above *chain* or that itself."""
    for upstream in failure.path:
        chain = chain.source.upstreams[upstream].chain
    return chain


def _stage_of(chain: "Chain", failure: Failure) -> "AppliedStage | None":
    """The stage that raised; None if the source did."""
    position = failure.position
    return _chain_of(chain, failure).stages[position - 1] if position else None


def remove_notes(error: BaseException) -> None:
    """Remove the notes of other flows from an exception that is going to be raised again."""
    notes: list[str] = getattr(error, "__notes__", [])
    notes[:] = [note for note in notes if not note.startswith(_STARTS)]


def restorer(shared: E) -> Callable[[], E]:
    """A function that returns *shared* as it is now, without what raising it adds meanwhile.

    The traceback of an exception that is raised for one consumer after another would grow, and keep
    the frames of all of them.
    """
    traceback, context = shared.__traceback__, shared.__context__
    notes = tuple(getattr(shared, "__notes__", ()))

    def restore() -> E:
        if shared.__context__ is not context:
            shared.__context__ = context
        if (added := getattr(shared, "__notes__", None)) is not None:
            added[:] = notes
        return shared.with_traceback(traceback)

    return restore


def note_element(error: BaseException, x: object) -> None:
    """Keep the element that the work on it failed with, for the note of the next island."""
    notes: list[str] = getattr(error, "__notes__", [])
    _pop_element(notes)
    if text := _element(x):
        with suppress(Exception):  # it may be frozen
            add_bounded_note(error, _ELEMENT, text)


def note_result(error: BaseException, result: object) -> None:
    """Note in *error*, which a cleanup raised, what the flow had resulted in before."""
    shown = f": {short_text(result)}" if are_elements_shown() else ""
    with suppress(Exception):  # it may be frozen
        add_bounded_note(error, _RESULT, _RESULT + shown)


def _pop_element(notes: list[str]) -> str:
    return notes.pop() if notes and notes[-1].startswith(_ELEMENT) else ""


def short_text(value: object) -> str:
    """A short text for any object, even if its ``repr`` raises or is endless."""
    text = safe_repr(value, _short.repr)
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"


# -- the trail -------------------------------------------------------------------------------------
def trail(chain: "Chain", failure: Failure | None = None) -> str:
    """The operators from the sources to *chain* on one line; the failing one is marked."""
    return _TrailWriter().write(chain, failure)


class _TrailWriter:
    """Writes the trail of a flow: of one with many islands, those closest to the consumer."""

    def __init__(self) -> None:
        self.remaining = _MOST_ISLANDS

    def write(self, chain: "Chain", failure: Failure | None) -> str:
        parts: list[str] = []
        while self.remaining:
            self.remaining -= 1
            is_here = failure is not None and not failure.path
            parts.append(island_text(chain, failure.position if failure and is_here else None))
            upstreams = chain.source.upstreams
            if len(upstreams) != 1:
                parts += [f"({self._beside(upstreams, failure)})"] * bool(upstreams)
                break
            failure = None if failure is None or is_here else failure.above(0)
            chain = upstreams[0].chain
        else:
            parts.append("…")
        return " → ".join(reversed(parts))

    def _beside(self, upstreams: "tuple[Any, ...]", failure: Failure | None) -> str:
        """The trails of several upstreams: the first ones, and the failing one."""
        failing = failure.path[0] if failure is not None and failure.path else -1
        shown = [i for i in range(len(upstreams)) if i < _MOST_BESIDE or i == failing]
        texts = [
            self.write(upstreams[i].chain, None if failure is None else failure.above(i))
            for i in shown
        ]
        if hidden := len(upstreams) - len(shown):
            texts.append(f"{hidden} more")
        return " | ".join(texts)


def island_text(chain: "Chain", failing: int | None = None) -> str:
    """The source and the stages of *chain* on one line; the failing one is marked."""
    steps = (chain.name, *chain.stages)
    shown: list[str] = []
    for i, step in enumerate(steps):
        if i == failing:
            shown.append(str(step).join(_MARKS))
        elif i < _FIRST_STAGES or i >= len(steps) - _LAST_STAGES:
            shown.append(str(step))
        elif shown[-1] != "…":
            shown.append("…")
    return " → ".join(shown)


# -- the failing stage -----------------------------------------------------------------------------
def failure_in(chain: "Chain", error: BaseException) -> Failure | None:
    """Where the traceback of *error* passed the loops of *chain* or of the flows that it reads."""
    entries = list(_entries(error.__traceback__))
    return _search(chain, entries) if entries else None


def _entries(traceback: TracebackType | None) -> "list[tuple[FrameType, int]]":
    """The frames of generated loops and their stages, the outermost first."""
    found: list[tuple[FrameType, int]] = []
    for _ in range(_MOST_FRAMES):  # that of an exception which is raised often grows
        if traceback is None:
            break
        frame = traceback.tb_frame
        if "STAGE_OF_LINE" in frame.f_globals:
            found.append((frame, frame.f_globals["STAGE_OF_LINE"][traceback.tb_lineno]))
        traceback = traceback.tb_next
    return found


def _search(chain: "Chain", entries: "list[tuple[FrameType, int]]") -> Failure | None:
    """Find the stage, in *chain* first; the source of a chain is said to fail if no stage has."""
    found: Failure | None = None
    waiting: list[tuple[Chain, tuple[int, ...]]] = [(chain, ())]
    for _ in range(_MOST_SEARCHED):
        if not waiting:
            break
        chain, path = waiting.pop()
        here = _position_in(chain, entries)
        if here is not None:
            found = here._replace(path=path)
            if found.position:
                break
        if len(path) < _MOST_ISLANDS:
            upstreams = enumerate(chain.source.upstreams)
            waiting += reversed([(each.chain, (*path, i)) for i, each in upstreams])
    return found


def _position_in(chain: "Chain", entries: "list[tuple[FrameType, int]]") -> Failure | None:
    found: Failure | None = None
    for frame, position in entries:
        if not runs(frame, chain):
            continue
        if found is not None and found.frame is not frame:
            same_code = found.frame is not None and found.frame.f_code is frame.f_code
            if same_code:
                break  # deeper frames are those of an earlier raise of the same exception
        if found is None or position:
            found = Failure((), min(position, len(chain.stages)), frame)
    return found


def runs(frame: FrameType, chain: "Chain") -> bool:
    """Whether *frame* is the loop of *chain*, or an end hook of it."""
    for loop in chain.loops():
        if frame.f_globals is not loop.run.__globals__:
            continue
        if frame.f_code is not loop.run.__code__:
            return True  # an end hook
        return frame.f_locals.get("arguments") is chain.arguments
    return False
