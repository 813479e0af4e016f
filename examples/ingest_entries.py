"""What `ingest_service` knows of a message: an entry, and what may be wrong with it."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from ingest_store import REFUSED, Event, Letter, key_of

import reactive_aio as rx

Fields = Mapping[bytes, bytes]


class NotValid(ValueError):
    """An entry that no attempt could enrich."""


class Died(ValueError):
    """An entry that ends its process."""


OWN: Final = (ValueError, TypeError, LookupError, ArithmeticError, *REFUSED)
"""Errors of an entry itself. Any other may be one of what all entries need."""
ATTEMPTS: Final = rx.RetryPolicy(
    attempts=4, delay=0.05, maximum=5, only=lambda error: not isinstance(error, (NotValid, Died))
)
REASONS: Final = {NotValid: "invalid", Died: "crashed"} | dict.fromkeys(REFUSED, "refused")


class Entry(NamedTuple):
    """A message, whichever broker it is of."""

    where: str
    """What names it if it has no id."""
    fields: Fields
    crashes: int = 0
    """How many processes have ended while they worked on it alone."""

    def checked(self, crashes: int) -> tuple[str, str]:
        """Its id and its payload; `NotValid`, or `Died` if *crashes* processes did."""
        if self.crashes >= crashes:
            died = f"{self.crashes} processes have ended while they worked on this entry alone"
            raise Died(died)
        id, payload = self._text(b"id"), self._text(b"payload")
        if not id:
            raise NotValid(f"the field 'id' of the entry {self.where} is empty")
        if key_of(id) != id:
            raise NotValid(f"the field 'id' of the entry {self.where} is too long for a key")
        return id, payload

    def _text(self, name: bytes) -> str:
        """A field as a text that PostgreSQL can store."""
        try:
            text = self.fields[name].decode()
        except (KeyError, UnicodeDecodeError) as error:
            what = "has no field" if isinstance(error, KeyError) else "is not UTF-8 in the field"
            raise NotValid(f"the entry {self.where} {what} {name.decode()!r}") from error
        if "\0" in text:
            raise NotValid(f"the field {name.decode()!r} of the entry {self.where} contains NUL")
        return text

    def letter(self, error: Exception) -> Letter:
        """It as a dead letter, under its own id, or that of its message if it has none."""
        id, payload = (shown(self.fields.get(name, b"")) for name in (b"id", b"payload"))
        text = shown(f"{type(error).__name__}: {error}".encode(errors="backslashreplace"))
        reason = next((REASONS[kind] for kind in REASONS if isinstance(error, kind)), "failed")
        return Letter(id or self.where, payload, text, reason, self.fields)


def shown(value: bytes) -> str:
    """Any bytes as a text that PostgreSQL can store."""
    return value.decode(errors="backslashreplace").replace("\0", "\\x00")


def size_of(event: Event) -> int:
    """The bytes of an event, as far as they matter."""
    return len(event.payload) + len(event.enriched)
