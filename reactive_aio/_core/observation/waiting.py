"""What a program still waits for when its time is over: the calls of its tasks and its threads."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from threading import Thread, current_thread, enumerate as all_threads, main_thread
from typing import TYPE_CHECKING, Any, Final

from ..flow_subscription import FlowSubscription
from ..loop import Task, context_of, unfinished_tasks
from ..run_control import RunControl, current_run
from ..subscription.island import Island
from ..subscription.list_delivery import ListDelivery
from ..unwinding import suspended_frames
from ..upstreams.coordinator import Coordinator
from .awaited import is_of_package, line_of, wait_of
from .registry import current_flow

if TYPE_CHECKING:
    from types import FrameType

    from ..loop import AbstractEventLoop

_MOST_NAMED: Final = 3
_MOST_SEARCHED: Final = 256
_RUNS_LOOP: Final = ("BaseEventLoop.run_forever", "Runner.run", "Runner.close")
_OWN_THREADS: Final = "reactive_aio-"


def what_waits(loop: "AbstractEventLoop", besides: Task[Any] | None = None) -> str:
    """One line: what runs on *loop* and in threads. It may be called on any thread.

    *besides* is a task that only waits for the others: it is named if there are none.
    """
    found = list(_found(loop, besides))
    if not found and besides is not None:
        found = _of_tasks([besides])
    found = found or [f"the thread {thread.name}" for thread in _waited_for() if not thread.daemon]
    return _one_line(found)


def what_run_waits_for(
    run: RunControl, loop: "AbstractEventLoop", subscription: FlowSubscription | None
) -> str:
    """The same for what runs on *loop* for one run: no other flow, and no task of the program.

    *subscription* is that of its end, for what its operators wait for in no task.
    """
    tasks = [task for task in unfinished_tasks(loop) if _run_of(task) is run]
    # A call that awaits nothing but something of Python, such as a sleep, has no line.
    found = _of_tasks(tasks)
    if subscription is not None:
        found += _of_operators(subscription, found)
    found = found or [task.get_name() for task in tasks]
    return _one_line(found or list(_of_threads(own=True)))


def _of_operators(subscription: FlowSubscription, known: list[str]) -> list[str]:
    """What the operators above *subscription* wait for, except for what is *known* already."""
    found: list[str] = []
    above, rest = {subscription: ""}, [subscription]
    for each in rest:  # it grows meanwhile: no recursion, for any depth
        # A loop knows the name of the operator that it reads, also when both are closed.
        name = each.chain.name if isinstance(each, (Island, ListDelivery)) else above[each]
        for up in (*each.upstreams, *each.closing):
            if up not in above and len(above) < _MOST_SEARCHED:
                above[up] = name
                rest.append(up)
        waits = [*each.call_waits(), *([] if each.own_wait is None else [each.own_wait])]
        for kind, text in waits:
            if kind != "elements" and not any(text in line for line in known):
                how = text if kind == "function" else f"waits for {text}"
                found.append(f"{_flow_of(each)}{above[each]}: {how}")
    return found


def _flow_of(operator: FlowSubscription) -> str:
    """The name of the flow of *operator*, as a prefix."""
    if not isinstance(operator, Coordinator):
        return ""
    flow = operator.loop_handle.context.get(current_flow)
    return "" if flow is None else f"{flow.name}: "


def _run_of(task: Task[Any]) -> RunControl | None:
    context = context_of(task)
    return None if context is None else context.get(current_run)


def _one_line(found: list[str]) -> str:
    counts = Counter(found)
    named = [*counts][:_MOST_NAMED]
    texts = [text if counts[text] == 1 else f"{counts[text]} × {text}" for text in named]
    rest = len(found) - sum(counts[text] for text in named)
    return "; ".join([*texts, f"and {rest} more"] if rest else texts) or "nothing that can be named"


def _found(loop: "AbstractEventLoop", besides: Task[Any] | None) -> Iterator[str]:
    frames = sys._current_frames()
    line = None if current_thread() is main_thread() else _running_line(frames, main_thread())
    if line is not None:
        yield f"the event loop is blocked by {line}"
    tasks = [task for task in unfinished_tasks(loop) if task is not besides]
    yield from _of_tasks([task for task in tasks if not _awaits(task, besides)])
    yield from _of_threads(own=False)


def _awaits(task: Task[Any], other: Task[Any] | None) -> bool:
    """Whether *task* waits for *other*, alone or in a ``gather``."""
    waiter: Any = getattr(task, "_fut_waiter", None)
    return other is not None and other in (waiter, *getattr(waiter, "_children", ()))


def _of_threads(*, own: bool) -> Iterator[str]:
    """What threads run: those of flows (*own*), or all that are waited for."""
    frames = sys._current_frames()
    for thread in _waited_for():
        is_asked = not own or thread.name.startswith(_OWN_THREADS)
        if is_asked and (line := _running_line(frames, thread)) is not None:
            yield f"{line}, in the thread {thread.name}"


def line_of_thread(ident: int) -> str | None:
    """Where the thread *ident* runs a function of the user, if it does."""
    return line_of(_calls(sys._current_frames().get(ident)))


def _waited_for() -> list[Thread]:
    """The threads that the end of the program waits for, or that of a flow."""
    others = [each for each in all_threads() if each is not main_thread()]
    return [each for each in others if not each.daemon or each.name.startswith(_OWN_THREADS)]


def _of_tasks(tasks: Iterable[Task[Any]]) -> list[str]:
    """What tasks wait for: those of flows first, as clients of brokers have many of their own."""
    of_flows: list[str] = []
    others: list[str] = []
    for task in tasks:
        if (wait := wait_of(task.get_coro())) is not None:
            context = context_of(task)
            flow = None if context is None else context.get(current_flow)
            name = "" if flow is None else f"{flow.name}: "
            what = wait.text if wait.kind == "function" else f"waits for {wait.text}"
            texts = of_flows if flow is not None or _runs_here(task) else others
            texts.append(f"{name}{task.get_name()}: {what}")
    return of_flows + others


def _runs_here(task: Task[Any]) -> bool:
    """Whether *task* is one of this package, which calls functions of a flow."""
    first = next(iter(suspended_frames(task.get_coro())), None)
    return first is not None and is_of_package(first.f_code.co_filename)


def _running_line(frames: "dict[int, FrameType]", thread: Thread) -> str | None:
    """Where *thread* runs a function of the user; None if it only runs its event loop."""
    return line_of(_calls(frames.get(thread.ident or 0)))


def _calls(frame: "FrameType | None") -> "Iterator[FrameType]":
    """*frame* and its callers; what runs an event loop, and its callers, only waits for that."""
    while frame is not None and frame.f_code.co_qualname not in _RUNS_LOOP:
        yield frame
        frame = frame.f_back
