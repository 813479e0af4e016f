"""Views of a processor: as a publisher with a source upstream, and as a white-box subscriber."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import isawaitable
from typing import Any, Final

from ...spec import Publisher, Subscriber, Subscription
from ..candidate import FACTORIES, Candidate, WhiteboxProbe
from .upstream import terminal_signal

BUFFER_SIZE: Final = 16
"""The buffer size with which processors are made."""
BATCH: Final = 8
"""Elements that a source sends between two turns of the loop."""


def processor_as_publisher(candidate: Candidate) -> Candidate:
    """The processor, subscribed to a source of the elements that the laws request."""

    async def publisher(n: float, error: BaseException | None = None) -> Publisher[Any]:
        processor = await _new_processor(candidate)
        if processor is not None:
            _Source(processor, n, candidate.element, error).wake()
        return processor  # type: ignore[no-any-return]

    return replace(
        candidate,
        publisher=publisher,
        failing_publisher=lambda: publisher(0, RuntimeError("the publisher upstream has failed")),
        infinite_publisher=lambda: publisher(float("inf")),
        closing_publisher=None,
        subscriber=None,
        whitebox_subscriber=None,
    )


def processor_as_subscriber(candidate: Candidate) -> Candidate:
    """The processor, with a subscriber downstream that reports to the probe."""

    async def whitebox_subscriber(probe: WhiteboxProbe) -> Subscriber[Any]:
        processor = await _new_processor(candidate)
        if processor is not None:
            processor.subscribe(ProbedSubscriber(probe))
        return processor  # type: ignore[no-any-return]

    others: dict[str, Any] = dict.fromkeys(set(FACTORIES) - {"processor", "whitebox_subscriber"})
    return replace(candidate, whitebox_subscriber=whitebox_subscriber, **others)


async def _new_processor(candidate: Candidate) -> Any:
    assert candidate.processor is not None
    made: Any = candidate.processor(BUFFER_SIZE)
    is_factory_async = isawaitable(made) and not isinstance(made, Publisher)
    return await made if is_factory_async else made


class ProbedSubscriber:
    """The subscriber downstream of a processor, and the puppet that makes it request and cancel."""

    _subscription: Subscription

    def __init__(self, probe: WhiteboxProbe) -> None:
        self._probe = probe
        self.on_next: Callable[[Any], None] = probe.register_on_next
        self.on_error: Callable[[BaseException], None] = probe.register_on_error
        self.on_complete: Callable[[], None] = probe.register_on_complete

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._subscription = subscription
        self._probe.register_on_subscribe(self)

    def trigger_request(self, n: int, /) -> None:
        self._subscription.request(n)

    def signal_cancel(self) -> None:
        self._subscription.cancel()


@dataclass(eq=False)
class _Source:
    """The subscription of *subscriber* to *count* elements that end with *error*, if it is given.

    It obeys demand, awaits what signals return, and sends from a task that lives only while there
    is something to send.
    """

    subscriber: Subscriber[Any] | None
    count: float
    element: Callable[[int], Any]
    error: BaseException | None

    def __post_init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._demand = 0
        self._sent = 0
        self._is_started = False

    def request(self, n: int, /) -> None:
        if n < 1:
            # Another law judges the processor's own requests.
            self.cancel()
            return
        self._demand += n
        self._loop.call_soon_threadsafe(self.wake)

    def cancel(self) -> None:
        self.subscriber = None

    def wake(self) -> None:
        """Send what is due, unless a task is sending already."""
        if self._task is None and self.subscriber is not None:
            self._task = self._loop.create_task(self._run())

    async def _run(self) -> None:
        try:
            await self._send()
        except Exception as error:
            self.subscriber = None
            context = {"message": "rule 2.13: the subscriber raised", "exception": error}
            self._loop.call_exception_handler(context)
        finally:
            self._task = None

    async def _send(self) -> None:
        if not self._is_started:
            self._is_started = True
            await self._signal("on_subscribe", self)
        while self.subscriber is not None:
            if self._sent >= self.count:
                await self._signal(*terminal_signal(self.error))
                self.subscriber = None
            elif not self._demand:
                return
            else:
                self._demand -= 1
                self._sent += 1
                await self._signal("on_next", self.element(self._sent - 1))
                if not self._sent % BATCH:
                    await asyncio.sleep(0)

    async def _signal(self, name: str, *args: Any) -> None:
        returned = getattr(self.subscriber, name)(*args)
        if isawaitable(returned):
            await returned
