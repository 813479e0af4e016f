"""What all connectors have in common: messages that are sent, and lost connections."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import random
from typing import Any, Final, Protocol, TypeVar

import anyio

from ..delivery import BatchFailed, DeliveryFlow
from ..retry import Attempts, RetryPolicy
from ..stage import to_seconds

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

LOG: Final = logging.getLogger("reactive_aio.connectors")

RECONNECT: Final = RetryPolicy(attempts=None, delay=0.1, maximum=5.0, within=60.0)
"""How connectors try again after a lost connection, unless *retry* is given."""

ATTEMPTS: Final = RetryPolicy(attempts=5, delay=0.2)
"""How often an element is tried before *on_dead_letter* is called, unless *attempts* is given."""

ACK_TIMEOUT: Final = 30.0


@dataclass(frozen=True, slots=True)
class Message:
    """A message to be sent, by a sink of any broker.

    - value: its content; None is a tombstone of Kafka.
    - key: messages of one key keep their order, where the broker has keys.
    - headers: texts that travel with it, where the broker has headers.
    - to: the topic, subject or queue that it is sent to, instead of that of the sink.
    """

    value: bytes | None
    key: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    to: str | None = None


def content(message: Message, broker: str) -> bytes:
    """What is sent to a broker that has no null values."""
    if message.value is None:
        raise TypeError(f"{broker} has no null values, as Kafka has: send bytes")
    return message.value


class Send(Protocol[T_contra]):
    """Sends a list, and returns when the server has all of it.

    `BatchFailed` says which of its elements the server has refused: the others were sent.
    """

    async def __call__(self, batch: Sequence[T_contra], /) -> None: ...


class Outage:
    """Calls of a server, repeated as a policy allows after its connection was lost.

    One line is logged when an outage begins, and one when it is over. Errors that are no loss of a
    connection are those of the caller at once.
    """

    def __init__(
        self, what: str, retry: RetryPolicy | int, lost: tuple[type[Exception], ...]
    ) -> None:
        policy = RetryPolicy.of(retry)

        def is_lost(error: BaseException) -> bool:
            return isinstance(error, lost) and policy.covers(error)

        self._what = what
        self._policy = replace(policy, only=is_lost)
        self._since: float | None = None
        self._failed = 0
        self._attempts: Attempts | None = None
        """Of the loop that calls `wait`."""

    @property
    def ack_timeout(self) -> float:
        """How long an acknowledgement may take: one call, and the attempts after a loss."""
        within = self._policy.within
        return ACK_TIMEOUT + (600.0 if within is None else to_seconds(within, "within"))

    async def call(self, function: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        """Call *function*, again after a loss; several calls may run at a time."""
        attempts: Attempts | None = None
        while True:
            try:
                result = await function(*arguments)
            except Exception as error:
                attempts = attempts or Attempts(self._policy, anyio.current_time())
                await self._wait(attempts, error)
            else:
                self._over()
                return result

    async def wait(self, error: Exception) -> None:
        """In a loop: wait until the next attempt after *error*; raise it where none follows."""
        self._attempts = self._attempts or Attempts(self._policy, anyio.current_time())
        await self._wait(self._attempts, error)

    def over(self) -> None:
        """In a loop: the server has answered."""
        self._attempts = None
        self._over()

    async def _wait(self, attempts: Attempts, error: Exception) -> None:
        now = anyio.current_time()
        delay = attempts.failed(error, now, random())
        if delay is None:
            raise error
        self._failed += 1
        if self._since is None:
            self._since = now
            LOG.warning("%s cannot be reached, and is tried again: %r", self._what, error)
        await anyio.sleep(delay)

    def _over(self) -> None:
        if self._since is not None:
            seconds = anyio.current_time() - self._since
            LOG.warning(
                "%s is back after %.1f s and %d failed calls", self._what, seconds, self._failed
            )
            self._since, self._failed = None, 0


def with_dead_letters(
    flow: DeliveryFlow[T],
    attempts: RetryPolicy | int,
    on_dead_letter: Callable[[T, Exception], object] | None,
) -> DeliveryFlow[T]:
    """The flow of a source; with *on_dead_letter*, one that no element can stop."""
    if on_dead_letter is None:
        return flow
    return flow.nack_on_error(attempts, dead_letter=on_dead_letter)


def raise_failed(results: Iterable[object]) -> None:
    """Raise `BatchFailed` for those of the results of a batch that are errors."""
    errors = {n: each for n, each in enumerate(results) if isinstance(each, Exception)}
    if errors:
        raise BatchFailed(errors)
