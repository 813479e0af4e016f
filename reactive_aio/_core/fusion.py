"""Fusion: all stages of an island, and the delivery, written into one generated loop.

A loop is made once per shape (`Shape`: what feeds it, what it feeds, which stages) and cached; the
arguments of the stages are arguments of the loop. The loop is

* a generator (``sync``) that yields why it pauses, when every stage is synchronous: its state
  stays in fast locals, a re-entrant ``request`` is one addition, nothing recurses (rule 3.3);
* a coroutine (``task``) when something in it is awaited;
* an async generator (``agen``) for ``async for`` over a synchronous island, or a generator that
  says when it is time for a turn (``turns``), where those are faster, and a plain generator
  (``gen``) where one island is an iterator inside another.

Demand bounds what is *pulled*: with room for n elements at most n are taken from the source, so a
stage has no accounting to get wrong, and an element costs no counter, only one flag test.

The text is registered with ``linecache``: tracebacks show the lines, ``explain(code=True)`` prints
them. No text of a user gets into it, only names; values are passed as arguments.
"""

import linecache
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import count, islice
from typing import Any, Literal, NamedTuple

from ..errors import NotAnElement
from .inline import DIRECTIVES, Inline
from .pace import pace
from .skeletons import SKELETONS, WAYS

__all__ = ("DRY", "HOLD", "TURN", "WAIT", "Loop", "Shape", "SubscriberRaised", "fused")


class Pause(Enum):
    """Why a loop pauses. Never an int: in one mode a pause is told from an element by identity."""

    WAIT = "no demand"
    DRY = "no elements"
    TURN = "the time slice is over"
    HOLD = "the subscriber returned something to await"
    WITHIN = "no demand, and a stage is not done with its element"


WAIT, DRY, TURN, HOLD, WITHIN = Pause

Feed = Literal["pull", "push", "aiter"]
Mode = Literal["sync", "task", "agen", "turns", "gen"]


class Shape(NamedTuple):
    """What a generated loop depends on."""

    feed: Feed
    mode: Mode
    delivery: Literal["call", "fill", "await", "yield"]
    checked: bool
    """Whether the elements that come in have been checked for None already."""
    stages: tuple[Inline, ...]


class Done(Exception):
    """Unwinds a loop when a stage has said ``last`` or ``done``."""


