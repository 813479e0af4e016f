"""Examples of sources that read files."""

import asyncio
from pathlib import Path
from tempfile import gettempdir

import reactive_aio as rx


async def from_lines() -> None:
    path = Path(gettempdir(), "orders.txt")
    await asyncio.to_thread(path.write_text, "tea 3\nmilk 1\n")
    print(await rx.from_lines(path).map(str.split).to_list())
    await asyncio.to_thread(path.unlink)
