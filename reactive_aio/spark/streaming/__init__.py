"""Streaming queries as flows: micro-batches, and their rows, under demand."""

from .micro_batch import MicroBatch, StreamStopped
from .source import StreamFlow, from_micro_batches, from_stream

__all__ = ("MicroBatch", "StreamFlow", "StreamStopped", "from_micro_batches", "from_stream")
