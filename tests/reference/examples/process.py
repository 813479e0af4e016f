"""Examples of sources that run programs."""

import reactive_aio as rx


async def from_process() -> None:
    program = rx.from_process(["sort", "-n"], stdin=[b"10\n", b"9\n"])
    print(await program.lines().to_list())
