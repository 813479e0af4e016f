"""What all connectors have in common: messages that are sent, and lost connections."""

import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from inspect import isawaitable
from math import inf
from typing import Any, Final, Generic, Protocol, TypeVar, cast

import anyio
from anyio.lowlevel import checkpoint

from .._core.arguments import describe_given
from .._core.compiler.error_notes import add_bounded_note
from .._core.loop import Task
from .._core.observation.awaited import tells_wait
from ..delivery import BatchFailed, DeliveryFlow, Outage
from ..retry import Errors, RetryPolicy, matches
from ..stage import require_int, to_seconds

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

LOG: Final = logging.getLogger("reactive_aio.connectors")

RECONNECT: Final = RetryPolicy(attempts=None, delay=0.1, maximum=5.0, within=60.0)
"""How connectors try again after a lost connection, unless *retry* is given."""

ATTEMPTS: Final = RetryPolicy(attempts=5, delay=0.2)
"""How often an element is tried before *on_dead_letter* is called, unless *attempts* is given."""

ACK_TIMEOUT: Final = 30.0
ANSWER: Final = 5.0  # seconds within which a call has to be answered that need not succeed
CLOSED: Final = 2.0  # seconds within which a client is closed, or cut off
DAY: Final = 86_400.0
_NOTE: Final = "connectors: "
WAS_CLOSED: Final = (
    "the client was closed while the flow runs: leave the block of the client after that of the "
    "flow"
)

OWN: Final = (ValueError, TypeError, LookupError, ArithmeticError)
"""Errors of an element itself. Any other may be one of what all elements need."""


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
    value = cast("object", message.value)
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(
            f"the value of a Message for {broker} must be bytes, not {describe_given(value)}; for "
            "text: Message(text.encode())"
        )
    return message.value


def require_list(call: str, kind: type, what: str, batch: object) -> None:
    """*batch* is a list of *kind*: what is given alone would be taken apart, or not understood."""
    if isinstance(batch, (kind, str, bytes)):
        raise TypeError(
            f"{call}: it sends a list of {what}s, and was given one, {describe_given(batch)}; put "
            ".buffer_timeout(500, 0.1) before for_each, or give [element]"
        )
    for each in cast("Iterable[object]", batch) if isinstance(batch, Iterable) else [batch]:
        if not isinstance(each, kind):
            raise TypeError(
                f"{call}: it sends a list of {what}s, and {describe_given(each)} is none"
            )


def list_length(call: str, count: int, limit: int) -> int:
    """How many messages to read with one call.

    Of a list that is longer than *limit*, most would wait here, and other processes that share the
    work would have nothing to do.
    """
    require_int(call, "limit", limit, least=1)
    return min(require_int(call, "count", count, least=1), limit)


async def send_missing(
    batch: Sequence[T],
    results: dict[int, object],
    send: Callable[[int, T], Awaitable[object]],
    is_refused: Callable[[Exception], bool],
) -> None:
    """Call *send* with each message of *batch* that has no result yet, all of them together.

    The result is None, or the error if it *is_refused*. Of all other errors, the first one is
    raised when every call has ended; these messages have no result.
    """
    failed: list[Exception] = []

    async def one(number: int, message: T) -> None:
        try:
            await send(number, message)
            results[number] = None
        except Exception as error:
            if is_refused(error):
                results[number] = error
            else:
                failed.append(error)

    async with anyio.create_task_group() as group:
        for number, message in enumerate(batch):
            if number not in results:
                group.start_soon(one, number, message)
    if failed:
        raise failed[0]


def awaits_messages(function: F) -> F:
    """Declare that *function* waits for messages of a server: that is no stall of its flow.

    If its variable *until* is the time when the server should have answered, silence that goes on
    for much longer has another cause.
    """

    def describe(local: dict[str, Any]) -> str | None:
        is_late = anyio.current_time() > local.get("until", inf) + ANSWER
        return None if is_late else "messages, of which there are none"

    return tells_wait(describe, "elements")(function)


def require_scheme(connector: str, url: str, *schemes: str) -> None:
    """*url* is an address without a scheme, or has one of *schemes*.

    Only the scheme is shown: the rest may contain a password.
    """
    scheme, mark, _ = url.partition("://")
    if mark and scheme not in schemes:
        allowed = " or ".join(f"{each}://" for each in schemes)
        raise ValueError(f"{connector}: the URL begins with {allowed}, not {scheme}://")


def require_client(
    call: str, what: str, client: object, *methods: str, made_by: str = "connect"
) -> None:
    """*client* can do what is asked of it: a URL, or what has to be entered first, is refused."""
    if all(callable(getattr(client, name, None)) for name in methods):
        return
    # A URL may contain a password.
    given = "a str" if isinstance(client, str) else describe_given(client)
    made = f"{call.partition('.')[0]}.{made_by}(url, …)"
    how = "enter it first" if isinstance(client, AbstractAsyncContextManager) else "make one"
    raise TypeError(f"{call}: give {what}, not {given}: {how}, with `async with {made} as client`")


