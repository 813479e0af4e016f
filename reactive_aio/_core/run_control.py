"""RunControl: completes the sources of one run, so that what its flow holds is delivered.

A run gives its control to its flow together with the function that receives discarded elements:
both travel upstream by reference, from a subscription to the next (docs/decisions/0041). Each
source that is opened for the run adds itself, and `stop` completes it as the end of its input
would: what was read before still passes through every stage, queue and worker, and the operators
complete one after another. A source that is opened later completes at once.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

OnDiscard = Callable[[object], object]
"""Receives one discarded element, and never raises."""
UpstreamKind = Literal["source", "work", "control"]
"""A source of the run, one that was made of an element, or one that only controls an operator."""


class Stoppable(Protocol):
    """A source of a run, or an operator that is going to open one."""

    def stop_source(self) -> object:
        """Read no more, and complete after the elements that were read."""
        ...


@dataclass(slots=True, eq=False)
class RunControl:
    """The sources of one run, and how many of its elements were lost when it was cancelled."""

    is_stopped: bool = False
    """No source reads any more."""
    interrupted: int = 0
    """Elements whose processing had begun when the run was cancelled."""
    discarded: int = 0
    """Elements that were held, unprocessed, when the run was cancelled."""
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

    def count_discarded(self, _: object) -> None:
        self.discarded += 1


@dataclass(slots=True, eq=False)
class RunDiscards:
    """The `OnDiscard` of a flow that runs under a control."""

    control: RunControl
    receivers: tuple[OnDiscard, ...]
    is_work: bool = False
    """What is upstream belongs to the work on one element, so that it ends by itself; only a source
    without an end of its own is stopped."""

    def __call__(self, element: object) -> None:
        for receive in self.receivers:
            receive(element)

    def interrupt(self, element: object) -> None:
        """Discard *element*, whose processing had begun."""
        self.control.interrupted += 1
        self.control.discarded -= 1  # it is counted by a receiver
        self(element)


def control_of(on_discard: OnDiscard | None) -> RunControl | None:
    """The control of the run whose sources are upstream; None outside a run, and for work."""
    if not isinstance(on_discard, RunDiscards) or on_discard.is_work:
        return None
    return on_discard.control


def with_receiver(on_discard: OnDiscard, receiver: OnDiscard) -> OnDiscard:
    """*receiver* in place of *on_discard*, and under its control."""
    if isinstance(on_discard, RunDiscards):
        return RunDiscards(on_discard.control, (receiver,), on_discard.is_work)
    return receiver


def without_receivers(on_discard: OnDiscard | None) -> OnDiscard | None:
    """For elements that are not for *on_discard*: its run, if there is one, counts them."""
    if not isinstance(on_discard, RunDiscards):
        return None
    control = on_discard.control
    return RunDiscards(control, (control.count_discarded,), on_discard.is_work)


def for_upstream(on_discard: OnDiscard | None, kind: UpstreamKind) -> OnDiscard | None:
    """*on_discard* for an upstream of that kind."""
    if kind == "source" or not isinstance(on_discard, RunDiscards):
        return on_discard
    if kind == "control":
        return on_discard.__call__  # which has no control
    return RunDiscards(on_discard.control, on_discard.receivers, is_work=True)


def discard_interrupted(on_discard: OnDiscard | None, element: object) -> None:
    """Give *element*, whose processing was interrupted, to *on_discard*, if there is one."""
    if isinstance(on_discard, RunDiscards):
        on_discard.interrupt(element)
    elif on_discard is not None:
        on_discard(element)
