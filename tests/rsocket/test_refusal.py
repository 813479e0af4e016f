"""A refusal is heard, whatever the peer has sent meanwhile."""

import asyncio
from typing import Any

from reactive_aio.rsocket import Router, Setup, serve
from reactive_aio.rsocket.protocol.frames import Error, Payload, RequestFnf

from .wire import read, wire


async def test_a_refused_client_reads_the_reason_despite_unread_data() -> None:
    """Closing a socket with bytes that were not read would reset it."""
    judging, more_has_come = asyncio.Event(), asyncio.Event()

    async def nobody(_: Any) -> bool:
        judging.set()
        await more_has_come.wait()
        return False

    async with await serve("tcp://127.0.0.1:0", Router(), authenticate=nobody) as server:
        assert server.address is not None
        reader, writer = await asyncio.open_connection("127.0.0.1", server.address.port)
        writer.write(wire(Setup()))
        await judging.wait()
        for number in range(50):
            writer.write(wire(RequestFnf(2 * number + 1, Payload(bytes(10_000)))))
            await asyncio.sleep(0)
        more_has_come.set()
        [error] = [each for each in read(await reader.read()) if isinstance(each, Error)]
        assert error.data == b"authentication failed"
        writer.close()
        await writer.wait_closed()
