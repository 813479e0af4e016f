"""The loop compiler: writes all stages of an island, and the delivery, into one generated loop.

A loop is compiled once per shape (`LoopShape`: what feeds it, what it delivers to, which stages)
and cached; the arguments of the stages are arguments of the loop. In the text, ``S`` is the
subscription, ``src`` the source and ``x`` the element. The loop is one of

* a generator (mode ``sync``) that yields the reason of each pause, when every stage is synchronous:
  its state stays in fast locals, a re-entrant ``request`` is one addition, nothing recurses
  (rule 3.3);
* a coroutine (``task``) when it awaits something;
* an async generator (``async_generator``) for ``async for`` over a synchronous island, or a
  generator that yields when the loop should get a turn (``fair_generator``) where that is faster;
* a plain generator (``generator``) where one island is an iterator inside another.

Demand bounds what is *pulled*: with room for n elements, at most n are taken from the source. So a
stage needs no accounting, and an element costs no counter, only one test of a flag.

The text is registered with ``linecache``: tracebacks show its lines, ``explain(code=True)`` prints
them. It contains names, never text of a user; values are passed as arguments.
"""

import linecache
import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import count, islice
from typing import Any
from weakref import finalize

from ..arguments import refuse_awaitable
from . import named_counts
from .discards import END
from .end_hooks import EndHooks
from .inline import DIRECTIVES
from .loop_runtime import (
    Done,
    Pause,
    SubscriberRaised,
    UpstreamFailed,
    close_source,
    extend_to_none,
    length_hint_of,
    measurable,
    measure,
    no_element,
)
from .loop_shape import CompiledLoop, LoopShape
from .loop_templates import (
    LOOP_TEMPLATES,
    MODE_LINES,
    PROVING_ITERATION,
    in_batches,
    keeping_together,
)

_numbers = count(1)
_POSITION = re.compile(r"  # (\d+)$", re.MULTILINE)
_TRACK = re.compile(r"^( *)track ")
_ELEMENT = re.compile(r"\bx\b")
_SIGNAL = re.compile(r" *(r = |await )on_next\(")
_ALIVE = "if S.is_stopped: return"
_REFUSE = "raise no_element('the source')"


@lru_cache(maxsize=1024)
def compile_loop(shape: LoopShape) -> CompiledLoop:
    """Return the loop for *shape*, compiled on first use."""
    source = _Writer(shape).text()
    number = next(_numbers)
    chain = "-".join(stage.name for stage in shape.stages) or "source"
    name = f"<reactive_aio {shape.mode} {number}: {chain}>"
    lines = source.splitlines(keepends=True)
    positions = [int(found[1]) if (found := _POSITION.search(line)) else 0 for line in lines]
    source = _POSITION.sub("", source)
    lines = source.splitlines(keepends=True)
    space: dict[str, Any] = {
        "islice": islice,
        "length_hint_of": length_hint_of,
        "Done": Done,
        "EndHooks": EndHooks,
        "SubscriberRaised": SubscriberRaised,
        "UpstreamFailed": UpstreamFailed,
        "measurable": measurable,
        "measure": measure,
        "no_element": no_element,
        "close_source": close_source,
        "extend_to_none": extend_to_none,
        "refuse_awaitable": refuse_awaitable,
        "END": END,
        "STAGE_OF_LINE": [0, *positions],
        "SIGNALS": {n for n, line in enumerate(lines, 1) if _SIGNAL.match(line)},
        "READS": {n for n, line in enumerate(lines, 1) if named_counts.is_read(line)},
    }
    space |= {pause.name: pause for pause in Pause}
    for number, stage in enumerate(shape.stages, 1):
        space |= stage.used(number)
    exec(compile(source, name, "exec"), space)
    linecache.cache[name] = (len(source), None, lines, name)
    emits_first = any(stage.before for stage in shape.stages)
    emits_unprompted = emits_first or any(stage.after or stage.on_end for stage in shape.stages)
    end_hooks = space.get("hooks")
    loop = CompiledLoop(space["loop"], source, emits_first, emits_unprompted, end_hooks)
    finalize(loop, linecache.cache.pop, name, None)
    return loop


