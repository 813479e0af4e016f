"""Subscribing: what happens to a subscriber before it has a subscription."""

from collections.abc import Callable
from inspect import iscoroutine, iscoroutinefunction
from typing import Any, Final
from weakref import WeakKeyDictionary

from ...errors import NoRunningLoop, NotAnElement
from ..compiler.chain import Chain
from ..flow_subscription import FlowSubscription
from ..loop import LoopHandle
from .bulk_subscriber import BulkSubscriber
from .request_hooks import WITH_REQUEST_HOOKS
from .sync_island import SyncIsland
from .task_island import TaskIsland

__all__ = ("INERT", "refuse", "require_subscriber", "subscribe")

_SIGNALS: Final = ("on_subscribe", "on_next", "on_error", "on_complete")
_is_async_class: WeakKeyDictionary[type, bool] = WeakKeyDictionary()


def subscribe(chain: Chain, subscriber: Any) -> None:
    """Start one subscription of *chain* (rules 1.9 to 1.11)."""
    is_async = require_subscriber(subscriber)
    try:
        loop_handle = LoopHandle()
    except NoRunningLoop as error:
        refuse(subscriber, error)
        return
    island = TaskIsland if is_async or chain.awaits else SyncIsland
    if chain.request_hooks:
        island = WITH_REQUEST_HOOKS[island]
    delivery = "await" if is_async else _delivery(chain, subscriber)
    island(chain, subscriber, delivery, loop_handle).begin()


def _delivery(chain: Chain, subscriber: object) -> str:
    if not isinstance(subscriber, BulkSubscriber):
        return "call"
    if subscriber.container is None:
        return "inspect"
    return "extend" if chain.is_bare else "append"


def require_subscriber(subscriber: Any) -> bool:
    """Check that *subscriber* is one; return whether its on_next is a coroutine function.

    The answer is cached per class. An instance with an ``on_next`` attribute of its own is checked
    each time.
    """
    kind = subscriber.__class__
    known = _is_async_class.get(kind)
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
    is_async = _is_coroutine_function(subscriber.on_next)
    if "on_next" not in getattr(subscriber, "__dict__", ()):
        _is_async_class[kind] = is_async
    return is_async


def _is_coroutine_function(function: Callable[..., object]) -> bool:
    return iscoroutinefunction(function) or iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object whose __call__ is async
    )


class _Inert(FlowSubscription):
    """The subscription of a refused subscriber: no request or cancel has an effect (3.6, 3.7)."""

    __slots__ = ()

    def request(self, n: int, /) -> None:
        pass

    def cancel(self) -> None:
        pass


INERT: Final = _Inert()


def refuse(subscriber: Any, error: Exception) -> None:
    """Refuse a subscriber as rule 1.9 requires: on_subscribe, then on_error.

    Without a loop, no signal can be awaited; the error is raised if a signal is a coroutine.
    """
    for signal, argument in ((subscriber.on_subscribe, INERT), (subscriber.on_error, error)):
        signalled = signal(argument)
        if iscoroutine(signalled):
            signalled.close()
            raise error
