"""Reactive Streams for asyncio.

This module exports the everyday vocabulary. A flow is made by a source (`just`, `from_iterable`,
…), changed by the operators of `Flow`, and consumed by ``async for``, an awaitable terminal
operator or ``subscribe``.

``from reactive_aio import *`` leaves out `range` and `zip`, which would hide the builtins.
"""

from sys import modules as _modules
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._core.losses import Losses, losses
from ._core.serial_executor import SerialExecutor
from ._operators.choose import race
from ._operators.combine import concat, merge, zip as zip
from ._operators.latest import combine_latest
from ._operators.window import Windowed
from ._shared.coerce import to_flow
from ._shared.foreign_names import hint_for_package as _hint_for_package
from ._shared.foreign_options import explain_foreign_options as _explain_foreign_options
from ._sinks.running import DrainReport, Run
from ._sinks.until_signal import run_until_signal
from ._sources.asynchronous import (
    from_aiter,
    from_anyio,
    from_awaitable,
    from_publisher,
    from_queue,
)
from ._sources.files import from_lines
from ._sources.process import from_process
from ._sources.push import Emitter, create
from ._sources.resource import using
from ._sources.thread import from_thread
from ._sources.timers import interval, timer
from ._sources.values import (
    defer,
    empty,
    error,
    from_callable,
    from_iterable,
    generate,
    just,
    never,
    range as range,
)
from .flow import Flow, GroupedFlow, WindowFlow
from .limits import AdaptiveLimit, CircuitBreaker, ConcurrencyLimit, RateLimit
from .pools import ProcessPool
from .processors import (
    Emission,
    LatestProcessor,
    MulticastProcessor,
    ProcessorStats,
    ReplayProcessor,
    UnicastProcessor,
)
from .retry import RetryPolicy
from .spec import Processor, Publisher, Subscriber, Subscription

__version__ = "0.1.0"

__all__ = (
    "AdaptiveLimit",
    "CircuitBreaker",
    "ConcurrencyLimit",
    "DrainReport",
    "Emission",
    "Emitter",
    "Flow",
    "GroupedFlow",
    "LatestProcessor",
    "Losses",
    "MulticastProcessor",
    "ProcessPool",
    "Processor",
    "ProcessorStats",
    "Publisher",
    "RateLimit",
    "ReplayProcessor",
    "RetryPolicy",
    "Run",
    "SerialExecutor",
    "Subscriber",
    "Subscription",
    "UnicastProcessor",
    "WindowFlow",
    "Windowed",
    "combine_latest",
    "concat",
    "create",
    "defer",
    "empty",
    "error",
    "from_aiter",
    "from_anyio",
    "from_awaitable",
    "from_callable",
    "from_iterable",
    "from_lines",
    "from_process",
    "from_publisher",
    "from_queue",
    "from_thread",
    "generate",
    "interval",
    "just",
    "losses",
    "merge",
    "never",
    "race",
    "run_until_signal",
    "timer",
    "to_flow",
    "using",
)

_explain_foreign_options(_modules[__name__], __all__)

if not _TYPE_CHECKING:  # which would take any name for one of the package

    def __getattr__(name: str) -> object:
        """Say what a name of another library is called here."""
        hint = _hint_for_package(name, __all__, Flow)
        message = f"module {__name__!r} has no attribute {name!r}{hint}"
        raise AttributeError(message, name=name, obj=_modules[__name__])
