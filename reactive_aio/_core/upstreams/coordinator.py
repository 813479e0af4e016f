"""Coordinators: operators with several upstreams, a queue or a timer.

A coordinator is the upstream of one island: it receives the island's demand and cancellation, and
pushes elements to its `Downstream`. Each of its own upstreams is an `InnerSubscriber`, which holds
the guards of a subscriber and the elements not yet passed on. An operator overrides the methods
under "decisions"; they run one at a time, on the loop, in the subscriber's context.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, ClassVar, Final, Generic, TypeVar

from ...errors import Interrupted
from ...spec import Publisher
from ..cleanup import CleanupErrors, add_cleanup_error
from ..compiler.chain import Downstream
from ..compiler.discards import OnDiscard, discard
from ..demand import UNBOUNDED, Demand
from ..failures import STOPS_PROGRAM, as_failure
from ..flow_subscription import FlowSubscription
from ..loop import Future, LoopHandle, Task, wait_for_others
from ..observation.awaited import Wait
from ..queues.age_marks import AgeMarks
from ..run_control import UpstreamKind, Work, control_of, work_on
from .after_cleanup import after_cleanup
from .decisions import Decisions, run_now
from .inner_subscriber import InnerSubscriber
from .timer import Timer

T = TypeVar("T")
R = TypeVar("R")
# Most coordinators never need these, and there may be thousands: nothing is added to them.
_NONE_UNFINISHED: Final[list[InnerSubscriber[Any]]] = []
_NO_CLEANUPS: Final[dict[InnerSubscriber[Any], Task[Any]]] = {}


@dataclass(eq=False, repr=False)
class Coordinator(FlowSubscription, Generic[R]):
    """The base of all coordinators; a subclass overrides the methods under "decisions"."""

    # A subclass may have attributes of its own without declaring them. With all of them in one
    # dictionary, they could be more than CPython looks up quickly (30).
    __slots__ = ("__dict__", "__weakref__", "_age_marks", "_closing", "_control",
                 "_failure", "_is_clean", "_started", "_timers", "_unfinished", "cleanups",
                 "demand", "downstream", "emitted", "inners", "is_closed", "keeps_flows",
                 "loop_handle", "processed_count", "submit")  # fmt: skip
    is_serialized: ClassVar[bool] = True
    """Whether decisions go through `Decisions`. A subclass may say False if each of its
    decisions changes all state first and calls at most one other object, at its end."""
    passes_each: ClassVar[bool] = False
    """Whether it emits each element that it holds, once, as it came."""

    downstream: Downstream[R]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, given in vars(cls).items():
            replaced = getattr(super(cls, cls), name, given)
            if iscoroutinefunction(given) and not iscoroutinefunction(replaced):
                raise TypeError(
                    f"{given.__qualname__} is a coroutine function, and what it overrides is a "
                    "plain one, which nothing awaits; let a WorkerPool call what has to be awaited"
                )

    def __post_init__(self) -> None:
        self.loop_handle: LoopHandle = LoopHandle()
        self.demand: Demand = Demand()
        """The demand of downstream that has not been met yet."""
        self.inners: dict[InnerSubscriber[Any], None] = {}
        self.submit: Callable[..., object] = run_now
        if self.is_serialized:
            self.submit = Decisions(self.loop_handle, self.fail).submit
        self.is_closed: bool = False
        self.keeps_flows: bool = False
        """Whether flows that it has emitted may be subscribed to after it has ended."""
        self.emitted: int = 0
        """How many elements were pushed in total."""
        self.processed_count: int = 0
        """How many of those downstream has processed, as far as it has reported."""
        self._age_marks: AgeMarks | None = None
        self._started = False
        self._timers: tuple[Timer, ...] = ()
        self._control = control_of(self.downstream.on_discard)
        if self._control is not None:
            self._control.add(self)
        self._closing: tuple[InnerSubscriber[Any], ...] = ()  # their cleanup may still be running
        self._is_clean = False  # it is over
        self._failure: BaseException | None = None
        """What downstream was told."""
        self._unfinished: list[InnerSubscriber[Any]] = _NONE_UNFINISHED
        """Those that were released before downstream had processed their elements."""
        self.cleanups: dict[InnerSubscriber[Any], Task[Any]] = _NO_CLEANUPS
        """The upstreams that something follows when they have cleaned up; each with its wait."""

    @property
    def cleanup(self) -> CleanupErrors | None:
        """Where the errors of the upstreams' cleanup go, if a consumer awaits it."""
        return self.downstream.cleanup

    @property
    def on_discard(self) -> OnDiscard | None:
        """What receives each element that is discarded upstream; None if nothing does."""
        return self.downstream.on_discard

    @property
    def is_drained(self) -> bool:
        """Whether its run is drained, so that no further source is to be subscribed to."""
        return self._control is not None and self._control.is_stopped

    # -- decisions: overridden by a subclass ------------------------------------------------------
    def on_start(self) -> None:
        """The first demand has arrived: subscribe to the upstreams."""

    def on_demand(self) -> None:
        """`demand` has grown; everything emitted so far has been processed."""

    def on_processed(self) -> None:
        """`processed_count` has grown to `emitted`, without new demand.

        By default, `on_demand` runs if there is demand: of a source that drops what has to wait,
        it requests the next element.
        """
        if self.demand:
            self.on_demand()

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        """*inner* holds elements."""

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        """*inner* has completed; it may still hold elements."""

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        """*inner* has failed. By default, the whole operator fails."""
        self.fail(error)

    def on_stop(self) -> None:
        """The operator has ended or was cancelled: release its resources. Its timers are stopped
        already."""

    def on_arrival(self, inner: InnerSubscriber[Any]) -> None:
        """*inner* has just received elements. By default, `on_elements` runs at once.

        To collect more elements first, set ``inner.is_notified`` and read ``inner`` soon: by
        default in the next turn of the loop, if *inner* cannot know whether more follow directly.
        """
        if not inner.collect(self._submit_elements):
            self._submit_elements(inner)

    def _submit_elements(self, inner: InnerSubscriber[Any]) -> None:
        self.submit(self.on_elements, inner)

    # -- acts: called by a subclass ---------------------------------------------------------------
    def subscribe_to(
        self,
        publisher: Publisher[T],
        *,
        request: int = 0,
        tag: Any = None,
        kind: UpstreamKind = "source",
        work: Work | None = None,
    ) -> InnerSubscriber[T]:
        """Subscribe to one more upstream, and request *request* elements from it.

        Its *kind* says what a drain does with it: complete a source, let the work on an element run
        to its end, and leave alone what only controls the operator. The element that it was made of
        is in *work*, unless nobody asks what becomes of it.
        """
        inner: InnerSubscriber[T] = InnerSubscriber(self, tag, kind, work)
        if self.is_closed:  # by an upstream subscribed to just before
            inner.is_done = True
            if work is not None:
                work.cut()
            return inner
        self.inners[inner] = None
        if request:
            inner.request(request)
        return inner.subscribe(publisher)

    def request_missing(self, inner: InnerSubscriber[Any], *, at_most: int = UNBOUNDED) -> None:
        """Pass on the demand that *inner* has not received; it is to have *at_most* so much.

        Where what waits upstream is dropped or replaced, it is one element at a time, and the next
        one when that has been processed: nothing newer takes the place of an element that was sent.
        """
        missing = min(self.demand.outstanding, at_most) - inner.outstanding
        if missing > 0 and inner.is_lossy:
            missing = 0 if inner.outstanding or self.emitted > self.processed_count else 1
        if missing > 0:
            inner.request(missing)

    def release(
        self, inner: InnerSubscriber[Any], then: Callable[[], object] = lambda: None
    ) -> None:
        """Remove an upstream, cancel it unless it is done, and call *then* when it has cleaned up.

        Every operator begins what follows an upstream in *then*: a source that holds the only
        connection of a pool has given it back by then. Where there is nothing to wait for, *then*
        is called at once; it is not called after the end of the operator. What the cleanup raises
        is an error of the cleanup, and *then* is called all the same.
        """
        self.inners.pop(inner, None)
        inner.cancel(keeps_flows=True)
        if inner.is_work or self.processed_count == self.emitted:
            inner.finish()
        else:
            if not self._unfinished:
                self._unfinished = []
            self._unfinished.append(inner)
        if inner.is_clean:
            self._go_on(then)
        else:
            on_clean = partial(self._on_inner_clean, inner, then)
            if not self.cleanups:
                self.cleanups = {}
            self.cleanups[inner] = after_cleanup(self.loop_handle, inner, on_clean)

    def _on_inner_clean(
        self,
        inner: InnerSubscriber[Any],
        then: Callable[[], object],
        error: BaseException | None,
        interrupted: Interrupted | None,
    ) -> None:
        del self.cleanups[inner]
        if error is not None:
            self.report_cleanup("the cleanup of a source raised", error)
        self.submit(self._go_on, then if interrupted is None else partial(self.fail, interrupted))

    def _go_on(self, then: Callable[[], object]) -> None:
        if self.is_closed:
            return
        if self.cleanup is not None:
            self.cleanup.flush()
        then()

    def add_timer(self, timer: Timer) -> None:
        """*timer* is to be stopped when the operator ends."""
        self._timers = (*self._timers, timer)

    def stop_inners(self, errors: list[BaseException]) -> None:
        """Cancel every upstream and keep its elements; add the errors of those that have failed."""
        for inner in self.inners:
            inner.stop()
            if inner.error is not None and inner.error not in errors:
                errors.append(inner.error)  # its signal may still be queued

    def emit(self, elements: list[R]) -> None:
        """Push *elements* downstream; no more than `demand` allows."""
        if elements:
            if self.is_closed:
                self.discard(elements)
                return
            self.demand.take(len(elements))
            self.emitted += len(elements)
            self.downstream.push(elements)

    def discard(self, elements: Iterable[object]) -> None:
        """*elements* were received, and will not be delivered: give them back."""
        discard(self.downstream.on_discard, elements)

    def work_on(self, element: object) -> Work | None:
        """What becomes of *element* while a source works on it; None if nobody asks."""
        return work_on(element, self.on_discard)

    def apply(self, function: Callable[[Any], Any], element: Any) -> Any:
        """Return ``function(element)``; if that raises, the element is discarded."""
        try:
            return function(element)
        except BaseException:
            self.discard((element,))
            raise

    def failure_of(self, error: BaseException) -> BaseException:
        """What the subscriber receives for *error*, which a function of the user has raised.

        An error that stops the program is raised.
        """
        if isinstance(error, STOPS_PROGRAM):
            raise error
        return as_failure(error)

    def complete(self) -> None:
        """Complete downstream, and cancel every upstream."""
        if not self.is_closed:
            self.leave()
            self.downstream.complete()

    def fail(self, error: BaseException) -> None:
        """Fail downstream, and cancel every upstream."""
        if not self.is_closed:
            self._failure = error
            self.cancel()
            self.downstream.fail(error)
        elif error is self._failure:
            pass  # its signal came after `end_with` had found it
        elif not isinstance(error.__cause__, STOPS_PROGRAM):  # that stops the program
            self.report_cleanup("an error after the end of a flow", error)

    def end(self, error: BaseException | None) -> None:
        """End downstream: complete, or fail with *error*."""
        if error is None:
            self.complete()
        else:
            self.fail(error)

    def end_with(self, inner: InnerSubscriber[Any]) -> None:
        """End as *inner* did, once it is done and holds no elements."""
        if inner.is_done and not inner.elements and not self.is_closed:
            self.end(inner.error)

    def report_cleanup(self, message: str, error: BaseException) -> None:
        """Hand *error*, which a cleanup raised, to the consumer that awaits it, or report it."""
        add_cleanup_error(self.cleanup, error, partial(self.loop_handle.report, message, error))

    # -- the subscription that the island holds ---------------------------------------------------
    def request(self, n: int, /) -> None:
        if not self.is_closed:
            self.processed_count = self.emitted
            if self._unfinished:
                self._finish_released()
            self.demand.add(n)
            self.submit(self._on_demand)

    def processed(self) -> None:
        if self.processed_count < self.emitted and not self.is_closed:
            self.processed_count = self.emitted
            if self._unfinished:
                self._finish_released()
            self.submit(self.on_processed)

    def _finish_released(self) -> None:
        released, self._unfinished = self._unfinished, _NONE_UNFINISHED
        for inner in released:
            inner.finish()

    def _on_demand(self) -> None:
        if not self._started:
            self._started = True
            self.on_start()
        if not self.is_closed:
            self.on_demand()

    def note_finished(self) -> Sequence[FlowSubscription]:
        inners = (*self.inners, *self._closing, *self._unfinished)
        self._unfinished = _NONE_UNFINISHED
        return [subscription for inner in inners for subscription in inner.finished()]

    @property
    def held(self) -> int:
        return sum(len(inner.elements) for inner in self.inners)

    def oldest(self, now: float, waiting: int) -> float | None:
        numbers = self.numbers(waiting)
        if numbers is None:
            return None
        if self._age_marks is None:
            self._age_marks = AgeMarks()
        return self._age_marks.look(*numbers, now)

    def numbers(self, waiting: int) -> tuple[int, int] | None:
        """Of the oldest element that it holds, and of the next one to arrive; see `AgeMarks`."""
        if not self.passes_each:
            return None
        departed = self.emitted - waiting
        return departed, departed + waiting + self.held

    @property
    def own_wait(self) -> Wait | None:
        for inner in self.cleanups:
            return Wait("limit", f"the cleanup of {inner.source_name}")
        return None

    @property
    def held_back_by(self) -> Downstream[Any] | None:
        return self.downstream

    @property
    def upstreams(self) -> Sequence[FlowSubscription]:
        return [each for inner in self.inners if (each := inner.upstream) is not None]

    def stop_source(self) -> bool:
        """Its upstreams are sources of the run themselves, or have some: they complete it."""
        return bool(self.inners)

    @property
    def tasks(self) -> Sequence[Future[Any]]:
        """Its own tasks that have not ended; a subclass adds those of its work."""
        return [*self.cleanups.values()] if self.cleanups else ()

    @property
    def is_settled(self) -> bool:
        tasks = self.tasks
        return not tasks or all(task.done() for task in tasks)

    async def settle(self) -> None:
        while await wait_for_others(self.tasks):
            pass  # other tasks may have followed

    @property
    def closing(self) -> Sequence[FlowSubscription]:
        inners = () if self._is_clean else self._closing
        return [each for inner in inners if (each := inner.upstream) is not None]

    def waiting_failure(self) -> BaseException | None:
        return next((inner.error for inner in self.inners if inner.error is not None), None)

    def on_clean(self) -> None:
        self._is_clean = self.is_closed

    def leave(self) -> None:
        self.keeps_flows = True
        self.cancel()

    def cancel(self) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        if self._control is not None:
            self._control.remove(self)
        for timer in self._timers:
            timer.stop()
        inners = list(self.inners)
        self.inners.clear()
        self._closing += (*inners,)
        for inner in inners:
            inner.cancel(self.keeps_flows)
        try:
            self.on_stop()
        except STOPS_PROGRAM:
            raise
        except BaseException as error:
            self.report_cleanup("the cleanup of an operator raised", error)
