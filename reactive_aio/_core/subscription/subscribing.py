"""The front door: what every subscriber passes on its way into an island."""

from collections import deque
from collections.abc import Callable
from inspect import iscoroutine, iscoroutinefunction
from typing import Any, Final
from weakref import WeakKeyDictionary

from ...errors import NoRunningLoop, NotAnElement
from ..compiler.chain import Chain
from ..loop import LoopHandle
from .bulk_subscriber import BulkSubscriber
from .request_hooks import WITH_REQUEST_HOOKS
from .sync_island import SyncIsland
from .task_island import TaskIsland

__all__ = ("INERT", "admit", "refuse", "subscribe")

_SIGNALS: Final = ("on_subscribe", "on_next", "on_error", "on_complete")
_asynchronous: WeakKeyDictionary[type, bool] = WeakKeyDictionary()


def subscribe(chain: Chain, subscriber: Any) -> None:
    """Begin one subscription of *chain* (rules 1.9 to 1.11)."""
    asynchronous = admit(subscriber)
    try:
        loop_handle = LoopHandle()
    except NoRunningLoop as error:
        refuse(subscriber, error)
        return
    island = TaskIsland if asynchronous or chain.awaits else SyncIsland
    if chain.request_hooks:
        island = WITH_REQUEST_HOOKS[island]
    delivery = "await" if asynchronous else _delivery(chain, subscriber)
    island(chain, subscriber, delivery, loop_handle).begin()


def _delivery(chain: Chain, subscriber: object) -> str:
    if not isinstance(subscriber, BulkSubscriber):
        return "call"
    container = getattr(subscriber.append, "__self__", None)
    if not isinstance(container, list | deque):
        return "offer"  # it looks at each element, and may cancel at any
    return "extend" if chain.is_bare else "fill"


def admit(subscriber: Any) -> bool:
    """Check that it is a subscriber; return whether its on_next is a coroutine function.

    What is found out about a class is remembered; an instance that carries methods of its own is
    looked at each time.
    """
    kind = subscriber.__class__
    known = _asynchronous.get(kind)
    if known is not None and "on_next" not in getattr(subscriber, "__dict__", ()):
        return known
    if subscriber is None:
        raise NotAnElement("subscribe(None): a subscriber is needed", rule="1.9")
    missing = [name for name in _SIGNALS if not callable(getattr(subscriber, name, None))]
    if missing:
        raise TypeError(
            f"rule 1.9: {kind.__name__!r} object is not a subscriber, it has no "
            f"{', '.join(missing)}; to pass a plain function, use for_each()"
        )
    asynchronous = _is_coroutine_function(subscriber.on_next)
    if "on_next" not in getattr(subscriber, "__dict__", ()):
        _asynchronous[kind] = asynchronous
    return asynchronous


def _is_coroutine_function(function: Callable[..., object]) -> bool:
    return iscoroutinefunction(function) or iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object whose __call__ is async
    )


class _Inert:
    """The subscription of a subscriber that is turned away."""

    def request(self, n: int, /) -> None:
        """No effect (rule 3.6)."""

    def cancel(self) -> None:
        """No effect (rule 3.7)."""


INERT: Final = _Inert()


def refuse(subscriber: Any, error: Exception) -> None:
    """Turn a subscriber away as rule 1.9 wants it: on_subscribe, then on_error.

    Without a loop nobody can await a signal; then the error is raised.
    """
    for signal, argument in ((subscriber.on_subscribe, INERT), (subscriber.on_error, error)):
        signalled = signal(argument)
        if iscoroutine(signalled):
            signalled.close()
            raise error
