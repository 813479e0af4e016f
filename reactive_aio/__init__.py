"""Reactive Streams for asyncio.

The everyday vocabulary; nothing is defined here. A flow is made by a source (`just`,
`from_iterable`, …), shaped by the operators of `Flow`, and used by ``async for``, an awaitable
terminal operator or ``subscribe``.
"""

from ._core.executor import SerialExecutor
from ._sources.push import Emitter, create
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
from .processors import Emission, MulticastProcessor, ProcessorStats, UnicastProcessor
from .spec import Processor, Publisher, Subscriber, Subscription

__all__ = (
    "Emission",
    "Emitter",
    "Flow",
    "MulticastProcessor",
    "Processor",
    "ProcessorStats",
    "Publisher",
    "SerialExecutor",
    "Subscriber",
    "Subscription",
    "UnicastProcessor",
    "create",
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
