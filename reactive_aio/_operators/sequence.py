"""Operators that run one flow after another for its side effects."""

from typing import TYPE_CHECKING, Any, TypeVar

from ..coerce import WINDOW, Source, to_flow
from ..stage import (
    Downstream,
    FlowSubscription,
    ForwardingCoordinator,
    InlineStage,
    describe,
    from_push,
)

if TYPE_CHECKING:
    from ..flow import Flow
    from ..stage import InnerSubscriber

__all__ = ("then",)

R = TypeVar("R")

_IGNORE = InlineStage("ignore", each="drop")


def then(source: "Flow[object]", successor: Source[R]) -> "Flow[R]":
    """Discard the elements; when the flow has completed, continue with *successor*.

    ::

        a--b--c--|
        .then(just("z"))
        ---------(z|)

    *successor* is a flow, a publisher, an iterable or an asynchronous iterable, which is subscribed
    to only then. To wait for the end without a successor, use ``await flow.run()``.

    Demand: unbounded upstream, from the first request on; then passed through to *successor*, at
        most 256 at a time.
    Completes: when *successor* completes.
    Fails: when the source fails (then *successor* is not subscribed to), or *successor* does.
    Cancels: the active one of the two.
    Holds: 256 elements, which were requested and wait for a slow subscriber.
    Rules: 1.1, 1.4
    """
    following = to_flow(successor, name="then")

    def open(downstream: Downstream[R]) -> FlowSubscription:
        return _Then(downstream, source, following)

    return from_push(
        open,
        name=f"then({describe(successor)})",
        holds=WINDOW,
        checked=True,
        upstreams=(source, following),
        window=WINDOW,
    )


class _Then(ForwardingCoordinator[R]):
    """Runs the source to its end, and forwards the successor."""

    def __init__(
        self, downstream: Downstream[R], source: "Flow[object]", following: "Flow[R]"
    ) -> None:
        super().__init__(downstream)
        self._source = source
        self._following = following

    def on_start(self) -> None:
        self.subscribe_to(self._source.via(_IGNORE), request=1)

    def on_inner_complete(self, inner: "InnerSubscriber[Any]") -> None:
        if inner is self.upstream:
            super().on_inner_complete(inner)
        else:
            self.release(inner)
            self.attach(self._following)

    def on_inner_error(self, inner: "InnerSubscriber[Any]", error: BaseException) -> None:
        if inner is self.upstream:
            super().on_inner_error(inner, error)
        else:
            self.fail(error)
