"""The limits of what one connection may cost, and of requests under a lease."""

from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from .frames import MAX_FRAME

MAX_ITEMS: Final = 64
"""How many items, tags and types the metadata of one request may have, unless `Limits` differ."""


class MemoryBudget:
    """How many bytes of peers all connections that share it may hold. Threads may share it too."""

    __slots__ = ("_lock", "_used", "most")

    def __init__(self, most: int) -> None:
        self.most: int = most
        self._used = 0
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"MemoryBudget({self.most}, used={self._used})"

    @property
    def used(self) -> int:
        """How many bytes are held now."""
        return self._used

    @property
    def is_exceeded(self) -> bool:
        return self._used > self.most

    def hold(self, size: int) -> bool:
        """Count *size* more bytes, or fewer if it is negative; whether there was room for them."""
        with self._lock:
            self._used += size
            return self._used <= self.most


PROCESS_BUDGET: Final = MemoryBudget(256 * 1024 * 1024)
"""The budget of all connections of the process whose `Limits` name no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of a connection; sizes in bytes, times in seconds.

    In:

    - max_setup: a SETUP or RESUME frame, and any frame before a client is accepted.
    - max_early: bytes after a SETUP, before it has been accepted.
    - max_frame, max_payload: a frame; a payload reassembled from fragments.
    - max_decoded: the data of a request, of a response, or of an element, that is decoded: 1 MiB,
      and of MessagePack a quarter of it, or 16 KiB. A codec does not yield to the event loop, nor
      to threads, and so many bytes may be 300,000 lists, which take some 30 ms. Bytes and text may
      be as long as *max_payload*.
    - max_partial, max_partials: all unfinished payloads of the connection, in bytes and number.
    - fragment_timeout: how long the rest of a payload may take. Each fragment gives as much time as
      its bytes take at 4 KiB a second, but never more than this.
    - budget: the bytes that all connections of the process hold for their peers together: 256 MiB,
      of unread output, of parts of frames and payloads, of requests that wait, and of frames kept
      for sessions. A connection with no more than *watermark* counts nothing. One with a budget of
      its own shares it with those that were given the same object.
    - max_items: items of composite metadata, tags of a route, and acceptable types, each: 64.
    - max_empty_fragments: empty fragments of one payload.
    - max_streams: open streams that the peer opened.
    - max_useless: frames that no correct peer sends, a second. Ten times as many requests may be
      cancelled by the bytes that bring them, and a hundred times as many frames may arrive late, on
      streams that have ended.
    - max_zero_requests: requests for zero elements, in all.
    - setup_timeout, frame_timeout: how long the first frame, and the rest of any frame, may take.
    - max_lifetime: the longest lifetime without a sign that a client may declare.

    Out:

    - max_requests: open streams that this side opened; more requests wait. It should not exceed the
      *max_streams* of the peer, which rejects more.
    - mtu: longer frames are sent in fragments.
    - max_started: payloads that are being sent in fragments, in bytes; more payloads wait. Those of
      more than an eighth of it have a limit of their own, of the same size, and a single one may
      exceed it. It should not exceed a third of the *max_partial* of the peer, which refuses more.
    - watermark: while more output than this is queued, no publisher is requested more.
    - max_unread: while more output than this and *watermark* is queued, no request for one element
      is served; while the process holds as much as *budget* allows, *watermark* is the limit.
    - chunk: the most elements requested of a publisher at a time.
    - max_backlog: answers queued for a peer that does not read, besides the last one.
    - send_timeout: a client that reads less than 1 KiB a second for so long (15 seconds), while its
      transport takes no more output, loses its connection; `inf` waits for ever.
    """

    max_setup: int = 256 * 1024
    max_early: int = 1024 * 1024
    max_frame: int = MAX_FRAME
    max_payload: int = 16 * 1024 * 1024
    max_decoded: int = 1024 * 1024
    max_partial: int = 64 * 1024 * 1024
    max_partials: int = 256
    max_items: int = MAX_ITEMS
    max_empty_fragments: int = 16
    max_streams: int = 1024
    max_useless: int = 1000
    max_zero_requests: int = 16
    setup_timeout: float = 5.0
    frame_timeout: float = 10.0
    fragment_timeout: float = 20.0
    max_lifetime: float = 600.0
    max_requests: int = 1024
    max_started: int = 8 * 1024 * 1024
    mtu: int = 64 * 1024
    watermark: int = 64 * 1024
    max_unread: int = 1024 * 1024
    chunk: int = 256
    max_backlog: int = 1024 * 1024
    send_timeout: float = 15.0
    budget: MemoryBudget = field(default=PROCESS_BUDGET, repr=False)

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = self.budget.most if name == "budget" else getattr(self, name)
            if not value > 0:
                raise ValueError(f"{name} must be greater than zero, not {value!r}")
        if not 64 <= self.mtu <= MAX_FRAME:
            raise ValueError(f"mtu must be from 64 to {MAX_FRAME}, not {self.mtu}")
        if self.max_frame > MAX_FRAME:
            raise ValueError(f"max_frame must be at most {MAX_FRAME}, not {self.max_frame}")


@dataclass(slots=True)
class Allowance:
    """The lease of one direction: a new one replaces it, and before the first, none is allowed."""

    requests: int = 0
    expires: float = 0.0

    def grant(self, requests: int, ttl: float, now: float) -> None:
        self.requests = requests
        self.expires = now + ttl

    def take(self, now: float) -> bool:
        """Use it for one request; whether it allows that."""
        if self.requests < 1 or now >= self.expires:
            return False
        self.requests -= 1
        return True
