"""Interceptors: functions around each request, or around each connection, of one side.

An interceptor is called with a request and `proceed`, which continues with the next interceptor and
finally with the handler, or with the connection. So it sees the request before, and the result or
the error after. The first interceptor is the outermost.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from ..._core.arguments import require_callable, require_sync_callable
from ..protocol.stream_states import InteractionModel
from .requests import FLOWS, Metadata

if TYPE_CHECKING:
    from ..payloads import Codec

T = TypeVar("T")
R = TypeVar("R")
_KNOWN: Final = ("metadata", "timeout", "codec")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingRequest:
    """A request that a client is about to send; `dataclasses.replace` changes it."""

    model: InteractionModel
    payload: Any
    """The element sent; of a channel, the source of its elements."""
    route: str | None = None
    """The route, including that of the address; None without one."""
    metadata: Metadata = ()
    timeout: Any = None
    codec: "Codec[Any] | None" = None
    """The codec, if it is not that of the connection."""
    others: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """All other options with which the request was made, by name."""

    @classmethod
    def of(
        cls, model: InteractionModel, payload: Any, route: str | None, options: Mapping[str, Any]
    ) -> "OutgoingRequest":
        """The request with *options*, of a requester whose route is *route*."""
        others = dict(options)
        known = {name: others.pop(name) for name in _KNOWN if name in others}
        given = others.pop("route", None)
        return cls(
            model=model,
            payload=payload,
            route=route if given is None else given,
            others=others,
            **known,
        )

    def options(self) -> dict[str, Any]:
        """The options of the request, for the method of a requester."""
        options: dict[str, Any] = {"route": self.route, "metadata": self.metadata, **self.others}
        if self.timeout is not None:
            options["timeout"] = self.timeout
        if self.codec is not None:
            options["codec"] = self.codec
        return options


ClientInterceptor: TypeAlias = "Callable[[OutgoingRequest, Callable[[OutgoingRequest], Any]], Any]"
"""Called with each `OutgoingRequest`, and with ``proceed``, which sends it. It returns what proceed
returns, or another one: a coroutine for one element, a flow for a stream or a channel."""


def checked(option: str, interceptors: Sequence[Callable[..., Any]]) -> tuple[Any, ...]:
    """*interceptors* as a tuple of functions of two arguments."""
    given: Any = interceptors
    if callable(given):
        raise TypeError(f"{option} must be a list of functions: write [{_name(given)}]")
    for each in given:
        require_callable("RSocket", option, each, takes=2, may_generate=True)
    return tuple(given)


def checked_outgoing(interceptors: Sequence[Callable[..., Any]]) -> tuple[Any, ...]:
    """The *interceptors* of a client, which must be plain functions: a stream is not awaited."""
    functions = checked("interceptors", interceptors)
    remedy = "return what proceed returns, or a coroutine that awaits it."
    for each in functions:
        require_sync_callable("connect", "interceptors", each, remedy, takes=2)
    return functions


def _name(function: Any) -> str:
    return getattr(function, "__name__", repr(function))


async def run(
    interceptors: Sequence[Callable[..., Any]], subject: T, last: Callable[[T], Awaitable[R]]
) -> R:
    """Call *interceptors* around *last*, with *subject*."""
    proceed: Callable[[T], Awaitable[Any]] = last
    for each in reversed(interceptors):
        proceed = partial(_call, each, proceed)
    result: R = await proceed(subject)
    return result


async def _call(
    interceptor: Callable[..., Any], proceed: Callable[[Any], Awaitable[Any]], subject: Any
) -> Any:
    result = interceptor(subject, proceed)
    while isawaitable(result):  # a coroutine function may return `proceed(request)` as well
        result = await result
    return result


# -- on the side that requests ---------------------------------------------------------------------
def intercepted(
    interceptors: Sequence[ClientInterceptor],
    request: OutgoingRequest,
    send: Callable[[OutgoingRequest], Any],
) -> Any:
    """Call *interceptors* around *send*: the coroutine, or the flow, of *request*."""
    if request.model not in FLOWS:
        return run(interceptors, request, send)
    proceed = send
    for each in reversed(interceptors):
        proceed = _bound(each, proceed)
    return proceed(request)


def _bound(
    interceptor: ClientInterceptor, proceed: Callable[[OutgoingRequest], Any]
) -> Callable[[OutgoingRequest], Any]:
    return lambda request: interceptor(request, proceed)
