"""The operators of a `DeliveryFlow`, as steps: each is attached once for each subscription.

A step takes the session and a flow of `Tied` elements. The functions of the user see the values;
what becomes of an element is what happens to its tie.
"""

from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, cast

from .._core.arguments import refuse_awaitable
from .._core.compiler.error_notes import note_stage
from .._core.compiler.loop_runtime import no_element
from .._core.compiler.places import Place
from .._core.queues.reorder_buffer import ReorderBuffer
from .._operators.time import Cutter
from .._shared.coerce import Source, to_flow
from .._shared.element_work import ElementWork, Misused, OnError, WorkOptions
from ..limits import Limit
from ..retry import RetryPolicy
from ..stage import InlineStage, WorkerPool, describe, from_push, pull
from .delivery import ENDED, Delivery
from .errors import AlreadySettled
from .lists import lists
from .session import Session
from .ties import Failure, Group, Tied

if TYPE_CHECKING:
    from .._core.compiler.chain import Chain
    from ..flow import Flow

Step = Callable[[Session, "Flow[Any]"], "Flow[Any]"]

_COLLECTIONS: Final = (list, tuple, set, frozenset)
_CALL: Final = """
x = $call(x)
if x is None:
    drop
"""
_AWAIT: Final = """
x = await $call(x)
if x is None:
    drop
"""
_MAP = InlineStage("map", params=("call",), each=_CALL, checked=True)
_FILTER = InlineStage("filter", params=("call",), each=_CALL, checked=True)
_MAP_ASYNC = InlineStage("map_async", params=("call",), each=_AWAIT, checked=True)
_ACK_AFTER = InlineStage("ack_after", params=("call",), each=_AWAIT, checked=True)
_VALUE = InlineStage("values", each="x = x.value", checked=True)
_DELIVERY = InlineStage("as_flow", params=("make",), each="x = $make(x)", checked=True)


def placed(step: Step, place: Place | None) -> Step:
    """*step*, whose operators are written at *place*: it is taken long after it was written."""

    def step_at_place(session: Session, flow: "Flow[Any]") -> "Flow[Any]":
        made, first = step(session, flow), len(flow.chain.stages)
        if made.chain.source is not flow.chain.source:
            made.chain.place, first = place, 0
        for stage in made.chain.stages[first:]:
            stage.place = place
        return made

    return step_at_place


class Operator:
    """One operator of a subscription: what fails there is noted, as nothing may raise it."""

    def __init__(self, session: Session) -> None:
        self.session: Final = session
        self._chain: Chain | None = None

    def made(self, flow: "Flow[Any]") -> "Flow[Any]":
        """*flow* ends with this operator."""
        self._chain = flow.chain
        return flow

    def failed(self, tied: Tied[Any], error: Exception, *, is_last: bool = False) -> None:
        """The work on an element has failed, as `Session.failed` says."""
        self.note(tied, error)
        self.session.failed(tied, error, is_last=is_last)

    def note(self, tied: Tied[Any], error: Exception) -> None:
        """Note in *error* where it was raised, for dead letters and figures."""
        if self.session.is_lenient and self._chain is not None:
            note_stage(self._chain, error, tied.value)


def by_value(function: Callable[[Any], Any]) -> Callable[[Tied[Any]], Any]:
    """Call *function* with the value of an element."""

    def call(tied: Tied[Any]) -> Any:
        return function(tied.value)

    call.__qualname__ = describe(function)
    return call


def mapped(mapper: Callable[[Any], Any]) -> Step:
    """Replace each value by what *mapper* makes of it."""

    def step(session: Session, flow: "Flow[Any]") -> "Flow[Any]":
        def call(tied: Tied[Any]) -> Tied[Any] | None:
            try:
                result = mapper(tied.value)
            except Exception as error:
                operator.failed(tied, error)
                return None
            refuse_awaitable("map", mapper, result)
            if result is None:
                operator.failed(tied, no_element("map"))
                return None
            return tied.with_value(result)

        operator = Operator(session)
        call.__qualname__ = describe(mapper)
        return operator.made(flow.via(_MAP, call))

    return step


def filtered(predicate: Callable[[Any], object]) -> Step:
    """Acknowledge the elements for which *predicate* is not true."""

    def step(session: Session, flow: "Flow[Any]") -> "Flow[Any]":
        def call(tied: Tied[Any]) -> Tied[Any] | None:
            try:
                passes = predicate(tied.value)
            except Exception as error:
                operator.failed(tied, error)
                return None
            refuse_awaitable("filter", predicate, passes)
            if passes:
                return tied
            tied.tie.settle(None)
            return None

        operator = Operator(session)
        call.__qualname__ = describe(predicate)
        return operator.made(flow.via(_FILTER, call))

    return step


