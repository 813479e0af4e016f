"""Laws of the wire: scenarios that run on connections of their own."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any

from ..law import Law, first_line
from .rules import WIRE_RULES
from .server_profile import ROUTES

if TYPE_CHECKING:
    from .wire_context import PeerConnection, WireContext

Scenario = Callable[["WireContext"], Coroutine[Any, Any, None]]


ConnectedScenario = Callable[["PeerConnection"], Coroutine[Any, Any, None]]


def wire_law(*needs: str, is_slow: bool = False) -> Callable[[Scenario], Law]:
    """Make a law of a scenario. The law takes its name, ``wire14_…`` for N.14, and its text."""

    def decorate(scenario: Scenario) -> Law:
        name = getattr(scenario, "__name__", "")
        number = f"N.{name.partition('_')[0].removeprefix('wire')}"
        if number not in WIRE_RULES:
            raise ValueError(f"{name}: there is no rule {number}; add it to WIRE_RULES")
        if unknown := set(needs) - ROUTES.keys():
            raise ValueError(f"{name} needs unknown routes {unknown}; add them to ROUTES")
        rule = WIRE_RULES[number]
        text = first_line(scenario)
        return Law(name, number, rule.strength, needs, text, scenario, is_slow=is_slow)

    return decorate


def connected_law(*needs: str) -> Callable[[ConnectedScenario], Law]:
    """Make a law of a scenario on one connection, whose SETUP the server has accepted."""

    def decorate(scenario: ConnectedScenario) -> Law:
        @wraps(scenario)
        async def connected(context: "WireContext") -> None:
            await scenario(await context.connect())

        return wire_law(*needs)(connected)

    return decorate
