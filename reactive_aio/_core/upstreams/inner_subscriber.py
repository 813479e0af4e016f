"""InnerSubscriber: one upstream of an operator, a sink or a processor, with a subscriber's guards.

The publisher may be foreign, and is not trusted: a broken rule cancels the publisher and fails this
upstream with an error that names the rule.
"""

from collections.abc import Callable, Iterable, Sequence
from inspect import iscoroutine
from typing import Any, Generic, Protocol, TypeVar, cast

from ...errors import NotAnElement, ReactiveError, RuleViolation
from ...spec import Publisher, Subscription
from ..cleanup import CleanupErrors
from ..compiler.chain import Downstream
from ..compiler.discards import OnDiscard, discard
from ..demand import UNBOUNDED
from ..failures import STOPS_PROGRAM, as_failure
from ..flow_subscription import FOREIGN, FlowSubscription, Links, drops_what_waits
from ..loop import LoopHandle
from ..run_control import RunControl, UpstreamKind, Work, control_of, for_upstream
from ..subscription.bulk_subscriber import BulkSubscriber
from ..subscription.island import Island
from ..subscription.list_delivery import ListDelivery

T = TypeVar("T")


class Owner(Protocol):
    """What owns inner subscribers, and is notified by them."""

    loop_handle: LoopHandle

    @property
    def cleanup(self) -> CleanupErrors | None:
        """Where the errors of the cleanup of an upstream go, if a consumer awaits it."""
        ...

    @property
    def on_discard(self) -> OnDiscard | None:
        """What receives each element that is discarded upstream; None if nothing does."""
        ...

    def discard(self, elements: Iterable[object], /) -> None:
        """*elements* of an upstream were received, and will not be delivered."""
        ...

    @property
    def held_back_by(self) -> Downstream[Any] | None:
        """The one that takes its elements, or some of them, and has no room for the next."""
        ...

    submit: Callable[..., object]
    """Runs one of the methods below with its arguments, at once or after those that run now."""

    def on_arrival(self, inner: "InnerSubscriber[Any]", /) -> None:
        """*inner* has received elements; called at once, not through `submit`."""
        ...

    def on_inner_complete(self, inner: "InnerSubscriber[Any]", /) -> None:
        """*inner* has completed; it may still hold elements."""
        ...

    def on_inner_error(self, inner: "InnerSubscriber[Any]", error: BaseException, /) -> None:
        """*inner* has failed; it may still hold elements."""
        ...


