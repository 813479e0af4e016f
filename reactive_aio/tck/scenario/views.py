"""Views: a processor seen as a publisher, and as a subscriber whose white box is behind it."""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from inspect import isawaitable
from typing import Any, Final

from ...spec import Publisher, Subscriber, Subscription
from ..subject import Subject
from ..whitebox import Probe
from .feeder import Feeder

__all__ = ("BUFFER", "as_publisher", "as_subscriber")

BUFFER: Final = 16
"""The buffer size that processors are asked for."""


def as_publisher(subject: Subject) -> Subject:
    """The processor, subscribed to a publisher of the elements that are wanted."""

    def fed(make: Callable[..., Feeder]) -> Callable[..., Coroutine[Any, Any, Publisher[Any]]]:
        async def publisher(*args: Any) -> Publisher[Any]:
            processor = await _made(subject)
            if processor is not None:
                make(*args).subscribe(processor)
            return processor  # type: ignore[no-any-return]

        return publisher

    def of_length(n: float) -> Feeder:
        return Feeder(n, subject.element)

    return replace(
        subject,
        publisher=fed(of_length),
        failing_publisher=fed(
            lambda: Feeder(0, subject.element, RuntimeError("the publisher upstream has failed"))
        ),
        infinite_publisher=fed(lambda: of_length(float("inf"))),
        closing_publisher=None,
        subscriber=None,
        whitebox_subscriber=None,
    )


def as_subscriber(subject: Subject) -> Subject:
    """The processor, with a subscriber that tells the probe what comes out of it."""

    async def whitebox_subscriber(probe: Probe) -> Subscriber[Any]:
        processor = await _made(subject)
        if processor is not None:
            processor.subscribe(Tail(probe))
        return processor  # type: ignore[no-any-return]

    return replace(
        subject,
        publisher=None,
        failing_publisher=None,
        infinite_publisher=None,
        closing_publisher=None,
        subscriber=None,
        whitebox_subscriber=whitebox_subscriber,
    )


async def _made(subject: Subject) -> Any:
    assert subject.processor is not None
    made = subject.processor(BUFFER)
    return await made if isawaitable(made) else made


class Tail:
    """The subscriber behind a processor, and the puppet that makes it request and cancel."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._subscription: Subscription | None = None

    # -- the puppet -------------------------------------------------------------------------------
    def trigger_request(self, n: int, /) -> None:
        if self._subscription is not None:
            self._subscription.request(n)

    def signal_cancel(self) -> None:
        if self._subscription is not None:
            self._subscription.cancel()

    # -- the subscriber ---------------------------------------------------------------------------
    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._subscription = subscription
        self._probe.register_on_subscribe(self)

    def on_next(self, element: Any, /) -> None:
        self._probe.register_on_next(element)

    def on_error(self, error: BaseException, /) -> None:
        self._probe.register_on_error(error)

    def on_complete(self) -> None:
        self._probe.register_on_complete()
