"""Streaming queries as flows: micro-batches, and their rows, under demand."""

from .flow import StreamFlow
from .microbatch import MicroBatch, StreamStopped
from .source import from_micro_batches, from_stream
from .trigger import Trigger

__all__ = (
    "MicroBatch",
    "StreamFlow",
    "StreamStopped",
    "Trigger",
    "from_micro_batches",
    "from_stream",
)
