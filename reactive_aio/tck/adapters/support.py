"""Helpers of the adapters: checks of factories, missing packages, awaitables, errors."""

import asyncio
from collections.abc import Callable
from importlib import import_module
from inspect import isawaitable
from typing import Any, Final, ParamSpec, TypeVar

NO_OP_REQUEST_RULES: Final = frozenset(
    ("2.7", "3.1", "3.2", "3.3", "3.4", "3.6", "3.10", "3.11", "3.16", "3.17")
)
"""The rules that a request without effect keeps."""

P = ParamSpec("P")
R = TypeVar("R")


def checked_factory(
    adapter: str, make: Callable[P, Any], method: str, kind: str
) -> Callable[P, Any]:
    """*make*, with a check that each of its objects has *method*."""
    if not callable(make):
        raise TypeError(
            f"{adapter}: give a factory that returns {kind}, got {make!r:.60}. Write lambda …: …"
        )

    def made(*args: P.args, **kwargs: P.kwargs) -> Any:
        found = make(*args, **kwargs)
        if not callable(getattr(found, method, None)):
            raise TypeError(
                f"{adapter}: the factory must return {kind}, which has {method}(); "
                f"it returned {found!r:.60}"
            )
        return found

    return made


def missing_subscriber(adapter: str) -> TypeError:
    """The error of ``subscribe(None)``, for libraries that raise none (rule 1.9)."""
    return TypeError(f"{adapter}: subscribe(None): a subscriber is needed (rule 1.9)")


async def await_if_needed(returned: object) -> None:
    """Await what a signal returned, if it is awaitable."""
    if returned is not None and isawaitable(returned):
        await returned


def import_or_explain(adapter: str, module: str, package: str) -> Any:
    """Import *module* of a third party, or raise an error that names the missing *package*."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # a dependency of the package is missing
        raise ModuleNotFoundError(
            f"{adapter} needs the package {package}, which is not installed: pip install {package}",
            name=error.name,
        ) from None


def report_subscriber_error(error: Exception) -> None:
    """Report the error of a subscriber, which then counts as cancelled (rule 2.13)."""
    asyncio.get_running_loop().call_exception_handler(
        {"message": "a subscriber raised (rule 2.13)", "exception": error}
    )
