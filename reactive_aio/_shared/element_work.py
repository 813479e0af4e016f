"""The work that ``map_async`` and ``for_each`` do with each element, and what limits it."""

from collections.abc import Callable, Hashable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from inspect import isawaitable
from random import random
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from .._core.arguments import require_hashable
from .._core.compiler.loop_runtime import no_element
from .._core.failures import as_failure, is_cancelled_here
from .._core.loop import CancelledError, Lock, LoopHandle, TimeLimit, sleep
from .._core.losses import DropCounter
from .._core.observation.awaited import tells_wait
from ..errors import TimedOut
from ..limits import ConcurrencyLimit, Limit, Limits, all_of, require_limit
from ..retry import Attempts, RetryPolicy
from ..stage import Duration, Fluent, describe, require_callable, require_sync_callable, to_seconds

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

__all__ = ("ElementWork", "Misused", "OnError", "WorkOptions", "work_options")

T = TypeVar("T")

OnError = Literal["fail", "skip"] | Callable[[T, Exception], object]
"""What happens when the work on an element has failed.

``"fail"``  the flow fails
``"skip"``  the element is left out
a function  it is called with the element and the error, and awaited if it is to be; the element is
            left out
"""


@dataclass(frozen=True, slots=True)
class WorkOptions:
    """What is requested, besides calling a function."""

    key: Callable[[Any], Hashable] | None
    retry: RetryPolicy | None
    timeout: float | None
    on_error: OnError[Any]
    limiter: Limit | None
    at_a_time: int | None = None
    """How many attempts run at the same time, if the owner starts work on more elements."""


_NOTHING: Final = WorkOptions(None, None, None, "fail", None)


def work_options(
    operator: str,
    *,
    key: Callable[[Any], Hashable] | None,
    retry: RetryPolicy | int | None,
    timeout: Duration | None,
    on_error: OnError[Any],
    limiter: Limits | None,
    at_a_time: int | None = None,
) -> WorkOptions | None:
    """Check the arguments of *operator*; None if they leave everything as it is."""
    if key is not None:
        remedy = "make the key without awaiting."
        require_sync_callable(operator, "key", key, remedy, takes=1)
    if isinstance(on_error, str):
        if on_error not in ("fail", "skip"):
            raise ValueError(
                f"{operator}: on_error must be 'fail', 'skip' or a function of the element and the "
                f"error, not {on_error!r}"
            )
    else:
        require_callable(operator, "on_error", on_error, takes=2)
    limit = None if limiter is None else require_limit(operator, limiter)
    policy = None if retry is None else RetryPolicy.of(retry)
    seconds = None if timeout is None else to_seconds(timeout, f"{operator}: timeout")
    options = WorkOptions(key, policy, seconds, on_error, limit, at_a_time)
    return None if options == _NOTHING else options


