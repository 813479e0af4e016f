"""Examples of operators that split bytes."""

import reactive_aio as rx


async def lines() -> None:
    chunks = rx.just(b"tea,3\nmi", b"lk,1\n")
    print(await chunks.lines().to_list())


async def json_lines() -> None:
    chunks = rx.just(b'{"n": 1}\n{"n"', b": 2}\n")
    print(await chunks.json_lines().to_list())


async def delimited() -> None:
    chunks = rx.just(b"a.txt\0b.", b"txt\0")
    print(await chunks.delimited(b"\0").to_list())
