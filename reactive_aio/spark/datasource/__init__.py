"""The data source "reactive": Spark's tasks read from a flow, and write into one, over a socket.

`_plugin` runs in Spark's Python workers and talks `wire_protocol` with `listener` on the loop.
`flow_server` serves a flow to read; `write_server` makes a flow of what is written.
"""

from .flow_server import ServedFlow, serve_flow
from .registration import register
from .write_server import ServedWrites, WriteFailed, serve_writes

__all__ = (
    "ServedFlow",
    "ServedWrites",
    "WriteFailed",
    "register",
    "serve_flow",
    "serve_writes",
)
