"""What the named flows and processors of this process do: figures and reports.

::

    flow.name("orders")      # now its subscriptions have figures
    observe.snapshot()       # of all flows and processors with a name
    observe.report()         # the same as a text, and what each one waits for
    async with observe.watch():   # reports flows that stall, and calls that block the event loop
        ...
    async with observe.serve("/run/orders.sock"):   # python -m reactive_aio top /run/orders.sock
        ...
    async with observe.inspector(port=8123):        # a page in the browser
        ...
    async with observe.show(flow):                  # a picture in a notebook
        ...

`observe.prometheus` and `observe.otel` have the same figures as metrics, and spans; they are
imported by themselves, as they need extras.
"""

from .._core.observation.figures import FlowStats, PartStats, SubscriptionStats
from .doctor import watch
from .drawing.live import show
from .drawing.pictures import Graph
from .inspector_page import Inspector, inspector, inspector_app
from .reports import report
from .server import serve
from .snapshots import Snapshot, snapshot

__all__ = (
    "FlowStats",
    "Graph",
    "Inspector",
    "PartStats",
    "Snapshot",
    "SubscriptionStats",
    "inspector",
    "inspector_app",
    "report",
    "serve",
    "show",
    "snapshot",
    "watch",
)
