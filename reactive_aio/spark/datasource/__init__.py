"""The data source "reactive": Spark reads a flow, and writes into one, from its own tasks."""

from .registration import register
from .serving import ServedFlow, serve_flow
from .writes import ServedWrites, WriteFailed, serve_writes

__all__ = (
    "ServedFlow",
    "ServedWrites",
    "WriteFailed",
    "register",
    "serve_flow",
    "serve_writes",
)
