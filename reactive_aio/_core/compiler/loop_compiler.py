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
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import count, islice
from typing import Any, Literal, NamedTuple

from ...errors import NotAnElement
from ..subscription.input_queue import UpstreamFailed
from .end_hooks import EndHooks, Hook
from .inline import DIRECTIVES, InlineStage
from .loop_templates import LOOP_TEMPLATES, MODE_LINES

__all__ = (
    "DRY",
    "HOLD",
    "TURN",
    "WAIT",
    "CompiledLoop",
    "LoopShape",
    "SubscriberRaised",
    "compile_loop",
)


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


class LoopShape(NamedTuple):
    """What a generated loop depends on."""

    feed: Feed
    mode: Mode
    delivery: Literal["call", "fill", "offer", "extend", "await", "yield"]
    checked: bool
    """Whether the elements that come in have been checked for None already."""
    stages: tuple[InlineStage, ...]


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
class CompiledLoop:
    """A generated loop and its text."""

    run: Callable[..., Any]
    source: str
    speaks: bool
    """Whether a stage may have something to say although no element comes."""
    hooks: Callable[..., list[tuple[int, Hook]]] | None
    """Makes, of the stages' arguments, who is to be told how the flow ends; None for nobody."""


_numbers = count(1)
_PLACE = re.compile(r"  # (\d+)$")


@lru_cache(maxsize=1024)
def compile_loop(shape: LoopShape) -> CompiledLoop:
    """Return the loop for *shape*, generated on first use."""
    source = _Writer(shape).text()
    number = next(_numbers)
    chain = "-".join(stage.name for stage in shape.stages) or "source"
    name = f"<reactive_aio {shape.mode} {number}: {chain}>"
    lines = source.splitlines(keepends=True)
    places = [int(found[1]) if (found := _PLACE.search(line)) else 0 for line in lines]
    space: dict[str, Any] = {
        "islice": islice,
        "Done": Done,
        "EndHooks": EndHooks,
        "SubscriberRaised": SubscriberRaised,
        "UpstreamFailed": UpstreamFailed,
        "no_element": no_element,
        "END": object(),
        "PLACES": [0, *places],
        "WAIT": WAIT,
        "DRY": DRY,
        "TURN": TURN,
        "HOLD": HOLD,
        "WITHIN": WITHIN,
    }
    space |= {each.__name__: each for stage in shape.stages for each in stage.uses}
    exec(compile(source, name, "exec"), space)
    linecache.cache[name] = (len(source), None, lines, name)
    speaks = any(stage.before or stage.after or stage.on_end for stage in shape.stages)
    return CompiledLoop(space["loop"], source, speaks, space.get("hooks"))


