"""EventParser: ``text/event-stream`` as the HTML standard reads it (9.2.6). Pure."""

from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import Final

from .._shared.framing import UniversalSplitter
from ..errors import FrameTooLong
from .formats import Event

_MAX_DIGITS: Final = 12


class EventParser:
    """Parses the bytes of one response, wherever its chunks end.

    A line, and the data of an event, may have *limit* bytes; `FrameTooLong` is raised for more.
    """

    def __init__(
        self,
        what: str,
        limit: int,
        last_event_id: str | None = None,
        retry: float | None = None,
    ) -> None:
        self.last_event_id: str | None = last_event_id
        """The id of the last event, with which a client resumes."""
        self.retry: float | None = retry
        """The seconds after which a client may reconnect, if the server has set them."""
        self._what = what
        self._limit = limit
        self._splitter = UniversalSplitter(what, limit, mark=BOM_UTF8)
        self._id = last_event_id or ""
        self._event = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[Event[str]]:
        """Generate the events that end in *chunk*; what follows the last one is kept."""
        for lines in self._splitter.batches(chunk):
            for line in lines:
                if line:
                    self._read_line(line)
                elif event := self._dispatch():
                    yield event

    def _read_line(self, line: bytes) -> None:
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._size += len(line)
            if self._size > self._limit:
                raise FrameTooLong(self._what, self._limit)
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id":
            if "\0" not in value:
                self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry = int(value[:_MAX_DIGITS]) / 1000
        # Anything else is ignored: a comment has no name.

    def _dispatch(self) -> Event[str] | None:
        """Return the event that an empty line ends; None if it has no data."""
        data, name = self._data, self._event
        self._data, self._event, self._size = [], "", 0
        self.last_event_id = self._id or None
        return Event("\n".join(data), id=self.last_event_id, event=name or None) if data else None
