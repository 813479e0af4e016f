"""The value of a terminal operator: the first element of a flow.

A terminal operator is an inline stage that emits its result after the last element. So it runs
inside the flow's own loop, and in the consumer's task where that loop is synchronous.
"""

from typing import TYPE_CHECKING, Any, Final

from .._core.compiler.chain import Chain
from .._core.compiler.loop_compiler import SLICE_OVER
from .._core.loop import CancelledError, Future, report
from .._core.subscription.bulk_subscriber import BulkSubscriber
from ..stage import UNBOUNDED, FlowSubscription, LoopHandle
from .async_iteration import ConsumerSlice

if TYPE_CHECKING:
    from ..spec import Subscription
    from ..stage import Fluent

__all__ = ("NOTHING", "first_value")

NOTHING: Final[Any] = object()
"""The value of a flow without elements."""


async def first_value(flow: "Fluent[Any]", request: int = UNBOUNDED) -> Any:
    """Return the first element of *flow*, or `NOTHING`; raise the error of a flow that fails.

    It requests *request* elements, and cancels once it has one.
    """
    if flow.chain.is_pullable:
        return await _first_pulled(flow.chain)
    return await _FirstValueSubscriber(flow).get(request)


async def _first_pulled(chain: Chain) -> Any:
    time_slice = ConsumerSlice()
    elements = chain.run("fair_generator", time_slice, report)
    try:
        for element in elements:
            if element is not SLICE_OVER:
                return element
            await time_slice.yield_slice()
    except Exception as error:
        chain.annotate(error)
        raise
    finally:
        elements.close()
    return NOTHING


class _FirstValueSubscriber(BulkSubscriber):
    """A subscriber for one element."""

    __slots__ = ("_elements", "_error", "_flow", "_request", "_subscription", "_waiter", "append")

    def __init__(self, flow: "Fluent[Any]") -> None:
        self._flow = flow
        self._elements: list[Any] = []
        self.append = self._elements.append
        self._subscription: Subscription | None = None
        self._waiter: Future[None] = LoopHandle("a terminal operator").create_future()
        self._error: BaseException | None = None
        self._request = 0

    async def get(self, request: int) -> Any:
        self._request = request
        self._flow.subscribe(self)
        try:
            await self._waiter
        except CancelledError:
            self._cancel()
            raise
        subscription: Any = self._subscription
        if isinstance(subscription, FlowSubscription):
            await subscription.aclose()  # wait for the cleanup of the source
        error, self._error = self._error, None
        if error is not None:
            raise error
        return self._elements[0] if self._elements else NOTHING

    def _cancel(self) -> None:
        if self._subscription is not None:
            self._subscription.cancel()

    def _notify(self) -> None:
        if not self._waiter.done():
            self._waiter.set_result(None)

    # -- the subscriber ---------------------------------------------------------------------------
    def on_subscribe(self, subscription: "Subscription") -> None:
        self._subscription = subscription
        subscription.request(self._request)

    def on_next(self, element: Any) -> None:
        self._elements.append(element)
        self.flush()

    @property
    def container(self) -> list[Any]:
        return self._elements

    def flush(self) -> None:
        if self._elements and not self._waiter.done():
            self._notify()
            self._cancel()

    def on_error(self, error: BaseException) -> None:
        if not self._elements:
            self._error = error
        self._notify()

    def on_complete(self) -> None:
        self._notify()
