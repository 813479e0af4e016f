"""flat_map: each element becomes a source of elements, several of them at work at once."""

from collections.abc import Callable, Iterator
from itertools import chain, islice
from types import GeneratorType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .._core.compiler.chain_sources import Downstream, is_spent
from .._core.compiler.inline import describe
from .._core.demand import require_demand
from .._core.time_slice import TimeSlice
from .._core.upstreams.inner_subscriber import InnerSubscriber
from .._core.upstreams.merging import MergingCoordinator
from ..coerce import Source, to_flow
from ..stage import from_push, pull

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("flat_map",)

T = TypeVar("T")
R = TypeVar("R")

_PLAIN: frozenset[type[Any]] = frozenset((list, tuple, range, set, frozenset, dict, GeneratorType))


def flat_map(
    source: "Flow[T]",
    mapper: Callable[[T], Source[R]],
    *,
    concurrency: int = 16,
    prefetch: int = 32,
) -> "Flow[R]":
    """Make a source of each element, and emit the elements of all of them as they arrive.

    *mapper* returns a flow, a publisher, an iterable or an asynchronous iterable. At most
    *concurrency* of them are at work at the same time, and each may be *prefetch* elements ahead of
    the subscriber. One that is synchronous is read only as it is asked for, to its end, before the
    next is made; ``concurrency=1`` keeps the order of the elements in every case.

    ::

        a--b--c--|
        .flat_map(lambda x: [x, x.upper()])
        (aA)--(bB)--(cC)--|

    Demand: batched (*concurrency* upstream; *prefetch*, refill at 75 % of it, for each inner one).
    Completes: when the source and all inner ones have completed.
    Fails: when the source, *mapper* or an inner one fails, behind the elements that have arrived;
        the others are cancelled. Several that fail in the same moment: with an ExceptionGroup.
    Cancels: the source and all inner ones, when the subscriber cancels.
    Holds: *concurrency* × *prefetch* elements, and *concurrency* of the source.
    Rules: 1.1, 1.3, 1.7
    """
    concurrency, prefetch = require_demand(concurrency), require_demand(prefetch)
    return from_push(
        lambda downstream: _FlatMap(downstream, source, mapper, concurrency, prefetch),
        name=f"flat_map({describe(mapper)}, concurrency={concurrency})",
        holds=concurrency * (prefetch + 1),
        upstreams=(source,),
    )


