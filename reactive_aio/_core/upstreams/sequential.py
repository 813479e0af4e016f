"""Coordinators with one upstream at a time: its signals are forwarded, or another one follows."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from ...spec import Publisher
from ..flow_subscription import FlowSubscription, Links
from ..run_control import UpstreamKind, Work
from .coordinator import Coordinator
from .inner_subscriber import InnerSubscriber

T = TypeVar("T")


class PassingCoordinator(Coordinator[T]):
    """Passes the elements of one upstream on, which exists only at subscription."""

    _passed_on: InnerSubscriber[T] | None = None
    _found: tuple[object, bool | None] = None, None
    """The state of all `Links` when it was found whether the upstream is lossy, and the answer."""

    def _pass_on(self, inner: InnerSubscriber[T] | None) -> None:
        self._passed_on = inner
        Links.note_change()

    @property
    def passes_on(self) -> FlowSubscription | None:
        return None if self._passed_on is None else self._passed_on.passed_on

    @property
    def is_lossy(self) -> None:
        return None

    @property
    def known_lossy(self) -> bool | None:
        state, is_lossy = self._found
        return is_lossy if state is Links.state else None

    def note_lossy(self, is_lossy: bool) -> None:
        self._found = Links.state, is_lossy


class ForwardingCoordinator(PassingCoordinator[T]):
    """Stands between a flow and a publisher that exists, or is trusted, only at subscription."""

    @property
    def upstream(self) -> InnerSubscriber[T] | None:
        """The publisher's, once it is known."""
        return self._passed_on

    @upstream.setter
    def upstream(self, inner: InnerSubscriber[T] | None) -> None:
        self._pass_on(inner)

    def attach(self, publisher: Publisher[T]) -> "ForwardingCoordinator[T]":
        """Subscribe to *publisher*, and request the outstanding demand from it."""
        self.upstream = self.subscribe_to(publisher)
        self.on_demand()
        return self

    def stop_source(self) -> bool:
        if self._started and not self.inners:
            self.complete()  # it waits to subscribe
        return self._started or bool(self.inners)

    def on_demand(self) -> None:
        if self.upstream is not None:
            self.request_missing(self.upstream)

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        self.emit(inner.take(self.demand.outstanding))
        self.end_with(inner)

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self.on_elements(inner)

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        self.on_elements(inner)


class SequentialCoordinator(PassingCoordinator[T]):
    """Has one upstream after another, and requests from it exactly what downstream still needs.

    An upstream never holds more than that, so all its elements are emitted before its end is
    handled. Then `next_after` decides what follows.
    """

    is_waiting: bool = False
    """Whether an upstream was left, and is still cleaning up."""
    _following: tuple[Callable[[], object], UpstreamKind] | None = None
    """Begins what follows then."""

    @property
    def active(self) -> InnerSubscriber[T] | None:
        """The upstream whose turn it is."""
        return self._passed_on

    @active.setter
    def active(self, inner: InnerSubscriber[T] | None) -> None:
        self._pass_on(inner)

    @abstractmethod
    def begin(self) -> None:
        """Switch to the first upstream."""

    def next_after(self, error: BaseException | None) -> None:
        """The upstream has completed, or failed with *error*: switch, or end."""
        self.end(error)

    def switch(self, publisher: Publisher[T], *, kind: UpstreamKind = "source") -> None:
        """Continue with *publisher*, as soon as the upstream before it has cleaned up.

        *kind* is that of `subscribe_to`. When the run is drained, no source follows: complete.
        """
        self.after_cleanup(lambda: self.follow(publisher, kind=kind), kind=kind)

    def after_cleanup(self, begin: Callable[[], object], *, kind: UpstreamKind) -> None:
        """Leave the active upstream, and call *begin* when it has cleaned up: that calls `follow`.

        While an upstream is still waited for, *begin* replaces the one that was given before.
        """
        self._following = begin, kind
        self.release_active()

    def follow(
        self, publisher: Publisher[T], *, kind: UpstreamKind = "source", work: Work | None = None
    ) -> None:
        """Subscribe to *publisher*; *kind* and *work* are those of `subscribe_to`."""
        self.active = self.subscribe_to(publisher, kind=kind, work=work)
        self.request_missing(self.active)

    def release_active(self) -> None:
        """Release the active upstream; what follows begins when it has cleaned up."""
        before, self.active = self.active, None
        if before is not None:
            self.is_waiting = True
            self.release(before, self._begin_following)
        elif not self.is_waiting:
            self._begin_following()

    def _begin_following(self) -> None:
        self.is_waiting = False
        following, self._following = self._following, None
        if following is None:
            return
        begin, kind = following
        if kind == "source" and self.is_drained:
            self.complete()
        else:
            begin()

    def stop_source(self) -> bool:
        is_work = self._following is not None and self._following[1] == "work"
        if self._started and not is_work and all(inner.is_done for inner in self.inners):
            self.complete()  # it waits to subscribe again
        return True

    # -- decisions --------------------------------------------------------------------------------
    def on_start(self) -> None:
        self.begin()

    def on_demand(self) -> None:
        if self.active is not None:
            self.request_missing(self.active)

    def on_processed(self) -> None:
        if self.active is not None:
            self.request_missing(self.active)

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        if inner is self.active:
            self.emit(inner.take(len(inner.elements)))

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self.on_elements(inner)
        self._next(inner, None)

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        self.on_elements(inner)
        self._next(inner, error)

    def _next(self, inner: InnerSubscriber[Any], error: BaseException | None) -> None:
        if inner is self.active and not self.is_closed:
            self.next_after(error)
