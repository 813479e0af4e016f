"""How a publisher feeds a processor, at the rate of the processor's slowest subscriber."""

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .._core.queues.bounded_queue import Emission
from .._core.queues.hot_emitter import HotEmitter
from ..stage import InnerSubscriber, run_now

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..stage import LoopHandle

__all__ = ("UpstreamFeed",)

T = TypeVar("T")


class UpstreamFeed(Generic[T]):
    """Emits a publisher's elements into a processor; refused elements wait in `inner`."""

    __slots__ = ("_emitter", "_is_passing_on", "_refill", "inner", "loop_handle", "submit")

    def __init__(
        self, emitter: HotEmitter[T], refill: "Callable[[UpstreamFeed[T]], object]"
    ) -> None:
        self._emitter = emitter
        self._refill = refill
        self._is_passing_on = False
        self.loop_handle: LoopHandle = emitter.loop_handle
        self.submit: Callable[..., object] = run_now
        self.inner: InnerSubscriber[T] = InnerSubscriber(self)

    def pass_on(self) -> None:
        """Emit the elements received until one is refused; then end as the publisher did."""
        inner = self.inner
        if self._is_passing_on:
            return  # re-entered: a subscriber requests more while it receives an element
        self._is_passing_on = True
        try:
            while inner.elements:
                if self._emitter.try_emit(inner.elements[0]) is Emission.REFUSED:
                    return
                inner.take(1)
        finally:
            self._is_passing_on = False
        if inner.is_done:
            self._emitter.end(inner.error)
        else:
            self._refill(self)

    def on_arrival(self, inner: InnerSubscriber[Any]) -> None:
        self.pass_on()

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        self.pass_on()

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self.pass_on()

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        self.pass_on()
