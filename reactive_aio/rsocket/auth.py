"""Authentication of clients and authorization of requests, by functions of the application."""

from dataclasses import dataclass, field
from inspect import Parameter, isawaitable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from anyio import fail_after

from .protocol.errors import RequestRejected
from .protocol.frames import ErrorCode, Setup
from .protocol.metadata import Credentials, MetadataItem
from .request_metadata import find_credentials, read_items
from .routing import signature_parameters

if TYPE_CHECKING:
    from collections.abc import Callable

    from .driver import Driver
    from .request import Request

__all__ = ("AuthHooks", "Authenticate", "Authorize", "ConnectingClient", "connecting_client")

Authenticate: TypeAlias = (
    "Callable[[Credentials | None], Any] | Callable[[Credentials | None, ConnectingClient], Any]"
)
"""Called with the credentials of a SETUP, or None, and the `ConnectingClient` if it takes two
arguments."""

Authorize: TypeAlias = "Callable[[Request], Any]"
"""Called with a request before it is served."""


@dataclass(frozen=True, slots=True)
class ConnectingClient:
    """A client that is to be authenticated."""

    credentials: Credentials | None
    certificate: dict[str, Any] | None = None
    """The verified certificate of its TLS connection, in the form of
    `ssl.SSLSocket.getpeercert`."""
    address: Any = None
    """Its network address, if the transport knows it."""
    data: bytes = field(default=b"", repr=False)
    """The data of its SETUP."""
    metadata: tuple[MetadataItem, ...] = field(default=(), repr=False)
    """All items of metadata of its SETUP."""


def connecting_client(driver: "Driver", setup: Setup) -> ConnectingClient:
    """The client that sent *setup*; raises `ProtocolError` if its metadata is malformed."""
    items = read_items(setup, setup.payload.metadata)
    return ConnectingClient(
        find_credentials(items),
        certificate=driver.get_extra_info("peercert") or None,
        address=driver.get_extra_info("peername"),
        data=setup.payload.data,
        metadata=items,
    )


class AuthHooks:
    """Calls the application's functions. Without an answer in time, the client is refused."""

    def __init__(
        self, authenticate: "Authenticate | None", authorize: "Authorize | None", timeout: float
    ) -> None:
        self.authenticate: Authenticate | None = authenticate
        self.authorize: Authorize | None = authorize
        self.timeout: float = timeout
        self._passes_client = authenticate is not None and _takes_two(authenticate)

    async def identify(self, client: ConnectingClient) -> Any:
        """The user that *client* is authenticated as; a false value if it is refused."""
        authenticate: Any = self.authenticate
        if self._passes_client:
            return await self._result(authenticate(client.credentials, client))
        return await self._result(authenticate(client.credentials))

    async def check(self, request: "Request") -> None:
        """Raise `RequestRejected` unless *request* is authorized."""
        if self.authorize is None:
            return
        try:
            user = await self._result(self.authorize(request))
        except TimeoutError:
            message = b"authorization took too long"
            raise RequestRejected(ErrorCode.REJECTED, message) from None
        if not user:
            raise RequestRejected(ErrorCode.REJECTED, b"not authorized")
        if user is not True:
            request.user = user

    async def _result(self, result: Any) -> Any:
        if isawaitable(result):
            with fail_after(self.timeout):
                return await result
        return result


_POSITIONAL: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def _takes_two(function: Authenticate) -> bool:
    kinds = [each.kind for each in signature_parameters(function).values()]
    return Parameter.VAR_POSITIONAL in kinds or sum(each in _POSITIONAL for each in kinds) > 1
