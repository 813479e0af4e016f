"""Causes: why a subscription delivers nothing.

What a subscription waits for is often not to blame: it waits for an operator, which waits for
another one, up to a call that hangs, or down to a subscriber that is slow. `cause_of` goes there.
"""

from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from ..compiler.chain import AsyncSource, Chain
from ..compiler.loop_runtime import NO_ELEMENTS
from ..flow_subscription import FlowSubscription
from ..subscription.bulk_subscriber import BulkSubscriber
from ..subscription.input_queue import InputQueue
from ..subscription.island import Island
from ..subscription.lifecycle import Phase
from ..subscription.list_delivery import ListDelivery
from ..subscription.task_island import TaskIsland
from ..upstreams.coordinator import Coordinator
from ..upstreams.inner_subscriber import InnerSubscriber
from .awaited import Wait, wait_of

if TYPE_CHECKING:
    from types import FrameType

    from ..compiler.chain import Downstream

_MOST_SEARCHED: Final = 256
_MOST_CALLS: Final = 64
_CALL: Final = "the call for an element"

WaitsOn = Literal["demand", "elements", "function", "limit", "time", "nothing"]
"""What a subscription waits on: its subscriber, its source, a function of the user, what keeps work
from beginning (a limiter, the delay before another attempt, a cleanup), the time for which an
operator is to hold elements, or nothing."""


@dataclass(frozen=True, slots=True)
class Cause:
    """What a subscription waits for in the end."""

    kind: WaitsOn
    text: str
    path: tuple[FlowSubscription, ...] = ()
    """The operators upstream that lead to it, the one to blame last; empty if that is its own
    function, or what follows it."""
    is_source: bool = False
    """Whether it is a source that waits for its next element, in a function of the user."""


# -- what a loop waits for -------------------------------------------------------------------------
def waits_on_what(island: Island) -> tuple[WaitsOn, str]:
    """What *island* waits for itself: its kind, and a text."""
    if island.phase is Phase.IDLE or island.is_waiting:
        # It asks for elements before it looks whether there is demand for them.
        has_demand = island.limit > island.emitted or island.is_stopped
        if island.pause is not NO_ELEMENTS or not has_demand:
            return "demand", "demand of its subscriber"
        return "elements", f"elements of {island.chain.name}"
    if (wait := _awaited_by(island)) is not None:
        return wait.kind, wait.text
    if isinstance(island.chain.source, AsyncSource) and island.phase is Phase.DRAINING:
        return "elements", f"elements of {island.chain.name}"
    is_running = island.phase is Phase.DRAINING
    return "nothing", "nothing: it runs" if is_running else "its cleanup, after its end"


def _awaited_by(island: Island) -> Wait | None:
    """What its loop awaits, or its subscriber in a signal."""
    awaited = island.awaited if island.awaited_signal is None else island.awaited_signal
    if awaited is not None and (wait := wait_of(awaited)) is not None:
        return wait
    if _is_signalling(island):
        return Wait("function", _signal_of(island))
    frame: FrameType | None = getattr(awaited, "cr_frame", None)
    is_in_stage = frame is not None and operator_at(frame, island.chain) != island.chain.name
    return Wait("function", _CALL) if is_in_stage else None


def _is_signalling(island: Island) -> bool:
    """Whether it waits until its subscriber has processed an element."""
    is_awaited = isinstance(island, TaskIsland) and island.is_signalling
    return is_awaited or island.awaited_signal is not None


def _signal_of(island: Island) -> str:
    kind = type(island.subscriber)
    is_ours = kind.__module__.partition(".")[0] == __name__.partition(".")[0]
    return _CALL if is_ours else f"on_next of {kind.__qualname__}"


def operator_at(frame: "FrameType", chain: Chain) -> str:
    """The operator of *chain* that its generated loop executes in *frame*; "" for the delivery."""
    position: int = frame.f_globals["STAGE_OF_LINE"][frame.f_lineno]
    if position > len(chain.stages):
        return ""
    return str(chain.stages[position - 1]) if position else chain.name


# -- who is to blame -------------------------------------------------------------------------------
def cause_of(island: Island) -> Cause:
    """Why *island* delivers nothing."""
    kind, text = waits_on_what(island)
    if kind == "demand":
        return _below(island.subscriber)
    if kind == "elements":
        return _above(island) or Cause("elements", f"{island.chain.name}, which sends nothing")
    return Cause(kind, _with_operator(island, kind, text))


def _with_operator(island: Island, kind: WaitsOn, text: str) -> str:
    frame: FrameType | None = getattr(island.awaited, "cr_frame", None)
    if _is_signalling(island):
        operator = "its subscriber"
    else:
        operator = "" if frame is None else operator_at(frame, island.chain)
    if kind == "nothing" or not operator:
        return text
    return f"{operator}, {_how(kind, text)}"


def _how(kind: str, text: str) -> str:
    return f"in {text}" if kind == "function" else f"which waits for {text}"


def _above(island: Island) -> Cause | None:
    """Look for the cause in the operators above *island*; None if there are none."""
    waiting: deque[_Place] = deque([_Place(island, (), is_first=True)])
    vague: dict[str, Cause] = {}
    for _ in range(_MOST_SEARCHED):  # no recursion, for flows of any depth
        if not waiting:
            break
        found = _step(waiting.popleft(), waiting)
        if found is None:
            continue
        if found.kind not in ("demand", "elements") and not found.is_source:
            return found
        vague.setdefault("source" if found.is_source else found.kind, found)
    # A source may be quiet. What has elements, and does not pass them on, is to blame before it.
    return next((vague[each] for each in ("source", "demand", "elements") if each in vague), None)


