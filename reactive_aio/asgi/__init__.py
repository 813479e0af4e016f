"""The web's edge: flows as responses and over WebSockets, for any ASGI server or framework.

`sse`, `ndjson` and `stream` make an ASGI app of a flow; `websocket` serves many flows on one
socket, in the text protocol of docs/protocol.md. No framework is imported: an app is an endpoint of
a Starlette or FastAPI route, is mounted, or is served by itself.
"""

from .forms import Event
from .http import ndjson, sse, stream
from .javascript import javascript
from .problem import ClientLeft, PeerFailed, Refused
from .request import HttpRequest
from .tally import Tally
from .text.endpoint import websocket
from .text.incoming import Peer

__all__ = (
    "ClientLeft",
    "Event",
    "HttpRequest",
    "Peer",
    "PeerFailed",
    "Refused",
    "Tally",
    "javascript",
    "ndjson",
    "sse",
    "stream",
    "websocket",
)
