"""DeliveryFlow: a flow whose elements are acknowledged when the work on them is done."""

from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any, Generic, TypeGuard, TypeVar, overload

from .._core.compiler.places import call_place
from .._operators.time import cutter_of
from .._shared.coerce import Source
from .._shared.element_work import OnError, work_options
from .._shared.foreign_options import explain_foreign_options
from ..limits import Limits
from ..retry import Errors, RetryPolicy, require_errors
from ..stage import (
    Duration,
    describe,
    require_callable,
    require_int,
    require_sync_callable,
    to_seconds,
)
from .head import HeadOptions
from .nack_policy import NackPolicy
from .operators import (
    Step,
    Work,
    by_value,
    divided,
    filtered,
    handed_over,
    listed,
    mapped,
    placed,
    valued,
    with_origins,
    worked,
)
from .tail import assembled, without_end

if TYPE_CHECKING:
    from .._core.compiler.bound import Bound
    from ..flow import Flow
    from ..observe import Graph
    from .delivery import Delivery

__all__ = ("DeliveryFlow",)

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DeliveryFlow(Generic[T_co]):
    """A flow in which each element is tied to the delivery that it was made of.

    Its operators take and make values, as those of a `Flow` do, and the tie follows. The delivery
    is acknowledged when all the work on it is done, and only then; it is nacked when a function
    raises, and when the flow ends before. `ack_after` and `as_flow` make a `Flow` of it, which runs
    it; it is immutable, and each subscription starts the source again.
    """

    _source: "Flow[Any]"
    _options: HeadOptions
    _steps: tuple[Step, ...] = ()

    def __repr__(self) -> str:
        flow = without_end(self._source, self._options, self._steps)
        return f"<DeliveryFlow {flow.chain.trail()}>"

    # -- reports ----------------------------------------------------------------------------------
    def bound(self) -> "Bound":
        """Report how many elements it holds at most: unacknowledged ones, and results.

        This is the report on `as_flow`, as are `explain` and `graph`. What `ack_after` adds is in
        the reports on the flow that it returns.
        """
        return self.as_flow().bound()

    def explain(self, *, code: bool = False, color: bool | None = None) -> str:
        """Describe how it runs: its islands, the queues between them, and what they hold.

        The parameters are those of ``Flow.explain``.
        """
        return self.as_flow().explain(code=code, color=color)

    def graph(self) -> "Graph":
        """Draw its islands, and what holds elements between them, as ``Flow.graph`` does.

        A picture with the figures of a running flow is that of the flow that runs:
        ``flow.ack_after(write).name("orders").graph()``.
        """
        return self.as_flow().graph()

    # -- operators --------------------------------------------------------------------------------
    def map(self, mapper: Callable[[T_co], R]) -> "DeliveryFlow[R]":
        """Replace each value by ``mapper(value)``, which keeps the tie.

        Demand: passed through.
        Completes: when the source completes.
        Fails: when *mapper* raises, after the element is nacked with its error, unless there is a
            policy (`nack_on_error`); when *mapper* returns None.
        Cancels: when the subscriber cancels.
        Holds: nothing.
        Rules: 2.13
        """
        require_sync_callable(
            "map", "mapper", mapper, "use map_async, or flat_map for a generator.", takes=1
        )
        return self._then(mapped(mapper))

    @overload
    def filter(self, predicate: Callable[[T_co], TypeGuard[R]]) -> "DeliveryFlow[R]": ...
    @overload
    def filter(self, predicate: Callable[[T_co], object]) -> "DeliveryFlow[T_co]": ...
    def filter(self, predicate: Callable[[Any], object]) -> "DeliveryFlow[Any]":
        """Pass on the elements for which *predicate* is true, and acknowledge the others.

        Demand: passed through; one more is requested for each element left out.
        Completes: when the source completes.
        Fails: when *predicate* raises, as `map` does.
        Cancels: when the subscriber cancels.
        Holds: nothing.
        Rules: 1.1
        """
        require_sync_callable("filter", "predicate", predicate, "use map_async first.", takes=1)
        return self._then(filtered(predicate))

    def map_async(
        self,
        mapper: Callable[[T_co], Awaitable[R]],
        *,
        concurrency: int = 1,
        ahead: int | None = None,
        ordered: bool = True,
        key: Callable[[T_co], Hashable] | None = None,
        retry: RetryPolicy | int | None = None,
        timeout: Duration | None = None,
        on_error: OnError[T_co] = "fail",
        limiter: Limits | None = None,
    ) -> "DeliveryFlow[R]":
        """Replace each value by the result of awaiting ``mapper(value)``, which keeps the tie.

        The parameters are those of ``Flow.map_async``. When the last attempt of *retry* has failed,
        *on_error* decides: with ``"fail"``, the element is nacked and the flow fails, unless there
        is a policy (`nack_on_error`); with ``"skip"``, the element is nacked and left out; a
        function is called with the value and the error, and when it has returned, the element is
        acknowledged and left out.

        Demand: passed through; with *concurrency* or *ahead* n, at most n elements ahead of it.
        Completes: when the source has completed and all results are delivered.
        Fails: when *mapper* fails, as *on_error* says, or when *on_error* does.
        Cancels: running calls, when the subscriber cancels; their elements are nacked when they
            have returned.
        Holds: nothing one at a time; else 2 × *concurrency* elements, or 2 × *ahead*, including
            running calls.
        Rules: 1.1, 1.3, 3.5
        """
        require_callable("map_async", "mapper", mapper, takes=1)
        work = _work(
            "map_async", mapper, concurrency, ahead, ordered, key, retry, timeout, on_error, limiter
        )
        return self._then(worked(work))

    def flat_map(
        self, mapper: Callable[[T_co], Source[R]], *, concurrency: int = 16, prefetch: int = 32
    ) -> "DeliveryFlow[R]":
        """Divide each element into the elements of ``mapper(value)``.

        It is acknowledged when all of them are, at once if there are none. If one of them is
        nacked, or their source fails, it is nacked, once no other is being worked on.

        Demand: as that of ``Flow.flat_map``.
        Completes: when the source and all inner ones have completed.
        Fails: when *mapper* or an inner source fails, as `map` does.
        Cancels: the source and all inner ones, when the subscriber cancels.
        Holds: *concurrency* × *prefetch* elements, and *concurrency* of the source.
        Rules: 1.1, 1.3, 1.7
        """
        remedy = "use map_async, or from_awaitable in a plain function."
        require_sync_callable("flat_map", "mapper", mapper, remedy, takes=1, may_generate=True)
        require_int("flat_map", "concurrency", concurrency, least=1)
        require_int("flat_map", "prefetch", prefetch, least=1)
        return self._then(divided(mapper, concurrency, prefetch))

    def buffer(self, size: int) -> "DeliveryFlow[list[T_co]]":
        """Collect values into lists of *size*; what happens to a list happens to its elements.

        Where the work on some elements of a list has failed, raise `BatchFailed`: in ``ack_after``,
        the others are acknowledged. A list is also complete where no other element can arrive
        before it is acknowledged: at the end of the source, and when *limit* deliveries are held.

        Demand: batched (*size* elements upstream, requested again as lists are emitted).
        Completes: when the source completes, after the last list.
        Fails: when the source fails, after a list of the elements it had sent.
        Cancels: when the subscriber cancels; the elements collected are nacked.
        Holds: 2 × *size* elements: lists that wait, and one that is being delivered.
        Rules: 1.1
        """
        require_int("buffer", "size", size, least=1)
        return self._then(listed(size, inf, None, f"buffer({size})"))

    def buffer_timeout(
        self,
        size: int,
        duration: Duration,
        *,
        weight: Callable[[T_co], float] | None = None,
        max_weight: float | None = None,
        until: Callable[[T_co], object] | None = None,
    ) -> "DeliveryFlow[list[T_co]]":
        """Collect values into lists of *size*, or fewer when *duration* has passed since the first.

        The parameters are those of ``Flow.buffer_timeout``; acknowledgement is that of `buffer`.

        Demand: batched (*size* elements upstream, requested again as lists are emitted).
        Completes: when the source completes, after the last list.
        Fails: when the source fails, after a list of the elements it had sent; when *weight* or
            *until* raises.
        Cancels: when the subscriber cancels; the elements collected are nacked.
        Holds: 2 × *size* elements: lists that wait, and one that is being delivered.
        Rules: 1.1, 1.5
        """
        require_int("buffer_timeout", "size", size, least=1)
        limit = to_seconds(duration, "buffer_timeout: duration")
        cutter = cutter_of(weight, max_weight, until)
        if cutter is not None:
            cutter = replace(
                cutter,
                weight=None if weight is None else by_value(weight),
                until=None if until is None else by_value(until),
            )
        return self._then(listed(size, limit, cutter, f"buffer_timeout({size}, {limit:g})"))

    def nack_on_error(
        self,
        policy: RetryPolicy | int,
        *,
        dead_letter: Callable[[T_co, Exception], object] | None = None,
        outage: Errors | Callable[[BaseException], object] = (),
    ) -> "DeliveryFlow[T_co]":
        """Deliver an element again after a nack, as *policy* allows, and do not fail the flow.

        Write it directly after `deliveries`: it applies to all operators. The element passes all of
        them again, after the delay of the policy, while others overtake it; until then it counts as
        held. After the last attempt, *dead_letter* is called with its value and error, and awaited,
        and then the element is acknowledged. Without *dead_letter*, the flow fails.

        While a server that all elements need cannot be reached, each of them fails, and none is at
        fault. Name the errors of that with *outage*: their types, such as OSError, or a predicate.
        After such an error, the last attempt is not the last one: the element is delivered again,
        each 5 seconds or after the longest delay of *policy*, until it has failed as many times as
        *policy* has attempts while others were done in between.

        Demand: passed through.
        Completes: when the source has completed and no element is held.
        Fails: with the error of an element, after the last attempt, without *dead_letter*; when
            *dead_letter* fails.
        Cancels: when the subscriber cancels; elements that wait are nacked.
        Holds: nothing more: elements that wait count among those of `deliveries`.
        Rules: none
        """
        if self._steps or self._options.policy is not None:
            raise TypeError(
                "nack_on_error: it applies to all operators; write it once, directly after "
                "deliveries()"
            )
        if dead_letter is not None:
            require_callable("nack_on_error", "dead_letter", dead_letter, takes=2)
        require_errors("nack_on_error", "outage", outage)
        nacks = NackPolicy(RetryPolicy.of(policy), dead_letter, outage)
        buries = "" if dead_letter is None else f", dead_letter={describe(dead_letter)}"
        name = f"{self._options.name}.nack_on_error(attempts={nacks.retry.attempts}{buries})"
        return replace(self, _options=replace(self._options, name=name, policy=nacks))

    # Type checkers would take it for a declaration of all attributes.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(
                f"a DeliveryFlow has no attribute {name!r}: end it with ack_after(write), which "
                "returns a Flow and acknowledges what is written, or with as_flow()",
                name=name,
                obj=self,
            )

    # -- ends -------------------------------------------------------------------------------------
    def ack_after(
        self,
        write: Callable[[T_co], object],
        *,
        concurrency: int = 1,
        ahead: int | None = None,
        ordered: bool = True,
        key: Callable[[T_co], Hashable] | None = None,
        retry: RetryPolicy | int | None = None,
        timeout: Duration | None = None,
        on_error: OnError[T_co] = "fail",
        limiter: Limits | None = None,
    ) -> "Flow[T_co]":
        """Call *write* with each value, and acknowledge the element when it has returned.

        The result is a flow of the values that were written. The result of a coroutine function is
        awaited; what *write* returns is ignored. The parameters are those of `map_async`.

        Demand: passed through; with *concurrency* or *ahead* n, at most n elements ahead of it.
        Completes: when the source has completed and each element is acknowledged: the functions of
            the source have returned.
        Fails: when *write* fails, as *on_error* says; when the source fails, once no element is
            held; when a function that acknowledges fails.
        Cancels: when the subscriber cancels; elements whose work is not done are nacked, and
            ``aclose`` waits for that.
        Holds: nothing one at a time; else 2 × *concurrency* elements, or 2 × *ahead*, including
            running calls.
        Rules: 1.1, 1.3, 3.5
        """
        require_callable("ack_after", "write", write, takes=1)
        work = _work(
            "ack_after", write, concurrency, ahead, ordered, key, retry, timeout, on_error, limiter
        )
        return self._end((worked(work), valued), "(end of deliveries)")

    def as_flow(self) -> "Flow[Delivery[T_co]]":
        """A flow of deliveries, whose consumer calls ``ack()`` or ``nack(error)`` on each of them.

        Demand: passed through.
        Completes: when the source has completed and each delivery is settled.
        Fails: when the source fails, after each delivery is settled; when a function that
            acknowledges fails; at a nack that leads nowhere, as the source takes nothing back and
            there is no policy.
        Cancels: when the subscriber cancels; deliveries that are not settled then are nacked.
        Holds: nothing.
        Rules: 1.1
        """
        return self._end((handed_over,), "(end of deliveries)")

    # -- acts -------------------------------------------------------------------------------------
    def _then(self, step: Step) -> "DeliveryFlow[Any]":
        step = placed(step, call_place(3))
        return DeliveryFlow(self._source, self._options, (*self._steps, step))

    def _end(self, steps: tuple[Step, ...], name: str) -> "Flow[Any]":
        place = call_place(3)
        ending = [placed(step, place) for step in steps]
        return assembled(self._source, self._options, (*self._steps, *ending), name)


explain_foreign_options(DeliveryFlow, [name for name in vars(DeliveryFlow) if name[0] != "_"])


def paired_with_origins(flow: DeliveryFlow[T]) -> DeliveryFlow[tuple[frozenset[object], T]]:
    """Pair each value with the parts of the source that it was made of, as `Delivery.origin`."""
    return DeliveryFlow(flow._source, flow._options, (*flow._steps, with_origins))


def _work(
    operator: str,
    function: Callable[[Any], Any],
    concurrency: int,
    ahead: int | None,
    ordered: bool,
    key: Callable[[Any], Hashable] | None,
    retry: RetryPolicy | int | None,
    timeout: Duration | None,
    on_error: OnError[Any],
    limiter: Limits | None,
) -> Work:
    require_int(operator, "concurrency", concurrency, least=1)
    if ahead is not None:
        require_int(operator, "ahead", ahead, least=concurrency)
    options = work_options(
        operator, key=key, retry=retry, timeout=timeout, on_error=on_error, limiter=limiter
    )
    return Work(
        operator,
        function,
        operator == "map_async",
        concurrency,
        ordered,
        key,
        None if options is None else options.retry,
        None if options is None else options.timeout,
        on_error,
        None if options is None else options.limiter,
        ahead,
    )
