"""ForwardingCoordinator: one upstream; demand travels up and elements travel down unchanged."""

from typing import Any, TypeVar

from ...spec import Publisher
from .coordinator import Coordinator
from .inner_subscriber import InnerSubscriber

__all__ = ("ForwardingCoordinator",)

T = TypeVar("T")


class ForwardingCoordinator(Coordinator[T]):
    """Stands between a flow and a publisher that exists, or is trusted, only at subscription."""

    upstream: InnerSubscriber[T] | None = None

    def attach(self, publisher: Publisher[T]) -> "ForwardingCoordinator[T]":
        """Subscribe to *publisher*, and request the outstanding demand from it."""
        self.upstream = self.subscribe_to(publisher)
        self.on_demand()
        return self

    def on_demand(self) -> None:
        inner = self.upstream
        if inner is not None and (missing := self.demand.outstanding - inner.outstanding) > 0:
            inner.request(missing)

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        self.emit(inner.take(self.demand.outstanding))
        self.end_with(inner)

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self.on_elements(inner)

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        self.on_elements(inner)
