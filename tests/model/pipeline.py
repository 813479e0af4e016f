"""Random pipelines: parts of the tables, and the program made of them."""

from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final

from tests.model.consumers import CONSUMERS, DRAINING, PAUSING, Consumer
from tests.model.expected import Expected, Parameters, thinned
from tests.model.operators import OPERATORS, WITH_SMALL_BOUNDS, Operator
from tests.model.run import ERRORS, Run
from tests.model.sources import HOLDING_NOTHING, SOURCES, Source

__all__ = ("Part", "Pipeline", "Plan", "Program", "random_plan")

MOST_OPERATORS: Final = 5
WITHOUT_OPERATORS: Final = 0.05
"""The part of pipelines that are a source and a consumer."""
ACCOUNTED: Final = 0.6
"""The part of pipelines whose operators account for each element that they discard."""
LEAVING: Final = 0.75
"""The part of these whose consumer leaves."""
HOOKED: Final = 0.8
"""The part of pipelines that end with `do_on_discard`, of those that can."""
MAY_BE_EMPTIED: Final = frozenset(("default_if_empty", "switch_if_empty"))
"""What they emit depends on whether a drain completes the source before its first element."""
PLAIN: Final = 0.3
"""The part of pipelines whose source holds nothing: operators pull it, in loops of their own."""
OTHER_ERRORS: Final = 0.4
"""The part of pipelines whose errors may be others than exceptions."""
ONLY_EXCEPTIONS: Final = frozenset(
    (
        "error",
        "map_async: skips",
        "on_error_complete",
        "on_error_map",
        "on_error_resume",
        "on_error_resume: a function",
        "on_error_return",
        "restart",
        "retry",
    )
)
"""What does nothing with an error that is no `Exception`."""
HEADER: Final = """\
import builtins
import operator
from contextlib import suppress

import reactive_aio as r
from reactive_aio.errors import TooManyElements
from reactive_aio.testing import Token
from tests.model.expected import Expected
from tests.model.judge import check_alone
from tests.model.run import PipelineError

"""
"""The names that a program uses, besides ``run``."""

Program = Callable[[Run], Coroutine[Any, Any, None]]


@dataclass(frozen=True)
class Part:
    """A row of a table, and the numbers in its text."""

    name: str
    parameters: Parameters


@dataclass(frozen=True)
class Plan:
    """What a pipeline is made of."""

    source: Part
    operators: tuple[Part, ...]
    consumer: Part
    hooked: bool
    """It ends with `do_on_discard`, if its operators account for what they discard."""
    kind: str = "PipelineError"
    """Of the errors of its sources and functions."""

    @property
    def names(self) -> list[str]:
        return [each.name for each in (self.source, *self.operators, self.consumer)]

    def pipeline(self) -> "Pipeline":
        """The program, and what it has to deliver."""
        takes_all = ONLY_EXCEPTIONS.isdisjoint(self.names)
        made = Pipeline(self.kind if takes_all else "PipelineError")
        made.begin(SOURCES[self.source.name], self.source.parameters)
        for each in self.operators:
            made.add(OPERATORS[each.name], each.parameters)
        name = self.consumer.name
        accounts = made.expected.accounts and (name in DRAINING or self.hooked)
        if name in DRAINING and (not accounts or not MAY_BE_EMPTIED.isdisjoint(self.names)):
            name = "running"
        made.finish(CONSUMERS[name], self.consumer.parameters, accounts=accounts)
        return made

    def simpler(self) -> Iterator["Plan"]:
        """Plans with less in them; those that leave out most come first."""
        for index in range(len(self.operators)):
            yield replace(self, operators=self.operators[:index] + self.operators[index + 1 :])
        for name in _simpler_than(self.source.name, "range", "from_aiter"):
            yield replace(self, source=replace(self.source, name=name))
        for name in _simpler_than(self.consumer.name, "to_list", "for_each: awaits"):
            yield replace(self, consumer=replace(self.consumer, name=name))
        if self.kind != "PipelineError":
            yield replace(self, kind="PipelineError")
        if self.hooked:
            yield replace(self, hooked=False)
        for part in _with_smaller(self.source):
            yield replace(self, source=part)
        for part in _with_smaller(self.consumer):
            yield replace(self, consumer=part)
        for index, each in enumerate(self.operators):
            for part in _with_smaller(each):
                before, after = self.operators[:index], self.operators[index + 1 :]
                yield replace(self, operators=(*before, part, *after))


def _simpler_than(name: str, *simple: str) -> Iterable[str]:
    return simple[: simple.index(name)] if name in simple else simple


def _with_smaller(part: Part) -> Iterator[Part]:
    """The part with one of its small numbers at their least."""
    for key, value in part.parameters.items():
        for least in (0, 1, 2, 3):
            if least < value < 1000 and not (least == 0 and key in "nm"):
                yield replace(part, parameters={**part.parameters, key: least})