class ElementWork:
    """Calls a function with each element of one subscription, as the options say.

    The result of a call is that of the function, or None if the element is left out.
    """

    __slots__ = (
        "_function",
        "_keys",
        "_left_out",
        "_limiter",
        "_loop_handle",
        "_needs_result",
        "_operator",
        "_options",
    )

    def __init__(
        self,
        operator: str,
        function: Callable[[Any], Any],
        options: WorkOptions,
        *,
        needs_result: bool,
        counts_failed: bool = True,
    ) -> None:
        self._operator = operator
        self._function = function
        self._options = options
        self._limiter = _limiter_of(options)
        self._needs_result = needs_result
        self._loop_handle = LoopHandle(operator)
        counts = counts_failed and options.on_error != "fail"
        self._left_out = DropCounter(operator) if counts else None
        self._keys: dict[Any, _Turns] = {}
        """The keys of elements that are being worked on, or wait for their turn."""

    def __repr__(self) -> str:
        return describe(self._function)

    async def __call__(self, element: Any) -> Any:
        if self._options.key is None:
            return await self._work(element)
        async with self._turn(element, self._options.key):
            return await self._work(element)

    @asynccontextmanager
    @tells_wait(lambda _: "an earlier element with the same key")
    async def _turn(self, element: Any, key: Callable[[Any], Hashable]) -> "AsyncGenerator[None]":
        """Wait until the elements before it with the same key are done."""
        name = key(element)
        require_hashable(self._operator, key, name)
        turns = self._keys.get(name)
        if turns is None:
            turns = self._keys[name] = _Turns(Lock())
        turns.elements += 1
        try:
            async with turns.lock:
                yield
        finally:
            turns.elements -= 1
            if not turns.elements:
                del self._keys[name]

    async def _work(self, element: Any) -> Any:
        policy = self._options.retry
        attempts = Attempts(policy, self._loop_handle.time()) if policy is not None else None
        while True:
            try:
                return await self._attempt(element)
            except Misused as mistake:
                raise mistake.error from None
            except Exception as error:
                wait = None
                if attempts is not None:
                    wait = attempts.failed(error, self._loop_handle.time(), random())
                if wait is None:
                    return await self._failed(element, error)
            if wait and attempts is not None:
                await self._pause(wait, attempts)

    @tells_wait(lambda local: local["attempts"].delay_text)
    async def _pause(self, seconds: float, attempts: Attempts) -> None:
        await sleep(seconds)

    @tells_wait(
        lambda local: None if local["_is_admitted"] else f"the limiter {local['limiter']!r}"
    )
    async def _attempt(self, element: Any) -> Any:
        options, limiter = self._options, self._limiter
        _is_admitted = False  # which reports read
        admission = nullcontext() if limiter is None else limiter.admit(element)
        async with admission:
            _is_admitted = True
            if options.timeout is None:
                return await self._call(element)
            limit = TimeLimit(options.timeout)
            try:
                with limit:
                    return await self._call(element)
            except TimeoutError as error:
                if limit.is_expired:
                    what = f"{self._operator}: {describe(self._function)} took longer than"
                    raise TimedOut(f"{what} {options.timeout:g} s") from error
                raise

    async def _call(self, element: Any) -> Any:
        try:
            return await self._call_function(element)
        except CancelledError as error:
            if is_cancelled_here(error):
                raise
            raise as_failure(error) from error  # of its own: the call has failed

    async def _call_function(self, element: Any) -> Any:
        returned = self._function(element)
        if not isawaitable(returned):
            if not self._needs_result:
                return True
            remedy = f"use {self._operator.removesuffix('_async')} for a plain function"
            if isinstance(cast("object", returned), Fluent):
                remedy = "use flat_map to read the flow"
            raise Misused(
                TypeError(
                    f"{self._operator}: mapper must be a coroutine function or return an "
                    f"awaitable, and {describe(self._function)} returned {describe(returned)}; "
                    f"{remedy}"
                )
            )
        result = await returned
        if not self._needs_result:
            return True
        if result is None:
            raise Misused(no_element(self._operator))
        return result

    async def _failed(self, element: Any, error: Exception) -> None:
        handle = self._options.on_error
        if isinstance(handle, str):
            if handle == "fail":
                raise error
        else:
            answer = handle(element, error)
            if isawaitable(answer):
                await answer
        if self._left_out is not None:
            self._left_out.add("failed")


def _limiter_of(options: WorkOptions) -> Limit | None:
    """What admits the attempts of one subscription."""
    if options.at_a_time is None:
        return options.limiter
    # Before the others: none of theirs is held while an attempt waits for its turn here.
    places = ConcurrencyLimit(options.at_a_time)
    return all_of([places] if options.limiter is None else [places, options.limiter])


@dataclass(slots=True, eq=False)
class _Turns:
    """The turns of the elements with one key."""

    lock: Lock
    elements: int = 0


class Misused(Exception):
    """The function is of the wrong kind: no element would succeed, so none is left out."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error
