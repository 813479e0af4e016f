"""How a client connects: what it says of itself, what it allows, and the driver that follows."""

from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, TypedDict, cast

from .._core.duration import Duration, to_seconds
from .driver import Driver
from .payloads import Codec
from .protocol.connection import Connection
from .protocol.frames import Payload, Setup
from .protocol.limits import Limits
from .protocol.metadata import Credentials, MetadataItem, write_auth
from .protocol.mime import AUTHENTICATION, COMPOSITE_METADATA
from .request_metadata import write_items
from .responder import CODECS, ResponderOptions, RouterResponder
from .routing import Router

if TYPE_CHECKING:
    from collections.abc import Callable

    from .protocol.resume import Resumption

__all__ = ("ClientOptions", "client_driver", "resolve_credentials")


class ClientOptions(TypedDict, total=False):
    """How a client connects."""

    credentials: "Credentials | Callable[[], Any] | None"
    """The client's credentials, or a function, possibly a coroutine function, that returns them.
    The function is called once for each connection."""
    keepalive: Duration
    """How often it says that it lives: every 20 seconds."""
    lifetime: Duration
    """After how much silence either side takes the other for dead: 90 seconds."""
    limits: Limits | None
    """What the connection may cost."""
    router: Router | None
    """What serves the requests of the server."""
    serving: ResponderOptions
    """How *router* serves."""
    lease: bool
    """Whether requests, in both directions, need leases. `ResponderOptions.leases` are granted."""
    resume: "Resumption | None"
    """Whether, and how long, the session outlives its transport."""
    metadata_mime: str
    """The type of metadata where it is not to be composite: for old servers."""
    metadata: "tuple[MetadataItem | tuple[str, bytes], ...]"
    """More metadata for the SETUP."""
    data: bytes
    """Data for the SETUP."""


_KNOWN: Final = ClientOptions.__annotations__.keys()


async def resolve_credentials(options: ClientOptions) -> Credentials | None:
    """The credentials of *options*, asked for if they are a function."""
    credentials = options.get("credentials")
    if not callable(credentials):
        return credentials
    made = credentials()
    return cast("Credentials | None", await made if isawaitable(made) else made)


def client_driver(
    codec: Codec[Any], options: ClientOptions, credentials: Credentials | None
) -> Driver:
    """A client's driver, to be attached to a transport."""
    if wrong := options.keys() - _KNOWN:
        raise TypeError(f"unknown {', '.join(sorted(wrong))}; known are {', '.join(_KNOWN)}")
    items = list(options.get("metadata", ()))
    if credentials is not None:
        items.insert(0, (AUTHENTICATION, write_auth(credentials)))
    mime = options.get("metadata_mime", COMPOSITE_METADATA)
    setup = Setup(
        keepalive=max(1, int(to_seconds(options.get("keepalive", 20.0), "keepalive") * 1000)),
        lifetime=max(1, int(to_seconds(options.get("lifetime", 90.0), "lifetime") * 1000)),
        metadata_mime=mime,
        data_mime=codec.mime,
        payload=Payload(options.get("data", b""), write_items(mime, items)),
        lease=options.get("lease", False),
    )
    limits, resume = options.get("limits"), options.get("resume")

    def make(now: float) -> Connection:
        return Connection(setup, now, limits=limits, resumption=resume)

    router = options.get("router")
    if router is None:
        return Driver(make)
    responder = RouterResponder(
        router, **_serving(codec, options.get("serving", ResponderOptions()))
    )
    driver = Driver(make, responder)
    responder.begin(driver)
    return driver


def _serving(codec: Codec[Any], options: ResponderOptions) -> ResponderOptions:
    """*options*, by which a type of this connection alone can be read as well."""
    if codec.mime in CODECS:
        return options
    codecs = {codec.mime: codec, **(options.get("codecs") or {})}
    own = options.copy()
    own["codecs"] = codecs
    return own
