"""Work that accompanies the block of an asynchronous context manager."""

from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio

__all__ = ("in_background",)


@asynccontextmanager
async def in_background(
    work: Callable[..., Coroutine[Any, Any, object]], *arguments: Any
) -> AsyncGenerator[None]:
    """Run *work* beside the block, and cancel it at the end of the block.

    An exception of the block is raised as it is; a task group would wrap it.
    """
    failure: Exception | None = None
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(work, *arguments)
            try:
                yield
            except Exception as error:
                failure = error
            group.cancel_scope.cancel()
        if failure is not None:
            raise failure
    finally:
        failure = None  # it refers to this frame
