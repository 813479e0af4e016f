"""The connections of one client, who is known by its address."""

from collections.abc import Callable, Hashable
from typing import Any

from .._shared.client_places import ClientPlaces
from .driver import Driver

KeyOf = Callable[[Any], Hashable | None]


class ConnectionPlaces:
    """Lets each client have at most *most* connections; any number if that is None."""

    def __init__(self, most: int | None, key_of: KeyOf) -> None:
        self._places = ClientPlaces(most)
        self._key_of = key_of

    def take(self, driver: Driver) -> bool:
        """Take a place for *driver* until it is closed; return False if its client has none."""
        if self._places.most is None:
            return True
        key = self._key_of(driver.get_extra_info("peername"))
        if not self._places.take(key):
            return False
        driver.add_close_callback(lambda _: self._places.give_back(key))
        return True
