"""RunControl: completes the sources of one run, so that what its flow holds is delivered.

A run gives its control to its flow together with the function that receives discarded elements:
both travel upstream by reference, from a subscription to the next (docs/decisions/0010). Each
source that is opened for the run adds itself, and `stop` completes it as the end of its input
would: what was read before still passes through every stage, queue and worker, and the operators
complete one after another. A source that is opened later completes at once.
"""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol, cast

OnDiscard = Callable[[object], object]
"""Receives one discarded element, and never raises."""
UpstreamKind = Literal["source", "work", "control"]
"""A source of the run, one that was made of an element, or one that only controls an operator."""


_CLEANUP: Final = 0.1
_LEAST_CLEANUP: Final = 0.5
"""The part of the time of a drain that is for cleanups, and the seconds that they have at least."""


class DrainTimes(NamedTuple):
    """How long a drain may take: both come from one time that is given, and fit into it."""

    work: float | None
    """The seconds after which what is not delivered is cancelled; None if there is no limit."""
    cleanup: float | None
    """The seconds for which cleanups and acknowledgements are awaited after that."""

    @classmethod
    def within(cls, seconds: float | None, *, ends_at: float = 1.0) -> "DrainTimes":
        """The times of a drain that has *seconds*, and ends when *ends_at* of them have passed."""
        if seconds is None:
            return cls(None, None)
        return cls((ends_at - _CLEANUP) * seconds, max(_CLEANUP * seconds, _LEAST_CLEANUP))

    def left_after(self, passed: float) -> float | None:
        """The seconds that are left for cleanups: what the work has not used is for them too."""
        if self.work is None or self.cleanup is None:
            return None
        return max(0.0, self.work + self.cleanup - passed)


class Stoppable(Protocol):
    """A source of a run, or an operator that is going to open one."""

    def stop_source(self) -> object:
        """Read no more, and complete after the elements that were read."""
        ...


class Figures(Protocol):
    """Where elements are counted that a flow does not deliver."""

    def discard(self, element: object, /) -> None:
        """*element* was held, unprocessed."""
        ...

    def interrupt(self, element: object, /) -> None:
        """The processing of *element* had begun, and has failed or was cancelled."""
        ...

    def interrupt_call(self) -> "OnDiscard":
        """A call with an element cannot be interrupted, and nothing waits for its result.

        It counts as `interrupt` does, now: a report need not wait for the call. The result receives
        the element, or what the call has made of it, when the call has returned.
        """
        ...


