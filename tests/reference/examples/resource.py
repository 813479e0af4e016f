"""Examples of sources that own a resource."""

from collections.abc import Generator
from contextlib import contextmanager

import reactive_aio as rx


async def using() -> None:
    @contextmanager
    def connection() -> Generator[list[str], None, None]:
        print("opened")
        yield ["row 1", "row 2", "row 3"]
        print("closed")

    print(await rx.using(connection, lambda rows: rows).take(2).to_list())
