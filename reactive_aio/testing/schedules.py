"""A schedule explorer: a small scenario under every legal order of what happens in it.

::

    async def scenario(schedule):
        processor = UnicastProcessor[int]()
        probe = SubscriberProbe(10).subscribed_to(processor)
        schedule.thread(lambda: processor.emit_threadsafe(1))
        schedule.thread(probe.cancel)
        await schedule.quiet()
        assert probe.signals in ([], [1])

    explore(scenario, package="reactive_aio")

`explore` runs it again and again on a loop of its own, with virtual time: first as asyncio would,
then in all orders that differ from that in one place, in two, and so on; beyond the budget in
random orders. The first order that breaks something (an exception, a call of the loop's exception
handler, a deadlock, a task or thread that is left, an error that nobody fetched) is reduced to as
few differences as possible and reported as `ScheduleFailure`, whose message lists the steps and
says how to `replay` them.

What is legal: docs/decisions/0010. A scenario makes its objects anew each time, and must not depend
on anything but the order: no wall clock, no sockets, no random numbers.
"""

import asyncio
from dataclasses import dataclass
from random import Random
from typing import Final

from ._schedules_lines import Lines
from ._schedules_run import Rules, Run, Scenario, Schedule, quiet_collector, run
from ._schedules_script import (
    BETWEEN,
    INSIDE,
    Departure,
    Departures,
    Open,
    RandomScript,
    Script,
    read,
    text,
)
from ._schedules_threads import seen_by

__all__ = ("Exploration", "NotDeterministic", "Scenario", "Schedule", "ScheduleFailure", "explore",
           "replay")  # fmt: skip

_MOST_STEPS_SHOWN: Final = 80


class ScheduleFailure(AssertionError):
    """A legal order under which a scenario breaks."""

    def __init__(self, error: BaseException, order: str, steps: list[str], call: str) -> None:
        self.error: BaseException = error
        """What broke."""
        self.order: str = order
        """The order, for `replay`."""
        self.steps: list[str] = steps
        """What happened, step by step; departures from asyncio's order begin with ``>``."""
        departures = len(order.split())
        many = "" if departures == 1 else "s"
        shown = steps[-_MOST_STEPS_SHOWN:]
        super().__init__(
            "\n".join(
                [
                    f"{type(error).__name__}: {error}",
                    *getattr(error, "__notes__", ()),
                    f"in an order with {departures} departure{many} from asyncio's own:",
                    *(["  …"] if len(shown) < len(steps) else []),
                    *shown,
                    f"To see it again: {call}",
                ]
            )
        )


class NotDeterministic(RuntimeError):
    """A scenario went another way under the same order."""

    def __init__(self, order: str) -> None:
        super().__init__(
            f"the scenario is not deterministic: under the order {order!r} it went another way "
            "than before. Does it use the clock, random numbers, the order of a set, or keep "
            "objects from one run to the next?"
        )


@dataclass(frozen=True, slots=True)
class Exploration:
    """What was tried, and did not break."""

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
    """Run *scenario* under all legal orders, as far as *max_orders* go, then *random_orders* more.

    Threads named by ``schedule.thread`` arrive at any time between two steps; and up to
    *preemptions* times in the middle of one, at any line of the modules of *package* (a name with
    all below it, or several; by default the module of the scenario). The clock may be up to
    *slack* seconds ahead of what is ready, as on a slow machine. With *fifo*, steps keep asyncio's
    order, and only what comes from outside (threads, results of executors, timers) varies.

    Raises `ScheduleFailure` for the first order that breaks.
    """
    search = _Search(
        scenario, Rules(_packages(package, scenario), preemptions, slack, fifo, max_steps)
    )
    with quiet_collector():
        search.begin()
        return search.explore(max_orders, random_orders, seed)


def replay(
    scenario: Scenario,
    order: str,
    *,
    package: str | tuple[str, ...] = (),
    slack: float = 0.01,
    fifo: bool = False,
    max_steps: int = 10_000,
) -> list[str]:
    """Run *scenario* under one *order*, as a `ScheduleFailure` names it; return its steps.

    The other parameters must be those of the exploration. Raises `ScheduleFailure` if it breaks.
    """
    departures = read(order)
    preemptions = sum(each.kind == INSIDE for each in departures)
    search = _Search(
        scenario, Rules(_packages(package, scenario), preemptions, slack, fifo, max_steps)
    )
    with quiet_collector():
        search.begin()
        outcome = search.run(departures, tell=True)
        if outcome.error is not None:
            raise search.failure(outcome)
        if not outcome.script.followed:
            raise NotDeterministic(order)
        return outcome.steps


def _packages(package: str | tuple[str, ...], scenario: Scenario) -> tuple[str, ...]:
    return (package,) if isinstance(package, str) else package or (scenario.__module__,)


