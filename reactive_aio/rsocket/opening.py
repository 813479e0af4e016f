"""What `connect` and `serve` return: it can be awaited, and entered by ``async with``."""

from collections.abc import Coroutine, Generator
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from anyio.abc import AsyncResource

C = TypeVar("C", bound=AsyncResource)


class Opening(Coroutine[Any, Any, C], AbstractAsyncContextManager[C]):
    """The opening of a client or a server, which `await` returns and ``async with`` also closes.

    It is a coroutine, so that tasks can be made of it.
    """

    def __init__(self, name: str, coroutine: Coroutine[Any, Any, C]) -> None:
        named: Any = coroutine
        # For the repr of a task, and the warning about a coroutine that was never awaited.
        named.__name__ = named.__qualname__ = name
        self.__name__: str = name
        self.__qualname__: str = name
        self._coroutine = coroutine
        self._opened: C | None = None

    def __repr__(self) -> str:
        return f"<opening by {self.__qualname__}>"

    def __await__(self) -> Generator[Any, Any, C]:
        return self._coroutine.__await__()

    async def __aenter__(self) -> C:
        self._opened = await self._coroutine
        return self._opened

    async def __aexit__(self, *_: object) -> None:
        if self._opened is not None:
            await self._opened.aclose()

    # -- a coroutine -------------------------------------------------------------------------------
    def send(self, value: Any, /) -> Any:
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        return self._coroutine.throw(*error)

    def close(self) -> None:
        self._coroutine.close()
