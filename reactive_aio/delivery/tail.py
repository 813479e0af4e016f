"""Tail: the end of a `DeliveryFlow`, after which the elements have no ties."""

from typing import TYPE_CHECKING, Any, Final

from .._core.compiler.chain import Chain, PushSource
from .._core.run_control import without_hooks
from ..stage import Downstream, ForwardingCoordinator, OnDiscard, from_push
from .head import Head, HeadOptions
from .operators import Step
from .session import Session

if TYPE_CHECKING:
    from ..flow import Flow

WINDOW: Final = 64
"""The most elements requested at a time: each of them may wait for a slow consumer."""
WINDOW_OF_LISTS: Final = 16


def assembled(
    source: "Flow[Any]", options: HeadOptions, steps: tuple[Step, ...], name: str
) -> "Flow[Any]":
    """A flow that has a session for each subscription."""
    shown = without_end(source, options, steps)
    window = WINDOW if shown.chain.weight == 1 else WINDOW_OF_LISTS

    def open(downstream: Downstream[Any]) -> _Tail:
        session = _session(options)
        tail = _Tail(downstream, session)
        flow = _connected(source, options, steps, session)
        _show_as(flow.chain, shown.chain)
        tail.attach(flow)
        return tail

    return from_push(
        open,
        name=name,
        holds=window,
        checked=True,
        upstreams=(shown,),
        window=window,
        one_by_one=True,
        lossy=False,
    )


def _session(options: HeadOptions) -> Session:
    return Session(is_lenient=options.policy is not None)


def without_end(source: "Flow[Any]", options: HeadOptions, steps: tuple[Step, ...]) -> "Flow[Any]":
    """The flow of all operators, for reports."""
    return _connected(source, options, steps, _session(options))


def _connected(
    source: "Flow[Any]", options: HeadOptions, steps: tuple[Step, ...], session: Session
) -> "Flow[Any]":
    flow: Flow[Any] = from_push(
        lambda downstream: Head(downstream, source, session, options),
        name=options.name,
        holds=options.limit,
        checked=True,
        upstreams=(source,),
        one_by_one=True,
        lossy=False,
    )
    for step in steps:
        flow = step(session, flow)
    return flow


def _show_as(chain: Chain, shown: Chain) -> None:
    """Reports on *chain*, which is made for one subscription, are on the operators of *shown*."""
    while chain.source is not shown.source:
        source, model = chain.source, shown.source
        if isinstance(source, PushSource) and isinstance(model, PushSource):
            source.shown_as = model
        chain, shown = source.upstreams[0].chain, model.upstreams[0].chain


class _Tail(ForwardingCoordinator[Any]):
    def __init__(self, downstream: Downstream[Any], session: Session) -> None:
        super().__init__(downstream)
        self._session = session

    @property
    def on_discard(self) -> OnDiscard | None:
        """What is upstream is given back, and no function below receives it; a drain counts it."""
        return without_hooks(self.downstream.on_discard)

    def on_stop(self) -> None:
        self._session.end_tail()

    def fail(self, error: BaseException) -> None:
        self._session.fail_tail()
        super().fail(error)
