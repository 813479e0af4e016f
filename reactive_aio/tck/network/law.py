"""Laws of the wire: scenarios that run on connections of their own."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..rules import Strength
from .rules import WIRE_RULES
from .server_profile import ROUTES

if TYPE_CHECKING:
    from .wire_context import WireContext

Scenario = Callable[["WireContext"], Awaitable[None]]


@dataclass(frozen=True)
class WireLaw:
    """One scenario, the rule that it is about, and the routes that it needs."""

    name: str
    rule: str
    strength: Strength
    needs: tuple[str, ...]
    is_slow: bool
    """Whether it mostly waits until the server loses patience."""
    text: str
    scenario: Scenario


def wire_law(*needs: str, is_slow: bool = False) -> Callable[[Scenario], WireLaw]:
    """Make a law of a scenario. The law takes its name, ``wire14_…`` for N.14, and its text."""

    def decorate(scenario: Scenario) -> WireLaw:
        name = getattr(scenario, "__name__", "")
        number = f"N.{name.partition('_')[0].removeprefix('wire')}"
        if number not in WIRE_RULES:
            raise ValueError(f"{name}: there is no rule {number}; add it to WIRE_RULES")
        if unknown := set(needs) - ROUTES.keys():
            raise ValueError(f"{name} needs unknown routes {unknown}; add them to ROUTES")
        rule = WIRE_RULES[number]
        text = (scenario.__doc__ or "").strip().partition("\n")[0]
        return WireLaw(name, rule.number, rule.strength, needs, is_slow, text, scenario)

    return decorate
