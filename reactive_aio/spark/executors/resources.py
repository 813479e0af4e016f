"""WorkerResource: what each of Spark's Python workers opens once, such as a client or a pool."""

import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar, cast
from uuid import uuid4

from ..._core.loop import Future, LoopHandle, Task, shield
from ...stage import describe

T = TypeVar("T")
Manager = AbstractContextManager[T, Any] | AbstractAsyncContextManager[T, Any]

_log: Final = logging.getLogger("reactive_aio.spark")


class WorkerResource(Generic[T]):
    """Something that is opened once in each worker process: ``value = await resource()``.

    `map_flow.resources` makes it. It is pickled with the pipeline that refers to it. In a worker
    the first call opens it, on the worker's event loop, and all tasks that run there one after
    another share it. The worker closes it when no task has run for half a minute (before Spark
    ends idle workers), and after a task that failed, with which Spark ends the worker. A worker
    that is killed closes nothing.

    The same pipeline on a loop of your own needs ``async with resource:`` around its run, which
    opens and closes it there.
    """

    def __init__(self, open: Callable[[], Manager[T]], key: str | None = None) -> None:
        if not callable(cast("object", open)):
            raise TypeError(
                "map_flow.resources: open must be a function that opens the resource in a worker, "
                f"not {describe(open)} ({type(open).__name__}), which belongs to this process"
            )
        self._open = open
        self._key = key or uuid4().hex
        self._here: AsyncExitStack | None = None
        self._value: T | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return (WorkerResource, (self._open, self._key))

    def __repr__(self) -> str:
        return f"<WorkerResource {describe(self._open)}>"

    async def __call__(self) -> T:
        """Return the open resource; in a worker, open it first if it is not."""
        opened = OPEN_RESOURCES.get()
        if opened is not None:
            return cast("T", await opened.get(self._key, self.enter))
        if self._here is None:
            raise RuntimeError(
                f"{self!r} is opened by Spark's workers only; on a loop of your own write `async "
                "with resource:` around what uses it"
            )
        return cast("T", self._value)

    async def __aenter__(self) -> Self:
        if self._here is not None:
            raise RuntimeError(f"{self!r} is open already; one `async with` is enough")
        stack = AsyncExitStack()
        self._value, self._here = await self.enter(stack), stack
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        stack, self._here, self._value = self._here, None, None
        if stack is not None:
            await stack.__aexit__(kind, error, traceback)

    async def enter(self, stack: AsyncExitStack) -> T:
        """Open it; *stack* closes it."""
        manager = cast("Any", self._open())
        if hasattr(manager, "__aenter__") and hasattr(manager, "__aexit__"):
            return cast("T", await stack.enter_async_context(manager))
        if hasattr(manager, "__enter__") and hasattr(manager, "__exit__"):
            return cast("T", stack.enter_context(manager))
        close = getattr(manager, "close", None)
        if callable(close) and hasattr(manager, "__await__"):
            close()  # a coroutine, which would warn that it was never awaited
        raise TypeError(
            f"map_flow.resources: {describe(self._open)} returned {type(manager).__name__}, which "
            "is not a context manager; give a class such as httpx.AsyncClient, or a function with "
            "@asynccontextmanager that yields the resource"
        )


# -- in a worker -----------------------------------------------------------------------------------
Enter = Callable[[AsyncExitStack], Awaitable[Any]]


@dataclass(eq=False)
class _Held:
    """One resource, entered and exited in one task, as cancel scopes and task groups require."""

    value: Future[Any]
    closing: Future[None]
    task: Task[Any] | None = None


@dataclass(eq=False)
class OpenResources:
    """The resources that a worker has opened. Its methods are called on the worker's loop."""

    _held: dict[str, _Held] = field(default_factory=dict[str, _Held])

    async def get(self, key: str, enter: Enter) -> Any:
        """Return the resource with *key*; the first call enters it."""
        held = self._held.get(key)
        if held is None:
            loop_handle = LoopHandle("a resource")
            held = _Held(loop_handle.create_future(), loop_handle.create_future())
            self._held[key] = held
            held.task = loop_handle.create_task(self._hold(key, held, enter), "a resource")
        return await shield(held.value)  # others wait for it as well

    async def _hold(self, key: str, held: _Held, enter: Enter) -> None:
        stack = AsyncExitStack()
        try:
            value = await enter(stack)
        except BaseException as error:
            self._held.pop(key, None)
            await stack.aclose()
            held.value.set_exception(error)
            held.value.exception()  # reported by those who wait; there may be none any more
            if not isinstance(error, Exception):
                raise
            return
        held.value.set_result(value)
        try:
            await held.closing
        finally:
            try:
                await stack.aclose()
            except Exception:
                _log.warning("a resource of map_flow could not be closed", exc_info=True)

    async def aclose(self) -> None:
        """Close all, the last one that was opened first."""
        while self._held:
            _, held = self._held.popitem()
            if not held.closing.done():
                held.closing.set_result(None)
            if held.task is not None:
                await held.task


OPEN_RESOURCES: Final[ContextVar[OpenResources | None]] = ContextVar("resources", default=None)
"""The resources of the worker, in the context of a flow that runs there."""
