"""The value of a terminal operator: the first element of a flow.

A terminal operator is an inline stage that emits its result after the last element. So it runs
inside the flow's own loop, and in the consumer's task where that loop is synchronous.
"""

from collections.abc import Callable
from textwrap import dedent
from typing import TYPE_CHECKING, Any, ClassVar, Final

from .._core.compiler.chain import Chain
from .._core.compiler.loop_compiler import SLICE_OVER
from .._core.loop import CancelledError, report
from ..stage import UNBOUNDED, InlineStage
from .async_iteration import NOTHING, ConsumerSlice, StreamSubscriber

if TYPE_CHECKING:
    from ..spec import Subscription
    from ..stage import Fluent

__all__ = ("IF_FOUND", "first_value", "fold")

IF_FOUND: Final = """
if $value is not None:
    emit $value
"""


def fold(
    name: str,
    setup: str,
    each: str,
    *,
    params: tuple[str, ...] = (),
    uses: tuple[Callable[..., Any], ...] = (),
    result: str = "emit $value",
) -> InlineStage:
    """A stage that takes every element into ``$value``, and emits that after the last one."""
    lines = dedent(each).strip("\n") + "\ndrop"
    return InlineStage(name, params=params, uses=uses, setup=setup, each=lines, after=result)


async def first_value(flow: "Fluent[Any]", request: int = UNBOUNDED) -> Any:
    """Return the first element of *flow*, or `NOTHING`; raise the error of a flow that fails.

    It requests *request* elements, and cancels once it has one.
    """
    if flow.chain.is_pullable:
        return await _first_pulled(flow.chain)
    subscriber = _FirstValueSubscriber(flow, request)
    try:
        element = await subscriber.next()
    except CancelledError:
        subscriber.cancel()
        raise
    await subscriber.aclose()  # wait for the cleanup of the source
    return element


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


class _FirstValueSubscriber(StreamSubscriber[Any]):
    """Cancels as soon as it has one element."""

    __slots__ = ()
    caller: ClassVar[str] = "a terminal operator"

    def on_subscribe(self, subscription: "Subscription") -> None:
        super().on_subscribe(subscription)
        self._ahead = self._prefetch
        subscription.request(self._prefetch)

    def flush(self) -> None:
        super().flush()
        if self._elements and not self._is_done and self._subscription is not None:
            self._is_done = True
            self._subscription.cancel()
