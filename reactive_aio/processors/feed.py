"""Feed: how a publisher feeds a processor, in step with its slowest subscriber."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .._core.queues.bounded_queue import Emission
from .._core.queues.hot_emitter import HotEmitter
from .._core.upstreams.inner_subscriber import InnerSubscriber

if TYPE_CHECKING:
    from .._core.loop import LoopHandle

__all__ = ("Feed",)

T = TypeVar("T")


class Feed(Generic[T]):
    """What a publisher sends a processor; elements that are refused wait in the arm."""

    __slots__ = ("_gate", "_passing", "_refill", "inner", "loop_handle", "submit")

    def __init__(self, gate: HotEmitter[T], refill: "Callable[[Feed[T]], object]") -> None:
        self._gate = gate
        self._refill = refill
        self._passing = False
        self.loop_handle: LoopHandle = gate.loop_handle
        self.submit: Callable[..., object] = _at_once
        self.inner: InnerSubscriber[T] = InnerSubscriber(self)

    def pass_on(self) -> None:
        """Emit what has come, until it is refused; then end as the publisher did."""
        inner = self.inner
        if self._passing:
            return  # a subscriber that is being served asks for more
        self._passing = True
        try:
            while inner.elements:
                if self._gate.try_emit(inner.elements[0]) is Emission.REFUSED:
                    return
                inner.take(1)
        finally:
            self._passing = False
        if inner.is_done:
            self._gate.end(inner.error)
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


def _at_once(decision: Callable[..., object], *args: object) -> None:
    decision(*args)