class InnerSubscriber(BulkSubscriber, Generic[T]):
    """One upstream. It holds at most what it has requested.

    It either subscribes to a publisher itself (`subscribe`), or is the subscriber that a processor
    exposes to any publisher.
    """

    __slots__ = ("_control", "_is_clean", "_is_finished", "_kind", "_owner", "_subscribed",
                 "_subscription", "append", "elements", "error", "is_cancelled", "is_done",
                 "is_notified", "is_released", "outstanding", "tag", "work")  # fmt: skip

    takes_lists = True
    tells_finished = True

    def __init__(
        self,
        owner: Owner,
        tag: Any = None,
        kind: UpstreamKind = "source",
        work: Work | None = None,
    ) -> None:
        self._owner = owner
        self._kind: UpstreamKind = kind
        self.work: Work | None = work
        """The element that the publisher was made of, if its fate matters to someone."""
        self._control: RunControl | None = None  # of a foreign publisher that is a source of a run
        self._subscribed = False  # it called subscribe() itself, so only one publisher may signal
        self._subscription: Subscription | None = None
        self._is_clean = False
        self._is_finished = False
        self.tag: Any = tag
        """A note of the owner about this upstream."""
        self.is_notified: bool = False
        """Whether the owner is going to read `elements` without another `on_arrival`."""
        self.elements: list[T] = []
        self.append: Callable[[Any], object] = self.elements.append
        self.outstanding: int = 0
        """Requested, and not yet taken out of `elements`."""
        self.is_done: bool = False
        """No more signals follow: it completed, failed or was cancelled."""
        self.is_cancelled: bool = False
        """It was cancelled; its cleanup may still be running."""
        self.is_released: bool = False
        """It was cancelled by `cancel`, so that its owner reads no more elements."""
        self.error: BaseException | None = None
        """The error that it failed with."""

    def __repr__(self) -> str:
        state = "done" if self.is_done else f"{self.outstanding} outstanding"
        return f"<InnerSubscriber {self.tag!r} {state}, holds {len(self.elements)}>"

    @property
    def owner(self) -> Owner:
        """What it is an upstream of."""
        return self._owner

    @property
    def is_work(self) -> bool:
        """Whether it was made of an element, so that it is finished when its elements are emitted:
        what follows is no part of the work on that element."""
        return self._kind == "work"

    @property
    def cleanup(self) -> CleanupErrors | None:
        return self._owner.cleanup

    @property
    def on_discard(self) -> OnDiscard | None:
        if self.work is not None:
            return self.work.on_discard
        return for_upstream(self._owner.on_discard, self._kind)

    def stop_source(self) -> None:
        """Cancel a foreign publisher, and complete after the elements that it has sent."""
        if not self.is_done:
            self.stop()
            self._owner.submit(self._owner.on_inner_complete, self)

    # -- called by the owner ----------------------------------------------------------------------
    def subscribe(self, publisher: Publisher[T]) -> "InnerSubscriber[T]":
        """Subscribe to *publisher*; one that raises in ``subscribe`` has failed (1.9)."""
        self._subscribed = True
        try:
            returned: object = cast("Any", publisher).subscribe(self)
        except BaseException as error:
            self.on_error(as_failure(error))
            if isinstance(error, STOPS_PROGRAM):
                raise
        else:
            if iscoroutine(returned):
                returned.close()
                self._fail_rule("1.9", "subscribe() is a coroutine function, not a plain one")
        return self

    def request(self, n: int) -> None:
        """Request *n* more elements."""
        if self.is_done:
            return
        self.outstanding = min(self.outstanding + n, UNBOUNDED)
        if self._subscription is not None:
            self._request(self._subscription, n)

    def take(self, at_most: int) -> list[T]:
        """Take up to *at_most* of the elements held."""
        taken = self.elements[:at_most]
        del self.elements[:at_most]
        if self.outstanding < UNBOUNDED:
            self.outstanding -= len(taken)
        if taken and self.work is not None:
            self.work.is_replaced = True
        return taken

    def take_one(self) -> T:
        """Take the first of the elements held."""
        if self.outstanding < UNBOUNDED:
            self.outstanding -= 1
        return self.elements.pop(0)

    def collect(self, read: Callable[["InnerSubscriber[Any]"], object]) -> bool:
        """Have *read* called in the next turn of the loop, with what has arrived until then.

        Return False, and do nothing, if the upstream knows itself when no more elements follow
        directly.
        """
        if not self.flushes_each_element:
            return False
        self.is_notified = True
        self._owner.loop_handle.call_soon(self._read, read)
        return True

    def _read(self, read: Callable[["InnerSubscriber[Any]"], object]) -> None:
        self.is_notified = False
        if self.elements:
            read(self)

    def cancel(self, keeps_flows: bool = False) -> None:
        """Cancel, or leave, and discard the elements held."""
        self.is_released = True
        held = self._take_all() if self.elements else ()
        self._stop(keeps_flows)
        if held:
            self._discard(held)
        if self.work is not None and (self.is_cancelled or self.error is not None):
            self.work.cut()

    def finish(self) -> None:
        """Everything made of its elements has been processed: tell upstream, if it is done."""
        for subscription in self.finished():
            subscription.finished()

    def finished(self) -> Sequence[FlowSubscription]:
        """What `finish` tells."""
        subscription = self.upstream if self.is_done else None
        if subscription is None or self._is_finished:
            return ()
        self._is_finished = True  # upstream is told once, and so are all above it
        return (subscription,)

    def discard_held(self) -> None:
        """Discard the elements held."""
        self._discard(self._take_all())

    def _discard(self, elements: Sequence[T]) -> None:
        if self.work is None:
            self._owner.discard(elements)
        else:
            discard(self.on_discard, elements)

    def _take_all(self) -> list[T]:
        held = self.elements.copy()
        self.elements.clear()  # `append` belongs to it
        return held

    def stop(self) -> None:
        """Cancel, and keep the elements held."""
        self._stop(keeps_flows=bool(self.elements))  # they may be flows, and are delivered

    def _stop(self, keeps_flows: bool) -> None:
        if not self.is_done:
            self.is_cancelled = True
            self._set_done()
            self._cancel(self._subscription, keeps_flows)

    def _set_done(self) -> None:
        self.is_done = True
        if self._control is not None:
            self._control.remove(self)

    @property
    def upstream(self) -> FlowSubscription | None:
        """The subscription, unless the publisher is foreign."""
        subscription = self._subscription
        return subscription if isinstance(subscription, FlowSubscription) else None

    @property
    def source_name(self) -> str:
        """What it is subscribed to, for reports."""
        subscription = self._subscription
        if isinstance(subscription, (Island, ListDelivery)):
            return subscription.chain.trail()
        return type(subscription).__name__

    @property
    def flushes_each_element(self) -> bool:
        """Whether more elements may follow directly after each `flush`."""
        subscription = self._subscription
        return isinstance(subscription, FlowSubscription) and subscription.flushes_each_element

    @property
    def is_lossy(self) -> bool:
        """Whether what waits upstream is dropped or replaced, and what waits here is not."""
        subscription = self._subscription
        return isinstance(subscription, FlowSubscription) and drops_what_waits(subscription)

    @property
    def passed_on(self) -> FlowSubscription:
        """The subscription, for those that pass its elements on."""
        subscription = self._subscription
        return subscription if isinstance(subscription, FlowSubscription) else FOREIGN

    @property
    def is_clean(self) -> bool:
        """Whether `aclose` would return at once, after the end or a cancellation."""
        if not self._is_clean:
            subscription = self._subscription
            self._is_clean = not isinstance(subscription, FlowSubscription) or subscription.is_clean
        return self._is_clean

    async def aclose(self) -> None:
        """Cancel, and wait until the upstream has cleaned up."""
        self.cancel()
        if isinstance(self._subscription, FlowSubscription):
            await self._subscription.aclose()

    # -- guards against a foreign subscription ----------------------------------------------------
    def _request(self, subscription: Subscription, n: int) -> None:
        was_notified, self.is_notified = self.is_notified, True
        try:
            subscription.request(n)
        except BaseException as error:
            self._fail_rule("3.16", f"request({n}) raised {error!r}", error)
            if isinstance(error, STOPS_PROGRAM):
                raise
        finally:  # hand over together what the publisher has sent in the call
            self.is_notified = was_notified
            self.flush()

    def _cancel(self, subscription: Subscription | None, keeps_flows: bool = False) -> None:
        try:
            if keeps_flows and isinstance(subscription, FlowSubscription):
                subscription.leave()
            elif subscription is not None:
                subscription.cancel()
        except STOPS_PROGRAM:
            raise
        except BaseException as error:
            self._owner.loop_handle.report(
                "rule 3.15 violated: cancel() raised", error, rule="3.15"
            )

    def _fail_rule(self, rule: str, what: str, cause: BaseException | None = None) -> None:
        error = RuleViolation(rule, f"{what}; the publisher has been cancelled")
        error.__cause__ = cause
        self._fail(error)

    def _fail_early(self, what: str, call: str) -> None:
        """The publisher has not called on_subscribe; what calls a processor may be no publisher."""
        is_processor = not self._subscribed
        remedy = f"; a producer, which is no publisher, calls {call}" if is_processor else ""
        self._fail_rule("1.9", f"the publisher {what} before on_subscribe{remedy}")

    def _fail_none(self, what: str) -> NotAnElement:
        """None in a signal: the sender raises the error, and downstream receives it (2.13)."""
        error = NotAnElement(what)
        self._fail(error)
        return error

    def _fail(self, error: ReactiveError) -> None:
        if not self._owner.loop_handle.is_current_thread:
            self._owner.loop_handle.call_soon_threadsafe(self._fail, error)
        elif not self.is_done:
            self._cancel(self._subscription)
            self.on_error(error)

    # -- the subscriber ---------------------------------------------------------------------------
    def on_subscribe(self, subscription: Subscription) -> None:
        if cast("object", subscription) is None:
            raise self._fail_none("on_subscribe(None): a subscription is needed")
        if not self._owner.loop_handle.is_current_thread:
            self._owner.loop_handle.call_soon_threadsafe(self.on_subscribe, subscription)
        elif self.is_done:
            self._cancel(subscription)
        elif self._subscription is not None:
            self._cancel(subscription)  # 2.5
            if self._subscribed:  # from now on, the sender of an element would be unknown
                self._fail_rule("2.12", "the publisher called on_subscribe a second time")
        elif not (_has(subscription, "request") and _has(subscription, "cancel")):
            self._fail_rule("1.9", f"{subscription!r} has not got request() and cancel()")
        else:
            self._subscription = subscription
            Links.note_change()
            if not isinstance(subscription, FlowSubscription) and not self._begin_foreign():
                return
            if self.outstanding:
                self._request(subscription, self.outstanding)

    def _begin_foreign(self) -> bool:
        """The publisher is foreign; return False if its run is drained already."""
        control = control_of(self.on_discard)
        if control is None:
            return True
        if control.is_stopped:
            self.stop_source()
            return False
        self._control = control
        control.add(self)
        return True

    def on_next(self, element: T) -> None:
        if element is None:
            raise self._fail_none("on_next(None): None is not an element")
        if not self._owner.loop_handle.is_current_thread:
            self._owner.loop_handle.call_soon_threadsafe(self.on_next, element)
        elif self.is_done:
            if self.is_released:
                self._discard((element,))
        elif len(self.elements) < self.outstanding and self._subscription is not None:
            self.elements.append(element)
            self.flush()
        elif self._subscription is None:
            self._fail_early("sent an element", "try_emit(element)")
        else:
            self._fail_rule("1.1", "the publisher sent more elements than were requested")

    @property
    def container(self) -> list[T] | None:
        return self.elements

    def flush(self) -> None:
        if self.elements and not self.is_done and not self.is_notified:
            self._owner.on_arrival(self)

    def on_error(self, error: BaseException) -> None:
        if cast("object", error) is None:
            raise self._fail_none("on_error(None): an exception is needed")
        if not self._owner.loop_handle.is_current_thread:
            self._owner.loop_handle.call_soon_threadsafe(self.on_error, error)
        elif not self.is_done:
            if not isinstance(cast("object", error), BaseException):
                error = RuleViolation("2.13", f"on_error({error!r}): an exception is needed")
            self.error = error = as_failure(error)
            self._set_done()
            self._owner.submit(self._owner.on_inner_error, self, error)

    def on_complete(self) -> None:
        if not self._owner.loop_handle.is_current_thread:
            self._owner.loop_handle.call_soon_threadsafe(self.on_complete)
        elif self.is_done:
            pass
        elif self._subscription is None:
            self._fail_early("completed", "complete()")
        else:
            self._set_done()
            self._owner.submit(self._owner.on_inner_complete, self)


def _has(subscription: object, method: str) -> bool:
    return callable(getattr(subscription, method, None))
