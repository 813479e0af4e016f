"""Waiting for something that happens in another process."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

SECONDS = 60.0


async def until(condition: Callable[[], object | Awaitable[object]]) -> None:
    """Wait until *condition* holds."""
    async with asyncio.timeout(SECONDS):
        while True:
            found = condition()
            if asyncio.iscoroutine(cast("Any", found)):
                found = await cast("Awaitable[object]", found)
            if found:
                return
            await asyncio.sleep(0.005)
