"""What our client does with the server of another library, which has the routes of the kit."""

from reactive_aio import from_iterable
from reactive_aio.rsocket import connect
from reactive_aio.testing import SubscriberProbe

__all__ = ("receive_what_is_requested", "use_every_model")


def numbers(count: int) -> list[bytes]:
    return [b"%d" % each for each in range(count)]


async def use_every_model(uri: str, letters: int) -> None:
    async with await connect(uri) as client:
        assert await client.request_response(b"hello", route="tck.echo") == b"hello"
        stream = client.request_stream(route="tck.stream.100")
        assert await stream.to_list(limit=100) == numbers(100)
        await client.fire_and_forget(b"never mind", route="tck.echo")
        echo = client.request_channel(from_iterable(numbers(letters)), route="tck.channel")
        assert await echo.to_list(limit=letters) == numbers(letters)


async def receive_what_is_requested(uri: str) -> None:
    """And no more, although the server has ten elements."""
    async with await connect(uri) as client:
        probe: SubscriberProbe[bytes] = SubscriberProbe(request=2)
        client.request_stream(route="tck.stream.10").subscribe(probe)
        await probe.wait_for_signals(2)
        # A later request was answered: all that was sent before has arrived.
        await client.request_response(b"?", route="tck.echo")
        assert len(probe.elements) == 2
        probe.request(3)
        await probe.wait_for_signals(5)
        await client.request_response(b"?", route="tck.echo")
        assert probe.elements == numbers(5)
        probe.cancel()
        assert await client.request_response(b"on", route="tck.echo") == b"on"
