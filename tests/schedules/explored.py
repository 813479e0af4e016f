"""A scenario as a test, which runs it in many orders."""

import inspect
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

from reactive_aio.testing.schedules import Schedule, explore
from tests.harness.effort import scaled

__all__ = ("explored",)

Scenario = Callable[..., Coroutine[Any, Any, None]]
"""It receives the schedule first, and then the parameters of the test."""


def explored(*, max_orders: int, random_orders: int = 0) -> Callable[[Scenario], Any]:
    """Make a test of a scenario: it runs in so many orders, or in the part that the run allows.

    Without *random_orders* it runs in a hundred of them, in each run.
    """

    def decorate(scenario: Scenario) -> Any:
        @wraps(scenario)
        def test(**parameters: Any) -> None:
            async def with_parameters(schedule: Schedule) -> None:
                await scenario(schedule, **parameters)

            explore(
                with_parameters,
                package="reactive_aio",
                max_orders=scaled(max_orders),
                random_orders=scaled(random_orders) if random_orders else 100,
            )

        made: Any = test
        del made.__wrapped__  # pytest would look at the scenario, and await it
        signature = inspect.signature(scenario)
        kept = [each for name, each in signature.parameters.items() if name != "schedule"]
        made.__signature__ = signature.replace(parameters=kept)
        return made

    return decorate
