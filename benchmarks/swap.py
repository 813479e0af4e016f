"""Two tasks that hand over lists: the least code that decouples a producer from a consumer."""

import asyncio
from collections.abc import AsyncIterator, Iterable

from .functions import total


class Swap:
    """One list is filled while the other one is read."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._chunk: list[int] | None = None
        self._is_ended = False
        self._filled: asyncio.Future[None] | None = None
        self._taken: asyncio.Future[None] | None = None

    async def fill(self, elements: Iterable[int], size: int) -> None:
        """Hand over *elements* in lists of *size*."""
        chunk: list[int] = []
        for element in elements:
            chunk.append(element)
            if len(chunk) == size:
                await self.put(chunk)
                chunk = []
        if chunk:
            await self.put(chunk)
        self.end()

    async def fill_from(self, elements: AsyncIterator[int], size: int) -> None:
        """The same for an asynchronous iterator."""
        chunk: list[int] = []
        async for element in elements:
            chunk.append(element)
            if len(chunk) == size:
                await self.put(chunk)
                chunk = []
        if chunk:
            await self.put(chunk)
        self.end()

    async def put(self, chunk: list[int]) -> None:
        """Hand over *chunk*, when the one before it has been taken."""
        while self._chunk is not None:
            self._taken = self._loop.create_future()
            await self._taken
        self._chunk = chunk
        self._wake()

    def end(self) -> None:
        self._is_ended = True
        self._wake()

    def _wake(self) -> None:
        if self._filled is not None:
            self._filled.set_result(None)
            self._filled = None

    async def take(self) -> list[int]:
        """Return the next list; an empty one at the end."""
        while self._chunk is None:
            if self._is_ended:
                return []
            self._filled = self._loop.create_future()
            await self._filled
        chunk, self._chunk = self._chunk, None
        if self._taken is not None:
            self._taken.set_result(None)
            self._taken = None
        return chunk

    async def elements(self) -> AsyncIterator[int]:
        """The elements of all lists, for ``async for``."""
        while chunk := await self.take():
            for element in chunk:
                yield element


async def total_beside(elements: AsyncIterator[int]) -> int:
    """Add up *elements*, which a task of their own hands over in lists of 256."""
    swap = Swap()
    task = asyncio.create_task(swap.fill_from(elements, 256))
    found = await total(swap.elements())
    await task
    return found
