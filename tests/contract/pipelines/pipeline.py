"""Random pipelines: parts of the tables, and the program made of them."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final

from tests.contract.pipelines.expected import Expected, Parameters, thinned
from tests.contract.pipelines.identities import WITHOUT_ROW
from tests.contract.pipelines.operators import OPERATORS, WITH_SMALL_BOUNDS, Operator
from tests.contract.pipelines.run import Run
from tests.contract.pipelines.sinks import DRAINING, PAUSING, SINKS, Sink
from tests.contract.pipelines.sources import HOLDING_NOTHING, SOURCES, Source

__all__ = ("Pipeline", "Program", "random_pipeline")

MOST_OPERATORS: Final = 5
WITHOUT_OPERATORS: Final = 0.05
"""The part of pipelines that are a source and a sink."""
ACCOUNTED: Final = 0.6
"""The part of pipelines whose operators account for each element that they discard."""
LEAVING: Final = 0.75
"""The part of these whose sink leaves."""
HOOKED: Final = 0.8
"""The part of pipelines that end with `do_on_discard`, of those that can."""
HEADER: Final = """\
import builtins
import operator
from contextlib import suppress

import reactive_aio as r
from reactive_aio.errors import TooManyElements
from reactive_aio.testing import Token
from tests.contract.pipelines.check import check_alone
from tests.contract.pipelines.expected import Expected
from tests.contract.pipelines.identities import FORMS
from tests.contract.pipelines.run import PipelineError

"""
"""The names that a program uses, besides ``run``."""
_OPERATORS: Final = OPERATORS | WITHOUT_ROW

Program = Callable[[Run], Coroutine[Any, Any, None]]


@dataclass
class Pipeline:
    """A program under construction, and what it has to deliver."""

    expected: Expected
    lines: list[str] = field(default_factory=lambda: ["async def program(run):"])
    names: list[str] = field(default_factory=list[str])
    """The parts, as they are called in the tables."""

    def begin(self, name: str, source: Source, parameters: Parameters) -> None:
        self._assign(name, source.text, parameters)

    def add(self, name: str, part: Operator, parameters: Parameters) -> None:
        """Append an operator."""
        self._assign(name, part.text, parameters)
        self.expected = _after(part, self.expected, parameters)

    def finish(self, name: str, sink: Sink, parameters: Parameters, *, accounts: bool) -> None:
        """Let *sink* consume the flow, which *accounts* for the elements that it discards."""
        flow = self._flow
        if accounts:
            self.lines.append(f"{flow} = {flow}.do_on_discard(run.discarded)")
        self.lines.append(f"run.watch({flow})")
        self.lines.append(sink.text.format(flow=flow, **parameters))
        self.names.append(name)
        discards = (self.expected.discards or not sink.is_whole) and not accounts
        is_whole = self.expected.is_whole and sink.is_whole
        self.expected = replace(self.expected, is_whole=is_whole, discards=discards)

    def _assign(self, name: str, text: str, parameters: Parameters) -> None:
        call = text.format(flow=self._flow, **parameters)
        self.names.append(name)
        self.lines.append(f"{self._flow} = {call}")

    @property
    def _flow(self) -> str:
        """The name of the flow so far; each has its own, since functions refer to it."""
        return f"flow{len(self.names)}"

    @property
    def script(self) -> str:
        """The program as a script, which runs and checks it alone."""
        return f"{self._definition}\n\n\ncheck_alone(program, {self.expected})\n"

    @property
    def program(self) -> Program:
        names: dict[str, Any] = {}
        exec(compile(self._definition, "<program>", "exec"), names)
        program: Program = names["program"]
        return program

    @property
    def _definition(self) -> str:
        return "\n".join([HEADER, "\n    ".join(self.lines)])


def _after(part: Operator, expected: Expected, parameters: Parameters) -> Expected:
    """What is expected after *part*."""
    accounts = expected.accounts and not part.unaccounted
    discards = expected.discards or part.discards or bool(part.unaccounted)
    if part.loses_on_failure and expected.fails is not False:
        expected, discards = thinned(expected, parameters), True
    if part.may_fail:
        errors = expected.errors | {part.may_fail}
        expected = replace(expected, fails=expected.fails or None, errors=errors)
        discards = True
    after = part.effect(expected, parameters)
    if part.slack is None or after.slack is None:
        return replace(after, discards=discards, accounts=accounts, slack=None)
    # A loop that leaves an element out may refer to it until it has the next one.
    slack = after.slack + part.slack + (part.discards or bool(part.unaccounted))
    return replace(after, discards=discards, accounts=accounts, slack=slack)


MAY_BE_EMPTIED: Final = frozenset(("default_if_empty", "switch_if_empty"))
"""What they emit depends on whether a drain completes the source before its first element."""


def random_pipeline(seed: int) -> Pipeline:
    """The pipeline of *seed*; each fourth one is made to reach its bound.

    Of the others, each second one accounts for every element that it discards, if it can; its sink
    mostly leaves. They begin with one operator of the table after the other, so that some hundred
    seeds contain all of them.
    """
    random = Random(seed)
    if seed % 4 == 3:
        operators = random.choices(WITH_SMALL_BOUNDS, k=random.randint(1, 3))
        return _pipeline(random, random.choice(HOLDING_NOTHING), operators, random.choice(PAUSING))
    names, sinks = [*_OPERATORS], [*SINKS]
    first = names[(seed - seed // 4) % len(names)]
    if random.random() < ACCOUNTED:
        names = [name for name in names if not _OPERATORS[name].unaccounted]
        if random.random() < LEAVING:
            sinks = [name for name in sinks if not SINKS[name].is_whole]
    operators = [first, *random.choices(names, k=random.randrange(MOST_OPERATORS))]
    if random.random() < WITHOUT_OPERATORS:
        operators = []
    return _pipeline(random, random.choice([*SOURCES]), operators, random.choice(sinks))


def _pipeline(random: Random, source: str, operators: list[str], sink: str) -> Pipeline:
    parameters = {"n": random.choice((0, 1, 2, 3, 7, 20, 40))}
    part = SOURCES[source]
    values = tuple(part.values(parameters))
    expected = Expected(
        values,
        is_complete=part.fails is not None,
        fails=part.fails,
        errors=frozenset({"PipelineError", part.error}),
        discards=part.fails is not False,
    )
    pipeline = Pipeline(expected)
    pipeline.begin(source, part, parameters)
    for index, name in enumerate(operators):
        pipeline.add(name, _OPERATORS[name], _parameters(random, index))
    # Without the function, loops are made in another way; so it is left out of some.
    accounts = pipeline.expected.accounts and (sink in DRAINING or random.random() < HOOKED)
    if sink in DRAINING and (not accounts or not MAY_BE_EMPTIED.isdisjoint(operators)):
        sink = "running"
    pipeline.finish(sink, SINKS[sink], _parameters(random, 0), accounts=accounts)
    return pipeline


def _parameters(random: Random, index: int) -> Parameters:
    """Arguments for the operator at *index*."""
    return {
        "n": random.choice((1, 2, 3, 5)),
        "m": random.choice((1, 2, 4)),
        "k": random.randrange(9),
        "v": 10_000 * (index + 1),
    }
