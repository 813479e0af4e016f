"""Laws: scenarios that a candidate passes or fails, or that do not apply to it."""

from collections.abc import Callable, Collection, Coroutine, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Final, cast

from .candidate import FACTORIES
from .network.server import ROUTES
from .rules import RULES, WIRE_RULES, Strength, find_rule, rule_order

SETUP: Final = "setup"
"""The rule of the laws about the candidate's own factories."""

_JVM_TESTS: Final[dict[str, str]] = dict(
    line.split(",")
    for line in Path(__file__).with_name("jvm_tests.csv").read_text("utf-8").splitlines()
)
"""By the name of a law: the test of the JVM's kit with the same meaning."""

Scenario = Callable[[Any], Coroutine[Any, Any, None]]
"""``async def scenario(context)``; raises `RuleViolation` or `NotJudged`."""


class NotJudged(Exception):
    """The scenario does not apply to this candidate; the message says why."""


class StopCandidate(SystemExit):
    """Raised inside a candidate that does not stop by itself.

    ``except Exception`` does not catch it, nor does any loop: asyncio lets SystemExit out of a
    callback and out of the loop; a thread ends by it silently.
    """


@dataclass(frozen=True)
class Law:
    """One scenario, the rule that it is about, and what the candidate must provide."""

    name: str
    rule: str
    strength: Strength
    needs: tuple[str, ...]
    """The candidate's factories that the scenario uses; the first is what is judged. For a law of
    the wire, the server's routes."""
    text: str
    """What the scenario does, in one sentence."""
    scenario: Scenario
    elements: int = 0
    """The length of the longest publisher that the scenario makes."""
    completes: bool = False
    """Whether publishers must complete by themselves."""
    jvm: tuple[str, ...] = ()
    """The tests of the JVM's kit with the same meaning."""
    is_slow: bool = False
    """Whether a law of the wire mostly waits until the server loses patience."""

    def is_selected(self, rules: Collection[str]) -> bool:
        """Whether it or its rule is among *rules*; every law is if there are none."""
        return not rules or self.rule in rules or self.name in rules


def law(
    *needs: str,
    strength: Strength | None = None,
    elements: int = 0,
    completes: bool = False,
    is_slow: bool = False,
) -> Callable[[Scenario], Law]:
    """Make a law of a scenario. The law takes its name, rule and text from the function.

    The name begins with the rule: ``spec109_…`` for 1.9, ``spec310_…`` for 3.10, ``library3_…``
    for this library's own rule L.3, ``wire14_…`` for N.14 of the wire, ``setup_…`` for the
    factories. Without a *strength* a law of the specification is a MUST, one of the library a
    SHOULD, and one of the wire has that of its rule.
    """

    def decorate(scenario: Scenario) -> Law:
        name = scenario.__name__
        number = _rule_of(name)
        rule = find_rule(number)
        if rule is None and number != SETUP:
            raise ValueError(
                f"{name}: there is no rule {number}; name the law after one in rules.py"
            )
        if number in WIRE_RULES and (unknown := set(needs) - ROUTES.keys()):
            raise ValueError(f"{name} needs unknown routes {unknown}; add them to ROUTES")
        if number not in WIRE_RULES and (not needs or needs[0] not in FACTORIES):
            raise ValueError(f"{name} needs one of {', '.join(FACTORIES)} first, to judge it")
        default = Strength.MUST if rule is None or number in RULES else rule.strength
        text = (scenario.__doc__ or "").strip().partition("\n")[0]
        jvm = tuple(_JVM_TESTS.get(name, "").split())
        about = (name, number, strength or default, needs, text)
        return Law(*about, scenario, elements, completes, jvm, is_slow)

    return decorate


def _rule_of(name: str) -> str:
    prefix = name.partition("_")[0]
    if prefix == SETUP:
        return SETUP
    for origin, letter in (("library", "L"), ("wire", "N")):
        if prefix.startswith(origin):
            return f"{letter}.{int(prefix.removeprefix(origin))}"
    digits = prefix.removeprefix("spec")
    return f"{digits[0]}.{int(digits[1:])}"


def laws_in(package: str, paths: Iterable[str]) -> list[Law]:
    """The laws that the modules of *package* define, in the order of their rules."""
    found: list[Law] = []
    for module in iter_modules(paths):
        members: dict[str, object] = vars(import_module(f"{package}.{module.name}"))
        for member in members.values():
            # A decorator may make several laws of one scenario.
            made = cast("tuple[object, ...]", member) if isinstance(member, tuple) else (member,)
            found += [each for each in made if isinstance(each, Law)]
    return sorted(found, key=lambda law: (rule_order(law.rule), law.name))
