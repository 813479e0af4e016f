"""Code of a user: iterables, functions and context managers that raise an error."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Generator
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import reactive_aio as r

MANY: Final = 1000
"""More elements than an operator reads ahead."""


@dataclass(eq=False)
class Code:
    """Whatever it raises is made by *error*."""

    error: Callable[[], BaseException]
    opened: int = 0
    """How many iterations have begun."""
    closed: int = 0
    """How many iterations have ended."""

    @property
    def numbers(self) -> Any:
        """A source that raises nothing."""
        return Numbers(self)

    @property
    def endless(self) -> Any:
        """A source that raises nothing, and is never read to its end."""
        return Numbers(self, is_endless=True)

    @property
    def failing(self) -> Any:
        """A source that raises after its first element."""
        return Numbers(self, fails=True)

    @property
    def failing_cleanup(self) -> Any:
        """A source whose ``finally`` clause raises."""
        return Numbers(self, is_endless=True, fails_at_end=True)

    def fails(self, *_: object) -> Any:
        raise self.error()

    def fails_at_2(self, x: int) -> int:
        return self.fails() if x == 2 else x

    async def fails_at_2_async(self, x: int) -> int:
        await asyncio.sleep(0)
        return self.fails_at_2(x)

    def emits(self, to: Any) -> None:
        to.try_emit(1)
        self.fails()

    async def emits_async(self, to: Any) -> None:
        await to.emit(1)
        self.fails()

    def signals(self, to: Any) -> None:
        """The function of `create`, or the producer of a processor, fails without raising."""
        to.fail(self.error())

    def subscribe(self, subscriber: Any) -> None:
        """As a foreign publisher, which sends its error."""
        subscriber.on_subscribe(self)
        subscriber.on_error(self.error())

    def request(self, _: int) -> None:
        """Nothing is left to send."""

    def cancel(self) -> None:
        """Nothing is to be stopped."""

    def gives_numbers(self, _: object) -> Any:
        return r.from_iterable(self.numbers)

    async def cleans_up_slowly(self) -> AsyncIterator[int]:
        try:
            async for number in self.numbers:
                yield number
        finally:
            await asyncio.sleep(0.01)
            self.fails()

    async def emits_and_cleans_up(self, to: Any) -> None:
        try:
            for number in range(MANY):
                await to.emit(number)
            await asyncio.Event().wait()
        finally:
            self.fails()

    async def works_and_cleans_up(self, number: int) -> int:
        """The call for 1 returns; that for 2 raises when it is cancelled."""
        try:
            await asyncio.sleep(0)  # so that the others have begun
            if number != 1:
                await asyncio.Event().wait()
            return number
        finally:
            if number == 2:
                self.fails()

    def listens(self, to: Any) -> None:
        """The function of `create`: it emits, and is told when the flow is cancelled."""
        self.opened += 1
        to.on_cancel(self._close)
        to.try_emit(1)

    def _close(self) -> None:
        self.closed += 1

    @property
    def opens(self) -> "Fails":
        return Fails(self, "__iter__")

    @property
    def steps(self) -> "Fails":
        return Fails(self, "__next__")

    def manager(self, step: str) -> "Manager":
        return Manager(self, step)

    def async_manager(self, step: str) -> "AsyncManager":
        return AsyncManager(self, step)


@dataclass(eq=False)
class Numbers:
    """Numbers from 1, which can be iterated in both ways."""

    code: Code
    fails: bool = False
    is_endless: bool = False
    """Some operators read far ahead. At the end of the elements, a cleanup would be work."""
    fails_at_end: bool = False

    def __iter__(self) -> Generator[int]:
        self.code.opened += 1
        try:
            yield 1
            if self.fails:
                self.code.fails()
            yield from count(2) if self.is_endless else range(2, MANY)
        finally:
            self.code.closed += 1
            if self.fails_at_end:
                self.code.fails()

    async def __aiter__(self) -> AsyncIterator[int]:
        with contextlib.closing(iter(self)) as numbers:
            for number in numbers:
                yield number
                await asyncio.sleep(0)


@dataclass(eq=False)
class Fails:
    """An iterable whose method *at* raises."""

    code: Code
    at: str

    def __iter__(self) -> "Fails":
        return self.code.fails() if self.at == "__iter__" else self

    def __next__(self) -> Any:
        return self.code.fails()


@dataclass(eq=False)
class Manager(contextlib.AbstractContextManager[int]):
    """A context manager that raises when it is entered, or when it is left."""

    code: Code
    fails_at: str

    def __enter__(self) -> int:
        return self.code.fails() if self.fails_at == "enter" else 1

    def __exit__(self, *_: object) -> None:
        if self.fails_at == "exit":
            self.code.fails()


@dataclass(eq=False)
class AsyncManager(contextlib.AbstractAsyncContextManager[int]):
    """The same for ``async with``."""

    code: Code
    fails_at: str

    async def __aenter__(self) -> int:
        await asyncio.sleep(0)
        return self.code.fails() if self.fails_at == "enter" else 1

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(0)
        if self.fails_at == "exit":
            self.code.fails()
