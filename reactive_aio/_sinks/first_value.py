"""The first value of a flow, which a terminal operator awaits."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from .._core.arguments import Absent
from .._core.cleanup import CleanupErrors
from .._core.compiler.chain import Chain
from .._core.compiler.discards import discard
from .._core.compiler.error_notes import note_result
from .._core.loop import Future
from .._core.subscription.bulk_subscriber import BulkSubscriber
from ..stage import UNBOUNDED, FlowSubscription, LoopHandle
from .async_iteration import generate

if TYPE_CHECKING:
    from ..spec import Subscription
    from ..stage import Fluent

__all__ = ("NOTHING", "first_value", "only_value")

NOTHING: Final[Any] = Absent("nothing")
"""The value of a flow without elements."""


async def first_value(flow: "Fluent[Any]", request: int = UNBOUNDED, *, leaves: bool = True) -> Any:
    """Return the first element of *flow*, or `NOTHING`; raise the error of a flow that fails.

    It requests *request* elements and, if it *leaves*, cancels once it has one. It waits for the
    cleanup of the flow, also when it fails or is cancelled itself.
    """
    if flow.chain.is_pullable:
        return await _first_pulled(flow.chain)
    arrival = LoopHandle("a terminal operator").create_future()
    subscriber = _FirstValueSubscriber(request, arrival, leaves)
    flow.subscribe(subscriber)
    try:
        await subscriber.arrival
        element = subscriber.value()
        await subscriber.aclose()
        if (error := subscriber.cleanup.take()) is not None:
            if element is not NOTHING:
                note_result(error, element)
            raise error
    except BaseException:
        await subscriber.aclose()
        subscriber.cleanup.report()
        subscriber.discard(flow.chain)
        raise
    return element


def only_value(flow: "Fluent[Any]", request: int = UNBOUNDED) -> Coroutine[Any, Any, Any]:
    """The same for a flow that completes by itself after one element, and so is not cancelled."""
    return first_value(flow, request, leaves=False)


async def _first_pulled(chain: Chain) -> Any:
    elements = generate(chain)
    element = await anext(elements, NOTHING)
    try:
        await elements.aclose()
    except BaseException as error:
        note_result(error, element)
        discard(chain.on_discard_at_end, chain.contents_of(element))
        raise
    return element


@dataclass(slots=True, eq=False, repr=False)
class _FirstValueSubscriber(BulkSubscriber):
    """Takes one element; if it *leaves*, it cancels then."""

    _demand: int
    arrival: Future[None]
    """Done when the result is known."""
    _leaves: bool
    _elements: list[Any] = field(default_factory=list[Any])
    append: Callable[[Any], None] = field(init=False)
    is_notified: bool = False
    cleanup: CleanupErrors = field(  # pyright: ignore[reportIncompatibleMethodOverride]
        default_factory=CleanupErrors
    )
    _error: BaseException | None = None
    _subscription: "Subscription | None" = None

    def __post_init__(self) -> None:
        self.append = self._elements.append

    def value(self) -> Any:
        if self._error is None or (self._leaves and self._elements):
            return self._elements[0] if self._elements else NOTHING
        if self._elements:
            note_result(self._error, self._elements[0])
        raise self._error

    def discard(self, chain: Chain) -> None:
        """The value will not be returned."""
        for element in self._elements:
            discard(chain.on_discard_at_end, chain.contents_of(element))

    async def aclose(self) -> None:
        subscription, self._subscription = self._subscription, None
        if isinstance(subscription, FlowSubscription):
            await self.cleanup.wait(subscription)
        elif subscription is not None:
            subscription.cancel()

    def on_subscribe(self, subscription: "Subscription") -> None:
        self._subscription = subscription
        subscription.request(self._demand)

    def on_next(self, element: Any) -> None:
        self._elements.append(element)
        self.flush()

    @property
    def container(self) -> list[Any]:
        return self._elements

    def flush(self) -> None:
        if self._elements and not self.is_notified:
            self.is_notified = True
            if self._leaves:
                self.on_complete()
                if isinstance(self._subscription, FlowSubscription):
                    self._subscription.leave()

    def on_error(self, error: BaseException) -> None:
        self._error = error
        self.on_complete()

    def on_complete(self) -> None:
        if not self.arrival.done():
            self.arrival.set_result(None)
