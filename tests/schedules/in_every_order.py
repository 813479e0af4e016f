"""Tests that are scenarios: each runs under many legal orders of what threads and the loop do."""

from collections.abc import Callable, Coroutine
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec

from reactive_aio.testing.schedules import Schedule, explore
from tests.harness.effort import scaled

P = ParamSpec("P")
Scenario = Callable[Concatenate[Schedule, P], Coroutine[Any, Any, None]]


def in_every_order(
    max_orders: int, random_orders: int | None = None
) -> Callable[[Scenario[P]], Callable[P, None]]:
    """Makes a test of a scenario; its parameters after the first are those of the test.

    The numbers are those of ``--thorough``. Without *random_orders* there are a hundred.
    """

    def decorate(scenario: Scenario[P]) -> Callable[P, None]:
        def test(*args: P.args, **kwargs: P.kwargs) -> None:
            @wraps(scenario)
            def started(schedule: Schedule) -> Coroutine[Any, Any, None]:
                return scenario(schedule, *args, **kwargs)

            explore(
                started,
                package="reactive_aio",
                max_orders=scaled(max_orders),
                random_orders=100 if random_orders is None else scaled(random_orders),
            )

        of_scenario = signature(scenario)
        _, *parameters = of_scenario.parameters.values()
        test.__name__, test.__doc__ = scenario.__name__, scenario.__doc__
        test.__qualname__, test.__module__ = scenario.__qualname__, scenario.__module__
        vars(test)["__signature__"] = of_scenario.replace(parameters=parameters)
        return test

    return decorate
