"""Waiting until something is so, without looking again and again: the time of the loop can pass."""

import asyncio
from collections.abc import Callable
from threading import get_ident

__all__ = ("Changes",)


class Changes:
    """Whoever changes something says so, from any thread; whoever waits then looks again."""

    def __init__(self) -> None:
        self._waiters: dict[asyncio.Future[None], int] = {}

    def changed(self) -> None:
        for waiter, thread in list(self._waiters.items()):
            if thread == get_ident():
                _wake(waiter)
            else:
                waiter.get_loop().call_soon_threadsafe(_wake, waiter)

    async def until(self, condition: Callable[[], object], within: float) -> bool:
        """Wait until *condition* holds; False when it does not hold *within* so many seconds."""
        if condition():
            return True
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(within):
                while True:
                    # First it waits, then it looks: a change from a thread comes at any moment.
                    waiter = loop.create_future()
                    self._waiters[waiter] = get_ident()
                    try:
                        if condition():
                            return True
                        await waiter
                    finally:
                        del self._waiters[waiter]
        except TimeoutError:
            return bool(condition())


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
