"""from_sse: the events of a server as a flow, by the package httpx."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack, cast

from anyio import fail_after
from anyio.to_thread import run_sync

from .._core.arguments import Duration, require_int, require_known_options, to_seconds
from .._core.foreign_text import excerpt, without_secrets
from .._sources.values import defer
from ..errors import MissingExtra
from ..retry import RetryPolicy
from ..stage import from_async
from .event_parser import EventParser
from .formats import Event
from .http import Headers
from .problem import PeerFailed, SocketLost, detail_of, redirect_of
from .urls import require_url

if TYPE_CHECKING:
    from httpx import URL, AsyncClient, Response

    from ..flow import Flow

_NAME: Final = "from_sse"
_MEDIA_TYPE: Final = "text/event-stream"
_DELAY: Final = 3.0  # seconds between two requests, as in Chrome, if the server has set none
_LONGEST_DELAY: Final = 3600.0  # that a server may set; a browser is reloaded by its user
_MAX_PROBLEM: Final = 4096  # bytes of a response that is not a stream


class EventStreamOptions(TypedDict, total=False):
    """Keyword arguments of `from_sse`; each has a default.

    - method: the HTTP method (GET).
    - json: the body of the request, as JSON; none by default.
    - headers: additional headers of the request.
    - timeout: the number of seconds within which a connection must be there (10).
    - silence: the number of seconds after which a connection without a byte is lost (60), and
      within which the server must have answered. Servers send comments meanwhile; this package's do
      after 15 seconds.
    - max_event: the number of bytes that the data of an event, or a line, may have (1 MiB).
    - client: the client of httpx whose connections are used, and which decides whether redirects
      are followed; by default there is one for each request, which follows none. Another origin
      than that of *url* receives neither *headers* nor those of the client, cookies or credentials.
    """

    method: str
    json: Any
    headers: Mapping[str, str] | None
    timeout: Duration
    silence: Duration | None
    max_event: int
    client: "AsyncClient | None"


def from_sse(
    url: str,
    *,
    last_event_id: str | int | None = None,
    retry: RetryPolicy | int | None = None,
    **options: Unpack[EventStreamOptions],
) -> "Flow[Event[str]]":
    """Emit the server-sent events of *url*, each an `Event` whose data is a text.

    ::

        from_sse("https://example.org/prices", retry=policy).map(lambda event: event.data)

    With *retry*, the client reconnects as a browser does: when the connection is lost or the
    response ends, not before the delay that the server has set (an hour at most), and with the id
    of the last event as ``Last-Event-ID``, so that a server which knows it sends only what was
    missed. A number is that of attempts in a row, as for `retry`: an event makes the count begin
    again with the request that brought it. As long as the server has set no delay, it is 3 seconds.
    A `RetryPolicy` counts as it says, from the first request on unless ``reset=True``. Without
    *retry*, the flow completes when the response ends. The first request sends *last_event_id*, if
    given. The other options are `EventStreamOptions`; the extra ``httpx`` is needed.

    Demand: one event for one requested; the connection is read when no event waits.
    Completes: when the server says so, by 204 or an event ``complete`` with the data ``{}``;
        without *retry*, when the response ends.
    Fails: with `SocketLost`, a `ConnectionError`, when the connection is lost, or nothing comes
        within the time of *silence*; with `PeerFailed`, which has a `status`, when the server
        answers with another status than 200, compresses its answer although it was asked not to, or
        sends an event ``failure`` in the form of `sse`; with `FrameTooLong` when an event is too
        long.
    Cancels: the connection is closed.
    Holds: the events of 64 KiB.
    Rules: 1.1, 3.13

    A policy such as ``RetryPolicy(attempts=None, within=3600, delay=0.5, only=ConnectionError,
    reset=True)`` does not repeat requests that the server refuses.
    """
    config = _Config(url, options, ends=retry is None)
    policy = None if retry is None else RetryPolicy.of(retry)
    delay: float | None = None
    if policy is not None and not isinstance(retry, RetryPolicy):
        policy, delay = replace(policy, reset=True), _DELAY
    name, first_id = f"{_NAME}({config.shown_url!r})", _header_value(last_event_id)

    def attempts() -> "Flow[Event[str]]":
        progress = _Progress(first_id, delay)
        events = from_async(lambda: _read(config, progress), name=name)
        if policy is None:
            return events
        if policy.retry_after is not None:
            return events.retry(policy)
        return events.retry(replace(policy, retry_after=progress.delay_after))

    return defer(attempts)


def _header_value(last_event_id: str | int | None) -> str | None:
    """*last_event_id*, which an `Event` may have as a number, as the value of a header."""
    given = cast("object", last_event_id)
    if given is None or (isinstance(given, int) and not isinstance(given, bool)):
        return None if given is None else str(given)
    if not isinstance(given, str):
        kind = type(given).__name__
        raise TypeError(f"{_NAME}: last_event_id must be a str or an int, not {given!r} ({kind})")
    if any(each in given for each in "\r\n\0"):
        raise ValueError(f"{_NAME}: last_event_id must be one line without NUL, not {given!r}")
    return given


@dataclass(slots=True)
class _Progress:
    """How far the requests of one subscription have come."""

    last_event_id: str | None
    delay: float | None = None
    """The delay between two requests, which the server has set by ``retry:``."""
    retry_after: float | None = None
    """The delay that the last answer has set for the next request alone."""

    def delay_after(self, error: BaseException) -> float | None:
        delay = self.delay if self.retry_after is None else self.retry_after
        return None if delay is None else min(delay, _LONGEST_DELAY)


class _Config:
    """The validated options of `from_sse`."""

    def __init__(self, url: str, options: EventStreamOptions, *, ends: bool) -> None:
        known = ("retry", *EventStreamOptions.__annotations__)
        require_known_options(_NAME, options, known)
        scheme = require_url(_NAME, url, ("http", "https"))
        silence = options.get("silence", 60.0)
        self.url: str = url
        self.shown_url: str = without_secrets(url)
        """What errors and names show of it."""
        self.is_secure: bool = scheme == "https"
        self.ends: bool = ends
        self.method: str = options.get("method", "GET")
        self.json: Any = options.get("json")
        self.headers: dict[str, str] = dict(options.get("headers") or {})
        self.timeout: float = to_seconds(options.get("timeout", 10.0), f"{_NAME}: timeout")
        self.silence: float | None = (
            None if silence is None else to_seconds(silence, f"{_NAME}: silence")
        )
        self.max_event: int = require_int(
            _NAME, "max_event", options.get("max_event", 2**20), least=1
        )
        self.client: AsyncClient | None = options.get("client")

    @property
    def patience(self) -> float | None:
        """Within how many seconds the answer must have begun, however slowly it comes."""
        return None if self.silence is None else self.timeout + self.silence

    def request_headers(self, last_event_id: str | None) -> Headers:
        """The headers of the first request; those of redirects have a part of them."""
        headers = own_headers(last_event_id)
        headers |= {name.lower(): value for name, value in self.headers.items()}
        return _encoded(headers)


def own_headers(last_event_id: str | None) -> dict[str, str]:
    """The headers of a request without those that the caller has given."""
    # A small chunk that is compressed can expand to a large one, so `_is_stream` refuses it.
    headers = {"accept": _MEDIA_TYPE, "accept-encoding": "identity", "cache-control": "no-store"}
    # Spaces around it are no part of a header, which cannot have control characters but tabs.
    value = (last_event_id or "").strip(" \t")
    if value and not any((each < " " and each != "\t") or each == "\x7f" for each in value):
        headers["last-event-id"] = value
    return headers


def _encoded(headers: Mapping[str, str]) -> Headers:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


async def _read(config: _Config, progress: _Progress) -> AsyncGenerator[Event[str]]:
    """Send one request, and generate its events."""
    _require_httpx()
    import httpx

    async with AsyncExitStack() as stack:
        client = config.client
        if client is None:
            # Reading the certificates takes 20 ms. Without TLS, nothing is verified.
            verify = await run_sync(httpx.create_ssl_context) if config.is_secure else False
            client = await stack.enter_async_context(httpx.AsyncClient(verify=verify))
        progress.retry_after = None
        parser = EventParser(_NAME, config.max_event, progress.last_event_id, progress.delay)
        try:
            with fail_after(config.patience):
                response = await _answer(config, progress, client, stack)
                if not await _is_stream(config, progress, response):
                    return
            async for chunk in response.aiter_bytes():
                for event in parser.feed(chunk):
                    progress.last_event_id, progress.delay = parser.last_event_id, parser.retry
                    if _is_end(event):
                        return
                    yield event
                # An event without data is not an element, but may have an id.
                progress.last_event_id, progress.delay = parser.last_event_id, parser.retry
        except TimeoutError as error:
            message = f"{config.shown_url}: no answer within {config.patience:g} s"
            raise SocketLost(f"{message} (timeout= and silence=)") from error
        except httpx.ReadTimeout as error:
            message = f"{config.shown_url}: no byte within {config.silence:g} s (silence=)"
            raise SocketLost(message) from error
        except httpx.TransportError as error:
            text = excerpt(without_secrets(str(error))) or type(error).__name__
            raise SocketLost(f"{config.shown_url}: the connection is lost: {text}") from error
    if not config.ends:
        raise SocketLost(f"{config.shown_url}: the response ended without an event `complete`")


async def _answer(
    config: _Config, progress: _Progress, client: "AsyncClient", stack: AsyncExitStack
) -> "Response":
    """Send the request, and follow redirects if *client* does; *stack* closes the response.

    httpx follows them with all headers but Authorization, and reads what they contain.
    """
    import httpx

    request = client.build_request(
        config.method,
        config.url,
        headers=config.request_headers(progress.last_event_id),
        json=config.json,
        timeout=httpx.Timeout(config.timeout, read=config.silence),
    )
    origin = _origin_of(request.url)
    auth: Any = httpx.USE_CLIENT_DEFAULT
    for left in reversed(range(client.max_redirects + 1)):
        response = await client.send(request, stream=True, auth=auth, follow_redirects=False)
        following = response.next_request
        is_other = following is not None and _origin_of(following.url) != origin
        has_body = config.json is not None and following is not None and following.method != "GET"
        is_followed = client.follow_redirects and left and not (is_other and has_body)
        if following is None or not is_followed:
            stack.push_async_callback(response.aclose)
            return response
        await response.aclose()
        if is_other or auth is None:
            auth = None  # from now on, whatever follows
            following = httpx.Request(
                following.method,
                following.url,
                headers=_encoded(own_headers(progress.last_event_id)),
                extensions=following.extensions,
            )
        elif "cookie" in request.headers:
            following.headers["cookie"] = request.headers["cookie"]
        request = following
    raise AssertionError("the last answer is returned")


def _origin_of(url: "URL") -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _require_httpx() -> None:
    try:
        import_module("httpx")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "httpx":
            raise
        raise MissingExtra(f"{_NAME}()", "httpx") from error


async def _is_stream(config: _Config, progress: _Progress, response: "Response") -> bool:
    """Whether there are events; raise `PeerFailed` if the server refuses them."""
    status, media_type = response.status_code, response.headers.get("content-type", "")
    is_encoded = any(each.lower() != "identity" for each in _encodings(response))
    if status == 204:
        return False
    is_stream = media_type.partition(";")[0].strip().lower() == _MEDIA_TYPE
    if status == 200 and is_stream and not is_encoded:
        return True
    delay = response.headers.get("retry-after", "")
    if delay.isascii() and delay.isdigit():
        progress.retry_after = float(delay[:9])
    what = f"{config.shown_url}: the request"
    if status == 200 and is_encoded:
        detail = f"the content encoding is {', '.join(_encodings(response))}; only identity is read"
        raise PeerFailed(502, detail, what=what)
    if status == 200:
        detail = f"the content type is {media_type or 'missing'}, and must be {_MEDIA_TYPE}"
        raise PeerFailed(502, detail, what=what)
    body = b""
    if not is_encoded:
        async for chunk in response.aiter_bytes(_MAX_PROBLEM):
            body = chunk
            break
    redirect = redirect_of(status, response.headers.get("location"))
    raise PeerFailed(status, redirect or detail_of(body) or response.reason_phrase, what=what)


def _encodings(response: "Response") -> list[str]:
    """Return how the body is compressed, such as gzip, although identity was asked for."""
    return response.headers.get_list("content-encoding", split_commas=True)


def _is_end(event: Event[str]) -> bool:
    """Whether *event* is the end of a stream of `sse`; raise `PeerFailed` if it has failed."""
    if event.event == "failure":
        try:
            found = json.loads(event.data)
        except (ValueError, RecursionError):
            return False
        if isinstance(found, dict):
            members = cast("dict[str, Any]", found)
            status, detail = members.get("status"), members.get("detail")
            if isinstance(status, int) and isinstance(detail, str):
                raise PeerFailed(status, detail, what="the server's stream")
    return event.event == "complete" and event.data == "{}"
