"""The search through the orders of a scenario, and the failure that it reports."""

import asyncio
import dis
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from types import CodeType
from typing import Final

from .run import Options, Run, Scenario, paused_garbage_collector, run
from .script import (
    BETWEEN_STEPS,
    INSIDE_STEP,
    Choice,
    Departure,
    Departures,
    Place,
    RandomScript,
    Script,
    format_order,
    parse_order,
)
from .threads import machine_references

_MAX_STEPS_SHOWN: Final = 80
# These read, change or iterate over a container without naming it.
_ANY_NAME: Final = ("BINARY_SUBSCR", "STORE_SUBSCR", "DELETE_SUBSCR", "BINARY_SLICE",
                    "STORE_SLICE", "CONTAINS_OP", "FOR_ITER", "BINARY_OP", "LOAD_DEREF",
                    "STORE_DEREF")  # fmt: skip


class ScheduleFailure(AssertionError):
    """A legal order under which a scenario fails."""

    def __init__(self, error: BaseException, order: str, steps: list[str], call: str) -> None:
        self.error: BaseException = error
        """The error of the run."""
        self.order: str = order
        """The order, for `replay`."""
        self.steps: list[str] = steps
        """The steps of the run; departures from asyncio's order begin with ``>``."""
        departures = len(order.split())
        plural = "" if departures == 1 else "s"
        shown = steps[-_MAX_STEPS_SHOWN:]
        lines = [
            f"{type(error).__name__}: {error}",
            *getattr(error, "__notes__", ()),
            f"in an order with {departures} departure{plural} from asyncio's own:",
            *(["  …"] if len(shown) < len(steps) else []),
            *shown,
            f"To see it again: {call}",
        ]
        super().__init__("\n".join(lines))


class NotDeterministic(RuntimeError):
    """Two runs of a scenario under the same order differ."""

    def __init__(self, order: str) -> None:
        super().__init__(
            f"the scenario is not deterministic: under the order {order!r} it went another way "
            "than before. Does it use the clock, random numbers, the order of a set, or keep "
            "objects from one run to the next?"
        )


@dataclass(frozen=True, slots=True)
class Exploration:
    """The orders that were run without a failure."""

    orders: int
    """How many orders were run, random ones included."""
    random: int
    """How many of them were random."""
    departures: int
    """All orders with up to so many departures from asyncio's own were run."""
    exhaustive: bool
    """Whether those were all legal orders, with as many preemptions as were allowed."""

    def __str__(self) -> str:
        if self.exhaustive:
            return f"{self.orders} orders: all"
        return (
            f"{self.orders} orders: all with up to {self.departures} departures, "
            f"some with more, {self.random} at random"
        )


def explore(
    scenario: Scenario,
    *,
    package: str | tuple[str, ...] = (),
    max_orders: int = 1000,
    random_orders: int = 100,
    seed: int = 0,
    preemptions: int = 2,
    slack: float = 0.01,
    fifo: bool = False,
    max_steps: int = 10_000,
) -> Exploration:
    """Run *scenario* under up to *max_orders* legal orders, then *random_orders* more.

    Threads started by ``schedule.thread`` arrive at any time between two steps, and up to
    *preemptions* times in the middle of one, at any line of the modules of *package* (one or
    several names, each with all modules below it; by default the module of the scenario). The
    clock may be up to *slack* seconds ahead of what is ready, as on a slow machine. With *fifo*,
    callbacks keep asyncio's order, and only threads, results of executors and timers vary.

    Raises `ScheduleFailure` for the first order that fails.
    """
    options = Options(_names(package, scenario), preemptions, slack, fifo, max_steps)
    with paused_garbage_collector():
        return _Search(scenario, options).explore(max_orders, random_orders, seed)


def replay(
    scenario: Scenario,
    order: str,
    *,
    package: str | tuple[str, ...] = (),
    slack: float = 0.01,
    fifo: bool = False,
    max_steps: int = 10_000,
) -> list[str]:
    """Run *scenario* under the *order* of a `ScheduleFailure`; return its steps.

    The other parameters must be those of the exploration. Raises `ScheduleFailure` if it fails.
    """
    departures = parse_order(order)
    preemptions = sum(each.kind == INSIDE_STEP for each in departures)
    options = Options(_names(package, scenario), preemptions, slack, fifo, max_steps)
    with paused_garbage_collector():
        search = _Search(scenario, options)
        outcome = search.run(departures, log=True)
        if outcome.error is not None:
            raise search.failure(outcome)
        if not outcome.script.is_followed:
            raise NotDeterministic(order)
        return outcome.steps


def _names(package: str | tuple[str, ...], scenario: Scenario) -> tuple[str, ...]:
    return (package,) if isinstance(package, str) else package or (scenario.__module__,)


