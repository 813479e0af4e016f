"""Helpers of the adapters: factories, first signals, tasks, errors."""

import asyncio
from collections.abc import Callable, Coroutine
from inspect import isawaitable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def published(
    adapter: str, make: Callable[P, Any], method: str, kind: str, publish: Callable[[Any], R]
) -> Callable[P, R]:
    """A factory of what *publish* makes of each object of *make*, which must have *method*."""
    if not callable(make):
        raise TypeError(
            f"{adapter}: give a factory that returns {kind}, got {make!r:.60}. Write lambda …: …"
        )

    def publisher(*args: P.args, **kwargs: P.kwargs) -> R:
        found = make(*args, **kwargs)
        if not callable(getattr(found, method, None)):
            raise TypeError(
                f"{adapter}: the factory must return {kind}, which has {method}(); "
                f"it returned {found!r:.60}"
            )
        return publish(found)

    return publisher


def send_on_subscribe(adapter: str, subscriber: Any, subscription: object) -> tuple[bool, Any]:
    """Whether on_subscribe returned normally, and what it returned.

    For libraries that do not refuse ``subscribe(None)`` themselves (rule 1.9).
    """
    if subscriber is None:
        raise TypeError(f"{adapter}: subscribe(None): a subscriber is needed (rule 1.9)")
    try:
        return True, subscriber.on_subscribe(subscription)
    except Exception as error:
        report_subscriber_error(error)
        return False, None


_alive: set[asyncio.Task[Any]] = set()
"""Strong references: the loop refers to its tasks only weakly."""


def start_task(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """A task that lives until it is done."""
    task = asyncio.get_running_loop().create_task(work)
    _alive.add(task)
    task.add_done_callback(_alive.discard)
    return task


async def await_if_needed(returned: object) -> None:
    """Await what a signal returned, if it is awaitable."""
    if returned is not None and isawaitable(returned):
        await returned


def report_subscriber_error(error: Exception) -> None:
    """Report the error of a subscriber, which then counts as cancelled (rule 2.13)."""
    asyncio.get_running_loop().call_exception_handler(
        {"message": "a subscriber raised (rule 2.13)", "exception": error}
    )