# -- work on each element --------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Work:
    """A coroutine function that is called with each value, and how."""

    operator: str
    function: Callable[[Any], Any]
    needs_result: bool
    """Whether the result replaces the value; without that, the element is acknowledged."""
    concurrency: int
    ordered: bool
    key: Callable[[Any], Hashable] | None
    retry: RetryPolicy | None
    timeout: float | None
    on_error: OnError[Any]
    limiter: Limit | None
    ahead: int | None

    @property
    def started(self) -> int:
        """How many elements are taken before the result of the first is there."""
        return self.concurrency if self.ahead is None else self.ahead

    def options(self, operator: Operator) -> WorkOptions:
        """Those of `ElementWork`, for elements with ties."""
        return WorkOptions(
            None if self.key is None else by_value(self.key),
            self.retry,
            self.timeout,
            partial(_failed, self, operator),
            None if self.limiter is None else _ByValue(self.limiter),
            None if self.ahead is None else self.concurrency,
        )

    async def call(self, tied: Tied[Any]) -> Tied[Any]:
        """Call the function with one value."""
        returned = self.function(tied.value)
        if isawaitable(returned):
            returned = await returned
        elif self.needs_result:
            raise Misused(self._not_awaitable(returned))
        if not self.needs_result:
            tied.tie.settle(None)
            return tied
        if returned is None:
            raise no_element(self.operator)  # a fault of this element: the others have results
        return tied.with_value(returned)

    @property
    def is_plain(self) -> bool:
        """Whether the function is just called."""
        options = (self.key, self.retry, self.timeout, self.limiter, self.ahead)
        return not any(each is not None for each in options)

    def at(self, operator: Operator) -> Callable[[Tied[Any]], Awaitable[Any]]:
        """All the work on an element, attempts and handler: the session is not over before it.

        Its result is None if the element is left out.
        """
        call = self._called(operator) if self.is_plain else self._worked(operator)
        call.__qualname__ = describe(self.function)
        return call

    def _called(self, operator: Operator) -> Callable[[Tied[Any]], Coroutine[Any, Any, Any]]:
        session = operator.session

        async def call(tied: Tied[Any]) -> Tied[Any] | None:
            session.enter()
            try:
                return await self.call(tied)
            except Misused as mistake:
                raise mistake.error from None
            except Exception as error:
                await _failed(self, operator, tied, error)
                return None
            finally:
                session.leave()

        return call

    def _worked(self, operator: Operator) -> Callable[[Tied[Any]], Coroutine[Any, Any, Any]]:
        session = operator.session
        # The origin decides what becomes of an element that failed, and counts it.
        work = ElementWork(
            self.operator,
            self.call,
            self.options(operator),
            needs_result=True,
            counts_failed=False,
        )

        async def call(tied: Tied[Any]) -> Any:
            session.enter()
            try:
                return await work(tied)
            finally:
                session.leave()

        return call

    def _not_awaitable(self, returned: object) -> TypeError:
        return TypeError(
            f"{self.operator}: mapper must be a coroutine function or return an awaitable, and "
            f"{describe(self.function)} returned {describe(returned)}; use map for a plain function"
        )


async def _failed(work: Work, operator: Operator, tied: Tied[Any], error: Exception) -> None:
    """The last attempt has failed: the element is left out, or the flow fails."""
    is_last = not work.needs_result
    if work.on_error == "fail":
        operator.failed(tied, error, is_last=is_last)
    elif work.on_error == "skip":
        operator.note(tied, error)
        tied.tie.settle(Failure(error, is_last=is_last))
    else:
        handle = work.on_error
        try:
            answer = handle(tied.value, error)
            if isawaitable(answer):
                await answer
        except Exception as another:
            operator.failed(tied, another, is_last=is_last)
        else:
            tied.tie.settle(None)


class _ByValue(Limit):
    """Admits the work on a value."""

    def __init__(self, limiter: Limit) -> None:
        self._limiter = limiter

    def __repr__(self) -> str:
        return repr(self._limiter)

    def admit(self, element: Any, /) -> AbstractAsyncContextManager[object]:
        return self._limiter.admit(element.value)