class _Writer:
    """Writes the text of one loop.

    *counted*: the lines count deliveries one by one. *check*: they check demand before each
    delivery. *within*: the position of the innermost stage that still emits for its current element
    (0 for none); ``last`` or ``done`` in that stage or before it does not cut that emission short.
    """

    def __init__(self, shape: LoopShape) -> None:
        self.shape = shape
        self.stages = shape.stages
        self.many = any(stage.emits_many for stage in self.stages)
        self.ends = any(stage.after for stage in self.stages)
        self.stops = any(stage.stops for stage in self.stages)
        self.hooked = any(stage.on_end for stage in self.stages)
        self.last_proof = max((i for i, s in enumerate(self.stages, 1) if s.proves), default=0)
        self.counting = named_counts.counting_label(self.stages)
        self.is_named = any(stage.label for stage in self.stages)  # figures read its counts
        self.fills_container = shape.mode == "sync" and shape.delivery == "append"
        is_sync = shape.mode == "sync" and shape.delivery != "extend"
        self.measures = self.is_named and not self.counting and is_sync
        self.leave = "continue"  # what ends the work on an element that is dropped
        self.proves = False  # the lines that are being written look at results of functions
        self.emitting = 0  # the stage that emits ahead of the elements, or after them
        self.fits = False  # they are for a batch that no stage is too full for
        self.rooms: list[str] = []
        self.mode_lines = MODE_LINES[shape.mode]
        self.delivery = "append" if shape.delivery == "inspect" else shape.delivery
        self.iterated = shape.mode in ("async_generator", "fair_generator", "generator")
        self.has_task = shape.mode in ("task", "async_generator")  # it can be cancelled
        self.discards = shape.discards
        self.finds_in_hand = self._finds_in_hand()
        self.pulled = self._pulled()

    def _pulled(self) -> list[str]:
        """The iterator that does what the first stage does, if there is one and nothing looks at
        elements or closes the source between the two."""
        is_simple = self.shape.feed == "pull" and not (
            self.iterated or self.discards or self.is_named
        )
        return self.stages[0].lines("pulled", 1) if is_simple and self.stages else []

    def _finds_in_hand(self) -> bool:
        """Whether the line at which the loop ends says if it has an element in its hands: only at
        lines of stages. Elsewhere, variables say that."""
        return (
            self.shape.feed == "pull"
            and self.shape.mode != "task"
            and self.shape.delivery in ("call", "yield")
            and not self.many
            and not any(stage.before or stage.after for stage in self.stages)
        )

    def _keeps_all(self) -> bool:
        """Whether the first stage keeps every element, and nothing looks at one or counts it."""
        return (
            self.shape.feed == "pull"
            and self.shape.checked
            and not self.discards
            and not self.is_named
            and (self.ends or self.iterated)
            and bool(self.stages and self.stages[0].kept_in)
        )

    def text(self) -> str:
        args = ", ".join(self._all("arguments"))
        expands = any(s.expands or "emit each" in s.before + s.after for s in self.stages)
        head = ["S", "src", "report" if self.iterated else "on_next", "arguments"]
        head += ["D"] * (self.discards and self.iterated)
        keyword = "async def" if self.shape.mode in ("task", "async_generator") else "def"
        return "\n".join(
            [
                *(self._hooks(args) if self.hooked else []),
                f"{keyword} loop({', '.join(head)}):",
                *_indent(1, [f"{args}, = arguments"] if args else []),
                *_indent(1, self.mode_lines["prologue"]),
                *_indent(1, self.mode_lines.get(f"prologue {self.delivery}", [])),
                *_indent(1, self._tracked(self._all("lines", "setup"))),
                *_indent(1, [f"src = {iterator}" for iterator in self.pulled]),
                *_indent(1, ["stop = False"] if self.stops or self.ends or self.hooked else []),
                *_indent(1, ["spent = 0"] if expands else []),
                *_indent(1, ["passed = 0"] if self.counting else []),
                *_indent(1, ["proven = False"] if self.last_proof else []),
                *_indent(1, self._closing(self._guarded(args) if self.hooked else self._run())),
                "",
            ]
        )

    def _all(self, method: str, *args: object) -> list[str]:
        numbered = enumerate(self.stages, 1)
        return [each for i, stage in numbered for each in getattr(stage, method)(*args, i)]

    def _run(self) -> list[str]:
        # A task may be suspended in the middle of a batch, where figures read how far it is.
        is_read = self.is_named and not self.counting and self.shape.mode == "task"
        self.measures = self.measures and not self.many
        variant = 2 if self.many else 3 if is_read else int(self.ends)
        feed: str = self.shape.mode if self.iterated else self.shape.feed
        if self.shape.delivery == "extend":
            feed = f"{feed} extend"
        if feed == "aiter" and not variant:
            self.leave = "break"  # `continue` would skip the countdown
        skeleton = LOOP_TEMPLATES[feed][variant]
        if self.measures and not self.fills_container:
            skeleton = named_counts.read_measured(skeleton)
        if self._keeps_all():
            kept = self.stages[0].lines("kept_in", 1)[0]
            skeleton = keeping_together(skeleton, kept)
        if self.last_proof and self.iterated:
            skeleton = PROVING_ITERATION + skeleton
        self.rooms = self._all("lines", "room") if "IF_ROOM" in skeleton else []
        skeleton = in_batches(skeleton, self.rooms, is_proven=bool(self.last_proof))
        lines = [raw for raw in skeleton.splitlines() if raw.strip()]
        body = [line for raw in lines for line in self._expand(raw)]
        run = ["try:", *_indent(1, [*self._beginnings(), *body]), *self._except_done()]
        run += self._endings()
        if self.delivery in ("call", "await"):
            run = self._separating_subscriber(run)
        if self.is_named and not self.iterated:
            # Before what is left is discarded.
            run = named_counts.around_loop(
                run,
                measures=self.measures,
                fills_container=self.fills_container,
                counter="passed" if self.counting else "emitted",
            )
        if self.discards:
            run = self._discarding(run)
        if self.shape.mode == "async_generator":
            # It runs in the consumer's task, which must not take an error for its cancellation.
            handler = ["except Exception as error:", "    S.annotate(error)", "    raise"]
            handler += ["except BaseException as error:", "    raise S.failure_of(error)"]
            return ["try:", *_indent(1, run), *handler]
        return run

    def _separating_subscriber(self, lines: list[str]) -> list[str]:
        """Tell an error of the subscriber from one of a stage (2.13), by the line that raised it: a
        `try` around each signal takes longer than all the other guards of an element."""
        condition = "error.__traceback__.tb_lineno in SIGNALS"
        condition += " and not S.is_cancelled(error)" if self.delivery == "await" else ""
        return [
            "try:",
            *_indent(1, lines),
            "except BaseException as error:",
            f"    if {condition}: raise SubscriberRaised(error) from error",
            "    raise",
        ]

    def _closing(self, lines: list[str]) -> list[str]:
        """Close the source of an iterator, which no island does."""
        if not self.iterated:
            return lines
        failure_of = "S.failure_of" if self.shape.mode == "async_generator" else "None"
        return [
            "try:",
            *_indent(1, lines),
            "except BaseException as error:",
            f"    close_source(src, report, {failure_of}, error)",
            "    raise",
            f"close_source(src, report, {failure_of})",
        ]

    # -- discarded elements -----------------------------------------------------------------------
    def _discarding(self, run: list[str]) -> list[str]:
        """Give back what the loop has in its hands when it ends, and what its stages hold."""
        numbered = enumerate(self.stages, 1)
        held = [f"D.give({i}, {line})" for i, stage in numbered for line in stage.lines("held", i)]
        # The `raise` leaves the traceback as it is, and so the position of what was raised.
        return [
            *([] if self.iterated else ["D = S.discards"]),
            "x = due = rest = None",
            "try:",
            *_indent(1, run),
            "except BaseException as error:",
            *_indent(1, self._lost_at("error")),
            "    raise",
            "finally:",
            *_indent(1, [f"D.lost({len(self.stages)}, due)", *held, "D.rest(rest)"]),
        ]

    def _lost_at(self, error: str) -> list[str]:
        position = f"STAGE_OF_LINE[{error}.__traceback__.tb_lineno]"
        if self.finds_in_hand:
            return [f"if {position}:", f"    D.lost({position}, x)"]
        return [f"D.lost({position}, x)"]

    def _except_done(self) -> list[str]:
        if not self.discards:
            return ["except Done:", "    pass"]
        # A wait ends by it when the flow is cancelled.
        lost = _indent(1, [*self._lost_at("done"), f"D.lost({len(self.stages)}, due)"])
        alive = [] if self.iterated else [f"    {_ALIVE}"]
        return ["except Done as done:", *lost, "    x = due = None", *alive]

    def _tracked(self, lines: list[str]) -> list[str]:
        """*lines*, with or without those that begin with ``track``."""
        return [
            _TRACK.sub(r"\1", line) for line in lines if self.discards or not _TRACK.match(line)
        ]

    # -- end hooks --------------------------------------------------------------------------------
    def _hooks(self, args: str) -> list[str]:
        out = [f"def hooks({args}):"]
        numbers = [i for i, stage in enumerate(self.stages, 1) if stage.on_end]
        for i in numbers:
            lines = self.stages[i - 1].lines("on_end", i)
            lines = self._positioned(lines, i)
            out += [f"    def over_{i}(how, error):", *_indent(2, lines)]
        pairs = ", ".join(f"({i}, over_{i})" for i in numbers)
        return [*out, f"    return [{pairs}]", ""]

    def _guarded(self, args: str) -> list[str]:
        opening = f"H = EndHooks(hooks({args}), report)" if self.iterated else "H = S.end_hooks"
        failure = "H.fail_at(STAGE_OF_LINE[error.__traceback__.tb_lineno], error)"
        if self.shape.mode == "async_generator":
            failure = f"S.failure_of({failure})"
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
            *(["    if S.is_cancelled(error): raise"] if self.has_task else []),
            f"    raise {failure}",
            "finally:",
            "    H.cancel_rest()",
        ]

    def _positioned(self, lines: list[str], number: int) -> list[str]:
        """Append the position of the stage to *lines*, to find the stage that raised."""
        return [line if _POSITION.search(line) else f"{line}  # {number}" for line in lines]

    # -- one element ------------------------------------------------------------------------------
    def _expand(self, raw: str) -> list[str]:
        """The lines for one line of a template."""
        pad, word = raw[: len(raw) - len(raw.lstrip())], raw.strip()
        if word.startswith(("MEASURE ", "MEASURED")):
            is_pulled = word == "MEASURE src" or (word == "MEASURED" and self.shape.feed == "pull")
            lines = named_counts.around_batch(
                word, fills_container=self.fills_container, is_pulled=is_pulled
            )
            lines *= self.measures
        elif word.startswith("TRACK "):
            lines = [word.removeprefix("TRACK ")] * self.discards
        elif word.startswith("DELIVER_"):
            counted = word in ("DELIVER_COUNTED", "DELIVER_CHECKED")
            check = word == "DELIVER_CHECKED"
            self.proves = word == "DELIVER_PROVING" or (counted and not self.iterated)
            self.fits = word == "DELIVER_BULK" and bool(self.rooms)
            lines = self._refusing_none() + self._stage(0, 0, counted=counted, check=check)
        elif word.startswith("REFUSE_NONE"):
            lines = self._refusing_none(word.removeprefix("REFUSE_NONE").removeprefix("_IN "))
        elif word.startswith("ITERATE_TWICE "):
            chunk = word.removeprefix("ITERATE_TWICE ")
            lines = [f"{chunk} = [*{chunk}]"] * (not self.shape.checked)
        elif word == "REQUEST_NEEDED":
            lines = self._request_needed()
        elif word in self.mode_lines:
            lines = [line for each in self.mode_lines[word] for line in self._expand(each)]
            if word in ("END_BATCH", "MEASURE_BATCH"):
                lines += [f"batch = min(batch, max({room}, 8))" for room in self.rooms]
        else:
            lines = [word]
        return [pad + line for line in lines]

    def _refusing_none(self, batch: str = "") -> list[str]:
        """The lines that refuse None, as ``x`` or in a *batch* for a container."""
        if self.shape.checked:
            return []
        if not batch:
            given = self.stages[0].given if self.pulled else "x"
            return [f"if {given} is None:", f"    {_REFUSE}"]
        keep = [f"emitted += extend_to_none(kept, {batch})", _REFUSE]
        return [f"for x in {batch}:", "    if x is None:", *_indent(2, keep)]

    def _request_needed(self) -> list[str]:
        numbered = reversed([*enumerate(self.stages, 1)])
        demand = [line for i, stage in numbered for line in stage.lines("demand", i)]
        if not demand:
            return ["S.requested_limit = S.limit"]
        translated = ["need = limit - emitted", "if need > 0:", *_indent(1, demand)]
        return ["S.requested_limit = limit = S.limit", *translated, "S.needed = need"]

    def _stage(self, index: int, within: int, *, counted: bool, check: bool) -> list[str]:
        """The lines for an element that has reached stage *index* (0-based)."""
        out: list[str] = []
        for number, stage in enumerate(self.stages[index:], index + 1):
            lines: list[str] = []
            each = [] if number == 1 and self.pulled else stage.lines("each", number)
            for line in each:
                lines += self._line(line, number - 1, within, counted=counted, check=check)
            lines += ["passed += 1"] * (number == self.counting)
            out += self._positioned(lines, number)
            if stage.emits_many:  # its `emit` lines contain the stages that follow
                return out + self._stopped(within, number)
        return out + self._deliver(within, counted=counted, check=check)

    def _line(self, line: str, index: int, within: int, *, counted: bool, check: bool) -> list[str]:
        found = DIRECTIVES.match(line)
        if found is None:
            return [line]
        number = index + 1
        lines: list[str]
        match found["word"]:
            case "drop":
                bulk = not (counted or self.iterated)
                # Stages that emit at the end run in bulk only without a limit.
                is_count_used = not self.ends or self.is_named
                lines = ["dropped += 1"] * (bulk and is_count_used) + self._let_go()
                lines += [*self._stopped(within, index), self.leave]
            case "keep":
                lines = [f"{found['rest']}.append(x)"]
                lines += self._line("drop", index, within, counted=counted, check=check)
            case "last":
                lines = [f"stop = {number}"]
                if self._delivers_last(number):  # by lines that are not of the stage
                    deliver = self._deliver(within, counted=counted, check=check)
                    lines += self._positioned([*deliver, "raise Done"], 0)
            case "done":
                is_counted = ["dropped += 1"] * self._is_in_batch(counted=counted)
                lines = [f"stop = {number}", *is_counted, *self._let_go(), "raise Done"]
            case "full":
                lines = [found["rest"]] * (not self.fits)
            case "track":
                lines = [found["rest"]] * self.discards
            case "sync" | "first":
                lines = self._proof(found["word"], found["rest"], number) if self.proves else []
            case "emit lists":
                lines = self._lists(found["rest"], number, check=check)
            case _:
                is_many = found["word"] == "emit each"
                each = found["rest"] if is_many else f"({found['rest']},)"
                # One element may expand into an endless iterable.
                turn = self._yield_mid_element() if is_many else []
                lines = self._positioned([f"for x in {each}:"], number)
                lines += _indent(1, [*turn, *self._following(number, counted=True, check=check)])
        return [found["pad"] + line for line in lines]

    def _is_in_batch(self, *, counted: bool) -> bool:
        """Whether the batch is measured, so that it must be known which elements leave the flow."""
        return self.measures and not (counted or self.fills_container)

    def _lists(self, lists: str, number: int, *, check: bool) -> list[str]:
        """The lines that deliver each element of each of *lists*: a list that fits into the demand
        and the batch needs no counting."""
        turn, several = self._yield_mid_element(), f"several_{number}"
        rest = [*turn, *self._following(number, counted=True, check=check)]
        counted = [*self._positioned([f"for x in {several}:"], number), *_indent(1, rest)]
        each = self._positioned([f"for {several} in {lists}:"], number)
        if not self._may_count_together(number):
            return [*each, *_indent(1, counted)]
        proven = " and proven" if self.last_proof else ""
        together = [
            f"size = len({several}) if {several}.__class__ is list else 1 << 62",
            "if spent + size > batch:",
            *turn[2:],
            f"if size <= batch and emitted + size <= S.limit{proven}:",
            "    spent += size",
            f"    for x in {several}:",
            *_indent(2, self._following(number, counted=False, check=False)),
            "    emitted += size",
            "else:",
            *_indent(1, counted),
        ]
        return [*each, *_indent(1, together)]

    def _may_count_together(self, number: int) -> bool:
        """Whether each element that stage *number* emits is delivered, and nothing looks at the
        count before all of them are."""
        if self.iterated or self.discards or self.is_named:
            return False
        following = self.stages[number:]
        return not any(stage.drops or stage.emits_many or stage.stops for stage in following)

    def _following(self, number: int, *, counted: bool, check: bool) -> list[str]:
        """The lines of the stages after *number*, for one of the elements that it emits."""
        leave, self.leave = self.leave, "continue"  # with the next of these elements
        proves, self.proves = self.proves, self.proves and counted
        fits, self.fits = self.fits, False  # there may be more of these elements
        lines = self._stage(number, number, counted=counted, check=check)
        self.leave, self.proves, self.fits = leave, proves, fits
        return lines

    def _let_go(self) -> list[str]:
        """The loop has no undelivered element in its hands any more."""
        return ["x = None"] * self.discards

    def _proof(self, word: str, rest: str, number: int) -> list[str]:
        proven = ["proven = True"] * self._is_proven_at(number)
        if word == "first":
            return [rest, *proven]
        result, _, function = rest.partition(" of ")
        refuse = f"refuse_awaitable({self.stages[number - 1].name!r}, {function}, {result})"
        return ["if not proven:", *_indent(1, [refuse, *proven])]

    def _is_proven_at(self, number: int) -> bool:
        """Whether what reaches stage *number* has passed all lines that look at results."""
        passed = self.stages[: self.emitting]
        return number == self.last_proof and not any(stage.proves for stage in passed)

    def _stopped(self, within: int, index: int) -> list[str]:
        """End here if a stage up to *index* has stopped, and no stage still emits."""
        numbered = enumerate(self.stages[within:index], within + 1)
        if not any(stage.lasts and not self._delivers_last(i) for i, stage in numbered):
            return []
        return [f"if stop > {within}: raise Done" if within else "if stop: raise Done"]

    def _delivers_last(self, number: int) -> bool:
        """Whether the ``last`` line of stage *number* delivers the element itself, so that other
        elements need no test: where nothing but the delivery follows it."""
        is_at_end = not any(stage.each for stage in self.stages[number:])
        return is_at_end and self.stages[number - 1].ends_with_last

    def _yield_mid_element(self) -> list[str]:
        if not self.mode_lines["END_BATCH"]:
            return []
        return [
            "spent += 1",
            "if spent >= batch:",
            "    spent = 0",
            *_indent(1, self.mode_lines["END_BATCH"]),
        ]

    def _deliver(self, within: int, *, counted: bool, check: bool) -> list[str]:
        deliver = self.mode_lines[f"deliver {self.delivery}"]
        if counted and not self.iterated:
            # Once it is handed over, and before what follows may end the loop.
            at = deliver.index("on_next(x)") + 1 if "on_next(x)" in deliver else len(deliver)
            deliver = [*deliver[:at], "emitted += 1", *deliver[at:]]
        if self.discards and not self.finds_in_hand:
            return self._deliver_tracked(deliver, within, check=check)
        if self.iterated:
            return deliver + self._stopped(within, len(self.stages))
        out = [*self.mode_lines["CHECK_DEMAND_MID_ELEMENT"], *deliver] if check else [*deliver]
        if self.shape.delivery != "append":
            out.append("if S.is_stopped: return")
        return out + self._stopped(within, len(self.stages))

    def _deliver_tracked(self, deliver: list[str], within: int, *, check: bool) -> list[str]:
        """The same; an element that waits for its delivery is ``due``."""
        ahead = self.mode_lines["CHECK_DEMAND_MID_ELEMENT"] if check and not self.iterated else []
        alive = [] if self.iterated else [_ALIVE]
        if deliver[0] == _ALIVE or self.delivery == "append":
            ahead, deliver = ahead + alive, [line for line in deliver if line != _ALIVE]
        out = ["due, x = x, None", *ahead, "given, due = due, None"]
        out += [_ELEMENT.sub("given", line) for line in deliver]
        out += alive
        return out + self._stopped(within, len(self.stages))

    # -- before and after the elements ------------------------------------------------------------
    def _part(self, part: str, index: int) -> list[str]:
        self.emitting = number = index + 1
        self.proves, self.fits = True, False  # what is emitted here may be the first to pass
        lines: list[str] = []
        for line in self.stages[index].lines(part, number):
            lines += self._line(line, index, number, counted=True, check=True)
        self.emitting = 0
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


def _indent(depth: int, lines: Iterable[str]) -> list[str]:
    return ["    " * depth + line for line in lines]
