"""Sources with a resource: a connection, a file, a lock."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .._core.failures import STOPS_PROGRAM, as_failure, is_cancelled
from .._core.loop import Future, cancel_task
from .._shared.coerce import WINDOW, Source, to_flow
from ..errors import Interrupted
from ..stage import (
    ForwardingCoordinator,
    describe,
    from_push,
    require_sync_callable,
)

if TYPE_CHECKING:
    from .._core.loop import Task
    from ..flow import Flow
    from ..stage import InnerSubscriber

__all__ = ("using",)

T = TypeVar("T")
R = TypeVar("R")

Manager = AbstractContextManager[R, Any] | AbstractAsyncContextManager[R, Any]


def using(resource: Callable[[], Manager[R]], flow: Callable[[R], Source[T]]) -> "Flow[T]":
    """Emit the elements of a flow made from a resource, and release the resource exactly once.

    ::

        using(open_something, lambda it: from_iterable("abc"))
        a--b--c--|

    ``resource()`` makes a context manager for each subscription, with its first request. ``async
    with`` is preferred over ``with``, and is entered and exited in one task. *flow* receives the
    value of the context manager and returns a flow, a publisher, an iterable or an asynchronous
    iterable. The context manager is exited after the cleanup of that source, and before the
    terminal signal is passed on. As in a ``with`` statement, it receives the error of a source that
    failed and may suppress it (the flow then completes). Its own error fails the flow, with that of
    the source as its ``__context__``.

    Demand: passed through, at most 256 at a time.
    Completes: when the source completes, and the resource has been released.
    Fails: when a function or the context manager raises, or the source fails.
    Cancels: the source is cancelled and the resource released: at once if both are synchronous;
        otherwise ``aclose`` waits for it.
    Holds: 256 elements, which were requested and wait for a slow subscriber.
    Rules: 1.4, 3.13
    """
    require_sync_callable(
        "using", "resource", resource, "give a function that makes a context manager"
    )
    remedy = "give a function that makes a flow"
    require_sync_callable("using", "flow", flow, remedy, takes=1, may_generate=True)

    return from_push(
        lambda downstream: _Using(downstream, resource, flow),
        name=f"using({describe(resource)})",
        holds=WINDOW,
        checked=True,
        window=WINDOW,
        lossy=None,
    )


@dataclass(eq=False, repr=False)
class _Using(ForwardingCoordinator[T]):
    """Holds the resource of one subscription."""

    _resource: Callable[[], Manager[Any]]
    _flow: Callable[[Any], Source[T]]
    _manager: AbstractContextManager[Any, Any] | None = None
    _task: "Task[None] | None" = None
    _release: Future[BaseException | None] | None = None
    _cause: BaseException | None = None
    """What the context manager is exited with: an error that is not one of its release."""

    # -- entering ---------------------------------------------------------------------------------
    def on_start(self) -> None:
        manager = cast("Any", self._resource())
        if hasattr(manager, "__aenter__") and hasattr(manager, "__aexit__"):
            self._task = self.loop_handle.create_task(
                self._hold(manager), "the resource of using()"
            )
        elif hasattr(manager, "__enter__") and hasattr(manager, "__exit__"):
            value = manager.__enter__()
            self._manager = manager
            self._open(value)
        else:
            kind = type(manager).__name__
            raise TypeError(f"using: resource returned {kind}, which is not a context manager")

    def _open(self, value: Any) -> None:
        try:
            made = self._flow(value)
            source = to_flow(made, name="using")
            self.attach(source)
        except BaseException as error:
            self._exit_resource(as_failure(error))
            if isinstance(error, STOPS_PROGRAM):
                raise

    async def _hold(self, manager: AbstractAsyncContextManager[Any, Any]) -> None:
        """Enter and exit in one task, as cancel scopes and task groups require."""
        try:
            async with manager as value:
                if not self.is_closed:
                    self._release = self.loop_handle.create_future()
                    self.submit(self._open, value)
                    error = await self._release
                    if self.upstream is not None:
                        await self.upstream.aclose()
                    if error is not None:
                        raise error
        except BaseException as error:
            if is_cancelled(self._task, error):
                if not self.is_closed:
                    cancelled = Interrupted("the task of using() was cancelled")
                    cancelled.__cause__ = error
                    self.submit(self.fail, cancelled)
                raise
            if isinstance(error, STOPS_PROGRAM):
                self.submit(self._released, as_failure(error))
                raise
            self._task = None  # it ends with the following
            self.submit(self._released, as_failure(error))
        else:
            self._task = None
            self.submit(self._released, None)

    # -- exiting ----------------------------------------------------------------------------------
    def on_elements(self, inner: "InnerSubscriber[Any]") -> None:
        self.emit(inner.take(self.demand.outstanding))
        if inner.is_done:
            self._exit_resource(inner.error)

    def _exit_resource(self, error: BaseException | None) -> None:
        """Release the resource when the source has cleaned up, then call `_released`."""
        manager, self._manager = self._manager, None
        self._cause = error if self._cause is None else self._cause
        if self._release is not None:
            if not self._release.done():
                self._release.set_result(error)
        elif manager is None:
            pass
        elif self.upstream is None or self.upstream.is_clean:
            self._released(_exit(manager, error))
        else:
            work = self._wait_and_exit(manager, error)
            self._task = self.loop_handle.create_task(work, "exiting using()")

    def _released(self, error: BaseException | None) -> None:
        if not self.is_closed:
            self.complete() if error is None else self.fail(error)
        elif error is not None and error is not self._cause:
            self.report_cleanup("releasing the resource of using() raised", error)

    def on_stop(self) -> None:
        if self._task is None or self._release is not None:
            self._exit_resource(None)
        elif self.upstream is None:
            cancel_task(self._task)  # it has not entered yet

    async def _wait_and_exit(
        self, manager: AbstractContextManager[Any, Any], error: BaseException | None
    ) -> None:
        try:
            if self.upstream is not None:
                await self.upstream.aclose()
        finally:
            self._task = None  # it ends with the following
            self.submit(self._released, _exit(manager, error))

    @property
    def tasks(self) -> "Sequence[Future[Any]]":
        return [*super().tasks, *(() if self._task is None else (self._task,))]


def _exit(
    manager: AbstractContextManager[Any, Any], error: BaseException | None
) -> BaseException | None:
    """Exit *manager* as a `with` statement does; return the error that remains, if any."""
    try:
        if error is None:
            manager.__exit__(None, None, None)
        else:
            _exit_after(manager, error)
    except STOPS_PROGRAM:
        raise
    except BaseException as raised:
        return as_failure(raised)
    return None


def _exit_after(manager: AbstractContextManager[Any, Any], error: BaseException) -> None:
    try:
        raise error
    except BaseException:  # what the exit raises has this error as its context
        if not manager.__exit__(type(error), error, error.__traceback__):
            raise
