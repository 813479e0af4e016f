"""What follows when a flow has done its work."""

from typing import TYPE_CHECKING, Any, TypeVar

from .._core.inline import Inline, describe
from .._core.relay import Relay
from ..coerce import WINDOW, Source, to_flow
from ..stage import Inlet, from_push

if TYPE_CHECKING:
    from .._core.arm import Arm
    from ..flow import Flow
    from ..spec import Subscription

__all__ = ("then",)

R = TypeVar("R")

_IGNORE = Inline("ignore", each="drop")


def then(source: "Flow[object]", successor: Source[R]) -> "Flow[R]":
    """Ignore the elements; when the flow has completed, go on with *successor*.

    ::

        a--b--c--|
        .then(just("z"))
        ---------(z|)

    *successor* is whatever can be read as a flow, and is subscribed to only then. To wait for the
    end without one, use ``await flow.run()``.

    Demand: unbounded upstream, from the first request on; then passed through to *successor*, at
        most 256 at a time.
    Completes: when *successor* completes.
    Fails: when the source fails (then *successor* is not subscribed to), or *successor* does.
    Cancels: whichever of the two is under way.
    Holds: 256 elements, which were requested and wait for a slow subscriber.
    Rules: 1.1, 1.4
    """
    following = to_flow(successor, name="then")

    def open(inlet: Inlet[R]) -> "Subscription":
        return _Then(inlet, source, following)

    return from_push(
        open,
        name=f"then({describe(successor)})",
        holds=WINDOW,
        checked=True,
        upstreams=(source, following),
        window=WINDOW,
    )


class _Then(Relay[R]):
    """Runs the source to its end, and relays the successor."""

    def __init__(self, inlet: Inlet[R], source: "Flow[object]", following: "Flow[R]") -> None:
        super().__init__(inlet)
        self._source = source
        self._following = following

    def started(self) -> None:
        self.arm(self._source.via(_IGNORE), request=1)

    def completed(self, arm: "Arm[Any]") -> None:
        if arm is self.upstream:
            super().completed(arm)
        else:
            self.drop(arm)
            self.attach(self._following)

    def failed(self, arm: "Arm[Any]", error: BaseException) -> None:
        if arm is self.upstream:
            super().failed(arm, error)
        else:
            self.fail(error)