def require_open(
    call: str, *, is_new: bool = False, is_closed: bool = False, made_by: str = "connect"
) -> None:
    """The client is connected, and not closed: else its calls would fail one after another."""
    if is_new or is_closed:
        state = "is closed" if is_closed else "was not connected"
        made = f"{call.partition('.')[0]}.{made_by}(url, …)"
        remedy = f"make and run the flow inside of `async with {made} as client`"
        raise RuntimeError(f"{call}: the client {state}: {remedy}")


def require_name(call: str, what: str, name: object) -> str:
    """*name*, of a stream, topic, queue, group and the like, is a text that is not empty."""
    if not isinstance(name, str):
        raise TypeError(f"{call}: {what} must be a str, not {describe_given(name)}")
    if not name:
        raise ValueError(f"{call}: {what} must not be empty")
    return name


@asynccontextmanager
async def closing(
    close: Callable[[], Awaitable[object]],
    cut: Callable[[], object] | None = None,
    *,
    within: float = CLOSED,
) -> AsyncGenerator[None]:
    """Close a client after the block, or *cut* it off where that fails or takes too long.

    A program that stops has to end although its server is frozen or away. Nobody needs the client
    any more, so an error of *close* is logged and not raised. Some clients cancel a task of their
    own while they close, and await it: *close* has a task of its own, so that this is never taken
    for a cancellation of the program.
    """
    is_closed = False

    async def attempt() -> None:
        nonlocal is_closed
        try:
            await close()
            is_closed = True
        except Exception as error:
            LOG.info("a client was cut off, since closing it failed: %r", error)

    try:
        yield
    finally:
        try:
            with anyio.CancelScope(shield=True), anyio.move_on_after(within):
                async with anyio.create_task_group() as group:
                    group.start_soon(attempt)
        finally:
            if not is_closed and cut is not None:
                with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSED):
                    await _awaited(cut())


async def _awaited(returned: object) -> None:
    if isawaitable(returned):
        await returned


async def end_tasks(*tasks: Task[Any] | None) -> None:
    """Cancel those of *tasks* that there are until they have ended.

    Once may not be enough: on Python 3.11, `asyncio.wait_for` may lose a cancellation, and some
    clients wait for other work when they are cancelled first.
    """
    for task in tasks:
        while task is not None and not task.done():
            task.cancel()
            await checkpoint()


class Arrivals(Generic[T]):
    """What a server has sent of its own accord, until it is read."""

    def __init__(self) -> None:
        self.waiting: Final[deque[T]] = deque()
        self._error: Exception | None = None
        self._news = anyio.Event()

    @awaits_messages
    async def next(self) -> list[T]:
        """Those that have arrived, before an error; wait for the first of them."""
        while not self.waiting:
            if self._error is not None:
                raise self._error
            self._news = anyio.Event()
            await self._news.wait()
        found = [*self.waiting]
        self.waiting.clear()
        return found

    def add(self, element: T) -> None:
        """The server has sent *element*. After the end it is dropped, and those before are read."""
        if self._error is None:
            self.waiting.append(element)
            self._news.set()

    def end(self, error: Exception) -> None:
        """Nothing more arrives."""
        self._error = self._error or error
        self._news.set()


class Send(Protocol[T_contra]):
    """Sends a list, and returns when the server has all of it.

    `BatchFailed` says which of its elements the server has refused: the others were sent.
    """

    async def __call__(self, batch: Sequence[T_contra], /) -> None: ...


def outage_of(
    name: str,
    retry: RetryPolicy | int,
    lost: Errors | Callable[[BaseException], object],
    is_closed: Callable[[], bool] = lambda: False,
) -> Outage:
    """Calls of a server, repeated as *retry* allows after an error that is one of *lost*.

    Nothing is repeated with a client of which *is_closed* says that the program has closed it.
    """
    policy = RetryPolicy.of(retry)

    def is_lost(error: BaseException) -> bool:
        if not matches("connectors", lost, error) or not policy.covers(error):
            return False
        if is_closed():
            add_bounded_note(error, _NOTE, _NOTE + WAS_CLOSED)
            return False
        return True

    return Outage(name, replace(policy, only=is_lost))


def ack_timeout(retry: RetryPolicy | int) -> float:
    """How long an acknowledgement may take: one call, and the attempts after a loss."""
    within = RetryPolicy.of(retry).within
    return ACK_TIMEOUT + (DAY if within is None else to_seconds(within, "within"))


def may_be_outage(error: BaseException) -> bool:
    """Whether all elements may have an error for now, and not this one for ever."""
    return not isinstance(error, OWN)


def with_dead_letters(
    flow: DeliveryFlow[T],
    attempts: RetryPolicy | int,
    on_dead_letter: Callable[[T, Exception], object] | None,
) -> DeliveryFlow[T]:
    """The flow of a source; with *on_dead_letter*, one that no element can stop.

    An element is set aside for an error of its own, or for what it does while others pass.
    """
    if on_dead_letter is None:
        return flow
    return flow.nack_on_error(attempts, dead_letter=on_dead_letter, outage=may_be_outage)


def raise_failed(results: Iterable[object]) -> None:
    """Raise `BatchFailed` for those of the results of a batch that are errors."""
    errors = {n: each for n, each in enumerate(results) if isinstance(each, Exception)}
    if errors:
        raise BatchFailed(errors)