class _Search:
    """The state of one exploration."""

    def __init__(self, scenario: Scenario, rules: Rules) -> None:
        if asyncio._get_running_loop() is not None:
            raise RuntimeError("explore() runs a loop of its own, and cannot be called inside one")
        self._scenario = scenario
        self._rules = rules
        self._lines = Lines()
        self._orders = 0

    def begin(self) -> None:
        """Run once, so that what is made once (caches, late imports) is there."""
        self._rules.seen[:] = seen_by(self._rules.packages)
        self.run(())
        self._rules.seen[:] = seen_by(self._rules.packages)

    def run(self, departures: Departures, *, tell: bool = False) -> Run:
        script = Script(departures, preemptions=self._rules.preemptions)
        return run(self._scenario, script, self._rules, tell=tell)

    # -- all orders, those with the fewest departures first ----------------------------------------
    def explore(self, most: int, at_random: int, seed: int) -> Exploration:
        level = [self._try(())]
        lines, depth = self._count_lines(level[0]), 0
        while level and self._orders < most:
            following: list[_Node] = []
            complete = self._next_level(level, following, most)
            level = following
            if not complete:
                break
            depth += 1
        if not level:
            return Exploration(self._orders, 0, depth, exhaustive=True)
        self._explore_at_random(at_random, seed, lines)
        return Exploration(self._orders, at_random, depth, exhaustive=False)

    def _next_level(self, level: "list[_Node]", following: "list[_Node]", most: int) -> bool:
        """Go on from each order of *level* with one departure more; whether all were tried."""
        choices = [
            (node, choice)
            for kind in (BETWEEN, INSIDE)
            for node in level
            for choice in node.open
            if choice.kind == kind
        ]
        left: list[tuple[_Node, Open]] = []
        # What does not matter may do so when the threads have been seen to touch more.
        while len(choices) != len(left):
            left = []
            for node, choice in choices:
                if not self._lines.matter(choice.place):
                    left.append((node, choice))
                    continue
                for option in range(1, choice.options):
                    if self._orders >= most:
                        return False
                    departure = Departure(choice.kind, choice.number, option)
                    following.append(self._try((*node.made, departure)))
            choices, left = left, [each for each in left if not self._lines.matter(each[1].place)]
        return True

    def _try(self, departures: Departures) -> "_Node":
        self._orders += 1
        outcome = self.run(departures)
        self._lines.touch(outcome.touched)
        if outcome.error is not None:
            raise self.failure(self._reduced(outcome))
        if not outcome.script.followed:
            raise NotDeterministic(text(departures))
        return _Node(departures, outcome.script.open)

    def _count_lines(self, node: "_Node") -> int:
        return max((choice.number for choice in node.open if choice.kind == INSIDE), default=0)

    def _explore_at_random(self, count: int, seed: int, lines: int) -> None:
        for number in range(count):
            self._orders += 1
            random = Random(f"{seed}/{number}")
            script = RandomScript(random, preemptions=self._rules.preemptions, lines=lines)
            outcome = run(self._scenario, script, self._rules)
            if outcome.error is not None:
                raise self.failure(self._reduced(outcome))

    # -- failures ----------------------------------------------------------------------------------
    def _reduced(self, broken: Run) -> Run:
        """The same failure with as few departures, and as small options, as can be."""
        kind = type(broken.error)
        shrinking = True
        while shrinking:
            shrinking = False
            for candidate in _simpler(tuple(broken.script.made)):
                outcome = self.run(candidate)
                made = tuple(outcome.script.made)
                if type(outcome.error) is kind and _size(made) < _size(tuple(broken.script.made)):
                    broken, shrinking = outcome, True
                    break
        return broken

    def failure(self, broken: Run) -> ScheduleFailure:
        """What to raise: *broken* once more, with its steps told."""
        departures = tuple(broken.script.made)
        told = self.run(departures, tell=True)
        if told.error is None:
            raise NotDeterministic(text(departures)) from broken.error
        order = text(departures)
        failure = ScheduleFailure(told.error, order, told.steps, self._call(order))
        failure.__cause__ = told.error
        return failure

    def _call(self, order: str) -> str:
        rules = self._rules
        name = getattr(self._scenario, "__qualname__", "scenario")
        packages = rules.packages[0] if len(rules.packages) == 1 else rules.packages
        usual = rules.packages == _packages((), self._scenario)
        options = "" if usual else f", package={packages!r}"
        options += f", slack={rules.slack!r}" if rules.slack != 0.01 else ""
        options += ", fifo=True" if rules.fifo else ""
        return f"replay({name}, {order!r}{options})"


@dataclass(slots=True)
class _Node:
    """An order that was run, and the choices from which others go on."""

    made: Departures
    open: list[Open]


def _size(departures: Departures) -> tuple[int, int]:
    return len(departures), sum(each.option for each in departures)


def _simpler(departures: Departures) -> "list[Departures]":
    """Candidates, the boldest first: half of them, without one, with a smaller option."""
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