class _Writer:
    """Writes one loop.

    *counted* says that the part being written counts deliveries one by one, *check* that it looks
    at the demand before each; *within* is the number of the innermost stage that is not done with
    its element (0 for none): nothing that such a stage or one before it says may cut that short.
    """

    def __init__(self, shape: LoopShape) -> None:
        self.shape = shape
        self.stages = shape.stages
        self.many = any(stage.emits_many for stage in self.stages)
        self.ends = any(stage.after for stage in self.stages)
        self.stops = any(stage.stops for stage in self.stages)
        self.hooked = any(stage.on_end for stage in self.stages)
        self.way = MODE_LINES[shape.mode]
        self.iterated = shape.mode in ("agen", "turns", "gen")

    def text(self) -> str:
        args = ", ".join(self._all("arguments"))
        head = ["S", "src", "report" if self.iterated else "on_next", *([args] if args else [])]
        keyword = "async def" if self.shape.mode in ("task", "agen") else "def"
        return "\n".join(
            [
                *(self._hooks(args) if self.hooked else []),
                f"{keyword} loop({', '.join(head)}):",
                *_indent(1, self.way["prologue"]),
                *_indent(1, self.way.get(f"prologue {self.shape.delivery}", [])),
                *_indent(1, self._all("lines", "setup")),
                *_indent(1, ["stop = 0"] if self.stops or self.ends or self.hooked else []),
                *_indent(1, ["spent = 0"] if self._expands() else []),
                *_indent(1, self._guarded(args) if self.hooked else self._run()),
                "",
            ]
        )

    def _all(self, method: str, *args: object) -> list[str]:
        numbered = enumerate(self.stages, 1)
        return [each for i, stage in numbered for each in getattr(stage, method)(*args, i)]

    def _run(self) -> list[str]:
        kind = 2 if self.many else int(self.ends)
        feed: str = self.shape.mode if self.iterated else self.shape.feed
        if self.shape.delivery == "extend":
            feed = "extend"
        if feed == "aiter" and not any(stage.drops for stage in self.stages):
            feed = "aiter bulk"
        skeleton = LOOP_TEMPLATES[feed][kind]
        body = [line for raw in skeleton.strip().splitlines() for line in self._expand(raw)]
        run = ["try:", *_indent(1, [*self._beginnings(), *body]), "except Done:", "    pass"]
        return run + self._endings()

    # -- telling the stages how it ended ----------------------------------------------------------
    def _hooks(self, args: str) -> list[str]:
        out = [f"def hooks({args}):"]
        numbers = [i for i, stage in enumerate(self.stages, 1) if stage.on_end]
        for i in numbers:
            lines = self.stages[i - 1].lines("on_end", i)
            out += [f"    def over_{i}(how, error):", *_indent(2, lines)]
        pairs = ", ".join(f"({i}, over_{i})" for i in numbers)
        return [*out, f"    return [{pairs}]", ""]

    def _guarded(self, args: str) -> list[str]:
        opening = f"H = EndHooks(hooks({args}), report)" if self.iterated else "H = S.ending"
        return [
            opening,
            "try:",
            *(["    src = src()"] if self.iterated else []),
            *_indent(1, self._run()),
            "except SubscriberRaised:",
            "    raise",
            "except UpstreamFailed as failed:",
            "    raise UpstreamFailed(H.passed(failed.error))",
            "except Exception as error:",
            "    raise H.failed(error, PLACES[error.__traceback__.tb_lineno])",
            "finally:",
            "    H.left()",
        ]

    def _placed(self, lines: list[str], number: int) -> list[str]:
        """Note where *lines* belong, to tell who raised."""
        if not self.hooked:
            return lines
        return [line if _PLACE.search(line) else f"{line}  # {number}" for line in lines]

    # -- one element ------------------------------------------------------------------------------
    def _expand(self, raw: str) -> Iterable[str]:
        pad, word = raw[: len(raw) - len(raw.lstrip())], raw.strip()
        return [pad + line for line in self._word(word)]

    def _word(self, word: str) -> list[str]:
        if word in ("BULK", "COUNTED", "CHECKED"):
            counted, check = word != "BULK", word == "CHECKED"
            return self._head() + self._stage(0, 0, counted=counted, check=check)
        if word in self.way:
            return [line for each in self.way[word] for line in self._need_or(each)]
        return [word]

    def _need_or(self, line: str) -> list[str]:
        if line != "NEED":
            return [line]
        out = ["S.asked = limit = S.limit"]
        wants = [self.stages[i - 1].lines("demand", i) for i in range(len(self.stages), 0, -1)]
        if not any(wants):
            return [*out, "S.need = limit - emitted"]
        out += ["need = limit - emitted", "if need > 0:"]
        return [*out, *_indent(1, [line for want in wants for line in want]), "S.need = need"]

    def _head(self) -> list[str]:
        if self.shape.checked:
            return []
        return ["if x is None:", "    raise no_element('the source')"]

    def _stage(self, index: int, within: int, *, counted: bool, check: bool) -> list[str]:
        """The lines for an element that has reached stage *index* (0-based)."""
        if index == len(self.stages):
            return self._deliver(within, counted=counted, check=check)
        stage = self.stages[index]
        out: list[str] = []
        for line in stage.lines("each", index + 1):
            out += self._line(line, index, within, counted=counted, check=check)
        out = self._placed(out, index + 1)
        if stage.emits_many:
            return out + self._stopped(within, index + 1)
        return out + self._stage(index + 1, within, counted=counted, check=check)

    def _line(self, line: str, index: int, within: int, *, counted: bool, check: bool) -> list[str]:
        found = DIRECTIVES.match(line)
        if found is None:
            return [line]
        number = index + 1
        lines: list[str]
        match found["word"]:
            case "drop":
                bulk = not (counted or self.iterated)
                lines = ["dropped += 1"] * bulk + self._stopped(within, index) + ["continue"]
            case "last":
                lines = [f"stop = {number}"]
            case "done":
                lines = [f"stop = {number}", "raise Done"]
            case _:
                each = found["rest"] if found["word"] == "emit each" else f"({found['rest']},)"
                rest = self._stage(number, number, counted=True, check=check)
                # What a stage makes of one element may be endless.
                turn = self._turn_within() if found["word"] == "emit each" else []
                lines = self._placed([f"for x in {each}:"], number)
                lines += _indent(1, [*turn, *rest])
        return [found["pad"] + line for line in lines]

    def _stopped(self, within: int, index: int) -> list[str]:
        """End here if a stage up to *index* has said so, and no stage has anything in hand."""
        if not any(stage.stops for stage in self.stages[within:index]):
            return []
        return [f"if stop > {within}: raise Done" if within else "if stop: raise Done"]

    def _expands(self) -> bool:
        return any("emit each" in s.before + s.each + s.after for s in self.stages)

    def _turn_within(self) -> list[str]:
        if not self.way["TURN"]:
            return []
        return ["spent += 1", "if spent >= batch:", "    spent = 0", *_indent(1, self.way["TURN"])]

    def _deliver(self, within: int, *, counted: bool, check: bool) -> list[str]:
        out = list(self.way["WITHIN"]) if check and not self.iterated else []
        out += self.way[f"deliver {self.shape.delivery}"]
        if counted and not self.iterated:
            out.append("emitted += 1")
        if not self.iterated and self.shape.delivery != "fill":
            out.append("if S.dead: return")
        return out + self._stopped(within, len(self.stages))

    # -- before and after the elements ------------------------------------------------------------
    def _part(self, part: str, index: int) -> list[str]:
        number = index + 1
        lines: list[str] = []
        for line in self.stages[index].lines(part, number):
            lines += self._line(line, index, number, counted=True, check=True)
        return self._placed(lines, number)

    def _beginnings(self) -> list[str]:
        """What stages emit before the first element: the last stage's comes first."""
        return [line for i in reversed(range(len(self.stages))) for line in self._part("before", i)]

    def _endings(self) -> list[str]:
        """What stages still emit after the elements have ended, first stage first."""
        out = ["H.stopped(stop)"] if self.hooked and self.stops else []
        for number, stage in enumerate(self.stages, 1):
            if stage.after:
                lines = _indent(1, self._part("after", number - 1))
                tried = ["try:", *lines, "except Done:", "    pass"]
                out += [f"if stop < {number}:", *_indent(1, tried)]
                if self.hooked and self.stops:
                    out.append("H.stopped(stop)")
            if stage.on_end:
                out += [] if self.iterated else ["if S.dead: return"]
                told = [f"H.completed({number})"]
                out += [f"if stop < {number}:", *_indent(1, self._placed(told, number))]
        return out


def _indent(depth: int, lines: Iterable[str]) -> list[str]:
    return ["    " * depth + line for line in lines]
