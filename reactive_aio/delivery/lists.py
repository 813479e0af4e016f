"""Lists: the lists of a `DeliveryFlow`, which are also complete when nothing can follow."""

from dataclasses import dataclass, field
from math import isinf
from typing import TYPE_CHECKING, Any, cast

from .._core.queues.batch_timer import BatchTimer, TimerAction
from .._operators.time import BufferTimeout, Cutter
from ..stage import Downstream, InnerSubscriber, from_push
from .session import Session
from .ties import Tied, batched

if TYPE_CHECKING:
    from ..flow import Flow


def lists(
    source: "Flow[Tied[Any]]",
    session: Session,
    size: int,
    within: float,
    cutter: Cutter | None,
    *,
    name: str,
) -> "Flow[Tied[list[Any]]]":
    """Collect values into lists of *size*, or fewer after *within* seconds, which may be inf."""
    return from_push(
        lambda downstream: _Lists(
            cast("Downstream[Any]", downstream),
            source,
            BatchTimer(size),
            within,
            cutter,
            session=session,
        ),
        name=name,
        holds=2 * size,
        checked=True,
        upstreams=(source,),
        window=1,
        one_by_one=True,
        lossy=False,
        contents=size * source.chain.weight,
    )


@dataclass(eq=False, repr=False)
class _Lists(BufferTimeout):
    """Those of ``buffer_timeout``. The session completes a list that waits for nothing."""

    session: Session = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.session.add_list(self._flush)

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        # Not before they are here: that the last tie rests may complete the list.
        rested = self._state.held
        while rested < len(inner.elements):  # more of them may arrive meanwhile
            inner.elements[rested].tie.rest()
            rested += 1
        super().on_elements(inner)

    def emit(self, elements: list[list[Any]]) -> None:
        whole: list[Any] = [batched(each) for each in elements]
        super().emit(whole)

    def _flush(self) -> None:
        self.submit(self._complete_list)

    def _complete_list(self) -> None:
        if not self.is_closed:
            self._apply(self._state.cut())
            self._emit_lists()

    def _apply(self, action: TimerAction) -> None:
        if not isinf(self._limit):
            super()._apply(action)