@dataclass(frozen=True, slots=True)
class _Place:
    """A loop or an operator to look at, and the operators that lead to it."""

    at: FlowSubscription
    path: tuple[FlowSubscription, ...]
    is_first: bool = False


def _step(place: _Place, waiting: "deque[_Place]") -> Cause | None:
    """The cause, if it is at *place*; else what is above follows in *waiting*."""
    at, path = place.at, place.path
    if not isinstance(at, (Island, ListDelivery)):
        return _of_operator(_name_of(at), at, path, waiting)
    if not place.is_first and isinstance(at, Island):
        kind, text = waits_on_what(at)
        if kind != "elements":
            return Cause(kind, _with_operator(at, kind, text), path, _is_in_source(at))
    upstream = _upstream_of(cast("Any", at))
    if upstream is None:
        return Cause("elements", f"{at.chain.name}, which sends nothing", path)
    return _of_operator(at.chain.name, upstream, (*path, upstream), waiting)


def _is_in_source(island: Island) -> bool:
    frame: FrameType | None = getattr(island.awaited, "cr_frame", None)
    if frame is None or _is_signalling(island):
        return False
    return operator_at(frame, island.chain) == island.chain.name


def _of_operator(
    name: str, at: FlowSubscription, path: tuple[FlowSubscription, ...], waiting: "deque[_Place]"
) -> Cause | None:
    if (found := _own_cause(name, at, path)) is not None:
        return found
    above = [*at.upstreams, *([] if at.shared_source is None else [at.shared_source])]
    hungry = [each for each in above if not _lacks_demand(each)]
    if hungry:
        waiting += [_Place(each, path) for each in hungry]
        return None
    slow = at.held_back_by
    if slow is not None and _upstream_of(_reader_of(slow)) is not at:
        return Cause("demand", f"{name}, which waits for {_slowest(_reader_of(slow))}", path)
    if above:
        return Cause("elements", f"{name}, which requests nothing", path)
    return Cause("elements", f"{name}, which sends nothing", path)


def _own_cause(
    name: str, at: FlowSubscription, path: tuple[FlowSubscription, ...] = ()
) -> Cause | None:
    """What the operator *at* waits for itself, or the calls that it makes."""
    if (wait := at.own_wait) is not None:
        is_source = wait.kind == "function" and not at.upstreams
        return Cause(wait.kind, f"{name}, {_how(*wait)}", path, is_source)
    if not at.calls:
        return None
    waits = dict.fromkeys(islice(at.call_waits(), _MOST_CALLS))
    if not waits:
        return Cause("function", f"{name}, whose {_calls(at.calls)} not returned", path)
    first, *others = waits
    other = next((each for each in others if each.kind != first.kind), None)
    beside = "" if other is None else f"; others {_how_many(*other)}"
    return Cause(first.kind, f"{name}, {_how(*first)}{beside}", path)


def _calls(count: int) -> str:
    return "call has" if count == 1 else f"{count} calls have"


def _how_many(kind: str, text: str) -> str:
    return f"are in {text}" if kind == "function" else f"wait for {text}"


def _lacks_demand(at: FlowSubscription) -> bool:
    if isinstance(at, Island):
        return waits_on_what(at)[0] == "demand"
    return isinstance(at, ListDelivery) and not at.outstanding


# -- downstream ------------------------------------------------------------------------------------
def _below(reader: object) -> Cause:
    """Why *reader*, a subscriber or a loop, takes nothing more."""
    for _ in range(_MOST_SEARCHED):
        if isinstance(reader, InnerSubscriber):
            owner, slow = reader.owner, reader.owner.held_back_by
            if isinstance(owner, FlowSubscription):
                name = _name_of(owner)
                if (found := _own_cause(name, owner)) is not None:
                    return found
            if slow is None:
                break
            reader = _reader_of(slow)
        elif isinstance(reader, Island):
            kind, text = waits_on_what(reader)
            if kind == "elements":
                return Cause("demand", f"{reader.chain.name}, which requests nothing")
            if kind != "demand":
                return Cause(kind, _with_operator(reader, kind, text))
            reader = reader.subscriber
        elif isinstance(reader, ListDelivery):
            reader = reader.reader
        else:
            return Cause("demand", _consumer(reader))
    return Cause("demand", "its subscriber, which requests nothing")


def _slowest(reader: object) -> str:
    trail = f" {reader.chain.trail()}" if isinstance(reader, (Island, ListDelivery)) else ""
    return f"its slowest subscriber{trail}, which is stuck at {_below(cast('Any', reader)).text}"


def _consumer(subscriber: object) -> str:
    if isinstance(subscriber, BulkSubscriber):
        line = subscriber.consumer_line()
        return (
            "its subscriber, which requests nothing"
            if line is None
            else (f"its subscriber, in {line}")
        )
    if subscriber is None:
        return "its subscriber"
    return f"its subscriber {type(subscriber).__qualname__}, which requests nothing"


# -- who is next to whom ---------------------------------------------------------------------------
def _upstream_of(reader: object) -> FlowSubscription | None:
    if isinstance(reader, ListDelivery):
        return reader.upstream
    if not isinstance(reader, Island) or reader.input_queue is None:
        return None
    return reader.input_queue.upstream


def _reader_of(downstream: "Downstream[Any]") -> object:
    return downstream.reader if isinstance(downstream, (InputQueue, ListDelivery)) else None


def reader_chain(operator: "Coordinator[Any]") -> Chain | None:
    """The chain whose source *operator* is."""
    reader = _reader_of(operator.downstream)
    return reader.chain if isinstance(reader, (Island, ListDelivery)) else None


def _name_of(operator: FlowSubscription) -> str:
    chain = reader_chain(cast("Any", operator)) if isinstance(operator, Coordinator) else None
    return "an operator" if chain is None else chain.name
