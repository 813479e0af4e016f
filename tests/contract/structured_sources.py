"""Asynchronous generators as clients of servers are written: with task groups, and cleanups.

A `Sources` notes which of them were opened and closed.
"""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing

import anyio

__all__ = ("CHILD_FAILS_AT", "STRUCTURED", "ChildError", "CleanupError", "Sources")

CHILD_FAILS_AT = 4
"""The element before which a child task fails."""


class ChildError(Exception):
    """Of a task that a source has started."""


class CleanupError(Exception):
    """Of a ``finally`` clause."""


class Sources:
    """Sources of the numbers below *count*."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.opened = 0
        self.closed = 0
        self.finished_count = 0
        """How many were read to their end."""

    def numbers(self) -> Generator[int]:
        self.opened += 1
        try:
            yield from range(self.count)
            self.finished_count += 1
        finally:
            self.closed += 1

    async def generator(self) -> AsyncGenerator[int]:
        numbers = self.numbers()
        try:
            for number in numbers:
                await asyncio.sleep(0)
                yield number
        finally:
            try:
                await asyncio.sleep(0)
            finally:  # a child that fails at that moment cancels the wait
                numbers.close()

    async def in_a_task_group(self) -> AsyncGenerator[int]:
        async with asyncio.TaskGroup() as group:
            child = group.create_task(self.pulse())
            async with aclosing(self.generator()) as numbers:
                async for number in numbers:
                    yield number
            child.cancel()

    async def in_an_anyio_task_group(self) -> AsyncGenerator[int]:
        async with anyio.create_task_group() as group:
            group.start_soon(self.pulse)
            async with aclosing(self.generator()) as numbers:
                async for number in numbers:
                    yield number
            group.cancel_scope.cancel()

    async def with_a_child_that_fails(self) -> AsyncGenerator[int]:
        async with asyncio.TaskGroup() as group:
            failing = asyncio.Event()
            group.create_task(self.fail(failing))
            async with aclosing(self.generator()) as numbers:
                async for number in numbers:
                    if number == CHILD_FAILS_AT:
                        failing.set()
                    yield number

    async def with_a_cleanup_that_fails(self) -> AsyncGenerator[int]:
        try:
            async with aclosing(self.generator()) as numbers:
                async for number in numbers:
                    yield number
        finally:
            raise CleanupError

    async def pulse(self) -> None:
        """Like the heartbeat of a connection."""
        for _ in range(10**6):
            await asyncio.sleep(0.5)

    async def fail(self, when: asyncio.Event) -> None:
        await when.wait()
        raise ChildError


STRUCTURED = {
    "a task group": (Sources.in_a_task_group, ()),
    "an anyio task group": (Sources.in_an_anyio_task_group, ()),
    "a child that fails": (Sources.with_a_child_that_fails, (ExceptionGroup,)),
    "a cleanup that fails": (Sources.with_a_cleanup_that_fails, (CleanupError,)),
}
"""The sources, and the errors that they may end with."""
