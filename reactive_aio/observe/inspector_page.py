"""The inspector: a page that shows what the named flows of this process do, as they do it."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import anyio.to_thread

from .._core.hosts import is_loopback
from ..stage import Duration, to_seconds
from .inspector_feed import Feed

if TYPE_CHECKING:
    from .inspector_endpoint import InspectorApp

__all__ = ("Inspector", "inspector", "inspector_app")

_SHORTEST_TOKEN: Final = 16


@dataclass(frozen=True, slots=True)
class Inspector:
    """A page that is served."""

    host: str
    port: int
    token: str | None = field(repr=False)

    @property
    def url(self) -> str:
        """The address of the page, with its token."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        query = "" if self.token is None else f"?token={quote(self.token)}"
        return f"http://{host}:{self.port}/{query}"


@asynccontextmanager
async def inspector(
    *,
    port: int = 0,
    host: str = "127.0.0.1",
    token: str | None = None,
    every: Duration = 1.0,
    stall: Duration | None = None,
) -> AsyncGenerator[Inspector]:
    """Serve a page that shows what the named flows of this process do, inside the block.

    The page has the subscriptions that run, the graph of each with its rates, its outstanding
    demand and what its parts hold, the last error of each flow, and what `watch` would report:
    flows that deliver nothing for *stall* seconds, and calls that block the event loop. By default
    *stall* is that of the `watch` that runs in this process, or 10 seconds. The page is renewed
    *every* so many seconds. It shows the names and arguments of operators, and no elements. While
    no page is open, nothing is looked at.

    Programs of this machine alone can reach it, those of its other users included. Another *host*
    requires a *token*, which the address then contains; traffic is not encrypted. Port 0 chooses a
    free one: ``page.url`` has it. To serve the page in an application of your own, mount
    `inspector_app`.

    ::

        async with observe.inspector(port=8123) as page:
            print(page.url)
            await service()
    """
    if token is None and not is_loopback(host):
        raise ValueError(
            f"observe.inspector: other machines can reach {host!r}; give a secret token: "
            "token=secrets.token_urlsafe()"
        )
    # The room for ASGI takes long to load, and is loaded by programs that need it.
    from .inspector_endpoint import page
    from .page_server import serve_page

    await anyio.to_thread.run_sync(page)  # reads a file
    app = inspector_app(token=token, every=every, stall=stall)
    async with aclosing(app.feed), serve_page(app, host, port) as taken:
        yield Inspector(host, taken, token)


def inspector_app(
    *, token: str | None = None, every: Duration = 1.0, stall: Duration | None = None
) -> "InspectorApp":
    """The page of `inspector` as an ASGI app, to be mounted in an application of yours.

    Without a *token*, it answers programs of this machine alone, by the address that they connect
    from, and by the host that they request, so that a page of another site cannot read it. A proxy
    of this machine passes for such a program, unless it adds ``Forwarded`` or
    ``X-Forwarded-For``: behind a proxy, give a token.

    ::

        app.mount("/inspector", observe.inspector_app(token=os.environ["INSPECTOR_TOKEN"]))
    """
    from .inspector_endpoint import InspectorApp

    if token is not None and len(token) < _SHORTEST_TOKEN:
        raise ValueError(
            f"observe.inspector: a token of {len(token)} characters can be guessed; take at least "
            f"{_SHORTEST_TOKEN}: token=secrets.token_urlsafe()"
        )
    feed = Feed(
        to_seconds(every, "observe.inspector: every"),
        None if stall is None else to_seconds(stall, "observe.inspector: stall"),
    )
    return InspectorApp(feed, token)
