"""How deliveries are acknowledged to their source: one by one, or by positions of a log."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from .._core.arguments import require_hashable
from ..stage import Coordinator, Timer, describe
from .commit_tracker import CommitTracker
from .delivery import Delivery
from .nack_policy import Tries


@dataclass(slots=True, eq=False)
class Record:
    """A delivery that is not settled."""

    value: Any
    ack: Any = None
    """What acknowledges it, if each delivery has a function for that; or its entry in a log."""
    nack: Callable[..., object] | None = None
    """Gives it back to the source, if that takes elements back."""
    number: int = 0
    """How many were delivered before it."""
    tries: Tries | None = None
    error: Exception | None = None
    """Why it was nacked."""
    origin: object = None
    """The part of the source that it is from."""


class Keeper(Protocol):
    """What keeps the records, and calls functions of the source."""

    def received(self) -> None:
        """One more delivery was read, and is held."""
        ...

    def free(self, count: int, /) -> None:
        """*count* deliveries are held no longer."""
        ...

    def settled(self, count: int, /) -> None:
        """The source knows of *count* more deliveries whether they are done."""
        ...

    def call(
        self,
        function: Callable[..., object],
        arguments: tuple[Any, ...],
        then: Callable[[], object],
        /,
    ) -> None:
        """Call *function* of the source, await its result, and call *then*."""
        ...


class SourceSide(Protocol):
    """What acknowledges to the source."""

    def admit(self, element: Any, /) -> Record:
        """The source has delivered *element*."""
        ...

    def acked(self, record: Record, /) -> None:
        """The work on a delivery is done."""
        ...

    def give_back(self, record: Record, error: Exception, /) -> None:
        """The source takes a delivery back."""
        ...

    def discard(self, element: Any, error: Exception, /) -> None:
        """The source has delivered *element*, which was not admitted: it takes it back."""
        ...

    def advance(self) -> None:
        """Every settlement that came together with the last one is known."""
        ...

    def flush(self) -> None:
        """Acknowledge what was not acknowledged to the source yet."""
        ...


class EachDelivery:
    """Calls a function of the source for each delivery."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper

    def admit(self, element: Any) -> Record:
        given: object = element
        if not isinstance(given, Delivery):
            raise TypeError(
                f"deliveries: the source emitted {describe(element)} ({type(element).__name__}), "
                "which is not a Delivery; make one of it with map, or give ack=, the function that "
                "acknowledges an element"
            )
        delivery: Delivery[Any] = element
        ack, nack = delivery.take_over()
        return Record(delivery.value, ack, nack, origin=delivery.origin)

    def acked(self, record: Record) -> None:
        self._keeper.call(record.ack, (), self._free)

    def give_back(self, record: Record, error: Exception) -> None:
        if record.nack is not None:
            self._keeper.call(record.nack, (error,), self._free)

    def discard(self, element: Any, error: Exception) -> None:
        if isinstance(element, Delivery):
            self._keeper.received()
            self.give_back(self.admit(element), error)

    def advance(self) -> None:
        """Each delivery has its own call."""

    def flush(self) -> None:
        """Nothing waits."""

    def _free(self) -> None:
        self._keeper.free(1)
        self._keeper.settled(1)


class EachElement(EachDelivery):
    """Calls functions of the source with each element."""

    def __init__(
        self,
        keeper: Keeper,
        ack: Callable[[Any], object],
        nack: Callable[[Any, Exception], object] | None,
    ) -> None:
        super().__init__(keeper)
        self._ack = ack
        self._nack = nack

    def admit(self, element: Any) -> Record:
        return Record(element, nack=self._nack)

    def acked(self, record: Record) -> None:
        self._keeper.call(self._ack, (record.value,), self._free)

    def give_back(self, record: Record, error: Exception) -> None:
        if record.nack is not None:
            self._keeper.call(record.nack, (record.value, error), self._free)

    def discard(self, element: Any, error: Exception) -> None:
        self._keeper.received()
        self.give_back(self.admit(element), error)


class ManyElements(EachElement):
    """Acknowledges with one call all elements that were acknowledged since the call before."""

    def __init__(
        self,
        keeper: Keeper,
        ack_many: Callable[[list[Any]], object],
        nack: Callable[[Any, Exception], object] | None,
    ) -> None:
        super().__init__(keeper, ack_many, nack)
        self._acked: list[Any] = []
        self._is_acknowledging = False

    def acked(self, record: Record) -> None:
        self._acked.append(record.value)

    def advance(self) -> None:
        if self._acked and not self._is_acknowledging:
            self._is_acknowledging = True  # for good, if the call fails, as it is the last one
            acked, self._acked = self._acked, []
            free = partial(self._acknowledged, len(acked))
            self._keeper.call(self._ack, (acked,), free)

    def flush(self) -> None:
        self.advance()

    def _acknowledged(self, count: int) -> None:
        self._is_acknowledging = False
        self._keeper.free(count)
        self._keeper.settled(count)
        self.advance()


@dataclass(frozen=True, slots=True)
class LogOptions:
    """How the positions of a log are committed."""

    commit: Callable[[dict[Any, Any]], object]
    position: Callable[[Any], Any]
    partition: Callable[[Any], Hashable]
    generation: Callable[[Any], Hashable] | None
    every: int
    within: float


class LogCommits:
    """Commits positions of a log, one call after another."""

    def __init__(self, keeper: Keeper, owner: Coordinator[Any], options: LogOptions) -> None:
        self._keeper = keeper
        self._options = options
        self._tracker: CommitTracker[Any] = CommitTracker()
        self._timer = Timer(owner, self._commit)
        self._is_committing = False
        self._is_flushing = False

    def admit(self, element: Any) -> Record:
        options = self._options
        partition = options.partition(element)
        require_hashable("log_deliveries", options.partition, partition)
        generation = None if options.generation is None else options.generation(element)
        entry = self._tracker.add(partition, options.position(element), generation)
        return Record(element, entry)

    def acked(self, record: Record) -> None:
        self._keeper.free(self._tracker.done(record.ack))
        self._commit_if_due()

    def give_back(self, record: Record, error: Exception) -> None:
        """A log takes nothing back: it delivers again from the committed position."""

    def discard(self, element: Any, error: Exception) -> None:
        """The same."""

    def advance(self) -> None:
        """Commits have their own conditions."""

    def flush(self) -> None:
        self._is_flushing = True
        self._commit_if_due()

    def _commit_if_due(self) -> None:
        uncommitted = self._tracker.uncommitted
        if not uncommitted or self._is_committing:
            return
        if self._is_flushing or uncommitted >= self._options.every:
            self._commit()
        elif not self._timer.is_running:
            self._timer.start(self._options.within)

    def _commit(self) -> None:
        self._timer.stop()
        self._is_committing = True  # for good, if the call fails: a later one must not hide it
        count, positions = self._tracker.uncommitted, self._tracker.take()
        committed = partial(self._committed, count)
        if positions:
            self._keeper.call(self._options.commit, (positions,), committed)
        else:  # all of them were read before their partition was taken away
            committed()

    def _committed(self, count: int) -> None:
        self._is_committing = False
        self._keeper.settled(count)
        self._commit_if_due()
