"""A law of the wire: one scenario on connections of its own."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..rules import Strength
from .rules import WIRE_RULES

if TYPE_CHECKING:
    from .talk import Talk

__all__ = ("WireLaw", "wire")

Scenario = Callable[["Talk"], Awaitable[None]]


@dataclass(frozen=True)
class WireLaw:
    """What is tried, for which rule, and which offers it takes."""

    name: str
    rule: str
    strength: Strength
    needs: tuple[str, ...]
    slow: bool
    """Whether it mostly waits for the server's own patience to end."""
    text: str
    scenario: Scenario


def wire(*needs: str, slow: bool = False) -> Callable[[Scenario], WireLaw]:
    """Make a law of a scenario. Its name, ``wire14_…`` for N.14, and docstring are the law's."""

    def make(scenario: Scenario) -> WireLaw:
        name = getattr(scenario, "__name__", "")
        number = name.partition("_")[0].removeprefix("wire")
        rule = WIRE_RULES[f"N.{number}"]
        text = (scenario.__doc__ or "").strip().partition("\n")[0]
        return WireLaw(name, rule.number, rule.strength, needs, slow, text, scenario)

    return make
