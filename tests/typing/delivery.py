"""The types that checkers infer through a chain of deliveries; only read, not run."""

from collections.abc import AsyncIterator
from typing import TypeGuard, assert_type

from reactive_aio import Flow, RetryPolicy, from_iterable
from reactive_aio.delivery import Delivery, DeliveryFlow, deliveries, log_deliveries


class Message:
    body: str
    partition: str
    offset: int

    async def ack(self) -> None: ...
    async def nack(self, error: Exception) -> None: ...


mixed: Flow[int | str] = from_iterable([1, "a"])
messages: Flow[Message] = from_iterable([Message()])


async def size(text: str) -> int:
    return len(text)


async def letters(text: str) -> AsyncIterator[str]:
    for letter in text:
        yield letter


def is_str(value: int | str) -> TypeGuard[str]:
    return isinstance(value, str)


async def ack_all(messages: list[Message]) -> None: ...
async def store(sizes: list[int]) -> None: ...
async def commit(positions: dict[str, int]) -> None: ...
def bury(message: Message, error: Exception) -> None: ...


# -- how it begins ---------------------------------------------------------------------------------
started = deliveries(messages, ack=lambda m: m.ack(), nack=lambda m, error: m.nack(error))
assert_type(started, DeliveryFlow[Message])
assert_type(deliveries(messages.map(lambda m: Delivery(m.body, m.ack, m.nack))), DeliveryFlow[str])
assert_type(
    log_deliveries(messages, commit, position=lambda m: m.offset, partition=lambda m: m.partition),
    DeliveryFlow[Message],
)

# -- a chain ---------------------------------------------------------------------------------------
policied = started.nack_on_error(RetryPolicy(attempts=3), dead_letter=bury)
assert_type(policied, DeliveryFlow[Message])
texts = policied.map(lambda message: message.body)
assert_type(texts, DeliveryFlow[str])
assert_type(texts.filter(str.isdigit), DeliveryFlow[str])
assert_type(deliveries(mixed, ack=print).filter(is_str), DeliveryFlow[str])
assert_type(deliveries(messages, ack_many=ack_all), DeliveryFlow[Message])
assert_type(texts.flat_map(str.split), DeliveryFlow[str])
assert_type(texts.flat_map(letters), DeliveryFlow[str])
sizes = texts.map_async(size, concurrency=4, key=lambda text: text[0])
assert_type(sizes, DeliveryFlow[int])
assert_type(sizes.buffer(10), DeliveryFlow[list[int]])
lists = sizes.buffer_timeout(10, 1.0, weight=lambda n: n, max_weight=9)
assert_type(lists, DeliveryFlow[list[int]])

# -- its ends --------------------------------------------------------------------------------------
assert_type(lists.ack_after(store), Flow[list[int]])
assert_type(texts.as_flow(), Flow[Delivery[str]])
