"""Subscribing: what happens to a subscriber before it has a subscription."""

from collections.abc import Callable
from inspect import iscoroutine
from typing import Any, Final, cast
from weakref import ref

from ...errors import NoRunningLoop, NotAnElement
from ..arguments import OWN_TASK, is_coroutine_function, refuse_awaitable
from ..compiler.chain import Chain
from ..demand import require_demand
from ..failures import STOPS_PROGRAM, as_failure
from ..flow_subscription import FlowSubscription
from ..loop import LoopHandle
from .bulk_subscriber import BulkReceiver, BulkSubscriber
from .island import Island
from .list_delivery import ListDelivery, takes_lists
from .sync_island import SyncIsland
from .task_island import TaskIsland

_SIGNALS: Final = ("on_subscribe", "on_next", "on_error", "on_complete")
# By the class's id, since a WeakKeyDictionary takes as long as all other checks together.
_known_classes: dict[int, tuple[ref[type], ref[Any], bool, bool]] = {}
"""Each class of subscribers, until it is freed, its function ``on_next``, whether that is a
coroutine function, and whether the class is one of this package that receives elements in bulk."""


def subscribe(chain: Chain, subscriber: Any) -> None:
    """Start one subscription of *chain* (rules 1.9 to 1.11)."""
    is_async, is_bulk = require_subscriber(subscriber)
    if is_bulk and isinstance(subscriber, BulkSubscriber) and takes_lists(chain, subscriber):
        ListDelivery[Any](chain, subscriber).begin()
        return
    try:
        loop_handle = LoopHandle()
    except NoRunningLoop as error:
        refuse(subscriber, error)
        return
    if is_bulk and isinstance(subscriber, BulkReceiver):
        subscriber = subscriber.bulk_subscriber() or subscriber
    kind: type[Island]
    if is_async or chain.awaits:
        kind = _TaskIslandWithHooks if chain.request_hooks else TaskIsland
    else:
        kind = _SyncIslandWithHooks if chain.request_hooks else SyncIsland
    delivery = "await" if is_async else "call"
    if is_bulk and isinstance(subscriber, BulkSubscriber):
        delivery = _bulk_delivery(chain, subscriber)
    island: Island = kind(chain, cast("Any", subscriber), delivery, loop_handle)
    loop_handle.run_or_defer(Island.begin, island)


def _bulk_delivery(chain: Chain, subscriber: BulkSubscriber) -> str:
    if subscriber.container is None:
        return "inspect"
    return "extend" if chain.is_bare else "append"


def require_subscriber(subscriber: Any) -> tuple[bool, bool]:
    """Check that *subscriber* is one.

    Return whether its on_next is a coroutine function, and whether its class is one of this package
    that receives elements in bulk. The answer is cached per class. An instance with an ``on_next``
    attribute of its own is checked each time. (Looking into its ``__dict__`` would make each of its
    attributes slower for good.)
    """
    kind = subscriber.__class__
    function = getattr(getattr(subscriber, "on_next", None), "__func__", None)
    known = _known_classes.get(id(kind))
    if known is not None and function is not None:
        _, known_function, is_async, is_bulk = known
        if known_function() is function:
            return is_async, is_bulk
    if subscriber is None:
        raise NotAnElement("subscribe(None): a subscriber is needed", rule="1.9")
    if isinstance(subscriber, type):
        raise TypeError(
            f"rule 1.9: {subscriber.__name__!r} is a class; subscribe an instance of it: "
            f"subscribe({subscriber.__name__}(...))"
        )
    missing = [name for name in _SIGNALS if not callable(getattr(subscriber, name, None))]
    if missing:
        raise TypeError(
            f"rule 1.9: {kind.__name__!r} object is not a subscriber, it has no "
            f"{', '.join(missing)}; to pass a plain function, use for_each()"
        )
    is_async = is_coroutine_function(subscriber.on_next)
    is_bulk = issubclass(kind, (BulkReceiver, BulkSubscriber))
    if function is not None and getattr(kind, "on_next", None) is function:
        key = id(kind)
        known_class = ref(kind, lambda _: _known_classes.pop(key, None) and None)
        _known_classes[key] = (known_class, ref(function), is_async, is_bulk)
    return is_async, is_bulk


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


class _RequestHooks(Island):
    """Calls the chain's request hooks on the loop's thread, before a request takes effect.

    A class of its own, so that a chain without request hooks pays nothing.
    """

    __slots__ = ()

    def request(self, n: int, /) -> None:
        if not self.loop_handle.is_current_thread:
            self.loop_handle.call_soon_threadsafe(self.request, n)
        elif self.is_stopped or self._call_hooks(n):
            super().request(n)

    def _call_hooks(self, n: int) -> bool:
        """Return whether the request is to take effect."""
        try:
            require_demand(n)
        except ValueError:
            return True  # it fails the flow (3.9), and is not a request to observe
        for position, hook in self.chain.request_hooks:
            try:
                self.loop_handle.run(_call_hook, hook, n)
            except BaseException as error:
                failure, hooks = as_failure(error), self.end_hooks
                self._fail(failure if hooks is None else hooks.fail_at(position, failure))
                if isinstance(error, STOPS_PROGRAM):
                    raise
                return False
        return not self.is_stopped


def _call_hook(hook: Callable[[int], object], n: int) -> None:
    refuse_awaitable("do_on_request", hook, hook(n), OWN_TASK)


class _SyncIslandWithHooks(_RequestHooks, SyncIsland):
    __slots__ = ()


class _TaskIslandWithHooks(_RequestHooks, TaskIsland):
    __slots__ = ()