class _FlatMap(MergingCoordinator[Any]):
    """Arms for the inner sources that must be waited for; the others are pulled, one at a time."""

    def __init__(
        self,
        downstream: Downstream[Any],
        source: "Flow[Any]",
        mapper: Callable[[Any], Source[Any]],
        concurrency: int,
        prefetch: int,
    ) -> None:
        super().__init__(downstream, prefetch)
        self._source = source
        self._mapper = mapper
        self._concurrency = concurrency
        self._inner: Iterator[Any] | None = None
        """The last of the sources that are pulled."""
        self._pulled: Iterator[Any] | None = None
        """It, and those that follow as long as there are any."""
        self._account: InnerSubscriber[Any] = InnerSubscriber(
            self
        )  # under which the ledger knows what was pulled
        self._account.is_done = True  # nobody is to be asked for more
        self._pending: Flow[Any] | None = None
        """One that must be waited for, and has not been put to work yet."""
        self._reserved = 0  # elements that are being pulled
        self._pull_first = self._sending = False
        self._opened = 0
        self._batch = 8
        self._time_slice = TimeSlice()

    # -- decisions --------------------------------------------------------------------------------
    def on_start(self) -> None:
        self._outer: InnerSubscriber[Any] = self.subscribe_to(self._source)

    def on_arrival(self, inner: InnerSubscriber[Any]) -> None:
        if inner is self._outer:
            self._again()
        else:
            super().on_arrival(inner)

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        if inner is self._outer:
            self.send()
        else:
            super().on_inner_complete(inner)

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        if inner is self._outer:
            self.send()  # it has failed when what it sent before has had its turn
        else:
            super().on_inner_error(inner, error)

    def on_stop(self) -> None:
        self._let_go()

    # -- acts -------------------------------------------------------------------------------------
    def _again(self) -> None:
        """Send once more, when what is under way is done."""
        if not self._sending:
            self._sending = True
            self.submit(self.send)

    def send(self) -> None:
        self._sending = False
        self._time_slice.start_slice()
        self._ready()
        room = self.demand.outstanding
        # Who comes first alternates, so that neither can keep the other waiting for ever.
        self._pull_first = not self._pull_first
        chunk = self._pull(room) if self._pull_first else self.waiting(room)
        room -= len(chunk)
        chunk += self.waiting(room) if self._pull_first else self._pull(room)
        self.emit(chunk)
        self.finish()

    def halt(self, error: BaseException) -> None:
        self._outer.elements.clear()
        super().halt(error)
        self._let_go()

    def account(self, inner: InnerSubscriber[Any]) -> None:
        if inner is not self._outer:
            super().account(inner)

    def finish(self) -> None:
        outer = self._outer
        if is_spent(self._inner):
            self._pulled = None  # what follows is begun anew; if nothing does, it is over
        if self._pulled is not None or self._pending is not None:
            return
        if outer.elements or not outer.is_done:
            return
        if outer.error is not None and not self.errors:
            self.halt(outer.error)
        super().finish()

    def _open(self) -> Iterator[Any] | None:
        """Make sources of the elements at hand; return the first that is to be pulled."""
        outer = self._outer
        while not self.errors and not self.is_closed:
            if self._pending is not None and not self._admit(self._pending):
                break
            free = self._concurrency - self._busy()
            if not outer.elements and (missing := free - outer.outstanding) > 0:
                outer.request(missing)
            if free <= 0 or not outer.elements or self._must_rest():
                break
            try:
                inner: Any = self._mapper(outer.take(1)[0])
                if inner.__class__ in _PLAIN:
                    self._inner = cast("Iterator[Any]", iter(inner))
                    return self._inner
                flow: Flow[Any] = to_flow(inner, name="flat_map")
                if flow.chain.is_pullable:
                    self._inner = pull(flow)
                    return self._inner
                self._pending = flow
            except Exception as error:
                self.halt(error)
        return None

    def _pull(self, at_most: int) -> list[Any]:
        """Take up to *at_most* elements of synchronous sources, within the bound."""
        chunk: list[Any] = []
        at_most = self._reserved = min(at_most, self._spare())
        while (
            self._ready()
            and at_most > (before := len(chunk))
            and not self._time_slice.is_slice_over
        ):
            piece = min(at_most - before, self._batch)
            try:
                chunk.extend(islice(self._pulled or (), piece))  # keeps what came before an error
            except Exception as error:
                self.halt(error)
            if len(chunk) - before < piece:
                self._pulled = None
            self._batch = self._time_slice.next_batch_size(self._batch)
        self._reserved = 0
        if chunk:
            self.ledger.passed(self._account, len(chunk))
        if self._time_slice.is_slice_over or (
            self._pending is not None and self._spare() >= self.prefetch
        ):
            self._again()  # the executor gives everybody else a turn in between
        return chunk

    def _busy(self) -> int:
        """How many of the sources that must be waited for are at work."""
        return len(self.inners) - (self._outer in self.inners)

    def _spare(self) -> int:
        """How many elements the bound allows besides those that these may send."""
        allowed = (self._concurrency - self._busy()) * self.prefetch
        return allowed - self.ledger.holds(self._account) - self._reserved

    def _admit(self, flow: "Flow[Any]") -> bool:
        """Put a source that must be waited for to work, unless what was pulled is in its place."""
        if self._spare() < self.prefetch:
            return False
        self._pending = None
        self.join(flow)
        return True

    def _ready(self) -> bool:
        """Whether there is a source to pull from; opens what can be opened."""
        if self._pulled is None and (first := self._open()) is not None:
            self._pulled = chain(first, chain.from_iterable(iter(self._open, None)))
        return self._pulled is not None

    def _must_rest(self) -> bool:
        """Whether time is over; sources without elements never come back to `_pull`."""
        self._opened += 1
        if not self._opened & 63:
            self._time_slice.check_slice()
        return self._time_slice.is_slice_over

    def _let_go(self) -> None:
        inner: Any = self._inner
        self._pulled = self._inner = self._pending = None
        if hasattr(inner, "close"):
            inner.close()
