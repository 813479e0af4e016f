"""What the adapters have in common: is it what it should be, is there something to await."""

import asyncio
from collections.abc import Callable
from importlib import import_module
from inspect import isawaitable
from typing import Any, Final, ParamSpec, TypeVar

__all__ = ("DEAF", "missing_subscriber", "need", "settle", "shaped", "tell")

DEAF: Final = frozenset(("2.7", "3.1", "3.2", "3.3", "3.4", "3.6", "3.10", "3.11", "3.16", "3.17"))
"""The rules that a request keeps which does nothing."""

P = ParamSpec("P")
R = TypeVar("R")


def shaped(adapter: str, make: Callable[P, Any], method: str, kind: str) -> Callable[P, Any]:
    """*make*, each of whose objects is seen to have *method*."""
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
    """The answer to ``subscribe(None)`` where a library has none (rule 1.9)."""
    return TypeError(f"{adapter}: subscribe(None): a subscriber is needed (rule 1.9)")


async def settle(returned: object) -> None:
    """Await what a signal returned, if there is something to await."""
    if returned is not None and isawaitable(returned):
        await returned


def need(adapter: str, module: str, package: str) -> Any:
    """Import *module* of a third party, or say which *package* is missing."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # something that the package imports
        raise ModuleNotFoundError(
            f"{adapter} needs the package {package}, which is not installed: pip install {package}",
            name=error.name,
        ) from None


def tell(error: Exception) -> None:
    """A signal raised that the adapter sends: its subscriber counts as cancelled (rule 2.13)."""
    asyncio.get_running_loop().call_exception_handler(
        {"message": "a subscriber raised (rule 2.13)", "exception": error}
    )
