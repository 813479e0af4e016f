"""Connectors: the brokers and databases that people run, as sources of deliveries and as sinks.

::

    from reactive_aio.connectors import redis_streams

    async with redis_streams.connect("redis://127.0.0.1:6379") as redis:
        orders = redis_streams.source(redis, "orders", group="billing", on_dead_letter=keep)
        await rx.run_until_signal(orders.map_async(charge, concurrency=32).ack_after(store))

Each module has a function that connects, a `source` and a `sink`. A client of your own does as well
as that of `connect`: nothing is wrapped, and elements are the client's own objects. The same words
mean the same everywhere; docs/connectors.md lists them, and says what each broker guarantees.

Each module needs an extra, and imports it when it is imported itself: `redis_streams` (``redis``),
`kafka`, `rabbitmq`, `nats`, `mqtt` and `postgres`.
"""

from .common import RECONNECT, Message

__all__ = ("RECONNECT", "Message")
