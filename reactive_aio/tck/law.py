"""A law: one scenario that a subject passes, breaks, or cannot be judged by."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from .rules import Strength

__all__ = ("SETUP", "Law", "NotJudged", "law", "rule_of")

SETUP: Final = "setup"
"""The rule of the laws about the subject's own factories."""

Scenario = Callable[[Any], Coroutine[Any, Any, None]]
"""``async def scenario(trial)``; it raises `RuleViolation` or `NotJudged`."""


class NotJudged(Exception):
    """The scenario says nothing about this subject; the message says why."""


@dataclass(frozen=True)
class Law:
    """What is tried, for which rule, and what it takes."""

    name: str
    rule: str
    strength: Strength
    needs: tuple[str, ...]
    """Fields of the subject without which there is nothing to judge."""
    elements: int
    """The longest publisher that is asked for."""
    completes: bool
    """Whether publishers must come to their end by themselves."""
    jvm: tuple[str, ...]
    """The tests of the JVM's kit that have the same meaning."""
    text: str
    """What is tried, in a sentence."""
    scenario: Scenario


def law(
    rule: str,
    *needs: str,
    strength: Strength = Strength.MUST,
    elements: int = 0,
    completes: bool = False,
    jvm: tuple[str, ...] = (),
) -> Callable[[Scenario], Law]:
    """Make a law of a scenario. Its name and docstring are the law's.

    The name begins with the rule: ``spec109_…`` for 1.9, ``spec310_…`` for 3.10, ``house3_…`` for
    the house's own L.3, ``setup_…`` for the factories.
    """

    def make(scenario: Scenario) -> Law:
        name = scenario.__name__
        if rule_of(name) != rule:
            raise ValueError(f"{name} is no name for a law of rule {rule}")
        text = (scenario.__doc__ or "").strip().partition("\n")[0]
        return Law(name, rule, strength, needs, elements, completes, jvm, text, scenario)

    return make


def rule_of(name: str) -> str:
    """The rule in the name of a law."""
    prefix = name.partition("_")[0]
    if prefix.startswith("house"):
        return f"L.{int(prefix.removeprefix('house'))}"
    if prefix == SETUP:
        return SETUP
    digits = prefix.removeprefix("spec")
    return f"{digits[0]}.{int(digits[1:])}"
