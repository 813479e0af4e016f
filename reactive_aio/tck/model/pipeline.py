"""Random pipelines: rows of a vocabulary, and the program made of them."""

from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final

from .consumers import DRAINING, PAUSING
from .expected import Expected, Parameters, thinned
from .run import ERRORS, Run
from .vocabulary import Consumer, Operator, Source, Vocabulary

__all__ = ("Part", "Pipeline", "Plan", "drawn", "drawn_consumers", "drawn_source", "random_plan")

MOST_OPERATORS: Final = 5
WITHOUT_OPERATORS: Final = 0.05
"""The part of pipelines that are a source and a consumer."""
ACCOUNTED: Final = 0.6
"""The part of pipelines whose operators account for each element that they discard."""
LEAVING: Final = 0.75
"""The part of these whose consumer leaves."""
HOOKED: Final = 0.8
"""The part of pipelines that end with `do_on_discard`, of those that can."""
PLAIN: Final = 0.3
"""The part of pipelines whose source holds nothing: operators pull it, in loops of their own."""
OTHER_ERRORS: Final = 0.4
"""The part of pipelines whose errors may be others than exceptions."""
Program = Callable[[Run], Coroutine[Any, Any, None]]


@dataclass(frozen=True)
class Part:
    """A row of a table, and the numbers in its text."""

    name: str
    parameters: Parameters


@dataclass(frozen=True)
class Plan:
    """What a pipeline is made of."""

    vocabulary: Vocabulary
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
        known = self.vocabulary
        takes_all = known.only_exceptions.isdisjoint(self.names)
        made = Pipeline(known, self.kind if takes_all else "PipelineError")
        made.begin(known.sources[self.source.name], self.source.parameters)
        for each in self.operators:
            made.add(known.operators[each.name], each.parameters)
        name = self.consumer.name
        accounts = made.expected.accounts and (name in DRAINING or self.hooked)
        is_changed = not known.changed_by_a_drain.isdisjoint(self.names)
        if name in DRAINING and (not accounts or is_changed):
            name = "running"
        made.finish(known.consumers[name], self.consumer.parameters, accounts=accounts)
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

    vocabulary: Vocabulary
    kind: str = "PipelineError"
    expected: Expected = field(default_factory=lambda: Expected(()))
    lines: list[str] = field(default_factory=lambda: ["async def program(run):"])

    def begin(self, source: Source, parameters: Parameters) -> None:
        self._assign(source.text, parameters)
        self.expected = Expected(
            tuple(source.values(parameters)),
            is_complete=source.fails is not None,
            fails=source.fails,
            failures=int(source.fails is not False),
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
            self.lines.append(f"{flow} = run.hooked({flow})")
        self.lines.append(f"run.watch({flow})")
        self.lines.append(consumer.text.format(flow=flow, **parameters))
        discards = (self.expected.discards or not consumer.is_whole) and not accounts
        is_whole = self.expected.is_whole and consumer.is_whole
        self.expected = replace(
            self.expected,
            is_whole=is_whole,
            discards=discards,
            is_closed=self.expected.is_closed and consumer.waits,
        )

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
        arguments = f"program, {self.expected}, {self.kind!r}, {self.vocabulary.run_text}"
        text = f"{self.vocabulary.imports}{self._definition}"
        return f"{text}\n\n\ncheck_alone({arguments})\n"

    @property
    def program(self) -> Program:
        names: dict[str, Any] = {}
        exec(compile(self._definition, "<program>", "exec"), names)
        program: Program = names["program"]
        return program

    @property
    def _definition(self) -> str:
        return "\n".join([self.vocabulary.header, "\n    ".join(self.lines)])


def _after(operator: Operator, expected: Expected, parameters: Parameters) -> Expected:
    """What is expected after *operator*."""
    accounts = expected.accounts and not operator.unaccounted
    discards = expected.discards or operator.discards or bool(operator.unaccounted)
    if operator.loses_on_failure and expected.fails is not False:
        expected, discards = thinned(expected, parameters), True
    if operator.may_fail:
        errors = expected.errors | {operator.may_fail}
        failures = expected.failures + 1
        expected = replace(expected, fails=expected.fails or None, failures=failures, errors=errors)
        discards = True
    if operator.detaches:
        expected = replace(expected, is_closed=False, is_serial=False)
    after = operator.effect(expected, parameters)
    if operator.slack is None or after.slack is None:
        return replace(after, discards=discards, accounts=accounts, slack=None)
    # A loop that leaves an element out may refer to it until it has the next one.
    slack = after.slack + operator.slack + (operator.discards or bool(operator.unaccounted))
    return replace(after, discards=discards, accounts=accounts, slack=slack)


def random_plan(vocabulary: Vocabulary, seed: int) -> Plan:
    """The plan of *seed*; each fourth one is made to reach its bound.

    Of the others, each second one accounts for every element that it discards, if it can; its
    consumer mostly leaves. They begin with one operator of the table after the other, so that some
    hundred seeds contain all of them.
    """
    random = Random(seed)
    if seed % 4 == 3:
        names = random.choices(vocabulary.with_small_bounds, k=random.randint(1, 3))
        source = random.choice(vocabulary.holding_nothing)
        return drawn(vocabulary, random, source, names, random.choice(PAUSING))
    known = [*vocabulary.operators]
    first = known[(seed - seed // 4) % len(known)]
    is_accounted = random.random() < ACCOUNTED
    if is_accounted:
        known = [name for name in known if not vocabulary.operators[name].unaccounted]
    consumers = drawn_consumers(vocabulary, random, leaves=is_accounted)
    names = [first, *random.choices(known, k=random.randrange(MOST_OPERATORS))]
    if random.random() < WITHOUT_OPERATORS:
        names = []
    source = drawn_source(vocabulary, random)
    return drawn(vocabulary, random, source, names, random.choice(consumers))


def drawn_consumers(vocabulary: Vocabulary, random: Random, *, leaves: bool) -> list[str]:
    """Those to choose from: if one *leaves*, mostly those that do not read to the end."""
    consumers = vocabulary.consumers
    is_whole = not leaves or random.random() >= LEAVING
    return [name for name in consumers if is_whole or not consumers[name].is_whole]


def drawn_source(vocabulary: Vocabulary, random: Random) -> str:
    plain = random.random() < PLAIN
    return random.choice(vocabulary.holding_nothing if plain else [*vocabulary.sources])


def drawn(
    vocabulary: Vocabulary,
    random: Random,
    source: str,
    operators: Iterable[str],
    consumer: str,
    *,
    longest: int = 40,
) -> Plan:
    """A plan of these rows, with random numbers."""
    count = random.choice((0, 1, 2, 3, 7, 20, longest))
    parts = [Part(name, _parameters(random, index)) for index, name in enumerate(operators)]
    hooked = random.random() < HOOKED  # without it, loops are made in another way
    last = Part(consumer, _parameters(random, 0))
    kind = random.choice([*ERRORS]) if random.random() < OTHER_ERRORS else "PipelineError"
    return Plan(
        vocabulary,
        Part(source, {"n": count, "k": random.randrange(100)}),
        tuple(parts),
        last,
        hooked,
        kind,
    )


def _parameters(random: Random, index: int) -> Parameters:
    """Arguments for the operator at *index*."""
    return {
        "n": random.choice((1, 2, 3, 5)),
        "m": random.choice((1, 2, 4)),
        "k": random.randrange(9),
        "v": 10_000 * (index + 1),
    }
