"""Reactive Streams for asyncio.

The everyday vocabulary; nothing is defined here. A flow is made by a source (`just`,
`from_iterable`, …), shaped by the operators of `Flow`, and used by ``async for``, an awaitable
terminal operator or ``subscribe``.
"""

from ._core.executor import SerialExecutor
from ._sources.values import (
    defer,
    empty,
    error,
    from_callable,
    from_iterable,
    generate,
    just,
    never,
    range,
)
from .flow import Flow
from .spec import Processor, Publisher, Subscriber, Subscription

__all__ = (
    "Flow",
    "Processor",
    "Publisher",
    "SerialExecutor",
    "Subscriber",
    "Subscription",
    "defer",
    "empty",
    "error",
    "from_callable",
    "from_iterable",
    "generate",
    "just",
    "never",
    "range",
)
