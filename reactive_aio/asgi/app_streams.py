"""AppStreams: all streams of an ASGI app, which end in good order when its server stops."""

from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from signal import Signals
from typing import Final, cast

from .._core.arguments import Duration, require_callable, to_seconds
from .._core.loop import LoopHandle, TimerHandle
from .http import HttpRequest, Receive, Scope, Send
from .places import ClientKey, Places, address_of_client
from .problem import server_stops

App = Callable[[Scope, Receive, Send], Awaitable[None]]

_KEY: Final = "reactive_aio.streams"  # of the scope of a request
_NAME: Final = "AppStreams"
_SIGNALS: Final = ("SIGTERM", "SIGINT", "SIGBREAK")  # those on which servers stop; of Windows last


class AppStreams:
    """The streams of an ASGI app: how many there may be, and how they end when the server stops.

    ::

        streams = AppStreams()
        app = FastAPI()
        app.add_middleware(streams.wrap)

    `wrap` adds it to any app: as a middleware of FastAPI and Starlette, or as
    ``app = streams.wrap(app)``. When the server receives SIGTERM or Ctrl-C, the streams of `sse`,
    `ndjson`, `stream` and `websocket` may complete within *grace* seconds (0); those that are left
    end: their flows are cancelled, an event stream ends without ``complete``, so that a browser
    reconnects, lines end with a failure 503, and sockets are closed with 1012. Without it, a server
    waits for streams that never end, until it cuts them. New streams are refused meanwhile. `stop`
    does the same for a program that stops its server itself.

    At most *max_streams* streams and sockets are open at a time (10,000), and *max_per_client* of
    one client (no limit by default): whatever endpoints they belong to, also those that a function
    returns for each request. *client_key* tells clients apart, as for `sse`.
    """

    def __init__(
        self,
        *,
        grace: Duration = 0.0,
        max_streams: int = 10_000,
        max_per_client: int | None = None,
        client_key: ClientKey = address_of_client,
    ) -> None:
        self._grace = to_seconds(grace, f"{_NAME}: grace", zero=True)
        self._places = Places(_NAME, "streams", max_streams, max_per_client, client_key)
        self._ends: dict[Callable[[], object], None] = {}
        self._loop_handle: LoopHandle | None = None  # of the server, while it runs
        self._watching = ExitStack()
        self._timer: TimerHandle | None = None
        self.is_stopping: bool = False
        """Whether streams end, and new ones are refused."""

    def __repr__(self) -> str:
        state = ", stopping" if self.is_stopping else ""
        return f"<{_NAME}: {self.open} open{state}>"

    @property
    def open(self) -> int:
        """The number of streams and sockets that are open."""
        return self._places.taken

    def wrap(self, app: App) -> App:
        """Return *app*, whose streams are those of this object from now on."""

        require_callable(_NAME, "app", app, takes=3)

        async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
            if self._loop_handle is None or self._loop_handle.is_closed:
                self._watch_signals(LoopHandle(_NAME))
            if scope["type"] != "lifespan":
                await app({**scope, _KEY: self}, receive, send)
                return
            self.is_stopping = False  # a test may start and stop an app many times
            try:
                await app(scope, receive, send)
            finally:
                self._end_watching()

        return wrapped

    def _watch_signals(self, loop_handle: LoopHandle) -> None:
        """Watch the signals on which the server stops: ASGI tells apps only when all has ended."""
        self._loop_handle = loop_handle
        self._watching.close()  # if the loop before was closed without a word to the app
        for name in _SIGNALS:
            if number := getattr(Signals, name, None):
                self._watching.callback(loop_handle.watch_signal(number, self.stop))

    def _end_watching(self) -> None:
        self._watching.close()
        self._loop_handle = None
        self._end()

    def stop(self) -> None:
        """Refuse new streams, and end those that are open after the time of grace.

        It may be called in any thread, and more than once.
        """
        was_stopping, self.is_stopping = self.is_stopping, True
        if self._loop_handle is not None and not was_stopping:
            self._loop_handle.call_soon_threadsafe(self._stop, self._loop_handle)

    def _stop(self, loop_handle: LoopHandle) -> None:
        if self._grace and self._ends:
            self._timer = loop_handle.call_later(self._grace, self._end)
        else:
            self._end()

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for end in [*self._ends]:
            end()

    def take(self, request: HttpRequest, end: Callable[[], object], holder: ExitStack) -> None:
        """Let *holder* have a place; *end* is called when the stream must end.

        Raises `Refused` if there is no place.
        """
        if self.is_stopping:
            raise server_stops()
        self._places.take(request, holder)
        self._ends[end] = None
        holder.callback(self._ends.pop, end)


def take_place(request: HttpRequest, places: Places, end: Callable[[], object]) -> ExitStack:
    """Take a place of an endpoint's *places* and one of its app, if it has `AppStreams`.

    The result gives them back. *end* is called when the server stops. Raises `Refused`.
    """
    with ExitStack() as holder:
        places.take(request, holder)
        streams = cast("AppStreams | None", request.scope.get(_KEY))
        if streams is not None:
            streams.take(request, end, holder)
        return holder.pop_all()
