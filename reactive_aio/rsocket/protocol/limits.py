"""The limits of what one connection may cost."""

from dataclasses import dataclass

from .frames import MAX_FRAME

__all__ = ("Limits",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of a connection; sizes in bytes, times in seconds.

    In:

    - max_setup: a SETUP or RESUME frame, and any frame before a client is accepted.
    - max_early: bytes after a SETUP, before it has been accepted.
    - max_frame, max_payload: a frame; a payload reassembled from fragments.
    - max_partial, max_partials: all unfinished payloads of the connection, in bytes and number.
    - max_empty_fragments: empty fragments of one payload.
    - max_streams: open streams that the peer opened.
    - max_useless: frames without effect, a second.
    - max_zero_requests: requests for zero elements, in all.
    - setup_timeout, frame_timeout: how long the first frame, and the rest of any frame, may take.
    - max_lifetime: the longest lifetime without a sign that a client may declare.

    Out:

    - mtu: longer frames are sent in fragments.
    - watermark: while more output than this is queued, no publisher is requested more.
    - chunk: the most elements requested of a publisher at a time.
    - max_backlog: answers queued for a peer that does not read.
    """

    max_setup: int = 256 * 1024
    max_early: int = 1024 * 1024
    max_frame: int = MAX_FRAME
    max_payload: int = 16 * 1024 * 1024
    max_partial: int = 64 * 1024 * 1024
    max_partials: int = 256
    max_empty_fragments: int = 16
    max_streams: int = 1024
    max_useless: int = 1000
    max_zero_requests: int = 16
    setup_timeout: float = 5.0
    frame_timeout: float = 10.0
    max_lifetime: float = 600.0
    mtu: int = 64 * 1024
    watermark: int = 64 * 1024
    chunk: int = 256
    max_backlog: int = 1024 * 1024

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if not value > 0:
                raise ValueError(f"{name} must be greater than zero, not {value!r}")
        if not 64 <= self.mtu <= MAX_FRAME:
            raise ValueError(f"mtu must be from 64 to {MAX_FRAME}, not {self.mtu}")
        if self.max_frame > MAX_FRAME:
            raise ValueError(f"max_frame must be at most {MAX_FRAME}, not {self.max_frame}")
