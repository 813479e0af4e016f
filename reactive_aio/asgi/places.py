"""Places: how many streams, or sockets, there may be at a time, altogether and of one client."""

from collections.abc import Callable, Hashable
from contextlib import ExitStack

from .._core.arguments import require_int, require_sync_callable
from .._core.hosts import client_of
from .http import HttpRequest
from .problem import refused_later

ClientKey = Callable[[HttpRequest], Hashable | None]
"""Tells clients apart; None for one that is not limited."""


def address_of_client(request: HttpRequest) -> Hashable | None:
    """Return the IP address of the client, of IPv6 the network; None if it has none."""
    client = request.scope.get("client")
    return client_of(str(client[0])) if client else None


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
        self._per_client = per_client
        self._what = what
        self._key_of = client_key
        self._of_client: dict[Hashable, int] = {}

    def take(self, request: HttpRequest, holder: ExitStack) -> None:
        """Let *holder* have a place until it is closed; raise `Refused` if there is none."""
        if self.taken >= self._most:
            raise refused_later(503, f"all {self._most} {self._what} are in use")
        key = None if self._per_client is None else self._key_of(request)
        if key is not None and self._per_client is not None:
            count = self._of_client.get(key, 0)
            if count >= self._per_client:
                raise refused_later(
                    429,
                    f"this client has {count} {self._what}, its most (max_per_client): close one",
                )
            self._of_client[key] = count + 1
        self.taken += 1
        holder.callback(self._give_back, key)

    def _give_back(self, key: Hashable | None) -> None:
        self.taken -= 1
        if key is not None:
            left = self._of_client.pop(key) - 1
            if left:
                self._of_client[key] = left