def worked(work: Work) -> Step:
    """Call a coroutine function with each value, one after another or several at a time."""
    if work.is_plain and work.concurrency == 1:
        stage = _MAP_ASYNC if work.needs_result else _ACK_AFTER

        def one_by_one(session: Session, flow: "Flow[Any]") -> "Flow[Any]":
            operator = Operator(session)
            return operator.made(flow.via(stage, work.at(operator)))

        return one_by_one
    shown = f", concurrency={work.concurrency}" if work.concurrency > 1 else ""
    shown += "" if work.ahead is None else f", ahead={work.ahead}"

    def step(session: Session, flow: "Flow[Any]") -> "Flow[Any]":
        operator = Operator(session)
        made: Flow[Any] = from_push(
            lambda downstream: WorkerPool(
                downstream,
                flow,
                work.at(operator),
                False,
                ReorderBuffer[Any](work.started, ordered=work.ordered),
                may_skip=True,
            ),
            name=f"{work.operator}({describe(work.function)}{shown})",
            holds=2 * work.started,
            checked=True,
            upstreams=(flow,),
            one_by_one=False,
        )
        return operator.made(made)

    return step


# -- several of one, and one of several ------------------------------------------------------------
def divided(mapper: Callable[[Any], Source[Any]], concurrency: int, prefetch: int) -> Step:
    """Divide each element into parts."""

    def step(session: Session, flow: "Flow[Any]") -> "Flow[Any]":
        def divide(tied: Tied[Any]) -> Source[Any]:
            try:
                made: Any = mapper(tied.value)
            except Exception as error:
                session.failed(tied, error)
                return ()
            if isinstance(made, _COLLECTIONS):
                values = [*cast("Iterable[Any]", made)]
                if any(value is None for value in values):
                    session.failed(tied, no_element("flat_map"))
                    return ()
                return _all_parts(Group(tied.tie), values)
            group = Group(tied.tie)
            parts: Flow[Any] = to_flow(made, name="flat_map")
            if parts.chain.is_pullable:
                return _pulled_parts(session, group, pull(parts))
            return _pushed_parts(session, group, parts)

        divide.__qualname__ = describe(mapper)
        return flow.flat_map(divide, concurrency=concurrency, prefetch=prefetch)

    return step


def _all_parts(group: Group, values: list[Any]) -> list[Tied[Any]]:
    parts = [Tied(value, group.add()) for value in values]
    group.close()
    return parts


def _pulled_parts(session: Session, group: Group, values: Iterator[Any]) -> Iterator[Tied[Any]]:
    try:
        for value in values:
            yield Tied(value, group.add())
    except Exception as error:
        group.close(session.failure(error))
        if not session.is_lenient:
            raise
    else:
        group.close()


def _pushed_parts(session: Session, group: Group, flow: "Flow[Any]") -> "Flow[Any]":
    def part(value: Any) -> Tied[Any]:
        return Tied(value, group.add())

    def fail(error: BaseException) -> None:
        if isinstance(error, Exception):
            group.close(session.failure(error))

    parts: Flow[Any] = flow.map(part).do_on_complete(group.close).do_on_error(fail)
    return parts.on_error_complete() if session.is_lenient else parts


def listed(size: int, within: float, cutter: Cutter | None, name: str) -> Step:
    """Collect elements into lists."""

    def step(session: Session, flow: "Flow[Any]") -> "Flow[Any]":
        return lists(flow, session, size, within, cutter, name=name)

    return step


def with_origins(session: Session, flow: "Flow[Any]") -> "Flow[Any]":
    """Make each value a pair: the parts of the source that it was made of, and the value."""

    def pair(tied: Tied[Any]) -> Tied[Any]:
        return tied.with_value((tied.tie.origins, tied.value))

    return flow.via(_MAP, pair)


# -- the end ---------------------------------------------------------------------------------------
def valued(session: Session, flow: "Flow[Any]") -> "Flow[Any]":
    """Emit the values."""
    return flow.via(_VALUE)


def handed_over(session: Session, flow: "Flow[Any]") -> "Flow[Any]":
    """Emit a `Delivery` for each element."""

    def delivery(tied: Tied[Any]) -> Delivery[Any]:
        settle = partial(_settle, session, tied)
        return Delivery(tied.value, partial(settle, "ack()", None), partial(settle, "nack()"))

    delivery.__qualname__ = Delivery.__qualname__
    return flow.via(_DELIVERY, delivery)


def _settle(session: Session, tied: Tied[Any], call: str, error: Exception | None) -> None:
    session.check_loop(call)
    # A flow that has failed has nacked it; its error is on the way to the consumer.
    failure = None if error is None else Failure(error, is_last=True)
    if not tied.tie.settle(failure) and not session.has_failed:
        raise AlreadySettled(call, ENDED)
