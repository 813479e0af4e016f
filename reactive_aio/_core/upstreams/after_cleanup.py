"""What follows an upstream begins when that has cleaned up.

Whatever replaces a source uses this: `Coordinator.release`, and the sources that `share`, `replay`
and `cache` start afresh.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ...errors import Interrupted
from ..loop import wait_for_others

if TYPE_CHECKING:
    from ..loop import LoopHandle, Task
    from .inner_subscriber import InnerSubscriber

Then = Callable[[BaseException | None, Interrupted | None], object]
"""Receives what the cleanup has raised, and the reason why the wait for it was cancelled."""


def after_cleanup(
    loop_handle: "LoopHandle", inner: "InnerSubscriber[Any]", then: Then
) -> "Task[None]":
    """Call *then* when *inner*, which is done, has cleaned up; return the task that waits for it.

    A cancellation of the task does not reach the cleanup.
    """
    name = f"the wait for the cleanup of {inner.source_name}"
    return loop_handle.create_task(_wait(inner, then), name, partial(_on_done, then))


async def _wait(inner: "InnerSubscriber[Any]", then: Then) -> None:
    raised: BaseException | None = None
    try:
        await inner.aclose()
    except Exception as error:
        raised = error
    then(raised, None)


def _on_done(then: Then, task: "Task[None]") -> None:
    if task.cancelled():
        then(None, Interrupted(f"the task {task.get_name()!r} was cancelled from outside"))


@dataclass(slots=True, eq=False, repr=False)
class SourceBefore:
    """The source that subscribers have shared before, until it has cleaned up.

    *go_on* is called then, with the reason if the wait was cancelled; not where there was nothing
    to wait for.
    """

    _go_on: Callable[[Interrupted | None], object]
    _wait: "Task[None] | None" = None

    def leave(self, loop_handle: "LoopHandle", inner: "InnerSubscriber[Any]") -> None:
        """*inner* is the source, which has ended or is to be cancelled."""
        inner.cancel()
        inner.finish()
        if not inner.is_clean:
            on_clean = partial(self._on_clean, loop_handle)
            self._wait = after_cleanup(loop_handle, inner, on_clean)

    def forget(self) -> None:
        """Its loop is closed."""
        self._wait = None

    @property
    def is_settled(self) -> bool:
        return self._wait is None

    async def settle(self) -> None:
        if self._wait is not None:
            await wait_for_others((self._wait,))

    def _on_clean(
        self,
        loop_handle: "LoopHandle",
        error: BaseException | None,
        interrupted: Interrupted | None,
    ) -> None:
        self._wait = None
        if error is not None:
            loop_handle.report("the cleanup of a shared source raised", error)
        self._go_on(interrupted)