class SubscriberRaised(Exception):
    """Carries what a subscriber raised past the handling of the stages' own failures (2.13)."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def no_element(stage: str) -> NotAnElement:
    """The error for a stage, or a source, that produced None."""
    advice = {
        "map": " Use filter_map to leave elements out.",
        "map_async": " Filter first, or map to a value that stands for nothing.",
        "filter_map": "",
    }.get(stage, "")
    return NotAnElement(f"{stage} produced None, which is not an element.{advice}")


@dataclass(frozen=True, slots=True)
class Loop:
    """A generated loop and its text."""

    run: Callable[..., Any]
    source: str
    has_end: bool
    """Whether a stage may still emit when the source has ended."""


_numbers = count(1)


@lru_cache(maxsize=1024)
def fused(shape: Shape) -> Loop:
    """Return the loop for *shape*, generated on first use."""
    source = _Writer(shape).text()
    number = next(_numbers)
    chain = "-".join(stage.name for stage in shape.stages) or "source"
    name = f"<reactive_aio {shape.mode} {number}: {chain}>"
    space: dict[str, Any] = {
        "islice": islice,
        "Done": Done,
        "SubscriberRaised": SubscriberRaised,
        "no_element": no_element,
        "pace": pace,
        "END": object(),
        "WAIT": WAIT,
        "DRY": DRY,
        "TURN": TURN,
        "HOLD": HOLD,
        "WITHIN": WITHIN,
    }
    exec(compile(source, name, "exec"), space)
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    ended = any(stage.end for stage in shape.stages)
    return Loop(space["loop"], source, ended)


class _Writer:
    """Writes one loop. `bulk` tells whether the part being written counts drops, not elements."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.stages = shape.stages
        self.many = any(stage.many for stage in self.stages)
        self.stops = any(stage.stops for stage in self.stages)
        self.way = WAYS[shape.mode]

    def text(self) -> str:
        iterated = self.shape.mode in ("agen", "turns", "gen")
        feed = self.shape.mode if iterated else self.shape.feed
        if feed == "aiter" and not any(stage.drops for stage in self.stages):
            feed = "aiter bulk"
        skeleton = SKELETONS[feed][self.many]
        args = [arg for i, s in enumerate(self.stages, 1) for arg in s.arguments(i)]
        starts = [line for i, s in enumerate(self.stages, 1) for line in s.lines("start", i)]
        body = [line for raw in skeleton.splitlines() for line in self._expand(raw)]
        keyword = "async def" if self.shape.mode in ("task", "agen") else "def"
        return "\n".join(
            [
                f"{keyword} loop({', '.join(['S', 'src', 'on_next', *args])}):",
                *_indent(1, self.way["prologue"]),
                *_indent(1, self.way.get(f"prologue {self.shape.delivery}", [])),
                *_indent(1, starts),
                *_indent(1, ["stop = 0"] if self.stops or self._ends() else []),
                *_indent(1, ["spent = 0"] if self.many else []),
                "    try:",
                *_indent(2, body),
                "    except Done:",
                "        pass",
                *_indent(1, self._endings()),
                "",
            ]
        )

    def _ends(self) -> bool:
        return any(stage.end for stage in self.stages)

    def _expand(self, raw: str) -> Iterable[str]:
        pad, word = raw[: len(raw) - len(raw.lstrip())], raw.strip()
        if word in ("BULK", "COUNTED"):
            lines = self._head() + self._stage(0, counted=word == "COUNTED", check=False)
        elif word == "CHECKED":
            lines = self._head() + self._stage(0, counted=True, check=True)
        else:
            lines = self.way.get(word, [word])
        return [pad + line for line in lines]

    def _head(self) -> list[str]:
        if self.shape.checked:
            return []
        return ["if x is None:", "    raise no_element('the source')"]

    def _stage(self, index: int, *, counted: bool, check: bool) -> list[str]:
        """The lines for an element that has reached stage *index* (0-based)."""
        if index == len(self.stages):
            return self._deliver(counted=counted, check=check)
        stage = self.stages[index]
        out: list[str] = []
        for line in stage.lines("each", index + 1):
            out += self._line(line, index, counted=counted, check=check)
        if not stage.many:
            out += self._stage(index + 1, counted=counted, check=check)
        return out

    def _line(self, line: str, index: int, *, counted: bool, check: bool) -> list[str]:
        found = DIRECTIVES.match(line)
        if found is None:
            return [line]
        stopping = any(stage.stops for stage in self.stages[:index])
        lines: list[str]
        match found["word"]:
            case "drop":
                lines = [] if counted or self.many else ["dropped += 1"] * self._counts()
                lines += ["if stop: raise Done"] * stopping + ["continue"]
            case "last":
                lines = [f"stop = {index + 1}"]
            case "done":
                lines = [f"stop = {index + 1}", "raise Done"]
            case _:
                each = found["rest"] if found["word"] == "emit each" else f"({found['rest']},)"
                rest = self._stage(index + 1, counted=True, check=check)
                # What a stage makes of one element may be endless.
                turn = self._turn_within() if found["word"] == "emit each" else []
                lines = [f"for x in {each}:", *_indent(1, [*turn, *rest])]
                lines += ["if stop: raise Done"] * stopping
        return [found["pad"] + line for line in lines]

    def _turn_within(self) -> list[str]:
        if not self.way["TURN"]:
            return []
        return ["spent += 1", "if spent >= batch:", "    spent = 0", *_indent(1, self.way["TURN"])]

    def _counts(self) -> bool:
        return self.shape.mode in ("sync", "task")

    def _deliver(self, *, counted: bool, check: bool) -> list[str]:
        deliver = self.way[f"deliver {self.shape.delivery}"]
        out = list(self.way["WITHIN"]) if check and self._counts() else []
        out += deliver
        if counted and self._counts():
            out.append("emitted += 1")
        if self._counts() and self.shape.delivery != "fill":
            out.append("if S.dead: return")
        if self.stops:
            out.append("if stop: raise Done")
        return out

    def _endings(self) -> list[str]:
        """What stages still emit after the elements have ended, first stage first."""
        out: list[str] = []
        for index, stage in enumerate(self.stages):
            if not stage.end:
                continue
            lines: list[str] = []
            for line in stage.lines("end", index + 1):
                lines += self._line(line, index, counted=True, check=True)
            out += [f"if stop < {index + 1}:", "    try:", *_indent(2, lines)]
            out += ["    except Done:", "        pass"]
        return out


def _indent(depth: int, lines: Iterable[str]) -> list[str]:
    return ["    " * depth + line for line in lines]