@dataclass
class Pipeline:
    """A program under construction, and what it has to deliver."""

    kind: str = "PipelineError"
    expected: Expected = field(default_factory=lambda: Expected(()))
    lines: list[str] = field(default_factory=lambda: ["async def program(run):"])

    def begin(self, source: Source, parameters: Parameters) -> None:
        self._assign(source.text, parameters)
        self.expected = Expected(
            tuple(source.values(parameters)),
            is_complete=source.fails is not None,
            fails=source.fails,
            errors=frozenset({"PipelineError", *source.errors}),
            discards=source.fails is not False,
        )

    def add(self, operator: Operator, parameters: Parameters) -> None:
        self._assign(operator.text, parameters)
        self.expected = _after(operator, self.expected, parameters)

    def finish(self, consumer: Consumer, parameters: Parameters, *, accounts: bool) -> None:
        """Let *consumer* read the flow, which *accounts* for the elements that it discards."""
        flow = self._flow
        if accounts:
            self.lines.append(f"{flow} = {flow}.do_on_discard(run.discarded)")
        self.lines.append(f"run.watch({flow})")
        self.lines.append(consumer.text.format(flow=flow, **parameters))
        discards = (self.expected.discards or not consumer.is_whole) and not accounts
        is_whole = self.expected.is_whole and consumer.is_whole
        self.expected = replace(self.expected, is_whole=is_whole, discards=discards)

    def _assign(self, text: str, parameters: Parameters) -> None:
        call = text.format(flow=self._flow, **parameters)
        self.lines.append(f"flow{len(self.lines)} = {call}")

    @property
    def _flow(self) -> str:
        """The name of the flow so far; each has its own, since functions refer to it."""
        return f"flow{len(self.lines) - 1}"

    @property
    def script(self) -> str:
        """The program as a script, which runs and judges it alone."""
        return f"{self._definition}\n\n\ncheck_alone(program, {self.expected}, {self.kind!r})\n"

    @property
    def program(self) -> Program:
        names: dict[str, Any] = {}
        exec(compile(self._definition, "<program>", "exec"), names)
        program: Program = names["program"]
        return program

    @property
    def _definition(self) -> str:
        return "\n".join([HEADER, "\n    ".join(self.lines)])


def _after(operator: Operator, expected: Expected, parameters: Parameters) -> Expected:
    """What is expected after *operator*."""
    accounts = expected.accounts and not operator.unaccounted
    discards = expected.discards or operator.discards or bool(operator.unaccounted)
    if operator.loses_on_failure and expected.fails is not False:
        expected, discards = thinned(expected, parameters), True
    if operator.may_fail:
        errors = expected.errors | {operator.may_fail}
        expected = replace(expected, fails=expected.fails or None, errors=errors)
        discards = True
    after = operator.effect(expected, parameters)
    if operator.slack is None or after.slack is None:
        return replace(after, discards=discards, accounts=accounts, slack=None)
    # A loop that leaves an element out may refer to it until it has the next one.
    slack = after.slack + operator.slack + (operator.discards or bool(operator.unaccounted))
    return replace(after, discards=discards, accounts=accounts, slack=slack)


def random_plan(seed: int) -> Plan:
    """The plan of *seed*; each fourth one is made to reach its bound.

    Of the others, each second one accounts for every element that it discards, if it can; its
    consumer mostly leaves. They begin with one operator of the table after the other, so that some
    hundred seeds contain all of them.
    """
    random = Random(seed)
    if seed % 4 == 3:
        names = random.choices(WITH_SMALL_BOUNDS, k=random.randint(1, 3))
        return _plan(random, random.choice(HOLDING_NOTHING), names, random.choice(PAUSING))
    known, consumers = [*OPERATORS], [*CONSUMERS]
    first = known[(seed - seed // 4) % len(known)]
    if random.random() < ACCOUNTED:
        known = [name for name in known if not OPERATORS[name].unaccounted]
        if random.random() < LEAVING:
            consumers = [name for name in consumers if not CONSUMERS[name].is_whole]
    names = [first, *random.choices(known, k=random.randrange(MOST_OPERATORS))]
    if random.random() < WITHOUT_OPERATORS:
        names = []
    sources = HOLDING_NOTHING if random.random() < PLAIN else [*SOURCES]
    return _plan(random, random.choice(sources), names, random.choice(consumers))


def _plan(random: Random, source: str, operators: list[str], consumer: str) -> Plan:
    count = random.choice((0, 1, 2, 3, 7, 20, 40))
    parts = [Part(name, _parameters(random, index)) for index, name in enumerate(operators)]
    hooked = random.random() < HOOKED  # without it, loops are made in another way
    last = Part(consumer, _parameters(random, 0))
    kind = random.choice([*ERRORS]) if random.random() < OTHER_ERRORS else "PipelineError"
    return Plan(Part(source, {"n": count}), tuple(parts), last, hooked, kind)


def _parameters(random: Random, index: int) -> Parameters:
    """Arguments for the operator at *index*."""
    return {
        "n": random.choice((1, 2, 3, 5)),
        "m": random.choice((1, 2, 4)),
        "k": random.randrange(9),
        "v": 10_000 * (index + 1),
    }
