"""Arms: one upstream each of whoever draws from other publishers, with the guards of a subscriber.

The publisher may be foreign, and is not trusted: what it does wrong fails the arm with an error
that names the rule, cancels the publisher, and reaches nobody else.
"""

from inspect import iscoroutine
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from ...errors import NotAnElement, ReactiveError, RuleViolation
from ...spec import Publisher, Subscription
from ..demand import UNBOUNDED
from ..flow_subscription import FlowSubscription
from ..loop import LoopHandle
from ..subscription.bulk_subscriber import BulkSubscriber

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("InnerSubscriber", "Owner")

T = TypeVar("T")


class Owner(Protocol):
    """Whom an arm tells what has happened."""

    loop_handle: LoopHandle
    submit: "Callable[..., object]"
    """Has a decision made: called with one of the methods below and its arguments."""

    def on_arrival(self, inner: "InnerSubscriber[Any]") -> None:
        """*arm* has got elements."""
        ...

    def on_inner_complete(self, inner: "InnerSubscriber[Any]") -> None:
        """*arm* has completed; it may still hold elements."""
        ...

    def on_inner_error(self, inner: "InnerSubscriber[Any]", error: BaseException) -> None:
        """*arm* has failed; it may still hold elements."""
        ...


class InnerSubscriber(BulkSubscriber, Generic[T]):
    """One upstream. What it has requested bounds what it holds.

    An arm either subscribes to a publisher itself (`subscribe`), or is subscribed by anybody, as
    the inner end of a processor.
    """

    __slots__ = (
        "_own",
        "_owner",
        "_subscription",
        "append",
        "elements",
        "error",
        "is_cancelled",
        "is_done",
        "is_notified",
        "outstanding",
        "tag",
    )  # fmt: skip

    def __init__(self, owner: Owner, tag: Any = None) -> None:
        self._owner = owner
        self._own = False  # whether it subscribed by itself, so that one publisher may signal
        self._subscription: Subscription | None = None
        self.tag: Any = tag
        """The owner's own note about this arm."""
        self.is_notified: bool = False
        """Whether the owner knows of elements already and will look by itself."""
        self.elements: list[T] = []
        self.append: Callable[[Any], None] = self.elements.append
        self.outstanding: int = 0
        """Requested, and not yet taken out of `elements`."""
        self.is_done: bool = False
        """No more signals: it completed, failed, or was cancelled."""
        self.is_cancelled: bool = False
        """It was cancelled: its cleanup may take a while."""
        self.error: BaseException | None = None
        """What it failed with."""

    def __repr__(self) -> str:
        state = "ended" if self.is_done else f"{self.outstanding} outstanding"
        return f"<Arm {self.tag!r} {state}, holds {len(self.elements)}>"

    # -- for the owner ---------------------------------------------------------------------------
    def subscribe(self, publisher: Publisher[T]) -> "InnerSubscriber[T]":
        """Subscribe to *publisher*; one that raises there has failed (1.9)."""
        self._own = True
        try:
            returned: object = cast("Any", publisher).subscribe(self)
        except Exception as error:
            self.on_error(error)
        else:
            if iscoroutine(returned):
                returned.close()
                self._violated("1.9", "subscribe() is a coroutine function, not a plain one")
        return self

    def request(self, n: int) -> None:
        """Ask for *n* more."""
        if self.is_done:
            return
        self.outstanding = min(self.outstanding + n, UNBOUNDED)
        if self._subscription is not None:
            self._ask(self._subscription, n)

    def take(self, at_most: int) -> list[T]:
        """Take up to *at_most* of the elements it holds."""
        taken = self.elements[:at_most]
        del self.elements[:at_most]
        if self.outstanding < UNBOUNDED:
            self.outstanding -= len(taken)
        return taken

    def cancel(self) -> None:
        """Cancel it; what it holds is discarded and nothing more is heard of it."""
        self.elements.clear()
        self.stop()

    def stop(self) -> None:
        """Cancel it, but keep what it has sent."""
        if not self.is_done:
            self.is_done = self.is_cancelled = True
            self._leave(self._subscription)

    @property
    def is_clean(self) -> bool:
        """Whether there is no cleanup to wait for (any more)."""
        subscription = self._subscription
        return (
            not self.is_cancelled
            or not isinstance(subscription, FlowSubscription)
            or subscription.is_clean
        )

    async def aclose(self) -> None:
        """Cancel it and wait for its cleanup."""
        self.cancel()
        subscription = self._subscription
        if isinstance(subscription, FlowSubscription):
            await subscription.aclose()

    # -- what may go wrong with a subscription ---------------------------------------------------
    def _ask(self, subscription: Subscription, n: int) -> None:
        try:
            subscription.request(n)
        except Exception as error:
            self._violated("3.16", f"request({n}) raised {error!r}", error)

    def _leave(self, subscription: Subscription | None) -> None:
        try:
            if subscription is not None:
                subscription.cancel()
        except Exception as error:
            self._owner.loop_handle.report(
                "rule 3.15 violated: cancel() raised", error, rule="3.15"
            )

    def _violated(self, rule: str, what: str, cause: Exception | None = None) -> None:
        error = RuleViolation(rule, f"{what}; the publisher has been cancelled")
        error.__cause__ = cause
        self._misbehaved(error)

    def _none(self, what: str) -> NotAnElement:
        """None in a signal: its sender gets the error raised, and so does downstream (2.13)."""
        error = NotAnElement(what)
        self._misbehaved(error)
        return error

    def _misbehaved(self, error: ReactiveError) -> None:
        if not self._owner.loop_handle.is_current_thread:
            self._owner.loop_handle.call_soon_threadsafe(self._misbehaved, error)
        elif not self.is_done:
            self._leave(self._subscription)
            self.on_error(error)

    # -- the subscriber --------------------------------------------------------------------------
    def on_subscribe(self, subscription: Subscription) -> None:
        if cast("object", subscription) is None:
            raise self._none("on_subscribe(None): a subscription is needed")
        if not self._owner.loop_handle.is_current_thread:
            self._owner.loop_handle.call_soon_threadsafe(self.on_subscribe, subscription)
        elif self.is_done:
            self._leave(subscription)
        elif self._subscription is not None:
            self._leave(subscription)  # 2.5
            if self._own:  # nobody could tell whose elements come from now on
                self._violated("2.12", "the publisher called on_subscribe a second time")
        elif not (_has(subscription, "request") and _has(subscription, "cancel")):
            self._violated("1.9", f"{subscription!r} has not got request() and cancel()")
        else:
            self._subscription = subscription
            if self.outstanding:
                self._ask(subscription, self.outstanding)

    def on_next(self, element: T) -> None:
        if element is None:
            raise self._none("on_next(None): None is not an element")
        if not self._owner.loop_handle.is_current_thread:
            self._owner.loop_handle.call_soon_threadsafe(self.on_next, element)
        elif self.is_done:
            pass
        elif len(self.elements) < self.outstanding and self._subscription is not None:
            self.elements.append(element)
            self.flush()
        elif self._subscription is None:
            self._violated("1.9", "the publisher sent an element before on_subscribe")
        else:
            self._violated("1.1", "the publisher sent more elements than were requested")

    @property
    def container(self) -> list[T] | None:
        return self.elements

    def flush(self) -> None:
        if self.elements and not self.is_done and not self.is_notified:
            self._owner.on_arrival(self)

    def on_error(self, error: BaseException) -> None:
        if cast("object", error) is None:
            raise self._none("on_error(None): an exception is needed")
        if not self._owner.loop_handle.is_current_thread:
            self._owner.loop_handle.call_soon_threadsafe(self.on_error, error)
        elif not self.is_done:
            if not isinstance(cast("object", error), BaseException):
                error = RuleViolation("2.13", f"on_error({error!r}): an exception is needed")
            self.is_done, self.error = True, error
            self._owner.submit(self._owner.on_inner_error, self, error)

    def on_complete(self) -> None:
        if not self._owner.loop_handle.is_current_thread:
            self._owner.loop_handle.call_soon_threadsafe(self.on_complete)
        elif self.is_done:
            pass
        elif self._subscription is None:
            self._violated("1.9", "the publisher completed before on_subscribe")
        else:
            self.is_done = True
            self._owner.submit(self._owner.on_inner_complete, self)


def _has(subscription: object, method: str) -> bool:
    return callable(getattr(subscription, method, None))