class _Search:
    """The state of one exploration."""

    def __init__(self, scenario: Scenario, options: Options) -> None:
        if asyncio._get_running_loop() is not None:
            raise RuntimeError("explore() runs a loop of its own, and cannot be called inside one")
        self._options = options
        self._scenario = scenario
        self._thread_code: set[CodeType] = set()
        self._thread_names: set[str] = set()
        """The names that the code of the threads mentions."""
        self._names_by_line = cache(_names_by_line)
        self._orders = 0
        options.machine[:] = machine_references(options.packages)
        self.run(())  # so that caches and late imports are complete in all later runs
        options.machine[:] = machine_references(options.packages)

    def run(self, departures: Departures, *, log: bool = False) -> Run:
        script = Script(departures, preemptions=self._options.preemptions)
        return run(self._scenario, script, self._options, log=log)

    # -- all orders, those with the fewest departures first ----------------------------------------
    def explore(self, max_orders: int, random_orders: int, seed: int) -> Exploration:
        preemptions = self._options.preemptions
        first = self._try(Script(preemptions=preemptions))
        level, depth = [first], 0
        while level and self._orders < max_orders:
            following: list[Script] = []
            for departures in self._next_level(level):
                if self._orders >= max_orders:
                    break
                following.append(self._try(Script(departures, preemptions=preemptions)))
            else:
                depth += 1
            level = following
        if not level:
            return Exploration(self._orders, 0, depth, exhaustive=True)
        lines = [each.number for each in first.choices if each.kind == INSIDE_STEP]
        for number in range(random_orders):
            random = Random(f"{seed}/{number}")
            self._try(RandomScript(random, preemptions=preemptions, lines=max(lines, default=0)))
        return Exploration(self._orders, random_orders, depth, exhaustive=False)

    def _next_level(self, level: list[Script]) -> Iterator[Departures]:
        """The orders of *level*, each with one departure more; only at relevant lines."""
        choices = [
            (script, choice)
            for kind in (BETWEEN_STEPS, INSIDE_STEP)
            for script in level
            for choice in script.choices
            if choice.kind == kind
        ]
        # An irrelevant line may become relevant by the code that the threads run meanwhile.
        while choices:
            skipped: list[tuple[Script, Choice]] = []
            for script, choice in choices:
                if not self._is_relevant(choice.place):
                    skipped.append((script, choice))
                    continue
                for option in range(1, choice.options):
                    yield (*script.taken, Departure(choice.kind, choice.number, option))
            if len(skipped) == len(choices):
                break
            choices = skipped

    def _try(self, script: Script) -> Script:
        self._orders += 1
        outcome = run(self._scenario, script, self._options)
        for code in outcome.thread_code.keys() - self._thread_code:
            self._thread_code.add(code)
            self._thread_names |= {*code.co_names, *code.co_freevars, *code.co_cellvars}
        if outcome.error is not None:
            raise self.failure(self._reduced(outcome))
        if not script.is_followed:
            raise NotDeterministic(format_order(script.given))
        return script

    def _is_relevant(self, place: Place | None) -> bool:
        """Whether *place* may share state with the code that the threads have run.

        A thread that arrives before any other line might as well arrive before the next one. A line
        is relevant if it mentions a name that the thread's code mentions too, or if it accesses a
        container, whose elements may have other names there. None is between two steps.
        """
        if place is None:
            return True
        code, line = place
        mentioned = self._names_by_line(code).get(line)
        return mentioned is None or not mentioned.isdisjoint(self._thread_names)

    # -- failures ----------------------------------------------------------------------------------
    def _reduced(self, failed: Run) -> Run:
        """The same failure with as few departures, and as small options, as possible."""
        kind = type(failed.error)
        while True:
            for candidate in _simpler(tuple(failed.script.taken)):
                outcome = self.run(candidate)
                taken = tuple(outcome.script.taken)
                if type(outcome.error) is kind and _size(taken) < _size(failed.script.taken):
                    failed = outcome
                    break
            else:
                return failed

    def failure(self, failed: Run) -> ScheduleFailure:
        """The exception to raise: *failed* is run again, and its steps recorded."""
        departures = tuple(failed.script.taken)
        order = format_order(departures)
        logged = self.run(departures, log=True)
        if logged.error is None:
            raise NotDeterministic(order) from failed.error
        failure = ScheduleFailure(logged.error, order, logged.steps, self._replay_call(order))
        failure.__cause__ = logged.error
        return failure

    def _replay_call(self, order: str) -> str:
        packages, slack = self._options.packages, self._options.slack
        name = getattr(self._scenario, "__qualname__", "scenario")
        arguments = [name, repr(order)]
        if packages != (self._scenario.__module__,):
            arguments.append(f"package={(packages[0] if len(packages) == 1 else packages)!r}")
        if slack != 0.01:
            arguments.append(f"slack={slack!r}")
        if self._options.fifo:
            arguments.append("fifo=True")
        return f"replay({', '.join(arguments)})"


def _size(departures: "Departures | list[Departure]") -> tuple[int, int]:
    return len(departures), sum(each.option for each in departures)


def _simpler(departures: Departures) -> list[Departures]:
    """Simpler orders, the boldest first: half of them, without one, with a smaller option."""
    half = len(departures) // 2
    found = [departures[:half], departures[half:]] if half else []
    found += [
        (*departures[:index], *departures[index + 1 :])
        for index in reversed(range(len(departures)))
    ]
    for index, each in enumerate(departures):
        if each.option > 1:
            smaller = Departure(each.kind, each.number, 1)
            found.append((*departures[:index], smaller, *departures[index + 1 :]))
    return found


def _names_by_line(code: CodeType) -> dict[int, set[str] | None]:
    """The names that each line mentions; None for a line that may access any object."""
    names: dict[int, set[str] | None] = {}
    for instruction in dis.get_instructions(code):
        line = instruction.positions and instruction.positions.lineno
        if line is None:
            continue
        mentioned = names.setdefault(line, set())
        if instruction.opname in _ANY_NAME:
            names[line] = None
        elif mentioned is not None and isinstance(instruction.argval, str):
            mentioned.add(instruction.argval)
    return names
