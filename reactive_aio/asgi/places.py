"""Places: how many streams, or sockets, there may be at a time, altogether and of one client."""

from collections.abc import Callable, Hashable
from contextlib import ExitStack

from .._core.arguments import require_int, require_sync_callable
from .._shared.client_places import ClientPlaces, key_of_address
from .http import HttpRequest
from .problem import refused_later

ClientKey = Callable[[HttpRequest], Hashable | None]
"""Tells clients apart; None for one that is not limited."""


def address_of_client(request: HttpRequest) -> Hashable | None:
    """Return the IP address of the client, of IPv6 the network; None if it has none."""
    return key_of_address(request.scope.get("client"))


class Places:
    """Counts what is open, *what* that is, and refuses what is too much: 503, or 429."""

    def __init__(
        self, name: str, what: str, most: int, per_client: int | None, client_key: ClientKey
    ) -> None:
        if per_client is not None:
            require_int(name, "max_per_client", per_client, least=1)
        remedy = "find out in a middleware, and return what it has put into request.scope."
        require_sync_callable(name, "client_key", client_key, remedy, takes=1)
        self.taken: int = 0
        self._most = require_int(name, f"max_{what}", most, least=1)
        self._what = what
        self._clients = ClientPlaces(per_client)
        self._key_of = client_key

    def take(self, request: HttpRequest, holder: ExitStack) -> None:
        """Let *holder* have a place until it is closed; raise `Refused` if there is none."""
        if self.taken >= self._most:
            raise refused_later(503, f"all {self._most} {self._what} are in use")
        key = None if self._clients.most is None else self._key_of(request)
        if not self._clients.take(key):
            raise refused_later(429, f"a client has {self._clients.most} {self._what} at most")
        self.taken += 1
        holder.callback(self._give_back, key)

    def _give_back(self, key: Hashable | None) -> None:
        self.taken -= 1
        self._clients.give_back(key)
