"""Who may come in, and who may ask for what: the hooks of authentication and authorization."""

from dataclasses import dataclass, field
from inspect import Parameter, isawaitable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from anyio import fail_after

from .handler_arguments import signature_parameters
from .protocol.errors import RequestRejected
from .protocol.frames import ErrorCode, Setup
from .protocol.metadata import Credentials, MetadataItem
from .request_metadata import find_credentials, read_items

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
"""Gets a request before it is served."""


@dataclass(frozen=True, slots=True)
class ConnectingClient:
    """A client that wants to come in."""

    credentials: Credentials | None
    certificate: dict[str, Any] | None = None
    """The certificate of its TLS connection, verified, as `ssl.SSLSocket.getpeercert` has it."""
    address: Any = None
    """Where it calls from, if its transport knows."""
    data: bytes = field(default=b"", repr=False)
    """The data of its SETUP."""
    metadata: tuple[MetadataItem, ...] = field(default=(), repr=False)
    """All items of metadata of its SETUP."""


def connecting_client(driver: "Driver", setup: Setup) -> ConnectingClient:
    """Who stands at the door; raises `ProtocolError` if what it says makes no sense."""
    items = read_items(setup, setup.payload.metadata)
    return ConnectingClient(
        find_credentials(items),
        certificate=driver.info("peercert") or None,
        address=driver.info("peername"),
        data=setup.payload.data,
        metadata=items,
    )


_POSITIONAL: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class AuthHooks:
    """The application's two questions. An answer that does not come in time is a no."""

    def __init__(
        self, authenticate: "Authenticate | None", authorize: "Authorize | None", timeout: float
    ) -> None:
        self.authenticate: Authenticate | None = authenticate
        self.authorize: Authorize | None = authorize
        self._timeout = timeout
        self._both = authenticate is not None and _takes_two(authenticate)

    async def who(self, caller: ConnectingClient) -> Any:
        """Whom authentication takes *caller* for; something false if it does not let it in."""
        ask: Any = self.authenticate
        if ask is None:
            return True
        shown = caller.credentials
        return await self._answer(ask(shown, caller) if self._both else ask(shown))

    async def permit(self, request: "Request") -> None:
        """Raise `RequestRejected` unless *request* may be served."""
        ask = self.authorize
        if ask is None:
            return
        try:
            user = await self._answer(ask(request))
        except TimeoutError:
            message = b"authorization took too long"
            raise RequestRejected(ErrorCode.REJECTED, message) from None
        if not user:
            raise RequestRejected(ErrorCode.REJECTED, b"not authorized")
        if user is not True:
            request.user = user

    async def _answer(self, answer: Any) -> Any:
        if isawaitable(answer):
            with fail_after(self._timeout):
                return await answer
        return answer


def _takes_two(function: Authenticate) -> bool:
    found = signature_parameters(function).values()
    if any(each.kind is Parameter.VAR_POSITIONAL for each in found):
        return True
    return sum(each.kind in _POSITIONAL for each in found) > 1
