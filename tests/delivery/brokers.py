"""Sources that keep what they deliver until it is acknowledged."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import reactive_aio as r
from reactive_aio.delivery import Delivery, DeliveryFlow, deliveries


def live_timers() -> list[Any]:
    """The timers of the loop that were not cancelled."""
    loop: Any = asyncio.get_running_loop()
    return [timer for timer in loop._scheduled if not timer.cancelled()]


class DeadLetters(list[Any]):
    """What was buried: the values, and their errors."""

    def __call__(self, value: Any, error: Exception) -> None:
        self.append((value, error))

    @property
    def values(self) -> list[Any]:
        return [value for value, _ in self]


class Broker:
    """Notes what is acknowledged and nacked, after *seconds* each; *check* sees each ack."""

    def __init__(
        self, seconds: float = 0.0, check: Callable[[Any], object] = lambda _: None
    ) -> None:
        self.acked: list[Any] = []
        self.nacked: dict[Any, Exception] = {}
        self.sent: list[Any] = []
        self.calls = 0
        self.seconds = seconds
        self._check = check

    async def ack(self, value: Any) -> None:
        self._check(value)
        await self._wait()
        assert value not in self.nacked, f"{value} was nacked before"
        self.acked.append(value)

    async def nack(self, value: Any, error: Exception) -> None:
        await self._wait()
        assert value not in self.nacked, f"{value} was nacked twice"
        assert value not in self.acked, f"{value} was acknowledged before"
        self.nacked[value] = error

    async def _wait(self) -> None:
        self.calls += 1
        assert self.calls == 1, "one call after another"
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.calls -= 1

    @property
    def errors(self) -> Mapping[Any, str]:
        return {value: str(error) for value, error in self.nacked.items()}

    def deliveries(self, source: r.Flow[Any], **options: Any) -> DeliveryFlow[Any]:
        sent = source.do_on_next(self.sent.append)
        return deliveries(sent, self.ack, self.nack, **options)

    def delivery(self, value: Any, attempt: int = 1) -> Delivery[Any]:
        self.sent.append(value)
        return Delivery(
            value, lambda: self.ack(value), lambda error: self.nack(value, error), attempt=attempt
        )

    def is_consistent(self) -> bool:
        """Whether each element sent was settled once."""
        return sorted([*self.acked, *self.nacked]) == sorted(self.sent)