class NestedFlow:
    """A flow that is an element, such as a window: its elements count, and it does not."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class RunControl:
    """The sources of one run, and how many of its elements were lost when it was cancelled."""

    is_stopped: bool = False
    """No source reads any more."""
    interrupted: int = 0
    """Elements whose processing had begun when the run was cancelled."""
    discarded: int = 0
    """Elements that were held, unprocessed, when the run was cancelled."""
    finished: int = 0
    """Elements whose call had returned when the run was cancelled, before their turn had come."""
    unacknowledged: int = 0
    """Deliveries that were read, and that their source does not know to be done or given back."""
    _sources: dict[Stoppable, None] = field(default_factory=dict["Stoppable", None])

    def add(self, source: Stoppable) -> None:
        """*source* reads for the run until it is removed."""
        self._sources[source] = None

    def remove(self, source: Stoppable) -> None:
        self._sources.pop(source, None)

    def stop(self) -> None:
        """Complete every source."""
        self.is_stopped = True
        for source in list(self._sources):
            if source in self._sources:  # the end of another one may have released it
                source.stop_source()

    def discard(self, element: object, /) -> None:
        if not isinstance(element, NestedFlow):
            self.discarded += 1

    def interrupt(self, element: object, /) -> None:
        if not isinstance(element, NestedFlow):
            self.interrupted += 1

    def interrupt_call(self) -> OnDiscard:
        self.interrupted += 1
        return _ignore


def _ignore(_: object) -> None:
    """It is counted already, and nobody else receives it."""


current_run: "ContextVar[RunControl | None]" = ContextVar("reactive_aio run", default=None)
"""The run that a task of a flow belongs to, for reports."""


@dataclass(slots=True, eq=False)
class RunDiscards:
    """The `OnDiscard` of a flow that runs under a control."""

    control: RunControl
    figures: Figures
    hooks: tuple[OnDiscard, ...] = ()
    is_work: bool = False
    """What is upstream belongs to the work on one element, so that it ends by itself; only a source
    without an end of its own is stopped."""

    def __call__(self, element: object) -> None:
        self.call_hooks(element)
        self.figures.discard(element)

    def interrupt(self, element: object) -> None:
        """Discard *element*, whose processing had begun."""
        self.call_hooks(element)
        self.figures.interrupt(element)

    def interrupt_call(self) -> OnDiscard:
        """Count an element of which a call goes on; the result receives what the call leaves."""
        counted = self.figures.interrupt_call()

        def receive(element: object) -> None:
            self.call_hooks(element)
            counted(element)

        return receive

    def call_hooks(self, element: object) -> None:
        """Hand over *element*, which is counted elsewhere."""
        for hook in self.hooks:
            hook(element)

    def with_hooks(self, hooks: tuple[OnDiscard, ...]) -> "RunDiscards":
        """The same for what is further upstream, where there are more hooks."""
        return RunDiscards(self.control, self.figures, (*hooks, *self.hooks), self.is_work)


def control_of(on_discard: OnDiscard | None) -> RunControl | None:
    """The control of the run whose sources are upstream; None outside a run, and for work."""
    if not isinstance(on_discard, RunDiscards) or on_discard.is_work:
        return None
    return on_discard.control


def is_drained(on_discard: OnDiscard | None) -> bool:
    """Whether what is upstream belongs to a run whose input was ended.

    A failure that waits behind elements is discarded with them where the consumer leaves. A drain
    does not leave: it has asked for everything, and may be the reason of the failure. So where its
    time ends before such a failure is reached, that is told like an error of the cleanup.
    """
    return isinstance(on_discard, RunDiscards) and on_discard.control.is_stopped


def with_figures(on_discard: OnDiscard, figures: Figures) -> OnDiscard:
    """*figures* in place of *on_discard*, and under its control."""
    if isinstance(on_discard, RunDiscards):
        return RunDiscards(on_discard.control, figures, (), on_discard.is_work)
    return figures.discard


def without_hooks(on_discard: OnDiscard | None) -> OnDiscard | None:
    """For elements that are not for the hooks of *on_discard*: its run, if any, counts them."""
    if not isinstance(on_discard, RunDiscards):
        return None
    return RunDiscards(on_discard.control, on_discard.figures, (), on_discard.is_work)


@dataclass(slots=True, eq=False)
class SharedElements:
    """Counts the elements of a shared source that a subscriber discards.

    They are handed over only while no other subscriber may receive them.
    """

    _below: OnDiscard
    _may_hand_over: Callable[[], bool]

    def discard(self, element: object, /) -> None:
        if self._may_hand_over():
            self._below(element)
        elif isinstance(self._below, RunDiscards):
            self._below.figures.discard(element)

    def interrupt(self, element: object, /) -> None:
        if self._may_hand_over():
            discard_interrupted(self._below, element)
        elif isinstance(self._below, RunDiscards):
            self._below.figures.interrupt(element)

    def interrupt_call(self) -> OnDiscard:
        if self._may_hand_over():
            return interrupt_call(self._below)
        return interrupt_call(without_hooks(self._below))


def for_upstream(on_discard: OnDiscard | None, kind: UpstreamKind) -> OnDiscard | None:
    """*on_discard* for an upstream of that kind."""
    if kind == "source" or not isinstance(on_discard, RunDiscards):
        return on_discard
    if kind == "control":
        return on_discard.__call__  # which has no control
    return RunDiscards(on_discard.control, on_discard.figures, on_discard.hooks, is_work=True)


def discard_interrupted(on_discard: OnDiscard | None, element: object) -> None:
    """Give *element*, whose processing was interrupted, to *on_discard*, if there is one."""
    if isinstance(on_discard, RunDiscards):
        on_discard.interrupt(element)
    elif on_discard is not None:
        on_discard(element)


def interrupt_call(on_discard: OnDiscard | None) -> OnDiscard:
    """Count an element of which a call goes on; the result receives what the call leaves."""
    if isinstance(on_discard, RunDiscards):
        return on_discard.interrupt_call()
    return _ignore if on_discard is None else on_discard


@dataclass(slots=True, eq=False)
class Work:
    """The work on one element, which a source does that was made of it.

    While the source has sent nothing, the element is in flight. What the source sends, or held when
    it was cut, stands for the element in the figures from then on: so each element counts once.
    """

    element: object
    below: OnDiscard
    """What receives the elements that the operator discards."""
    is_replaced: bool = False
    """Something that the source has sent or held stands for the element."""
    _is_cut: bool = False

    @property
    def on_discard(self) -> OnDiscard:
        """What receives the elements that the source discards."""
        return with_figures(cast("OnDiscard", for_upstream(self.below, "work")), self)

    def cut(self, *, interrupted: bool = True) -> None:
        """The source does not complete: the element is *interrupted*, or else discarded."""
        if self._is_cut or self.is_replaced:
            return
        self._is_cut = True
        if interrupted:
            discard_interrupted(self.below, self.element)
        else:
            self.below(self.element)

    def discard(self, element: object, /) -> None:
        if self._begins_with(element):
            self.below(element)

    def interrupt(self, element: object, /) -> None:
        if self._begins_with(element):
            discard_interrupted(self.below, element)

    def interrupt_call(self) -> OnDiscard:
        if self._is_cut:
            return self.interrupt  # the element counts, and stands for this one as well
        self.is_replaced = True
        return interrupt_call(self.below)

    def _begins_with(self, element: object) -> bool:
        """Whether *element* counts; one that comes after the cut is counted already."""
        if not self._is_cut:
            self.is_replaced = True
        elif element is not self.element:
            if not isinstance(self.below, RunDiscards):
                return True
            self.below.call_hooks(element)
        return not self._is_cut


def work_on(element: object, on_discard: OnDiscard | None) -> Work | None:
    """The work on *element*; None if nothing receives what is discarded, or it is a flow itself."""
    if on_discard is None or isinstance(element, NestedFlow):
        return None
    return Work(element, on_discard)
